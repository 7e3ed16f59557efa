/*
 * Memory that is looked for when it is used (IBV_ACCESS_ON_DEMAND, ibv_advise_mr(3)), and memory that is none
 * (ibv_alloc_null_mr(3)): what a key of these kinds leads to.
 *
 * soft pins nothing, and copies with the processor.  A plain region promises that its memory stays, and is asked once
 * whether it is there; one on demand does not, and an implicit one names every address there is, so a peer may name one that is not mapped.  A device finds no
 * page there and refuses the request.  So does soft: before each use the kernel is asked to make the pages present with
 * the right that is needed, and where it cannot the key does not lead there.
 */
#ifndef SOFT_OBJECTS_ON_DEMAND_H
#define SOFT_OBJECTS_ON_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the kernel can be asked: MADV_POPULATE_READ and its kin, Linux 5.14. */
bool soft_on_demand_is_supported(void);

/* Whether [address, address + length) is mapped and may be read, or written; it is present from then on. */
bool soft_on_demand_populate(uint64_t address, uint64_t length, bool write);
/* The same begins, where the kernel has a way to, and is not waited for. */
void soft_on_demand_expect(uint64_t address, uint64_t length);

/*
 * Whether a plain region can be made of it, as a kernel that pins it would find (ib_umem_get): all of it is mapped, and may
 * be read, or written.  Of a long range only the mappings are looked at, and the rights of its ends: that costs the same for
 * any length, and makes two pages present.
 */
bool soft_memory_is_there(uint64_t address, uint64_t length, bool write);

/* Memory for null regions, made for the first and unmapped with the last.  Guarded by the lock of the table it is in. */
struct soft_null_memory {
	uint32_t users;
	void *zeros; /* what is read */
	void *sink; /* where what is written goes: one piece of memory, mapped again and again */
};

/* One more region needs it: false without memory. */
bool soft_null_memory_take(struct soft_null_memory *memory);
void soft_null_memory_drop(struct soft_null_memory *memory);

/* Both are that long: the longest message. */
#define SOFT_NULL_MEMORY_SIZE (UINT64_C(1) << 31)

#endif
