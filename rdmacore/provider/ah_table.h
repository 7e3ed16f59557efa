/*
 * Address handles by number. A work request in flat form may come from untrusted memory (a guest's). So it contains
 * the number of its handle, not an address.
 */
#ifndef PROVIDER_AH_TABLE_H
#define PROVIDER_AH_TABLE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>

struct core_ah_slot {
	struct ibv_ah *ah; /* NULL while free */
	uint32_t number; /* generation << 24 | index */
	uint32_t next_free; /* index; 0: none */
};

struct core_ah_table {
	pthread_rwlock_t lock; /* held for reading while requests with the handles are posted */
	struct core_ah_slot *slots; /* the first is never used, so that no number is 0 */
	uint32_t count, room;
	uint32_t first_free, last_free; /* freed slots, oldest first, so that a stale number stays invalid for long */
};

/* 0 or a negative errno. */
int core_ah_table_init(struct core_ah_table *table);
void core_ah_table_destroy(struct core_ah_table *table);

/* A free slot, in which only the number is set; NULL without memory. The lock is held for writing. */
struct core_ah_slot *core_ah_table_take(struct core_ah_table *table);
/* The number becomes stale. The lock is held for writing. */
void core_ah_table_give_back(struct core_ah_table *table, uint32_t number);

/* The handle of that number in that protection domain, or NULL. table->lock is held. */
static inline struct ibv_ah *core_ah_find(const struct core_ah_table *table, uint32_t number,
					  const struct ibv_pd *pd)
{
	uint32_t index = number & 0xffffff;
	struct ibv_ah *ah;

	if (!index || index >= table->count || table->slots[index].number != number)
		return NULL;
	ah = table->slots[index].ah;
	return ah && ah->pd == pd ? ah : NULL;
}

#endif
