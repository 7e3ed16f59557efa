/*
 * The locks of the soft provider and their one order.  A thread takes them only downwards:
 *
 *   cq.polling           the one who is between ibv_start_poll and ibv_end_poll, where he may call anything
 *   cm.lock              every rdma_cm id, port table and communication id
 *   pd.lock              the list of queue pairs of a protection domain
 *   requester.lock       send half of a queue pair (its send queue and its ERR transition)
 *   responder.lock       receive half of a queue pair, its own or the peer's on the local link
 *   receive_queue.lock   producers of one receive queue; of a shared one, consumers too
 *   cq.consumer_lock     consumers of one completion queue
 *   cq.lock              producers of one completion queue
 *   mr.lock              slots of the memory key table (writers; readers take no lock)
 *   multicast.lock       the members of multicast groups
 *   device.lock          the open contexts of a device
 *   table.lock           one number table (queue pair numbers, communication ids)
 *   event_queue.lock     one CM event channel, completion channel or async event queue
 *   faults.lock          the rules of what is lost
 *   timers.lock          the timer heap
 *   fabric.lock          the random numbers
 *
 * A requester holds its own requester.lock and the responder.lock of its peer.  No path goes from a
 * responder.lock to any requester.lock, so two queue pairs that send to each other cannot deadlock;
 * what a responder finds wrong with its own queue pair is settled after it is released.
 */
#ifndef SOFT_LOCK_H
#define SOFT_LOCK_H

#include <stdatomic.h>
#include <stddef.h>

/*
 * The locks of the data path.  They are held for a copy at most, nearly never asked for by two threads at
 * once, and what they cost is the one instruction that takes them: it waits until every store before it has
 * left the processor, while giving up such a lock is a plain store that nobody waits for.  A mutex, which has
 * to know whether somebody sleeps, costs that twice.
 *
 * Who finds one taken spins, then lets others run, then sleeps: its holder may have lost the processor.
 */
struct soft_lock {
	_Atomic unsigned int held;
};

/* soft_lock.c: until it is ours */
void soft_lock_wait(struct soft_lock *lock);

static inline void soft_lock_init(struct soft_lock *lock)
{
	atomic_init(&lock->held, 0);
}

static inline void soft_lock_take(struct soft_lock *lock)
{
	if (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire))
		soft_lock_wait(lock);
}

static inline void soft_lock_release(struct soft_lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}

#define SOFT_CACHE_LINE 64

#define soft_container_of(pointer, type, member)                                                   \
	((type *)(void *)((char *)(pointer) - offsetof(type, member)))

#endif
