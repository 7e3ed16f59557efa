/*
 * A table from 24-bit numbers (queue pair numbers, communication ids) to objects.  An object has a place, which is
 * counted, and its number is the place under a secret permutation: nobody can guess the next one, and one comes round
 * only after all others, so a number that a late packet may still carry is not used again soon.
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
/*
 * The object under number, or NULL.  hold, when given, is called with the table locked, so that the
 * object can gain a reference before anyone could remove it.
 */
void *soft_table_find(struct soft_table *table, uint32_t number, void (*hold)(void *object));
/*
 * The first object from *place on, which becomes its place; NULL when there is none.  They stand in the order in which
 * they came.
 */
void *soft_table_next(struct soft_table *table, uint32_t *place, void (*hold)(void *object));

#endif
