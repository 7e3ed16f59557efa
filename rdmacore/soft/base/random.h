/*
 * Random numbers of two kinds. With a known seed both repeat exactly. The owner of a generator guards it.
 *
 * Chance, for faults and simulated links: evenly distributed and fast.
 *
 * Secret numbers, for memory keys, queue pair numbers, communication ids, starting PSNs and ports. A user who knows
 * all bits of some of them learns nothing about the others.
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

struct soft_secret {
	uint64_t key;
	uint64_t drawn; /* how many numbers were drawn */
};

/* SipHash-2-4 of the count of draws under the key (Aumasson, Bernstein: "SipHash: a fast short-input PRF"). */
uint64_t soft_secret_next(struct soft_secret *secret);

/* SipHash-2-4 of a message of one word. The other half of its key is 0: a seed has 64 bits. */
uint64_t soft_secret_hash(uint64_t key, uint64_t message);

/*
 * A permutation of the numbers of an even number of bits: consecutive numbers look random, and yet none repeats
 * before all others have come. It is a Feistel network with rounds of SipHash-2-4. soft_secret_restore is its inverse.
 * Each takes about as long as four SipHashes.
 */
uint32_t soft_secret_permute(uint64_t key, unsigned int bits, uint32_t number);
uint32_t soft_secret_restore(uint64_t key, unsigned int bits, uint32_t number);

#endif
