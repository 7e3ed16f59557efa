/*
 * Numbers that others must not guess: memory keys, queue pair numbers, communication ids, starting PSNs, ports.  Who
 * has seen some of them, and be it all bits, knows nothing of the others; and with a known seed a run repeats exactly.
 *
 * What only has to repeat, and be even, is soft/base/random.h's: the chances of faults and of simulated links.
 */
#ifndef SOFT_BASE_SECRET_H
#define SOFT_BASE_SECRET_H

#include <stdint.h>

/* Guarded by whoever owns it. */
struct soft_secret {
	uint64_t key;
	uint64_t drawn; /* how many */
};

/* SipHash-2-4 of the count of draws under the key (Aumasson, Bernstein: "SipHash: a fast short-input PRF"). */
uint64_t soft_secret_next(struct soft_secret *secret);

/*
 * A permutation of the numbers of that many bits, which are even: numbers that are counted come out as if they were
 * drawn, and yet none comes twice before all others came.  soft_secret_restore is its inverse.
 */
uint32_t soft_secret_permute(uint64_t key, unsigned int bits, uint32_t number);
uint32_t soft_secret_restore(uint64_t key, unsigned int bits, uint32_t number);

#endif
