/*
 * What the stress programs share: threads that execute random operations for a while, each by its own random sequence
 * from the seed; and a watchdog. The watchdog ends a run in which a thread makes no progress, and prints what all of
 * them were doing.
 *
 * A program is called with a seed, a number of seconds, and the seconds that the watchdog waits. The interleaving of
 * threads is not repeatable, but the operations of each one are.
 */
#ifndef CTEST_STRESS_STRESS_H
#define CTEST_STRESS_STRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "provider/provider.h"
#include "soft/base/random.h"

#define STRESS_THREADS 17 /* at most */

struct stress;

struct stress_thread {
	struct stress *stress;
	const char *name;
	unsigned int number; /* among those of its name */
	void (*run)(struct stress_thread *thread);
	struct soft_random random;
	_Atomic(const char *) doing;
	_Atomic uint64_t steps; /* the watchdog looks whether it grows */
	uint64_t rounds; /* operations that the thread has completed */
	pthread_t thread;
};

struct stress {
	struct core_provider *provider;
	const char *const *arguments;
	uint64_t seed;
	unsigned int seconds, timeout;
	uint64_t end; /* nanoseconds of the wall clock */
	struct stress_thread threads[STRESS_THREADS];
	unsigned int count;
	uint64_t rounds; /* of all threads, when they have ended */
	_Atomic bool over;
};

/* A barrier of two threads. */
struct stress_meeting {
	pthread_mutex_t lock;
	pthread_cond_t both;
	unsigned int there, turn;
};

/* With the arguments of main; opens the provider. */
void stress_open(struct stress *stress, int count, char **arguments);
/* To be started with the others. */
void stress_add(struct stress *stress, const char *name, unsigned int number,
		void (*run)(struct stress_thread *thread));
/* Start all, and wait for their ends. */
void stress_run(struct stress *stress);
/* Close the provider, which must have no objects left, and print the counts. */
void stress_close(struct stress *stress);

bool stress_goes_on(const struct stress *stress);
/* What the thread does from now on, for the watchdog: "waits for its peer". */
void stress_does(struct stress_thread *thread, const char *doing);
/* It has done a part of that, and is not stuck. */
void stress_progresses(struct stress_thread *thread);
void stress_meeting_init(struct stress_meeting *meeting);
/* Returns when both have come; doing as for stress_does. */
void stress_meet(struct stress_thread *thread, struct stress_meeting *meeting, const char *doing);
/* Below limit. */
uint32_t stress_below(struct stress_thread *thread, uint32_t limit);
/* Yield to other threads: sometimes for longer. */
void stress_pause(struct stress_thread *thread);

/* The payload of a message, by its key; check: whether it is whole. */
void stress_fill(void *memory, uint32_t length, uint64_t key);
bool stress_check(const void *memory, uint32_t length, uint64_t key);

/* A thread's run: the device is removed and comes back, again and again. */
void stress_remove_device(struct stress_thread *thread);

#endif
