/* Numbers that cannot be guessed: keys, queue pair numbers, and what they are derived from. */
#include "ctest/support/check.h"
#include "soft/base/random.h"
#include "soft/base/table.h"
#include "soft/objects/mr_table.h"

/*
 * The same numbers as of another implementation: openssl mac -macopt hexkey:07000000000000000000000000000000 -macopt
 * size:8 SIPHASH.
 */
static void test_draws(void)
{
	struct soft_secret secret = {.key = 7};

	CHECK(soft_secret_next(&secret) == UINT64_C(0x20dd4b78fb033135));
	CHECK(soft_secret_next(&secret) == UINT64_C(0x64701a2367c02272));
}

static void test_draws_repeat(void)
{
	struct soft_secret secret = {.key = 7}, again = {.key = 7}, other = {.key = 8};

	for (int draw = 0; draw < 1000; draw++) {
		uint64_t number = soft_secret_next(&secret);

		CHECK(number == soft_secret_next(&again));
		CHECK(number != soft_secret_next(&other));
	}
}

/* Four rounds of a Feistel network, each with the low bits of SipHash-2-4 of the round and half of the number. */
static void test_known_permutation(void)
{
	CHECK(soft_secret_permute(7, 24, 0) == 0xde6f88);
	CHECK(soft_secret_permute(7, 24, 1) == 0x8e5ead);
	CHECK(soft_secret_permute(7, 24, 0xabcdef) == 0x11f1e1);
	CHECK(soft_secret_permute(7, 12, 0) == 0xe6a);
	CHECK(soft_secret_permute(7, 12, 1) == 0x91d);
}

static void test_permutation(uint64_t key, unsigned int bits)
{
	uint32_t numbers = UINT32_C(1) << bits, in_order = 0;
	uint8_t *seen = calloc(numbers, 1);

	CHECK(seen);
	for (uint32_t number = 0, before = 0; number < numbers; number++) {
		uint32_t permuted = soft_secret_permute(key, bits, number);

		CHECK(permuted < numbers && !seen[permuted]);
		seen[permuted] = 1;
		CHECK(soft_secret_restore(key, bits, permuted) == number);
		in_order += permuted == before + 1;
		before = permuted;
	}
	/* With random numbers about one is expected. */
	CHECK(in_order < 20);
	free(seen);
}

/* Numbers of a table reveal neither its next number nor that of another table. */
static void test_table(void)
{
	struct soft_table table, other;
	uint32_t numbers[1000], differences = 0, same = 0;
	int object;

	CHECK(!soft_table_init(&table, 2, 1 << 20, 1));
	CHECK(!soft_table_init(&other, 2, 1 << 20, 2));
	for (int n = 0; n < 1000; n++) {
		uint32_t number;

		CHECK(!soft_table_insert(&table, &object, &numbers[n]));
		CHECK(!soft_table_insert(&other, &object, &number));
		CHECK(numbers[n] >= 2 && numbers[n] < 1 << 24);
		same += number == numbers[n];
		differences += n >= 2 && numbers[n] - numbers[n - 1] == numbers[n - 1] - numbers[n - 2];
	}
	CHECK(same < 3 && differences < 3);
	for (int n = 0; n < 1000; n++) {
		CHECK(soft_table_find(&table, numbers[n], NULL) == &object);
		CHECK(soft_table_find(&table, numbers[n], NULL) == &object); /* its place is known now */
		soft_table_remove(&table, numbers[n]);
		CHECK(!soft_table_find(&table, numbers[n], NULL));
	}
	soft_table_destroy(&table);
	soft_table_destroy(&other);
}

#define ROUNDS 5 /* of all slots: a key with an 8-bit tag would repeat in most slots after 256 */

/* A slot that is used again has another key each time, and none is 0. */
static void test_keys(void)
{
	static uint32_t former[ROUNDS][1 << SOFT_KEY_INDEX_BITS];
	struct soft_mr_table table;
	uint32_t counted = 0, before = 0;

	CHECK(!soft_mr_table_init(&table, 5));
	soft_mutex_lock(&table.lock);
	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t n = 0; n < SOFT_MR_MAX - 1; n++) {
			uint32_t key = soft_mr_table_take(&table), index = key >> SOFT_KEY_TAG_BITS;

			CHECK(key && index);
			for (int earlier = 0; earlier < round; earlier++)
				CHECK(former[earlier][index] != key);
			CHECK(!former[round][index]); /* every other slot comes first */
			former[round][index] = key;
			counted += index == before + 1;
			before = index;
		}
		CHECK(!soft_mr_table_take(&table));
		for (uint32_t index = 1; index < SOFT_MR_MAX; index++)
			soft_mr_table_free(&table, former[round][index]);
	}
	/* The second and later rounds are in the order in which this test gave them back. */
	CHECK(counted < (ROUNDS - 1) * (SOFT_MR_MAX - 1) + 20);
	soft_mutex_unlock(&table.lock);
	soft_mr_table_destroy(&table);
}

int main(void)
{
	test_draws();
	test_draws_repeat();
	test_known_permutation();
	for (uint64_t key = 1; key < 4; key++) {
		test_permutation(key, SOFT_KEY_TAG_BITS);
		test_permutation(key, SOFT_KEY_INDEX_BITS);
	}
	test_permutation(9, 24);
	test_table();
	test_keys();
	return 0;
}
