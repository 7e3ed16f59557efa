#include "soft/base/random.h"

/* The permutation is a Feistel network; four rounds are the fewest that hide both halves (Luby, Rackoff). */
#define FEISTEL_ROUNDS 4

static inline uint64_t rotate(uint64_t word, unsigned int bits)
{
	return word << bits | word >> (64 - bits);
}

static void mix(uint64_t v[4], int rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[0] = rotate(v[0], 32);
		v[2] += v[3];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

uint64_t soft_secret_hash(uint64_t key, uint64_t message)
{
	uint64_t v[4] = {
		key ^ UINT64_C(0x736f6d6570736575), UINT64_C(0x646f72616e646f6d),
		key ^ UINT64_C(0x6c7967656e657261), UINT64_C(0x7465646279746573),
	};
	/* What ends the message says that it has 8 bytes. */
	const uint64_t words[] = {message, UINT64_C(8) << 56};

	for (int word = 0; word < 2; word++) {
		v[3] ^= words[word];
		mix(v, 2);
		v[0] ^= words[word];
	}
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t soft_secret_next(struct soft_secret *secret)
{
	return soft_secret_hash(secret->key, secret->drawn++);
}

static uint32_t round_of(uint64_t key, unsigned int round, uint32_t half)
{
	return (uint32_t)soft_secret_hash(key, (uint64_t)round << 32 | half);
}

uint32_t soft_secret_permute(uint64_t key, unsigned int bits, uint32_t number)
{
	uint32_t mask = (UINT32_C(1) << bits / 2) - 1, left = number >> bits / 2, right = number & mask;

	for (unsigned int round = 1; round <= FEISTEL_ROUNDS; round++) {
		uint32_t before = left;

		left = right;
		right = before ^ (round_of(key, round, right) & mask);
	}
	return left << bits / 2 | right;
}

uint32_t soft_secret_restore(uint64_t key, unsigned int bits, uint32_t number)
{
	uint32_t mask = (UINT32_C(1) << bits / 2) - 1, left = number >> bits / 2, right = number & mask;

	for (unsigned int round = FEISTEL_ROUNDS; round; round--) {
		uint32_t before = right;

		right = left;
		left = before ^ (round_of(key, round, left) & mask);
	}
	return left << bits / 2 | right;
}
