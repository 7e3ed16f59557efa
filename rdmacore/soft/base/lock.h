/* The locks of the data path. */
#ifndef SOFT_BASE_LOCK_H
#define SOFT_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/base/order.h"

/*
 * They are nearly never asked for by two threads at once, and who waits for one waits for one message at most: a
 * sender works off its whole queue under them, but looks after each message whether somebody waits (soft/link/local.c).
 * ibv_wr_start and ibv_start_poll alone hold theirs for as long as their caller likes.  What they cost is the one
 * instruction that takes them: it waits until every store before it has left the processor, while giving up such a lock
 * is a plain store that nobody waits for.  A mutex, which has to know whether somebody sleeps, costs that twice.
 *
 * Who finds one taken spins, then lets others run, then sleeps: its holder may have lost the processor.  A
 * thread that takes it again at once would win each time, so who has waited for long draws a turn: from then
 * on nobody enters before it, and turns come in the order in which they were drawn.  That costs the others a
 * look at the word beside the one that they have just written.
 */
struct soft_lock {
	_Atomic uint16_t held;
	_Atomic uint16_t turns; /* the next to be drawn, and in the lower byte the one that may enter */
#ifdef SOFT_ORDER_CHECKED
	uint8_t order; /* enum soft_order */
#endif
};

/* soft/base/lock.c: until it is ours.  taken: it is already, but somebody's turn comes first. */
void soft_lock_wait(struct soft_lock *lock, bool taken);
void soft_lock_wait_turn(struct soft_lock *lock, bool taken);

static inline void soft_lock_init(struct soft_lock *lock, enum soft_order order)
{
	atomic_init(&lock->held, 0);
	atomic_init(&lock->turns, 0);
#ifdef SOFT_ORDER_CHECKED
	lock->order = (uint8_t)order;
#else
	(void)order;
#endif
}

/* Somebody waits for its turn.  A holder who would go on with another message gives the lock up first. */
static inline bool soft_lock_is_wanted(const struct soft_lock *lock)
{
	uint16_t turns = atomic_load_explicit(&lock->turns, memory_order_relaxed);

	return (uint8_t)(turns >> 8) != (uint8_t)turns;
}

/* The calling thread is about to take it. */
static inline void soft_lock_order(const struct soft_lock *lock)
{
#ifdef SOFT_ORDER_CHECKED
	soft_order_take(lock, (enum soft_order)lock->order);
#else
	(void)lock;
#endif
}

/* The calling thread has it. */
static inline void soft_lock_expect(const struct soft_lock *lock)
{
#ifdef SOFT_ORDER_CHECKED
	soft_order_expect(lock);
#else
	(void)lock;
#endif
}

static inline void soft_lock_take(struct soft_lock *lock)
{
	bool taken;

	soft_lock_order(lock);
	taken = !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
	if (!taken || soft_lock_is_wanted(lock))
		soft_lock_wait(lock, taken);
}

/* The same for what is rare, and should not wait for the messages that others send meanwhile. */
static inline void soft_lock_take_turn(struct soft_lock *lock)
{
	bool taken;

	soft_lock_order(lock);
	taken = !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
	if (!taken || soft_lock_is_wanted(lock))
		soft_lock_wait_turn(lock, taken);
}

/* What to do before looking again at what another thread will change soon. */
void soft_lock_rest(unsigned int attempt);

static inline void soft_lock_release(struct soft_lock *lock)
{
#ifdef SOFT_ORDER_CHECKED
	soft_order_release(lock);
#endif
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}

#define SOFT_CACHE_LINE 64

#define soft_container_of(pointer, type, member)                                                   \
	((type *)(void *)((char *)(pointer) - offsetof(type, member)))

#endif
