/*
 * Memory of the program that is no longer there.  An adapter has pinned what is registered, so it reads and writes there
 * whatever becomes of the mapping; soft touches the mapping itself, and faults where it is gone.  A thread therefore notes
 * that it touches memory a key led it to, and who catches the signal of a fault (rdmacore/preload/preload_faults.c) lends it
 * pages for as long.  A note is two stores to memory of the thread, and a look in between.
 */
#ifndef SOFT_BASE_PAGE_GUARD_H
#define SOFT_BASE_PAGE_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum soft_page_guard { SOFT_UNGUARDED, SOFT_GUARDED, SOFT_GUARDED_PLACEHOLDER };

/* Of this thread, and of handlers of signals that interrupt it. */
extern _Thread_local volatile int soft_page_guard; /* enum soft_page_guard */

/* It has been lent pages, which are taken from it. */
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

/* The rest is for handlers of signals: between the two, at an address of a region that ends before end. */

/*
 * Nothing is mapped there.  From now on zeros are, or what somebody else has mapped meanwhile; the thread looks again.  False
 * without memory.
 */
bool soft_page_guard_map(uint64_t address, uint64_t end);
/* The same in place of a mapping with nothing behind it: of a file that has become shorter. */
bool soft_page_guard_replace(uint64_t address, uint64_t end);

#endif
