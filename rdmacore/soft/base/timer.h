/*
 * Timers of one soft fabric: a binary heap of deadlines, a queue of deferred work, and the thread that runs what is
 * due. Deferred work runs when nothing is due. An expire function with much work defers itself. The thread starts
 * when the first timer is armed, so a run without RNR waits or CM retries has none. With a virtual clock there is no
 * thread: soft_timers_advance runs the next timer.
 */
#ifndef SOFT_BASE_TIMER_H
#define SOFT_BASE_TIMER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "soft/base/clock.h"
#include "soft/base/mutex.h"

struct soft_timer {
	void (*expire)(struct soft_timer *timer);
	uint64_t deadline;
	size_t heap_index; /* index in the heap + 1; 0 while it is not there */
	struct soft_timer *next, **link; /* in the queue; link is NULL while the timer is not in it */
};

struct soft_timers {
	struct soft_mutex lock;
	pthread_cond_t changed; /* a deadline before waking, deferred work, or stopping */
	uint64_t waking; /* when the thread wakes up next; 0 while it is awake */
	pthread_cond_t finished; /* running became NULL */
	struct soft_clock *clock;
	struct soft_timer **heap;
	size_t armed;
	size_t reserved; /* registered timers, so that arming never allocates */
	size_t capacity;
	struct soft_timer *deferred, **last_deferred;
	struct soft_timer *running;
	pthread_t thread;
	bool started;
	bool stopping;
};

void soft_timers_init(struct soft_timers *timers, struct soft_clock *clock);
/* Stop the thread. No timer is registered. */
void soft_timers_destroy(struct soft_timers *timers);

/*
 * Virtual clock only. If a timer is due by limit: advance the clock to the earliest one, run it, and return true.
 * Otherwise advance the clock to limit, unless that is UINT64_MAX, and return false.
 */
bool soft_timers_advance(struct soft_timers *timers, uint64_t limit);

/* Reserve memory for the timer. expire runs on the timer thread with no lock held. -ENOMEM. */
int soft_timer_register(struct soft_timers *timers, struct soft_timer *timer,
			void (*expire)(struct soft_timer *timer));
/*
 * Cancel, and wait until a running expire has returned. The caller holds no lock that expire takes, and is not
 * expire.
 */
void soft_timer_unregister(struct soft_timers *timers, struct soft_timer *timer);

/* Arm or change: expire once, delay nanoseconds from now. -EAGAIN if the thread cannot be created. */
int soft_timer_arm(struct soft_timers *timers, struct soft_timer *timer, uint64_t delay);
/* For long work: expire once, when no timer is due, after timers that were deferred before. */
int soft_timer_defer(struct soft_timers *timers, struct soft_timer *timer);
/* Whether it will expire. */
bool soft_timer_is_armed(struct soft_timers *timers, struct soft_timer *timer);
/* expire may still run when this returns. */
void soft_timer_cancel(struct soft_timers *timers, struct soft_timer *timer);

#endif
