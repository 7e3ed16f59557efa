/* What the programs of this folder share: time, and a row of the table that internal/bench reads. */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double nanoseconds(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static inline double now(void)
{
	return nanoseconds(CLOCK_MONOTONIC);
}

/* For single-threaded work: on a shared machine wall-clock time includes other programs. */
static inline double processor_time(void)
{
	return nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

static inline int ascending(const void *a, const void *b)
{
	double difference = *(const double *)a - *(const double *)b;

	return (difference > 0) - (difference < 0);
}

/* Sorts values. */
static inline double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), ascending);
	return values[count / 2];
}

/* One line: name, value, unit. */
static inline void report(const char *name, double value, const char *unit)
{
	printf("%s %.4f %s\n", name, value, unit);
	fflush(stdout);
}

#endif
