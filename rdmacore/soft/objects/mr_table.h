/*
 * The memory keys of regions and windows.
 *
 * The data path looks up a key without taking a lock: the table is not freed while the device exists.  The region stays
 * valid during a copy because every look-up and copy is done under a lock of a queue pair.  ibv_dereg_mr clears the key
 * and then takes and releases both locks of every queue pair of the protection domain (soft_quiesce).  After that no copy
 * with the old key is under way, and none can begin.
 */
#ifndef SOFT_OBJECTS_MR_TABLE_H
#define SOFT_OBJECTS_MR_TABLE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "soft/base/lock.h"
#include "soft/base/mutex.h"
#include "soft/objects/on_demand.h"

#define SOFT_MR_MAX (1 << SOFT_KEY_INDEX_BITS)

/*
 * A key is the index of its slot and a tag.  Indexes and the tags of a slot are given out in secret order, so a key does
 * not follow from others, and a stale key is valid again only after its slot was used 4096 times.  The lowest 8 bits of a
 * type 2 window's key are chosen by its owner (ibv_inc_rkey(3)).
 */
#define SOFT_KEY_INDEX_BITS 20
#define SOFT_KEY_TAG_BITS 12
#define SOFT_KEY_OWNERS 0xffu

struct soft_pd;

/* Besides enum ibv_access_flags: the key is good as an lkey.  Regions have it, windows have not. */
#define SOFT_ACCESS_LOCAL (UINT32_C(1) << 31)
/* Every address is good, and no memory is behind it (ibv_alloc_null_mr(3)). */
#define SOFT_ACCESS_NULL (UINT32_C(1) << 30)
/* The memory is found by soft_mr_table_find_memory. */
#define SOFT_ACCESS_FOUND (SOFT_ACCESS_NULL | IBV_ACCESS_ON_DEMAND)

/*
 * A region, or a window on one.  A window changes while other threads read it, so every field is atomic and the key is 0
 * meanwhile.  A reader checks the key before and after the other fields.  These are stored with release and loaded with
 * acquire, so a reader that sees a new field also sees that the old key is gone.
 */
struct soft_mr_slot {
	_Atomic uint32_t key; /* 0 while free or, a window, not bound */
	_Atomic uint32_t access;
	_Atomic(struct soft_pd *) pd;
	_Atomic uint64_t address; /* as the owner of a key names it (iova) */
	_Atomic uint64_t length;
	_Atomic uint64_t memory; /* where address is in this process */
	_Atomic uint32_t qp_num; /* the one queue pair a type 2 window is good for; 0: any */
	/* The rest is under table->lock. */
	uint32_t region; /* a bound window: key of its region */
	uint32_t windows; /* a region: windows bound to it */
	uint32_t window; /* a window: the key that it began with, which names it whatever its owner makes of it */
	uint16_t uses; /* so far, which the next tag follows from */
} __attribute__((aligned(SOFT_CACHE_LINE)));

struct soft_mr_table {
	struct soft_mutex lock; /* writers: registration and deregistration */
	/* SOFT_MR_MAX, which take memory once they are used.  The first one is never used, so that no key is 0. */
	struct soft_mr_slot *slots;
	uint64_t secret;
	_Atomic uint32_t used; /* slots ever taken */
	uint32_t *free; /* indexes to use again, oldest first: a ring of SOFT_MR_MAX */
	uint32_t free_head;
	uint32_t free_count;
	struct soft_null_memory null;
};

/* -ENOMEM */
int soft_mr_table_init(struct soft_mr_table *table, uint64_t secret);
void soft_mr_table_destroy(struct soft_mr_table *table);

/* A key of a free slot, which does not have it yet; 0 when there is none.  table->lock is held. */
uint32_t soft_mr_table_take(struct soft_mr_table *table);
/* The slot of that key is free from now on.  table->lock is held. */
void soft_mr_table_free(struct soft_mr_table *table, uint32_t key);

/* The slot of that key, which may have another key now. */
static inline struct soft_mr_slot *soft_mr_table_slot(const struct soft_mr_table *table, uint32_t key)
{
	_Static_assert(SOFT_KEY_INDEX_BITS + SOFT_KEY_TAG_BITS == 32, "any key has a slot");
	return &table->slots[key >> SOFT_KEY_TAG_BITS];
}

/* The range that the key covers.  Checks nothing, not even the key: soft_mr_table_translate does. */
static inline void soft_mr_table_extent(const struct soft_mr_table *table, uint32_t key, uint64_t *address,
					uint64_t *length)
{
	const struct soft_mr_slot *slot = soft_mr_table_slot(table, key);

	*address = atomic_load_explicit(&slot->address, memory_order_acquire);
	*length = atomic_load_explicit(&slot->length, memory_order_acquire);
}

/* The same for keys whose rights have a bit of SOFT_ACCESS_FOUND, of which the rest is checked. */
void *soft_mr_table_find_memory(const struct soft_mr_table *table, uint32_t rights, uint64_t memory,
				uint64_t length, uint32_t access);

/*
 * Whether address is in the memory of a region, and if so the end of that.  A region is one until the last copy that uses it
 * is over.  Takes no lock: for handlers of signals.
 */
bool soft_mr_table_holds(const struct soft_mr_table *table, uint64_t address, uint64_t *end);

/*
 * The memory of [address, address + length) if key belongs to pd, covers that range and grants every right in access
 * (enum ibv_access_flags, SOFT_ACCESS_LOCAL for an lkey); else NULL.  qp_num is the queue pair that a request came to, for
 * type 2 windows.  The caller holds a lock of a queue pair of pd for as long as it uses the result.
 */
static inline void *soft_mr_table_translate(struct soft_mr_table *table, struct soft_pd *pd, uint32_t key,
				      uint64_t address, uint64_t length, uint32_t access,
				      uint32_t qp_num)
{
	struct soft_mr_slot *slot = soft_mr_table_slot(table, key);
	uint64_t first, size, memory;
	uint32_t only_qp_num, rights;

	if (!key || atomic_load_explicit(&slot->key, memory_order_acquire) != key ||
	    atomic_load_explicit(&slot->pd, memory_order_acquire) != pd)
		return NULL;
	rights = atomic_load_explicit(&slot->access, memory_order_acquire);
	if ((rights & access) != access)
		return NULL;
	first = atomic_load_explicit(&slot->address, memory_order_acquire);
	size = atomic_load_explicit(&slot->length, memory_order_acquire);
	memory = atomic_load_explicit(&slot->memory, memory_order_acquire);
	only_qp_num = atomic_load_explicit(&slot->qp_num, memory_order_acquire);
	if (address < first || length > size || address - first > size - length ||
	    (only_qp_num && only_qp_num != qp_num))
		return NULL;
	/* The fields are all of this key, and from here on soft_quiesce waits for this queue pair's lock. */
	if (atomic_load_explicit(&slot->key, memory_order_relaxed) != key)
		return NULL;
	if (__builtin_expect((rights & SOFT_ACCESS_FOUND) != 0, false))
		return soft_mr_table_find_memory(table, rights, memory + (address - first), length, access);
	return (void *)(uintptr_t)(memory + (address - first));
}

#endif
