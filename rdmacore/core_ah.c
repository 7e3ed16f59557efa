#include "core_ah.h"

#include <stdlib.h>

#include "core_count.h"

#define INDEX 0xffffffu
#define GENERATION 0x1000000u

int core_ah_table_init(struct core_ah_table *table)
{
	*table = (struct core_ah_table){.count = 1};
	return -pthread_rwlock_init(&table->lock, NULL);
}

void core_ah_table_destroy(struct core_ah_table *table)
{
	pthread_rwlock_destroy(&table->lock);
	free(table->slots);
}

/* A slot that is free now or new; NULL for want of memory.  The lock is held for writing. */
static struct core_ah_slot *take_slot(struct core_ah_table *table)
{
	struct core_ah_slot *slot;

	if (table->first_free) {
		slot = &table->slots[table->first_free];
		table->first_free = slot->next_free;
		return slot;
	}
	if (table->count >= table->room) {
		uint32_t room = table->room ? 2 * table->room : 16;
		struct core_ah_slot *slots;

		if (room > INDEX)
			return NULL;
		slots = realloc(table->slots, room * sizeof(*slots));
		if (!slots)
			return NULL;
		table->slots = slots;
		table->room = room;
	}
	slot = &table->slots[table->count];
	slot->number = table->count++;
	return slot;
}

static int insert(struct core_provider *provider, struct ibv_ah *ah, uint32_t *number)
{
	struct core_ah_table *table = &provider->address_handles;
	struct core_ah_slot *slot;

	pthread_rwlock_wrlock(&table->lock);
	slot = take_slot(table);
	if (slot) {
		slot->ah = ah;
		slot->next_free = 0;
		*number = slot->number;
	}
	pthread_rwlock_unlock(&table->lock);
	if (!slot) {
		provider->ibv_destroy_ah(ah);
		return -ENOMEM;
	}
	core_count(provider, CORE_AH, 1);
	return 0;
}

int core_create_ah(struct core_provider *provider, struct ibv_pd *pd, struct ibv_ah_attr *attr,
		   uint32_t *number)
{
	struct ibv_ah *ah;

	if (!provider->ibv_create_ah || !provider->ibv_destroy_ah)
		return -ENOSYS;
	ah = provider->ibv_create_ah(pd, attr);
	return ah ? insert(provider, ah, number) : core_errno();
}

int core_create_ah_from_wc(struct core_provider *provider, struct ibv_pd *pd, struct ibv_wc *wc,
			   struct ibv_grh *grh, uint8_t port, uint32_t *number)
{
	struct ibv_ah *ah;

	if (!provider->ibv_create_ah_from_wc || !provider->ibv_destroy_ah)
		return -ENOSYS;
	ah = provider->ibv_create_ah_from_wc(pd, wc, grh, port);
	return ah ? insert(provider, ah, number) : core_errno();
}

int core_init_ah_from_wc(struct core_provider *provider, struct ibv_context *context, struct ibv_wc *wc,
			 struct ibv_grh *grh, uint8_t port, struct ibv_ah_attr *attr)
{
	if (!provider->ibv_init_ah_from_wc)
		return -ENOSYS;
	errno = EINVAL; /* where the library says no more than -1 */
	return core_verbs_result(provider->ibv_init_ah_from_wc(context, port, wc, grh, attr));
}

int core_destroy_ah(struct core_provider *provider, struct ibv_pd *pd, uint32_t number)
{
	struct core_ah_table *table = &provider->address_handles;
	struct core_ah_slot *slot;
	struct ibv_ah *ah;
	int result = -EINVAL;

	pthread_rwlock_wrlock(&table->lock);
	ah = core_ah_find(table, number, pd);
	if (ah)
		result = core_verbs_result(provider->ibv_destroy_ah(ah));
	if (!result) {
		slot = &table->slots[number & INDEX];
		slot->ah = NULL;
		slot->number += GENERATION;
		slot->next_free = 0;
		if (table->first_free)
			table->slots[table->last_free].next_free = number & INDEX;
		else
			table->first_free = number & INDEX;
		table->last_free = number & INDEX;
	}
	pthread_rwlock_unlock(&table->lock);
	if (!result)
		core_count(provider, CORE_AH, -1);
	return result;
}
