#include "soft/base/table.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/random.h"

#define LEAF_SIZE (1u << SOFT_TABLE_LEAF_BITS)
#define NUMBER_BITS 24
#define NUMBER_MASK 0xffffffu

struct soft_table_leaf {
	uint32_t used;
	void *objects[LEAF_SIZE];
};

int soft_table_init(struct soft_table *table, uint32_t first, uint32_t limit, uint64_t key)
{
	*table = (struct soft_table){.first = first, .limit = limit, .key = key};
	table->leaves = calloc(SOFT_TABLE_LEAVES, sizeof(*table->leaves));
	if (!table->leaves)
		return -ENOMEM;
	soft_mutex_init(&table->lock, SOFT_ORDER_TABLE);
	return 0;
}

void soft_table_destroy(struct soft_table *table)
{
	if (!table->leaves)
		return;
	for (uint32_t leaf = 0; leaf < SOFT_TABLE_LEAVES; leaf++)
		free(table->leaves[leaf]);
	free(table->leaves);
	soft_mutex_destroy(&table->lock);
}

static struct soft_table_leaf **leaf_of(struct soft_table *table, uint32_t place)
{
	return &table->leaves[place >> SOFT_TABLE_LEAF_BITS];
}

static uint32_t place_of(const struct soft_table *table, uint32_t number)
{
	return soft_secret_restore(table->key, NUMBER_BITS, number);
}

int soft_table_insert(struct soft_table *table, void *object, uint32_t *number)
{
	struct soft_table_leaf **leaf;
	int result = -ENOMEM;

	soft_mutex_lock(&table->lock);
	if (table->count == table->limit)
		goto unlock;
	for (;;) {
		uint32_t place = table->next, candidate = soft_secret_permute(table->key, NUMBER_BITS, place);

		table->next = (place + 1) & NUMBER_MASK;
		if (candidate < table->first)
			continue;
		leaf = leaf_of(table, place);
		if (*leaf && (*leaf)->objects[place % LEAF_SIZE])
			continue;
		if (!*leaf)
			*leaf = calloc(1, sizeof(**leaf));
		if (!*leaf)
			goto unlock;
		(*leaf)->objects[place % LEAF_SIZE] = object;
		(*leaf)->used++;
		table->count++;
		*number = candidate;
		result = 0;
		goto unlock;
	}
unlock:
	soft_mutex_unlock(&table->lock);
	return result;
}

void soft_table_remove(struct soft_table *table, uint32_t number)
{
	uint32_t place = place_of(table, number & NUMBER_MASK);
	struct soft_table_leaf **leaf = leaf_of(table, place);

	soft_mutex_lock(&table->lock);
	if (*leaf && (*leaf)->objects[place % LEAF_SIZE]) {
		(*leaf)->objects[place % LEAF_SIZE] = NULL;
		table->count--;
		if (--(*leaf)->used == 0) {
			free(*leaf);
			*leaf = NULL;
		}
	}
	soft_mutex_unlock(&table->lock);
}

void *soft_table_find(struct soft_table *table, uint32_t number, void (*hold)(void *object))
{
	struct soft_table_leaf *leaf;
	void *object = NULL;
	uint32_t place;

	if (number > NUMBER_MASK)
		return NULL;
	place = place_of(table, number);
	soft_mutex_lock(&table->lock);
	leaf = *leaf_of(table, place);
	if (leaf)
		object = leaf->objects[place % LEAF_SIZE];
	if (object && hold)
		hold(object);
	soft_mutex_unlock(&table->lock);
	return object;
}

void *soft_table_next(struct soft_table *table, uint32_t *place, void (*hold)(void *object))
{
	void *object = NULL;

	soft_mutex_lock(&table->lock);
	while (!object && *place <= NUMBER_MASK) {
		struct soft_table_leaf *leaf = *leaf_of(table, *place);

		if (leaf)
			object = leaf->objects[*place % LEAF_SIZE];
		if (!object) /* skip a whole leaf that does not exist */
			*place += leaf ? 1 : LEAF_SIZE - *place % LEAF_SIZE;
	}
	if (object && hold)
		hold(object);
	soft_mutex_unlock(&table->lock);
	return object;
}
