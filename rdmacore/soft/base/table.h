/*
 * A table from 24-bit numbers (queue pair numbers, communication ids) to objects. Objects get consecutive slots, and
 * the number of a slot is a secret permutation of it. So the next number cannot be guessed, and a number is used
 * again only after all others: late packets do not reach a new object.
 *
 * A table may own only some of the numbers: blocks of 4096 that it claims one after another. It permutes the lower
 * twelve bits of their numbers. It claims another block before it uses a number again, up to SOFT_TABLE_BLOCKS, and
 * after that when all numbers are in use.
 */
#ifndef SOFT_BASE_TABLE_H
#define SOFT_BASE_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "soft/base/legal.h"
#include "soft/base/mutex.h"

#define SOFT_TABLE_LEAF_BITS 10 /* a leaf has 8 KiB, and is allocated when it is used */
#define SOFT_TABLE_LEAVES (1 << (24 - SOFT_TABLE_LEAF_BITS))
#define SOFT_TABLE_BLOCK_BITS 12
#define SOFT_TABLE_BLOCKS 16 /* 65,536 numbers before one is used again */
#define SOFT_TABLE_RECENT 16 /* queue pairs that are busy at the same time */

struct soft_table_leaf;

/* Provides blocks of numbers. */
struct soft_table_block_source {
	/* Claim another block; -EAGAIN if there is none, or a negative errno. table.lock is held. */
	int (*new_block)(struct soft_table_block_source *block_source, uint32_t *block);
};

struct soft_table {
	struct soft_mutex lock;
	uint64_t key; /* of the permutation */
	uint32_t next; /* the next slot */
	uint32_t first; /* lower numbers are reserved */
	uint32_t count;
	uint32_t limit;
	struct soft_legal *legal; /* NULL: no choice is ever made */
	uint32_t high; /* how many of the highest numbers were tried */
	struct soft_table_leaf **leaves;
	struct soft_table_block_source *block_source; /* NULL: the table owns all numbers */
	/*
	 * Slots found last, by the low bits of their numbers: computing one costs four SipHashes, and most packets
	 * are for few numbers.
	 */
	struct {
		uint32_t number, slot;
	} recent[SOFT_TABLE_RECENT];
	uint32_t *blocks; /* the claimed ones; next is in blocks[block] */
	uint32_t block_count, block;
};

/* first: lowest number; limit: maximum number of objects; key: a secret. -ENOMEM. */
int soft_table_init(struct soft_table *table, uint32_t first, uint32_t limit, uint64_t key);
/* From now on use only numbers of claimed blocks. The table is empty. */
void soft_table_use_blocks(struct soft_table *table, struct soft_table_block_source *block_source);
/* Now and then assign one of the highest numbers, by legal choice (CORE_LEGAL_NUMBERS_HIGH); not from blocks. */
void soft_table_choose(struct soft_table *table, struct soft_legal *legal);
void soft_table_destroy(struct soft_table *table);

/*
 * Store object under a new number. -ENOMEM if the table is full or there is no memory, or a negative errno of a
 * claim.
 */
int soft_table_insert(struct soft_table *table, void *object, uint32_t *number);
void soft_table_remove(struct soft_table *table, uint32_t number);
/*
 * The object with that number, or NULL. hold, unless NULL, takes a reference with the table locked, before the object
 * can be removed.
 */
void *soft_table_find(struct soft_table *table, uint32_t number, void (*hold)(void *object));
/* The first object from *slot on, in the order of insertion, and its slot in *slot; NULL if there is none. */
void *soft_table_next(struct soft_table *table, uint32_t *slot, void (*hold)(void *object));

#endif
