/*
 * The locks of the soft provider and their one order.  A thread takes them only downwards:
 *
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

#include <pthread.h>

/* Adaptive: the holder of a data path lock is usually gone before a sleep would have begun. */
static inline void soft_lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

#define SOFT_CACHE_LINE 64

#define soft_container_of(pointer, type, member)                                                   \
	((type *)(void *)((char *)(pointer) - offsetof(type, member)))

#endif
