#include "provider/ah_table.h"

#include <stdlib.h>

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

struct core_ah_slot *core_ah_table_take(struct core_ah_table *table)
{
	struct core_ah_slot *slot;

	if (table->first_free) {
		slot = &table->slots[table->first_free];
		table->first_free = slot->next_free;
		slot->next_free = 0;
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
	slot->next_free = 0;
	return slot;
}

void core_ah_table_give_back(struct core_ah_table *table, uint32_t number)
{
	uint32_t index = number & INDEX;
	struct core_ah_slot *slot = &table->slots[index];

	slot->ah = NULL;
	slot->number += GENERATION;
	slot->next_free = 0;
	if (table->first_free)
		table->slots[table->last_free].next_free = index;
	else
		table->first_free = index;
	table->last_free = index;
}
