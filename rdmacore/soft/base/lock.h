/* The spin locks of the data path. */
#ifndef SOFT_BASE_LOCK_H
#define SOFT_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/base/order.h"

/*
 * Two threads rarely want the lock at once, and a waiting thread waits for one message at most. A sender holds the
 * lock for its whole queue, but checks after each message whether another thread waits (soft/link/local.c). Only
 * ibv_wr_start and ibv_start_poll hold theirs until the user calls again. The cost is one instruction, which takes the
 * lock and waits until all earlier stores have left the processor. The release is a plain store. A mutex must know
 * whether a thread sleeps, which costs that instruction twice.
 *
 * A thread that finds the lock taken spins, then yields, then sleeps: the holder may have lost the processor. A
 * thread that takes the lock again at once would always win. So a thread that has waited for long draws a turn.
 * Then no thread without a turn enters, and turns enter in the order in which they were drawn. The other threads
 * read the word next to the one that they have just written, which is cheap.
 */
struct soft_lock {
	_Atomic uint16_t held;
	_Atomic uint16_t turns; /* the next turn to be drawn, and in the lower byte the turn that may enter */
#ifdef SOFT_ORDER_CHECKED
	uint8_t order; /* enum soft_order */
#endif
};

/* lock.c: wait for the lock. taken: the caller has taken it, but another thread's turn comes first. */
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

/* Whether a thread waits for its turn. A holder with another message to send releases the lock first. */
static inline bool soft_lock_is_wanted(const struct soft_lock *lock)
{
	uint16_t turns = atomic_load_explicit(&lock->turns, memory_order_relaxed);

	return (uint8_t)(turns >> 8) != (uint8_t)turns;
}

/* The calling thread is about to take the lock. */
static inline void soft_lock_order(const struct soft_lock *lock)
{
#ifdef SOFT_ORDER_CHECKED
	soft_order_take(lock, (enum soft_order)lock->order);
#else
	(void)lock;
#endif
}

/* The calling thread holds the lock. */
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

/* False if another thread holds it. */
static inline bool soft_lock_try(struct soft_lock *lock)
{
	if (atomic_load_explicit(&lock->held, memory_order_relaxed) ||
	    atomic_exchange_explicit(&lock->held, 1, memory_order_acquire))
		return false;
	soft_lock_order(lock);
	return true;
}

/* soft_lock_take for rare use, which must not wait while other threads send message after message. */
static inline void soft_lock_take_turn(struct soft_lock *lock)
{
	bool taken;

	soft_lock_order(lock);
	taken = !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
	if (!taken || soft_lock_is_wanted(lock))
		soft_lock_wait_turn(lock, taken);
}

/* Spin, then sleep, between two checks of a value that another thread will change soon. */
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
