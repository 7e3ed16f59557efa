/*
 * The table of memory keys: of regions and of windows.
 *
 * The data path looks a key up without a lock: it reads a slot of a table whose memory is never
 * freed while the device lives.  What keeps the region valid during the copy is the queue pair lock
 * that every look-up happens under: ibv_dereg_mr first clears the slot's key and then passes once
 * through the requester and the responder lock of every queue pair of the region's protection domain.
 * After that no copy with the old key can be under way, and none can begin.
 */
#ifndef SOFT_MR_TABLE_H
#define SOFT_MR_TABLE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SOFT_MR_LEAF 1024
#define SOFT_MR_MAX (1 << 20)

struct soft_pd;

/* Besides enum ibv_access_flags: the key is good as an lkey.  Regions have it, windows have not. */
#define SOFT_ACCESS_LOCAL (UINT32_C(1) << 31)

/*
 * A region, or a window on one.  A window changes while others read it, so every field is atomic and the
 * key is 0 meanwhile; a reader looks at the key before and after the rest.  Who has seen a new field has
 * seen the key go: fields are stored with release and loaded with acquire.
 */
struct soft_mr_slot {
	_Atomic uint32_t key; /* index << 8 | tag; 0 while free or, a window, not bound */
	_Atomic uint32_t access;
	_Atomic(struct soft_pd *) pd;
	_Atomic uint64_t address; /* as the owner of a key names it (iova) */
	_Atomic uint64_t length;
	_Atomic uint64_t memory; /* where address is in this process */
	_Atomic uint32_t qp_num; /* the one queue pair a type 2 window is good for; 0: any */
	uint32_t region; /* a bound window: index of its region; under table->lock */
	uint32_t windows; /* a region: windows bound to it; under table->lock */
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

int soft_mr_table_init(struct soft_mr_table *table, uint64_t random);
void soft_mr_table_destroy(struct soft_mr_table *table);

/* For soft_mw.c; table->lock is held.  A free index and its slot, or 0. */
uint32_t soft_mr_table_take(struct soft_mr_table *table, struct soft_mr_slot **slot);
void soft_mr_table_free(struct soft_mr_table *table, uint32_t index);
/* The slot of a key that was handed out once, whatever it is now; NULL for any other. */
struct soft_mr_slot *soft_mr_table_slot(struct soft_mr_table *table, uint32_t key);

/*
 * What the key covers, whoever may use it; false for a key that was never handed out.  What is found may be
 * of another key by now, so soft_mr_table_translate has the last word.
 */
bool soft_mr_table_extent(struct soft_mr_table *table, uint32_t key, uint64_t *address, uint64_t *length);

/*
 * The memory behind [address, address + length) when key belongs to pd, covers that range and grants
 * every right in access (enum ibv_access_flags, SOFT_ACCESS_LOCAL for an lkey); else NULL.  qp_num is
 * the queue pair that was asked (windows may be good for one only).  The caller holds a lock of a queue
 * pair of pd for as long as it uses the result.
 */
static inline void *soft_mr_table_translate(struct soft_mr_table *table, struct soft_pd *pd, uint32_t key,
				      uint64_t address, uint64_t length, uint32_t access,
				      uint32_t qp_num)
{
	uint32_t index = key >> 8, only_qp_num;
	struct soft_mr_slot *leaf, *slot;
	uint64_t first, size, memory;

	if (index >= SOFT_MR_MAX)
		return NULL;
	leaf = atomic_load_explicit(&table->leaves[index / SOFT_MR_LEAF], memory_order_acquire);
	if (!leaf)
		return NULL;
	slot = &leaf[index % SOFT_MR_LEAF];
	if (!key || atomic_load_explicit(&slot->key, memory_order_acquire) != key ||
	    atomic_load_explicit(&slot->pd, memory_order_acquire) != pd)
		return NULL;
	if ((atomic_load_explicit(&slot->access, memory_order_acquire) & access) != access)
		return NULL;
	first = atomic_load_explicit(&slot->address, memory_order_acquire);
	size = atomic_load_explicit(&slot->length, memory_order_acquire);
	memory = atomic_load_explicit(&slot->memory, memory_order_acquire);
	only_qp_num = atomic_load_explicit(&slot->qp_num, memory_order_acquire);
	if (address < first || length > size || address - first > size - length ||
	    (only_qp_num && only_qp_num != qp_num))
		return NULL;
	/* All of that was of one key; from here on its owner cannot pass our queue pair's lock. */
	if (atomic_load_explicit(&slot->key, memory_order_relaxed) != key)
		return NULL;
	return (void *)(uintptr_t)(memory + (address - first));
}

#endif
