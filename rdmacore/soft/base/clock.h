/*
 * Time in nanoseconds. The clock is always a parameter. So a virtual clock, which jumps to the next deadline, can
 * replace the real one.
 */
#ifndef SOFT_BASE_CLOCK_H
#define SOFT_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct soft_clock {
	uint64_t (*now)(struct soft_clock *clock); /* nanoseconds, monotonic */
	_Atomic uint64_t standing; /* virtual clocks only: the time, which only soft_timers_advance changes */
};

#define SOFT_MICROSECOND UINT64_C(1000)
#define SOFT_MILLISECOND UINT64_C(1000000)
#define SOFT_SECOND UINT64_C(1000000000)

/* CLOCK_MONOTONIC of the machine. */
void soft_clock_wall(struct soft_clock *clock);
/* Shows 1 s until soft_timers_advance changes it. */
void soft_clock_virtual(struct soft_clock *clock);
/* The clock's 0 in nanoseconds since 1970. A virtual clock begins in 1970, so that runs repeat exactly. */
uint64_t soft_clock_epoch(struct soft_clock *clock);
/* Processor time of the calling thread. */
uint64_t soft_clock_of_thread(void);
bool soft_clock_is_virtual(const struct soft_clock *clock);

#endif
