#include "soft/base/random.h"

/* The permutation is a Feistel network. Four rounds are the fewest that hide both halves (Luby, Rackoff). */
#define FEISTEL_ROUNDS 4

static inline uint64_t rotate(uint64_t word, unsigned int bits)
{
	return word << bits | word >> (64 - bits);
}

/* Passed by value, the state stays in registers. A connection takes about fifty hashes. */
struct sip {
	uint64_t a, b, c, d;
};

static inline struct sip mix(struct sip v)
{
	v.a += v.b;
	v.b = rotate(v.b, 13) ^ v.a;
	v.a = rotate(v.a, 32);
	v.c += v.d;
	v.d = rotate(v.d, 16) ^ v.c;
	v.a += v.d;
	v.d = rotate(v.d, 21) ^ v.a;
	v.c += v.b;
	v.b = rotate(v.b, 17) ^ v.c;
	v.c = rotate(v.c, 32);
	return v;
}

static inline struct sip absorb(struct sip v, uint64_t word)
{
	v.d ^= word;
	v = mix(mix(v));
	v.a ^= word;
	return v;
}

uint64_t soft_secret_hash(uint64_t key, uint64_t message)
{
	struct sip v = {
		key ^ UINT64_C(0x736f6d6570736575), UINT64_C(0x646f72616e646f6d),
		key ^ UINT64_C(0x6c7967656e657261), UINT64_C(0x7465646279746573),
	};

	/* The last block of the message contains its length, 8 bytes. */
	v = absorb(absorb(v, message), UINT64_C(8) << 56);
	v.c ^= 0xff;
	v = mix(mix(mix(mix(v))));
	return v.a ^ v.b ^ v.c ^ v.d;
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
