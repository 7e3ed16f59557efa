#include "ctest/stress/stress.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"
#include "ctest/support/check.h"
#include "ctest/support/pair.h"
#include "soft/base/clock.h"

#define USUAL_SECONDS 2
#define USUAL_TIMEOUT 60 /* seconds; a loaded machine may take a thread its processor for long */

/* The one of this process, for signal handlers. */
static struct stress *current;

static uint64_t now(void)
{
	struct soft_clock wall;

	soft_clock_wall(&wall);
	return wall.now(&wall);
}

static void print_how_to_repeat(void)
{
	if (current)
		fprintf(stderr, "repeat: %s %llu %u\n", current->arguments[0],
			(unsigned long long)current->seed, current->seconds);
}

void stress_open(struct stress *stress, int count, char **arguments)
{
	if (!on_soft("devices that go away"))
		exit(0);
	*stress = (struct stress){.arguments = (const char *const *)arguments, .seed = 1,
				  .seconds = USUAL_SECONDS, .timeout = USUAL_TIMEOUT};
	if (count > 1)
		stress->seed = strtoull(arguments[1], NULL, 10);
	if (count > 2)
		stress->seconds = (unsigned int)strtoul(arguments[2], NULL, 10);
	if (count > 3)
		stress->timeout = (unsigned int)strtoul(arguments[3], NULL, 10);
	current = stress;
	CHECK(!atexit(print_how_to_repeat));
	stress->provider = open_provider();
	core_select(stress->provider);
}

void stress_add(struct stress *stress, const char *name, unsigned int number,
		void (*run)(struct stress_thread *thread))
{
	struct stress_thread *thread = &stress->threads[stress->count];

	CHECK(stress->count < STRESS_THREADS);
	*thread = (struct stress_thread){.stress = stress, .name = name, .number = number, .run = run};
	thread->random.state = stress->seed * STRESS_THREADS + stress->count++;
	atomic_store(&thread->doing, "begins");
}

static void *run_thread(void *argument)
{
	struct stress_thread *thread = argument;

	core_select(thread->stress->provider);
	thread->run(thread);
	stress_does(thread, NULL);
	return NULL;
}

/* Whether all threads have made progress within the limit. */
static void *watch(void *argument)
{
	struct stress *stress = argument;
	uint64_t seen[STRESS_THREADS] = {0}, since[STRESS_THREADS];
	const struct timespec pause = {.tv_nsec = 100000000};
	bool stuck = false;

	for (unsigned int index = 0; index < stress->count; index++)
		since[index] = now();
	while (!stuck && !atomic_load(&stress->over)) {
		nanosleep(&pause, NULL);
		for (unsigned int index = 0; index < stress->count; index++) {
			struct stress_thread *thread = &stress->threads[index];
			uint64_t steps = atomic_load(&thread->steps);

			if (steps != seen[index] || !atomic_load(&thread->doing))
				since[index] = now();
			seen[index] = steps;
			stuck |= now() - since[index] > stress->timeout * SOFT_SECOND;
		}
	}
	if (!stuck)
		return NULL;
	for (unsigned int index = 0; index < stress->count; index++) {
		const char *doing = atomic_load(&stress->threads[index].doing);

		fprintf(stderr, "%s %u %s, for %llu s\n", stress->threads[index].name,
			stress->threads[index].number, doing ? doing : "has ended",
			(unsigned long long)((now() - since[index]) / SOFT_SECOND));
	}
	print_how_to_repeat();
	abort();
}

void stress_run(struct stress *stress)
{
	pthread_t watchdog;

	stress->end = now() + stress->seconds * SOFT_SECOND;
	for (unsigned int index = 0; index < stress->count; index++)
		CHECK(!pthread_create(&stress->threads[index].thread, NULL, run_thread,
				      &stress->threads[index]));
	CHECK(!pthread_create(&watchdog, NULL, watch, stress));
	for (unsigned int index = 0; index < stress->count; index++) {
		CHECK(!pthread_join(stress->threads[index].thread, NULL));
		stress->rounds += stress->threads[index].rounds;
	}
	atomic_store(&stress->over, true);
	CHECK(!pthread_join(watchdog, NULL));
}

void stress_close(struct stress *stress)
{
	close_provider(stress->provider);
	printf("seed %llu: %u threads, %llu rounds in %u s\n", (unsigned long long)stress->seed, stress->count,
	       (unsigned long long)stress->rounds, stress->seconds);
	current = NULL;
}

bool stress_goes_on(const struct stress *stress)
{
	return now() < stress->end;
}

void stress_does(struct stress_thread *thread, const char *doing)
{
	if (atomic_exchange(&thread->doing, doing) != doing)
		stress_progresses(thread);
}

void stress_progresses(struct stress_thread *thread)
{
	atomic_fetch_add(&thread->steps, 1);
}

void stress_meeting_init(struct stress_meeting *meeting)
{
	*meeting = (struct stress_meeting){0};
	CHECK(!pthread_mutex_init(&meeting->lock, NULL));
	CHECK(!pthread_cond_init(&meeting->both, NULL));
}

void stress_meet(struct stress_thread *thread, struct stress_meeting *meeting, const char *doing)
{
	unsigned int turn;

	stress_does(thread, doing);
	pthread_mutex_lock(&meeting->lock);
	turn = meeting->turn;
	if (++meeting->there == 2) {
		meeting->there = 0;
		meeting->turn++;
		pthread_cond_broadcast(&meeting->both);
	}
	while (meeting->turn == turn)
		pthread_cond_wait(&meeting->both, &meeting->lock);
	pthread_mutex_unlock(&meeting->lock);
}

uint32_t stress_below(struct stress_thread *thread, uint32_t limit)
{
	return (uint32_t)(soft_random_next(&thread->random) % limit);
}

void stress_pause(struct stress_thread *thread)
{
	const struct timespec nap = {.tv_nsec = 20000};

	if (stress_below(thread, 8))
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

/* Bytes of the key, repeated, so that a piece of another message is detected at any offset. */
static uint8_t byte_of(uint64_t key, uint32_t index)
{
	return (uint8_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> (index % 8 * 8)) ^ (uint8_t)(index / 8);
}

void stress_fill(void *memory, uint32_t length, uint64_t key)
{
	for (uint32_t index = 0; index < length; index++)
		((uint8_t *)memory)[index] = byte_of(key, index);
}

bool stress_check(const void *memory, uint32_t length, uint64_t key)
{
	for (uint32_t index = 0; index < length; index++)
		if (((const uint8_t *)memory)[index] != byte_of(key, index))
			return false;
	return true;
}

void stress_remove_device(struct stress_thread *thread)
{
	struct core_provider *provider = thread->stress->provider;
	struct core_fault fault = {.action = CORE_FAULT_REMOVE_DEVICE};
	uint32_t affected;
	int rule;

	while (stress_goes_on(thread->stress)) {
		stress_does(thread, "lets the device be");
		usleep(1000 + stress_below(thread, 100000));
		stress_does(thread, "removes the device");
		rule = core_fault_add(provider, &fault);
		CHECK(rule >= 0);
		usleep(stress_below(thread, 2000));
		stress_does(thread, "brings the device back");
		CHECK(!core_fault_remove(provider, rule, &affected));
		thread->rounds++;
	}
}
