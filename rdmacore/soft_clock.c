#include "soft_clock.h"

#include <time.h>

static uint64_t wall_now(struct soft_clock *clock)
{
	struct timespec now;

	(void)clock;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SOFT_SECOND + (uint64_t)now.tv_nsec;
}

void soft_clock_wall(struct soft_clock *clock)
{
	clock->now = wall_now;
}
