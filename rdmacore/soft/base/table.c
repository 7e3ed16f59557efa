#include "soft/base/table.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/random.h"

#define LEAF_SIZE (1u << SOFT_TABLE_LEAF_BITS)
#define NUMBER_BITS 24
#define NUMBER_MASK 0xffffffu
#define BLOCK_SIZE (1u << SOFT_TABLE_BLOCK_BITS)
#define BLOCK_MASK (BLOCK_SIZE - 1)
#define HIGH 64 /* numbers that the legal choice assigns in turn */
#define NO_NUMBER NUMBER_MASK /* in a packet it means a multicast group (IBTA 9.2.4) */

struct soft_table_leaf {
	uint32_t used;
	void *objects[LEAF_SIZE];
};

static void forget_recent(struct soft_table *table)
{
	for (uint32_t entry = 0; entry < SOFT_TABLE_RECENT; entry++)
		table->recent[entry].number = UINT32_MAX;
}

int soft_table_init(struct soft_table *table, uint32_t first, uint32_t limit, uint64_t key)
{
	*table = (struct soft_table){.first = first, .limit = limit, .key = key};
	table->leaves = calloc(SOFT_TABLE_LEAVES, sizeof(*table->leaves));
	if (!table->leaves)
		return -ENOMEM;
	forget_recent(table);
	soft_mutex_init(&table->lock, SOFT_ORDER_TABLE);
	return 0;
}

void soft_table_use_blocks(struct soft_table *table, struct soft_table_block_source *block_source)
{
	table->block_source = block_source;
	table->next = 0;
	forget_recent(table);
}

void soft_table_choose(struct soft_table *table, struct soft_legal *legal)
{
	table->legal = legal;
}

void soft_table_destroy(struct soft_table *table)
{
	if (!table->leaves)
		return;
	for (uint32_t leaf = 0; leaf < SOFT_TABLE_LEAVES; leaf++)
		free(table->leaves[leaf]);
	free(table->leaves);
	free(table->blocks);
	soft_mutex_destroy(&table->lock);
}

static struct soft_table_leaf **leaf_of(struct soft_table *table, uint32_t slot)
{
	return &table->leaves[slot >> SOFT_TABLE_LEAF_BITS];
}

/* A slot and its number are in the same block. */
static uint32_t key_of_block(uint32_t slot)
{
	return slot >> SOFT_TABLE_BLOCK_BITS;
}

static uint32_t slot_of(const struct soft_table *table, uint32_t number)
{
	if (!table->block_source)
		return soft_secret_restore(table->key, NUMBER_BITS, number);
	return (number & ~BLOCK_MASK) | soft_secret_restore(table->key + key_of_block(number), SOFT_TABLE_BLOCK_BITS,
							    number & BLOCK_MASK);
}

static uint32_t number_of(const struct soft_table *table, uint32_t slot)
{
	if (!table->block_source)
		return soft_secret_permute(table->key, NUMBER_BITS, slot);
	return (slot & ~BLOCK_MASK) | soft_secret_permute(table->key + key_of_block(slot), SOFT_TABLE_BLOCK_BITS,
							   slot & BLOCK_MASK);
}

/* Claim one more block for the next numbers. */
static int add_block(struct soft_table *table)
{
	uint32_t *blocks = realloc(table->blocks, (table->block_count + 1) * sizeof(*blocks));
	int result;

	soft_mutex_expect(&table->lock);
	if (!blocks)
		return -ENOMEM;
	table->blocks = blocks;
	result = table->block_source->new_block(table->block_source, &blocks[table->block_count]);
	if (result)
		return result;
	table->block = table->block_count++;
	table->next = 0;
	return 0;
}

/* The next slot, used or not, in *slot. tried: how many used ones were found. */
static int next_slot(struct soft_table *table, uint32_t tried, uint32_t *slot)
{
	int result = 0;

	soft_mutex_expect(&table->lock);
	if (!table->block_source) {
		*slot = table->next;
		table->next = (table->next + 1) & NUMBER_MASK;
		return 0;
	}
	if (!table->block_count || tried == table->block_count * BLOCK_SIZE) {
		result = add_block(table);
	} else if (table->next == BLOCK_SIZE &&
		   (table->block_count >= SOFT_TABLE_BLOCKS || add_block(table))) {
		table->block = (table->block + 1) % table->block_count;
		table->next = 0;
	}
	if (!result)
		*slot = table->blocks[table->block] << SOFT_TABLE_BLOCK_BITS | table->next++;
	return result;
}

static bool is_free(struct soft_table *table, uint32_t slot)
{
	struct soft_table_leaf *leaf = *leaf_of(table, slot);

	return !leaf || !leaf->objects[slot % LEAF_SIZE];
}

/* By legal choice: a slot with one of the highest numbers. */
static bool choose_high(struct soft_table *table, uint32_t *slot)
{
	soft_mutex_expect(&table->lock);
	if (!table->legal || table->block_source ||
	    !soft_legal_choose(&table->legal->calls, CORE_LEGAL_NUMBERS_HIGH))
		return false;
	for (uint32_t tried = 0; tried < HIGH; tried++) {
		*slot = slot_of(table, NO_NUMBER - 1 - table->high++ % HIGH);
		if (is_free(table, *slot))
			return true;
	}
	return false;
}

/* A free slot. */
static int take_slot(struct soft_table *table, uint32_t *slot)
{
	soft_mutex_expect(&table->lock);
	if (choose_high(table, slot))
		return 0;
	for (uint32_t tried = 0;; tried++) {
		int result = next_slot(table, tried, slot);
		uint32_t number;

		if (result)
			return result;
		number = number_of(table, *slot);
		if (number >= table->first && !(table->block_source && number == NO_NUMBER) && is_free(table, *slot))
			return 0;
	}
}

int soft_table_insert(struct soft_table *table, void *object, uint32_t *number)
{
	struct soft_table_leaf **leaf;
	int result = -ENOMEM;
	uint32_t slot;

	soft_mutex_lock(&table->lock);
	if (table->count == table->limit)
		goto unlock;
	result = take_slot(table, &slot);
	if (result)
		goto unlock;
	leaf = leaf_of(table, slot);
	if (!*leaf)
		*leaf = calloc(1, sizeof(**leaf));
	if (!*leaf) {
		result = -ENOMEM;
		goto unlock;
	}
	(*leaf)->objects[slot % LEAF_SIZE] = object;
	(*leaf)->used++;
	table->count++;
	*number = number_of(table, slot);
unlock:
	soft_mutex_unlock(&table->lock);
	return result;
}

void soft_table_remove(struct soft_table *table, uint32_t number)
{
	uint32_t slot = slot_of(table, number & NUMBER_MASK);
	struct soft_table_leaf **leaf = leaf_of(table, slot);

	soft_mutex_lock(&table->lock);
	if (*leaf && (*leaf)->objects[slot % LEAF_SIZE]) {
		(*leaf)->objects[slot % LEAF_SIZE] = NULL;
		table->count--;
		if (--(*leaf)->used == 0) {
			free(*leaf);
			*leaf = NULL;
		}
	}
	soft_mutex_unlock(&table->lock);
}

/* place_of, for a number that was mostly looked up before. */
static uint32_t find_slot(struct soft_table *table, uint32_t number)
{
	uint32_t entry = number % SOFT_TABLE_RECENT;

	soft_mutex_expect(&table->lock);
	if (table->recent[entry].number != number) {
		table->recent[entry].number = number;
		table->recent[entry].slot = slot_of(table, number);
	}
	return table->recent[entry].slot;
}

void *soft_table_find(struct soft_table *table, uint32_t number, void (*hold)(void *object))
{
	struct soft_table_leaf *leaf;
	void *object = NULL;
	uint32_t slot;

	if (number > NUMBER_MASK)
		return NULL;
	soft_mutex_lock(&table->lock);
	slot = find_slot(table, number);
	leaf = *leaf_of(table, slot);
	if (leaf)
		object = leaf->objects[slot % LEAF_SIZE];
	if (object && hold)
		hold(object);
	soft_mutex_unlock(&table->lock);
	return object;
}

void *soft_table_next(struct soft_table *table, uint32_t *slot, void (*hold)(void *object))
{
	void *object = NULL;

	soft_mutex_lock(&table->lock);
	while (!object && *slot <= NUMBER_MASK) {
		struct soft_table_leaf *leaf = *leaf_of(table, *slot);

		if (leaf)
			object = leaf->objects[*slot % LEAF_SIZE];
		if (!object) /* skip a leaf that does not exist */
			*slot += leaf ? 1 : LEAF_SIZE - *slot % LEAF_SIZE;
	}
	if (object && hold)
		hold(object);
	soft_mutex_unlock(&table->lock);
	return object;
}
