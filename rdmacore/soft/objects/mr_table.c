#include "soft/objects/mr_table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "soft/base/random.h"

#define HIGH 64u /* indexes that only the legal choice assigns first */
#define TABLE_SIZE (SOFT_MR_MAX * sizeof(struct soft_mr_slot))

int soft_mr_table_init(struct soft_mr_table *table, uint64_t secret)
{
	void *slots = mmap(NULL, TABLE_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*table = (struct soft_mr_table){.slots = slots, .secret = secret};
	if (slots == MAP_FAILED)
		return -ENOMEM;
	/* Slots in use are far apart: with huge pages a few of them would take all of the table's memory. */
	madvise(slots, TABLE_SIZE, MADV_NOHUGEPAGE);
	table->free = malloc(SOFT_MR_MAX * sizeof(*table->free));
	if (!table->free)
		goto unmap_slots;
	soft_mutex_init(&table->lock, SOFT_ORDER_MR);
	return 0;

unmap_slots:
	munmap(slots, TABLE_SIZE);
	return -ENOMEM;
}

void soft_mr_table_choose(struct soft_mr_table *table, struct soft_legal *legal)
{
	table->legal = legal;
}

void soft_mr_table_destroy(struct soft_mr_table *table)
{
	munmap(table->slots, TABLE_SIZE);
	free(table->free);
	soft_mutex_destroy(&table->lock);
}

void *soft_mr_table_find_memory(const struct soft_mr_table *table, uint32_t rights, uint64_t memory,
				uint64_t length, uint32_t access)
{
	bool write = access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);

	if (rights & SOFT_ACCESS_NULL)
		return length > SOFT_NULL_MEMORY_SIZE ? NULL : write ? table->null.sink : table->null.zeros;
	return soft_on_demand_populate(memory, length, write) ? (void *)(uintptr_t)memory : NULL;
}

/* The index of a slot that is used for the first time; 0: there is none. */
static uint32_t take_fresh(struct soft_mr_table *table)
{
	soft_mutex_expect(&table->lock);
	if (table->legal && table->high < HIGH && soft_legal_choose(&table->legal->calls, CORE_LEGAL_NUMBERS_HIGH))
		return SOFT_MR_MAX - ++table->high;
	while (table->used < SOFT_MR_MAX) {
		uint32_t index = soft_secret_permute(table->secret, SOFT_KEY_INDEX_BITS, table->used++);

		if (index && !(table->legal && index >= SOFT_MR_MAX - HIGH))
			return index;
	}
	return 0;
}

/* Fresh slots first, then freed ones, oldest first, so that a stale key stays invalid for long; 0: none. */
static uint32_t take_index(struct soft_mr_table *table)
{
	uint32_t index = take_fresh(table);

	if (index || !table->free_count)
		return index;
	index = table->free[table->free_head];
	table->free_head = (table->free_head + 1) % SOFT_MR_MAX;
	table->free_count--;
	return index;
}

uint32_t soft_mr_table_take(struct soft_mr_table *table)
{
	uint32_t index = take_index(table), tag;

	soft_mutex_expect(&table->lock);
	if (!index)
		return 0;
	tag = soft_secret_permute(table->secret + index, SOFT_KEY_TAG_BITS,
				  table->slots[index].uses++ % (1 << SOFT_KEY_TAG_BITS));
	return index << SOFT_KEY_TAG_BITS | tag;
}

static bool slot_holds(const struct soft_mr_slot *slot, uint64_t address, uint64_t *end)
{
	uint64_t memory, length;

	/* The key may be cleared while a copy is under way. */
	if (!atomic_load_explicit(&slot->pd, memory_order_acquire) ||
	    atomic_load_explicit(&slot->access, memory_order_acquire) & SOFT_ACCESS_NULL)
		return false;
	memory = atomic_load_explicit(&slot->memory, memory_order_acquire);
	length = atomic_load_explicit(&slot->length, memory_order_acquire);
	if (address < memory || address - memory >= length)
		return false;
	*end = memory + length;
	return true;
}

bool soft_mr_table_holds(const struct soft_mr_table *table, uint64_t address, uint64_t *end)
{
	for (uint32_t taken = 0; taken < table->used; taken++)
		if (slot_holds(&table->slots[soft_secret_permute(table->secret, SOFT_KEY_INDEX_BITS, taken)], address, end))
			return true;
	for (uint32_t taken = 1; taken <= table->high; taken++)
		if (slot_holds(&table->slots[SOFT_MR_MAX - taken], address, end))
			return true;
	return false;
}

void soft_mr_table_free(struct soft_mr_table *table, uint32_t key)
{
	soft_mutex_expect(&table->lock);
	atomic_store_explicit(&soft_mr_table_slot(table, key)->pd, NULL, memory_order_release);
	table->free[(table->free_head + table->free_count++) % SOFT_MR_MAX] = key >> SOFT_KEY_TAG_BITS;
}
