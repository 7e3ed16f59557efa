/*
 * A queue of events with a file descriptor that is readable while the queue is not empty. Users are CM event channels,
 * completion channels and the async events of a context.
 *
 * The descriptor is an eventfd. It is written when the first event comes and read when the last one is taken. A
 * waiting thread reads it: O_NONBLOCK decides whether that blocks, as with the kernel's descriptors, and an event
 * costs one call.
 *
 * A user that took an event may use its object until it acknowledges the event. So an object is destroyed in this
 * order: stop raising its events; soft_event_queue_remove, which returns how many were taken; soft_events_wait for
 * that many acknowledgements. An event is taken and counted in one step under the queue's lock, as in the kernel.
 * Otherwise the object could be destroyed in between.
 */
#ifndef SOFT_BASE_EVENT_QUEUE_H
#define SOFT_BASE_EVENT_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "soft/base/clock.h"
#include "soft/base/legal.h"
#include "soft/base/mutex.h"

struct soft_event_node {
	struct soft_event_node *next, *previous; /* NULL while not queued */
	uint32_t times; /* queued deliveries */
	uint32_t taken; /* deliveries so far */
};

struct soft_event_queue {
	struct soft_mutex lock;
	struct soft_legal *legal;
	struct soft_event_node head;
	uint64_t written; /* not read yet as far as is known; a waiting thread may have read it */
	uint32_t readers; /* waiting threads */
	int fd;
};

/* legal: whether waits are interrupted; NULL: no. 0 or a negative errno of eventfd(2). */
int soft_event_queue_init(struct soft_event_queue *queue, struct soft_legal *legal);
/* Close the descriptor: waiting fails with EBADF from now on. False if it is closed already. */
bool soft_event_queue_close(struct soft_event_queue *queue);
void soft_event_queue_destroy(struct soft_event_queue *queue);

/* Queue one more delivery of node. */
void soft_event_queue_push(struct soft_event_queue *queue, struct soft_event_node *node);
/* Drop the queued deliveries of node; returns how often it was taken. */
uint32_t soft_event_queue_remove(struct soft_event_queue *queue, struct soft_event_node *node);
/* Take the oldest node; NULL if there is none. */
struct soft_event_node *soft_event_queue_try_pop(struct soft_event_queue *queue);
/* Whether taking from an empty queue waits: O_NONBLOCK is not set. */
bool soft_event_queue_blocks(const struct soft_event_queue *queue);
/*
 * Wait for an event, which the caller takes afterwards, unless another thread has. 0, or -1 with errno EAGAIN
 * (O_NONBLOCK is set), EINTR or EBADF.
 */
int soft_event_queue_wait(struct soft_event_queue *queue);
/* Wait for the oldest node and take it; NULL with errno as above. */
struct soft_event_node *soft_event_queue_pop(struct soft_event_queue *queue);

/* The lock and condition for the acknowledgements of an object's events: the mutex and cond of libibverbs' structs. */
void soft_events_init(pthread_mutex_t *lock, pthread_cond_t *acknowledged);
void soft_events_destroy(pthread_mutex_t *lock, pthread_cond_t *acknowledged);
/* Count more acknowledgements. Takes lock. */
void soft_events_acknowledge(pthread_mutex_t *lock, pthread_cond_t *acknowledged, uint32_t *count, uint32_t more);
/*
 * Wait until as many events are acknowledged as were taken: 0, or EBUSY after ten seconds, where librdmacm and
 * libibverbs would wait forever. lock is held, and released while this waits.
 */
int soft_events_wait(pthread_mutex_t *lock, pthread_cond_t *acknowledged, struct soft_clock *wall,
		     const uint32_t *count, const uint32_t *taken);
/* The same for an object that is being destroyed, of which no event is taken any more. Takes lock. */
int soft_events_end(pthread_mutex_t *lock, pthread_cond_t *acknowledged, struct soft_clock *wall,
		    const uint32_t *count, uint32_t taken);

#endif
