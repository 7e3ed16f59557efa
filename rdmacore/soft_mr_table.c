#include "soft_mr_table.h"

#include <errno.h>
#include <stdlib.h>

int soft_mr_table_init(struct soft_mr_table *table, uint64_t random)
{
	*table = (struct soft_mr_table){.used = 1, .tag = (uint8_t)random};
	table->leaves = calloc(SOFT_MR_MAX / SOFT_MR_LEAF, sizeof(*table->leaves));
	if (!table->leaves)
		return -ENOMEM;
	table->free = malloc(SOFT_MR_MAX * sizeof(*table->free));
	if (!table->free)
		goto free_leaves;
	pthread_mutex_init(&table->lock, NULL);
	return 0;

free_leaves:
	free(table->leaves);
	return -ENOMEM;
}

void soft_mr_table_destroy(struct soft_mr_table *table)
{
	for (size_t leaf = 0; leaf < SOFT_MR_MAX / SOFT_MR_LEAF; leaf++)
		free(atomic_load_explicit(&table->leaves[leaf], memory_order_relaxed));
	free(table->leaves);
	free(table->free);
	pthread_mutex_destroy(&table->lock);
}

static struct soft_mr_slot *slot_of(struct soft_mr_table *table, uint32_t index)
{
	_Atomic(struct soft_mr_slot *) *leaf = &table->leaves[index / SOFT_MR_LEAF];
	struct soft_mr_slot *slots = atomic_load_explicit(leaf, memory_order_relaxed);

	if (!slots) {
		slots = calloc(SOFT_MR_LEAF, sizeof(*slots));
		if (!slots)
			return NULL;
		atomic_store_explicit(leaf, slots, memory_order_release);
	}
	return &slots[index % SOFT_MR_LEAF];
}

/* Fresh slots first and freed ones oldest first, so that a stale key stays wrong for long. */
uint32_t soft_mr_table_take(struct soft_mr_table *table, struct soft_mr_slot **slot)
{
	uint32_t index;

	if (table->used < SOFT_MR_MAX) {
		*slot = slot_of(table, table->used);
		return *slot ? table->used++ : 0;
	}
	if (table->free_count == 0)
		return 0;
	index = table->free[table->free_head];
	table->free_head = (table->free_head + 1) % SOFT_MR_MAX;
	table->free_count--;
	*slot = slot_of(table, index);
	return index;
}

void soft_mr_table_free(struct soft_mr_table *table, uint32_t index)
{
	atomic_store_explicit(&slot_of(table, index)->pd, NULL, memory_order_release);
	table->free[(table->free_head + table->free_count++) % SOFT_MR_MAX] = index;
}

struct soft_mr_slot *soft_mr_table_slot(struct soft_mr_table *table, uint32_t key)
{
	uint32_t index = key >> 8;

	return index && index < table->used ? slot_of(table, index) : NULL;
}

bool soft_mr_table_extent(struct soft_mr_table *table, uint32_t key, uint64_t *address, uint64_t *length)
{
	uint32_t index = key >> 8;
	struct soft_mr_slot *leaf, *slot;

	if (index >= SOFT_MR_MAX)
		return false;
	leaf = atomic_load_explicit(&table->leaves[index / SOFT_MR_LEAF], memory_order_acquire);
	if (!leaf)
		return false;
	slot = &leaf[index % SOFT_MR_LEAF];
	*address = atomic_load_explicit(&slot->address, memory_order_acquire);
	*length = atomic_load_explicit(&slot->length, memory_order_acquire);
	return true;
}
