/*
 * What belongs to an object of the libraries: the functions that it had. Data calls look here without a lock. An entry
 * stays when its object is destroyed, and serves the next object at that address.
 */
#include "trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SLOTS (1u << 16)

struct trace_map {
	struct {
		_Atomic(const void *) key; /* NULL: free, and so the end of a search */
		void *value; /* set before key */
	} slots[SLOTS];
	uint32_t used;
};

struct trace_map trace_contexts, trace_builders, trace_queues;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void trace_map_lock(void)
{
	pthread_mutex_lock(&lock);
}

void trace_map_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void trace_map_forget_lock(void)
{
	pthread_mutex_init(&lock, NULL);
}

static uint32_t slot_of(const void *key)
{
	/* Fibonacci hashing; objects are at least 16 bytes apart. */
	return (uint32_t)(((uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48) % SLOTS;
}

void *trace_map_find(const struct trace_map *map, const void *key)
{
	for (uint32_t at = slot_of(key);; at = (at + 1) % SLOTS) {
		const void *there = atomic_load_explicit(&map->slots[at].key, memory_order_acquire);

		if (there == key)
			return map->slots[at].value;
		if (!there)
			return NULL;
	}
}

void *trace_map_add(struct trace_map *map, const void *key, size_t size)
{
	void *value = trace_map_find(map, key);
	uint32_t at;

	if (value)
		return value;
	if (map->used >= SLOTS / 2) /* a search ends soon, and there always is a free slot */
		return NULL;
	value = calloc(1, size);
	if (!value)
		return NULL;
	for (at = slot_of(key); map->slots[at].key; at = (at + 1) % SLOTS)
		;
	map->used++;
	map->slots[at].value = value;
	return value;
}

void trace_map_publish(struct trace_map *map, const void *key, const void *value)
{
	uint32_t at;

	for (at = slot_of(key); map->slots[at].value != value; at = (at + 1) % SLOTS)
		;
	atomic_store_explicit(&map->slots[at].key, key, memory_order_release);
}
