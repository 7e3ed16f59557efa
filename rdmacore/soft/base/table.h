/*
 * A table from 24-bit numbers (queue pair numbers, communication ids) to objects.  Objects get consecutive places, and
 * the number of a place is a secret permutation of it: the next number cannot be guessed, and a number is used again only
 * after all others, so late packets do not meet a new object.
 */
#ifndef SOFT_BASE_TABLE_H
#define SOFT_BASE_TABLE_H

#include <pthread.h>
#include <stdint.h>

#include "soft/base/mutex.h"

#define SOFT_TABLE_LEAF_BITS 10
#define SOFT_TABLE_LEAVES (1 << (24 - SOFT_TABLE_LEAF_BITS))

struct soft_table_leaf;

struct soft_table {
	struct soft_mutex lock;
	uint64_t key; /* of the permutation */
	uint32_t next; /* place */
	uint32_t first; /* numbers below are reserved */
	uint32_t count;
	uint32_t limit;
	struct soft_table_leaf **leaves;
};

/* first: lowest number that may be given; limit: objects at most; key: a secret.  -ENOMEM. */
int soft_table_init(struct soft_table *table, uint32_t first, uint32_t limit, uint64_t key);
void soft_table_destroy(struct soft_table *table);

/* Store object under a new number.  -ENOMEM when full or out of memory. */
int soft_table_insert(struct soft_table *table, void *object, uint32_t *number);
void soft_table_remove(struct soft_table *table, uint32_t number);
/* The object under number, or NULL.  hold, if not NULL, takes a reference with the table locked, before it can be removed. */
void *soft_table_find(struct soft_table *table, uint32_t number, void (*hold)(void *object));
/* The first object from *place on, in the order of insertion, with its place in *place; NULL when there is none. */
void *soft_table_next(struct soft_table *table, uint32_t *place, void (*hold)(void *object));

#endif
