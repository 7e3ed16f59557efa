/*
 * Memory that is checked when it is used (IBV_ACCESS_ON_DEMAND, ibv_advise_mr(3)), and null memory
 * (ibv_alloc_null_mr(3)): what keys of these kinds refer to.
 *
 * Soft pins nothing, and copies with the processor. A plain region promises that its memory stays mapped, so it is
 * checked once. An on-demand region does not, and an implicit one covers all addresses, so a peer may access one
 * that is not mapped. A device finds no page there and rejects the request. So does soft: before each use it asks
 * the kernel to make the pages present with the required right. If the kernel cannot, the access is rejected.
 */
#ifndef SOFT_OBJECTS_ON_DEMAND_H
#define SOFT_OBJECTS_ON_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the kernel can be asked (MADV_POPULATE_READ and MADV_POPULATE_WRITE, Linux 5.14). */
bool soft_on_demand_is_supported(void);

/* Whether [address, address + length) is mapped and readable, or writable. If so, it is present afterwards. */
bool soft_on_demand_populate(uint64_t address, uint64_t length, bool write);
/* Start the same without waiting, where the kernel can. */
void soft_on_demand_expect(uint64_t address, uint64_t length);

/*
 * Whether a kernel could pin the range for a plain region (ib_umem_get): all of it is mapped and readable, or
 * writable. For a long range, only the mappings and the rights of both ends are checked. That costs the same for
 * any length, and makes two pages present.
 */
bool soft_memory_is_there(uint64_t address, uint64_t length, bool write);

/*
 * Memory of null regions, allocated for the first and freed with the last. Guarded by the lock of the table it is
 * in.
 */
struct soft_null_memory {
	uint32_t users;
	void *zeros; /* for reads */
	void *sink; /* for writes: one piece of memory, mapped many times */
};

/* Count one more region: false without memory. */
bool soft_null_memory_take(struct soft_null_memory *memory);
void soft_null_memory_drop(struct soft_null_memory *memory);

/* Length of each: the longest message. */
#define SOFT_NULL_MEMORY_SIZE (UINT64_C(1) << 31)

#endif
