/*
 * Memory of the program that is no longer there.  An adapter has pinned what is registered, so it reads and writes there
 * whatever becomes of the mapping; soft touches the mapping itself, and faults where it is gone.  A thread therefore notes
 * that it touches memory a key led it to, and who catches the signal of a fault (rdmacore/preload/preload_faults.c) lends it
 * pages for as long.  A note is two stores to memory of the thread, and a look in between.
 */
#ifndef SOFT_BASE_TOUCH_H
#define SOFT_BASE_TOUCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum soft_touch { SOFT_TOUCHES_NOTHING, SOFT_TOUCHES, SOFT_TOUCHES_LENT };

/* Of this thread, and of handlers of signals that interrupt it. */
extern _Thread_local volatile int soft_touch; /* enum soft_touch */

/* It has been lent pages, which are taken from it. */
void soft_touch_give_back(void);

static inline void soft_touch_begin(void)
{
	soft_touch = SOFT_TOUCHES;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void soft_touch_end(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(soft_touch == SOFT_TOUCHES_LENT, false))
		soft_touch_give_back();
	soft_touch = SOFT_TOUCHES_NOTHING;
}

/* The rest is for handlers of signals: between the two, at an address of a region that ends before end. */

/*
 * Nothing is mapped there.  From now on zeros are, or what somebody else has mapped meanwhile; the thread looks again.  False
 * without memory.
 */
bool soft_touch_lend(uint64_t address, uint64_t end);
/* The same in place of a mapping with nothing behind it: of a file that has become shorter. */
bool soft_touch_replace(uint64_t address, uint64_t end);

#endif
