#include "soft_mr.h"

#include <errno.h>
#include <stdlib.h>

#include "soft_device.h"
#include "soft_lock.h"
#include "soft_pd.h"

#define SOFT_MR_ACCESS                                                                             \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING)

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

/*
 * Fresh slots first and freed ones oldest first, so that a stale key stays wrong for long.  Returns
 * the index, or 0 when there is no memory or no slot left.  table->lock is held.
 */
static uint32_t take_slot(struct soft_mr_table *table, struct soft_mr_slot **slot)
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

struct ibv_mr *soft_reg_mr(struct ibv_pd *ibv_pd, void *address, size_t length, int access)
{
	struct soft_pd *pd = soft_pd(ibv_pd);
	struct soft_mr_table *table = &soft_device(ibv_pd->context->device)->memory;
	struct soft_mr_slot *slot;
	struct soft_mr *mr;

	if (access & ~SOFT_MR_ACCESS) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	/* ibv_reg_mr(3): remote write and atomic rights need the local one. */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	     !(access & IBV_ACCESS_LOCAL_WRITE)) ||
	    (uintptr_t)address + length < (uintptr_t)address) {
		errno = EINVAL;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	pthread_mutex_lock(&table->lock);
	mr->index = take_slot(table, &slot);
	if (mr->index) {
		uint32_t key = mr->index << 8 | ++table->tag;

		slot->access = (uint32_t)access;
		slot->address = (uintptr_t)address;
		slot->length = length;
		atomic_store_explicit(&slot->pd, pd, memory_order_relaxed);
		atomic_store_explicit(&slot->key, key, memory_order_release);
		mr->ibv.lkey = key;
		mr->ibv.rkey = key;
	}
	pthread_mutex_unlock(&table->lock);
	if (!mr->index) {
		free(mr);
		errno = ENOMEM;
		return NULL;
	}
	atomic_fetch_add(&pd->users, 1);
	mr->ibv.context = ibv_pd->context;
	mr->ibv.pd = ibv_pd;
	mr->ibv.addr = address;
	mr->ibv.length = length;
	mr->ibv.handle = mr->index;
	return &mr->ibv;
}

int soft_dereg_mr(struct ibv_mr *ibv_mr)
{
	struct soft_mr *mr = (struct soft_mr *)ibv_mr;
	struct soft_pd *pd = soft_pd(ibv_mr->pd);
	struct soft_mr_table *table = &soft_device(ibv_mr->context->device)->memory;
	struct soft_mr_slot *slot;

	pthread_mutex_lock(&table->lock);
	slot = slot_of(table, mr->index);
	atomic_store_explicit(&slot->key, 0, memory_order_release);
	pthread_mutex_unlock(&table->lock);

	soft_pd_quiesce(pd);

	pthread_mutex_lock(&table->lock);
	atomic_store_explicit(&slot->pd, NULL, memory_order_relaxed);
	table->free[(table->free_head + table->free_count++) % SOFT_MR_MAX] = mr->index;
	pthread_mutex_unlock(&table->lock);
	atomic_fetch_sub(&pd->users, 1);
	free(mr);
	return 0;
}
