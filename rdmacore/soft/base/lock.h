/* The spin locks of the data path. */
#ifndef SOFT_BASE_LOCK_H
#define SOFT_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/base/order.h"

/*
 * Two threads rarely want one at once, and a waiter waits for one message at most: a sender works off its whole queue
 * under them, but checks after each message whether another thread waits (soft/link/local.c).  Only ibv_wr_start and
 * ibv_start_poll hold theirs for as long as the user likes.  The cost is the one instruction that takes the lock, which
 * waits until all earlier stores have left the processor; the release is a plain store.  A mutex has to know whether a
 * thread sleeps, and so costs that twice.
 *
 * A thread that finds the lock taken spins, then yields, then sleeps: the holder may have lost the processor.  A thread
 * that takes the lock again at once would win each time, so one that has waited for long draws a turn: then no thread
 * without a turn enters, and turns are in the order in which they were drawn.  That costs the others a look at the word
 * beside the one that they have just written.
 */
struct soft_lock {
	_Atomic uint16_t held;
	_Atomic uint16_t turns; /* the next to be drawn, and in the lower byte the one that may enter */
#ifdef SOFT_ORDER_CHECKED
	uint8_t order; /* enum soft_order */
#endif
};

/* lock.c: wait for the lock.  taken: the caller has it, but another thread's turn comes first. */
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

/* A thread waits for its turn.  A holder with another message to send releases the lock first. */
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

/* False when another thread has it. */
static inline bool soft_lock_try(struct soft_lock *lock)
{
	if (atomic_load_explicit(&lock->held, memory_order_relaxed) ||
	    atomic_exchange_explicit(&lock->held, 1, memory_order_acquire))
		return false;
	soft_lock_order(lock);
	return true;
}

/* soft_lock_take for what is rare, and should not wait while other threads send message after message. */
static inline void soft_lock_take_turn(struct soft_lock *lock)
{
	bool taken;

	soft_lock_order(lock);
	taken = !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
	if (!taken || soft_lock_is_wanted(lock))
		soft_lock_wait_turn(lock, taken);
}

/* Spin, then sleep, between two looks at what another thread will change soon. */
void soft_lock_backoff(unsigned int attempt);

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
