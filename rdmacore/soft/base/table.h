/*
 * A table from 24-bit numbers (queue pair numbers, communication ids) to objects.  Objects get consecutive slots, and
 * the number of a slot is a secret permutation of it: the next number cannot be guessed, and a number is used again
 * only after all others, so late packets do not meet a new object.
 *
 * A table may own some of the numbers only: blocks of 4096 that it claims one after another, of which it permutes the
 * lower twelve bits.  It claims the next one before it uses a number again, up to SOFT_TABLE_BLOCKS, and after that when
 * all numbers are in use.
 */
#ifndef SOFT_BASE_TABLE_H
#define SOFT_BASE_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "soft/base/mutex.h"

#define SOFT_TABLE_LEAF_BITS 10
#define SOFT_TABLE_LEAVES (1 << (24 - SOFT_TABLE_LEAF_BITS))
#define SOFT_TABLE_BLOCK_BITS 12
#define SOFT_TABLE_BLOCKS 16
#define SOFT_TABLE_RECENT 16

struct soft_table_leaf;

/* Who hands out blocks. */
struct soft_table_block_source {
	/* Another block that is ours from now on; -EAGAIN when there is none, or an errno.  table.lock is held. */
	int (*new_block)(struct soft_table_block_source *block_source, uint32_t *block);
};

struct soft_table {
	struct soft_mutex lock;
	uint64_t key; /* of the permutation */
	uint32_t next; /* slot */
	uint32_t first; /* numbers below are reserved */
	uint32_t count;
	uint32_t limit;
	struct soft_table_leaf **leaves;
	struct soft_table_block_source *block_source; /* NULL: all numbers are its own */
	/* Places found last, by the low bits of their numbers: a number costs four SipHashes, and most packets are for few. */
	struct {
		uint32_t number, slot;
	} recent[SOFT_TABLE_RECENT];
	uint32_t *blocks; /* those that are its own; next is in blocks[block] */
	uint32_t block_count, block;
};

/* first: lowest number that may be given; limit: objects at most; key: a secret.  -ENOMEM. */
int soft_table_init(struct soft_table *table, uint32_t first, uint32_t limit, uint64_t key);
/* From now on only numbers of blocks that are claimed.  The table is empty. */
void soft_table_use_blocks(struct soft_table *table, struct soft_table_block_source *block_source);
void soft_table_destroy(struct soft_table *table);

/* Store object under a new number.  -ENOMEM when full or out of memory, or the errno of a claim. */
int soft_table_insert(struct soft_table *table, void *object, uint32_t *number);
void soft_table_remove(struct soft_table *table, uint32_t number);
/* The object under number, or NULL.  hold, if not NULL, takes a reference with the table locked, before it can be removed. */
void *soft_table_find(struct soft_table *table, uint32_t number, void (*hold)(void *object));
/* The first object from *slot on, in the order of insertion, with its slot in *slot; NULL when there is none. */
void *soft_table_next(struct soft_table *table, uint32_t *slot, void (*hold)(void *object));

#endif
