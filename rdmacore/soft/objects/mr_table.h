/*
 * The memory keys of regions and windows.
 *
 * The data path looks up a key without a lock: the table is not freed while the device exists. A region stays valid
 * during a copy, because each look-up and copy is done under a lock of a queue pair. ibv_dereg_mr clears the key, and
 * then takes and releases both locks of each queue pair of the protection domain (soft_quiesce). After that no copy
 * with the old key is under way, and none can begin.
 */
#ifndef SOFT_OBJECTS_MR_TABLE_H
#define SOFT_OBJECTS_MR_TABLE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "soft/base/legal.h"
#include "soft/base/lock.h"
#include "soft/base/mutex.h"
#include "soft/objects/on_demand.h"

#define SOFT_MR_MAX (1 << SOFT_KEY_INDEX_BITS)

/*
 * A key consists of the index of its slot and a tag. Indexes, and the tags of a slot, are assigned in a secret
 * order. So a key cannot be derived from others, and a stale key becomes valid again only after its slot was used
 * 4096 times. The owner of a type 2 window chooses the lowest 8 bits of its key (ibv_inc_rkey(3)).
 */
#define SOFT_KEY_INDEX_BITS 20
#define SOFT_KEY_TAG_BITS 12
#define SOFT_KEY_OWNERS 0xffu

struct soft_pd;

/* In addition to enum ibv_access_flags: the key is valid as an lkey. Regions have it, windows do not. */
#define SOFT_ACCESS_LOCAL (UINT32_C(1) << 31)
/* All addresses are valid, and there is no memory (ibv_alloc_null_mr(3)). */
#define SOFT_ACCESS_NULL (UINT32_C(1) << 30)
/* soft_mr_table_find_memory finds the memory. */
#define SOFT_ACCESS_FOUND (SOFT_ACCESS_NULL | IBV_ACCESS_ON_DEMAND)

/*
 * A region, or a window on one. A window changes while other threads read it, so all fields are atomic, and the key
 * is 0 meanwhile. A reader checks the key before and after it reads the other fields. They are stored with release
 * and loaded with acquire, so a reader that sees a new field also sees that the old key is gone.
 */
struct soft_mr_slot {
	_Atomic uint32_t key; /* 0 while free; for a window, while not bound */
	_Atomic uint32_t access;
	_Atomic(struct soft_pd *) pd;
	_Atomic uint64_t address; /* the address that work requests use (iova) */
	_Atomic uint64_t length;
	_Atomic uint64_t memory; /* where address is in this process */
	_Atomic uint32_t qp_num; /* the only queue pair of a type 2 window; 0: any */
	/* The fields below are under table->lock. */
	uint32_t region; /* a bound window: key of its region */
	uint32_t windows; /* a region: windows bound to it */
	uint32_t window; /* of a window: its first key, which identifies it when its owner has changed the key */
	uint16_t uses; /* number of uses so far, from which the next tag is derived */
} __attribute__((aligned(SOFT_CACHE_LINE)));

struct soft_mr_table {
	struct soft_mutex lock; /* held to register and deregister */
	/*
	 * SOFT_MR_MAX slots; a page takes memory once it is used. The first slot is never used, so that no key is 0.
	 */
	struct soft_mr_slot *slots;
	uint64_t secret;
	struct soft_legal *legal; /* NULL: no choice is ever made */
	_Atomic uint32_t high; /* how many of the highest indexes were used */
	_Atomic uint32_t used; /* slots that were ever used */
	uint32_t *free; /* freed indexes, oldest first: a ring of SOFT_MR_MAX */
	uint32_t free_head;
	uint32_t free_count;
	struct soft_null_memory null;
};

/* -ENOMEM */
int soft_mr_table_init(struct soft_mr_table *table, uint64_t secret);
/* Now and then assign one of the highest keys, by legal choice (CORE_LEGAL_NUMBERS_HIGH). No key is in use yet. */
void soft_mr_table_choose(struct soft_mr_table *table, struct soft_legal *legal);
void soft_mr_table_destroy(struct soft_mr_table *table);

/* A key for a free slot, which does not have it yet; 0 if there is none. table->lock is held. */
uint32_t soft_mr_table_take(struct soft_mr_table *table);
/* Free the slot of that key. table->lock is held. */
void soft_mr_table_free(struct soft_mr_table *table, uint32_t key);

/* The slot of that key, which may have another key now. */
static inline struct soft_mr_slot *soft_mr_table_slot(const struct soft_mr_table *table, uint32_t key)
{
	_Static_assert(SOFT_KEY_INDEX_BITS + SOFT_KEY_TAG_BITS == 32, "any key has a slot");
	return &table->slots[key >> SOFT_KEY_TAG_BITS];
}

/* The range of the key. Checks nothing, not even the key; soft_mr_table_translate does. */
static inline void soft_mr_table_extent(const struct soft_mr_table *table, uint32_t key, uint64_t *address,
					uint64_t *length)
{
	const struct soft_mr_slot *slot = soft_mr_table_slot(table, key);

	*address = atomic_load_explicit(&slot->address, memory_order_acquire);
	*length = atomic_load_explicit(&slot->length, memory_order_acquire);
}

/* The same for keys with a bit of SOFT_ACCESS_FOUND. Other rights are checked already. */
void *soft_mr_table_find_memory(const struct soft_mr_table *table, uint32_t rights, uint64_t memory,
				uint64_t length, uint32_t access);

/*
 * Whether address is in the memory of a region, and if so where the region ends. A region counts until the last copy
 * that uses it has ended. Takes no lock, so signal handlers may call it.
 */
bool soft_mr_table_holds(const struct soft_mr_table *table, uint64_t address, uint64_t *end);

/*
 * The memory of [address, address + length) if key belongs to pd, covers that range and grants all rights in access;
 * otherwise NULL. access has values of enum ibv_access_flags, SOFT_ACCESS_LOCAL for an lkey. qp_num is the queue pair
 * that got the request, for type 2 windows. The caller holds a lock of a queue pair of pd while it uses the result.
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
	/* All fields belong to this key, and from here on soft_quiesce waits for this queue pair's lock. */
	if (atomic_load_explicit(&slot->key, memory_order_relaxed) != key)
		return NULL;
	if (__builtin_expect((rights & SOFT_ACCESS_FOUND) != 0, false))
		return soft_mr_table_find_memory(table, rights, memory + (address - first), length, access);
	return (void *)(uintptr_t)(memory + (address - first));
}

#endif
