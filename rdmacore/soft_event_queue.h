/*
 * A queue of events with a file descriptor that is readable while it is not empty: the one mechanism
 * behind CM event channels, completion channels and the async events of a context.
 *
 * The descriptor is an eventfd that holds 1 while there are events.  Whether taking from an empty queue
 * blocks is decided by O_NONBLOCK on it, as for the kernel's descriptors.
 */
#ifndef SOFT_EVENT_QUEUE_H
#define SOFT_EVENT_QUEUE_H

#include <pthread.h>
#include <stdint.h>

struct soft_event_node {
	struct soft_event_node *next, *previous; /* NULL while not queued */
	uint32_t times; /* how often it is to be delivered */
};

struct soft_event_queue {
	pthread_mutex_t lock;
	struct soft_event_node head;
	int fd;
};

/* 0 or a negative errno of eventfd(2). */
int soft_event_queue_init(struct soft_event_queue *queue);
void soft_event_queue_destroy(struct soft_event_queue *queue);

/* Deliver node once more. */
void soft_event_queue_push(struct soft_event_queue *queue, struct soft_event_node *node);
/* Forget every delivery of node that is still to come; returns how many there were. */
uint32_t soft_event_queue_remove(struct soft_event_queue *queue, struct soft_event_node *node);
/* The oldest node, or NULL when there is none. */
struct soft_event_node *soft_event_queue_try_pop(struct soft_event_queue *queue);
/* Until the queue is not empty: 0, or -1 with errno EAGAIN (O_NONBLOCK is set) or EINTR. */
int soft_event_queue_wait(struct soft_event_queue *queue);
/* The oldest node, waited for; NULL with errno as above. */
struct soft_event_node *soft_event_queue_pop(struct soft_event_queue *queue);

#endif
