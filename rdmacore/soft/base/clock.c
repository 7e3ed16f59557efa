#include "soft/base/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * SOFT_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t soft_clock_of_thread(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t wall_now(struct soft_clock *clock)
{
	(void)clock;
	return read_clock(CLOCK_MONOTONIC);
}

void soft_clock_wall(struct soft_clock *clock)
{
	clock->now = wall_now;
}

static uint64_t virtual_now(struct soft_clock *clock)
{
	return atomic_load_explicit(&clock->standing, memory_order_acquire);
}

void soft_clock_virtual(struct soft_clock *clock)
{
	clock->now = virtual_now;
	atomic_store_explicit(&clock->standing, SOFT_SECOND, memory_order_release);
}

uint64_t soft_clock_epoch(struct soft_clock *clock)
{
	return soft_clock_is_virtual(clock) ? 0 : read_clock(CLOCK_REALTIME) - clock->now(clock);
}

bool soft_clock_is_virtual(const struct soft_clock *clock)
{
	return clock->now == virtual_now;
}
