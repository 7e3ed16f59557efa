/*
 * Memory regions and their keys.
 *
 * The data path looks a key up without a lock: it reads a slot of a table whose memory is never
 * freed while the device lives.  What keeps the region valid during the copy is the queue pair lock
 * that every look-up happens under: ibv_dereg_mr first clears the slot's key and then passes once
 * through the requester and the responder lock of every queue pair of the region's protection domain.
 * After that no copy with the old key can be under way, and none can begin.
 */
#ifndef SOFT_MR_H
#define SOFT_MR_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define SOFT_MR_LEAF 1024
#define SOFT_MR_MAX (1 << 20)

struct soft_pd;

struct soft_mr_slot {
	_Atomic uint32_t key; /* index << 8 | tag; 0 while free */
	uint32_t access;
	_Atomic(struct soft_pd *) pd;
	uint64_t address;
	uint64_t length;
};

struct soft_mr_table {
	pthread_mutex_t lock; /* writers: registration and deregistration */
	_Atomic(struct soft_mr_slot *) *leaves;
	uint32_t used; /* slots ever taken; slot 0 is never, so that no key is 0 */
	uint32_t *free; /* indexes to use again, oldest first: a ring of SOFT_MR_MAX */
	uint32_t free_head;
	uint32_t free_count;
	uint8_t tag;
};

struct soft_mr {
	struct ibv_mr ibv;
	uint32_t index;
};

int soft_mr_table_init(struct soft_mr_table *table, uint64_t random);
void soft_mr_table_destroy(struct soft_mr_table *table);

struct ibv_mr *soft_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access);
int soft_dereg_mr(struct ibv_mr *mr);

/*
 * The memory behind [address, address + length) when key belongs to pd, covers that range and grants
 * every right in access (enum ibv_access_flags); else NULL.  The caller holds a lock of a queue pair
 * of pd for as long as it uses the result.
 */
static inline void *soft_mr_translate(struct soft_mr_table *table, struct soft_pd *pd, uint32_t key,
				      uint64_t address, uint64_t length, uint32_t access)
{
	uint32_t index = key >> 8;
	struct soft_mr_slot *leaf, *slot;

	if (index >= SOFT_MR_MAX)
		return NULL;
	leaf = atomic_load_explicit(&table->leaves[index / SOFT_MR_LEAF], memory_order_acquire);
	if (!leaf)
		return NULL;
	slot = &leaf[index % SOFT_MR_LEAF];
	if (!key || atomic_load_explicit(&slot->key, memory_order_acquire) != key ||
	    atomic_load_explicit(&slot->pd, memory_order_relaxed) != pd)
		return NULL;
	/* From here on the slot is stable: its owner cannot pass our queue pair's lock. */
	if ((slot->access & access) != access || address < slot->address ||
	    length > slot->length || address - slot->address > slot->length - length)
		return NULL;
	return (void *)(uintptr_t)address;
}

#endif
