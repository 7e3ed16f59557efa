/* What a provider counts. */
#ifndef PROVIDER_TALLY_H
#define PROVIDER_TALLY_H

#include <stdatomic.h>
#include <stdint.h>

#define CORE_COUNTERS_MAX 48
#define CORE_FAULTS_MAX 64 /* rules in force at the same time */

/* A counter of a device, by its name in the kernel (sysfs, hw_counters). Two names may have one index. */
struct core_counter {
	const char *name;
	uint32_t index; /* in struct core_tally */
	uint64_t value;
};

/* The memory may be shared with a process that reads it at any time, also after this one was killed. */
struct core_tally {
	_Atomic uint64_t counters[CORE_COUNTERS_MAX];
	_Atomic uint32_t applied[CORE_FAULTS_MAX]; /* what the last rule of each number was applied to */
};

#endif
