/*
 * Registered memory that the program has unmapped. An adapter pins registered memory and accesses it whatever
 * happens to the mapping. Soft accesses the mapping itself, and gets a fault if it is gone. So a thread marks each
 * access to memory of a key. The handler of the fault's signal (rdmacore/preload/preload_faults.c) maps placeholder
 * pages for the time of the access. A mark costs two stores to thread-local memory, and a load in between.
 */
#ifndef SOFT_BASE_PAGE_GUARD_H
#define SOFT_BASE_PAGE_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum soft_page_guard { SOFT_UNGUARDED, SOFT_GUARDED, SOFT_GUARDED_PLACEHOLDER };

/* Of this thread, and of signal handlers that interrupt it. */
extern _Thread_local volatile int soft_page_guard; /* enum soft_page_guard */

/* Placeholder pages were mapped for this thread: unmap them. */
void soft_page_guard_unmap(void);

static inline void soft_page_guard_begin(void)
{
	soft_page_guard = SOFT_GUARDED;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void soft_page_guard_end(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(soft_page_guard == SOFT_GUARDED_PLACEHOLDER, false))
		soft_page_guard_unmap();
	soft_page_guard = SOFT_UNGUARDED;
}

/* The functions below are for signal handlers, during an access, at an address of a region that ends before end. */

/*
 * Nothing is mapped there. Map zeros, unless another thread maps something first; then the access is repeated.
 * False without memory.
 */
bool soft_page_guard_map(uint64_t address, uint64_t end);
/* The same in place of a mapping without backing: of a file that has become shorter. */
bool soft_page_guard_replace(uint64_t address, uint64_t end);

#endif
