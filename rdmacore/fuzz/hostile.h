/* What the hostile programs share: numbers, right and wrong ones, from one seed, and the memory of the process. */
#ifndef FUZZ_HOSTILE_H
#define FUZZ_HOSTILE_H

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "soft/base/random.h"

static struct soft_random random_state;

static inline uint64_t below(uint64_t limit)
{
	return soft_random_next(&random_state) % limit;
}

/* A right number, one near it, or any number. */
static inline uint32_t near(uint32_t right)
{
	switch (below(4)) {
	case 0:
		return (uint32_t)soft_random_next(&random_state) & 0xffffff;
	case 1:
		return (right + (uint32_t)below(64) - 32) & 0xffffff;
	default:
		return right;
	}
}

/* Resident memory of the process in bytes. */
static inline long resident(void)
{
	long total = 0, pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	CHECK(file && fscanf(file, "%ld %ld", &total, &pages) == 2);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}
#endif
