/*
 * Seeded random numbers for what has to repeat with its seed and need not be secret: the chances of faults and of
 * simulated links.  Each generator is guarded by whoever owns it.
 */
#ifndef SOFT_BASE_RANDOM_H
#define SOFT_BASE_RANDOM_H

#include <stdint.h>

struct soft_random {
	uint64_t state;
};

/* One step of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators"). */
static inline uint64_t soft_random_next(struct soft_random *random)
{
	uint64_t mixed = (random->state += UINT64_C(0x9e3779b97f4a7c15));

	mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ (mixed >> 31);
}

#endif
