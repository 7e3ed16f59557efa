#include "soft/base/event_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ACKNOWLEDGE_BOUND (10 * SOFT_SECOND) /* far longer than a working program holds an event */

int soft_event_queue_init(struct soft_event_queue *queue, struct soft_legal *legal)
{
	queue->fd = eventfd(0, EFD_CLOEXEC);
	if (queue->fd < 0)
		return -errno;
	soft_mutex_init(&queue->lock, SOFT_ORDER_EVENT_QUEUE);
	queue->legal = legal;
	queue->head.next = &queue->head;
	queue->head.previous = &queue->head;
	return 0;
}

bool soft_event_queue_close(struct soft_event_queue *queue)
{
	int fd;

	soft_mutex_lock(&queue->lock);
	fd = queue->fd;
	queue->fd = -1;
	soft_mutex_unlock(&queue->lock);
	return fd >= 0 && !close(fd);
}

void soft_event_queue_destroy(struct soft_event_queue *queue)
{
	(void)soft_event_queue_close(queue);
	soft_mutex_destroy(&queue->lock);
}

static int is_empty(const struct soft_event_queue *queue)
{
	return queue->head.next == &queue->head;
}

/* These calls are made with the lock held, so they are not cancellation points. */
static void make_readable(struct soft_event_queue *queue)
{
	const uint64_t one = 1;
	long done;

	soft_mutex_expect(&queue->lock);
	while ((done = syscall(SYS_write, queue->fd, &one, sizeof(one))) < 0 && errno == EINTR)
		;
	queue->written += done > 0;
}

/*
 * Cannot block, because no other thread reads. A thread that waits wakes up, finds the queue empty, and waits again.
 */
static void make_unreadable(struct soft_event_queue *queue)
{
	uint64_t count;

	soft_mutex_expect(&queue->lock);
	if (!queue->written || queue->readers)
		return;
	while (syscall(SYS_read, queue->fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	queue->written = 0;
}

/* After an event was taken: make the descriptor show whether the queue is empty. */
static void show(struct soft_event_queue *queue)
{
	if (is_empty(queue))
		make_unreadable(queue);
	else if (!queue->written)
		make_readable(queue);
}

static void append(struct soft_event_queue *queue, struct soft_event_node *node)
{
	node->previous = queue->head.previous;
	node->next = &queue->head;
	node->previous->next = node;
	queue->head.previous = node;
}

static void unlink_node(struct soft_event_node *node)
{
	node->previous->next = node->next;
	node->next->previous = node->previous;
	node->next = NULL;
	node->previous = NULL;
}

void soft_event_queue_push(struct soft_event_queue *queue, struct soft_event_node *node)
{
	soft_mutex_lock(&queue->lock);
	if (node->times++ == 0) {
		if (is_empty(queue))
			make_readable(queue);
		append(queue, node);
	}
	soft_mutex_unlock(&queue->lock);
}

uint32_t soft_event_queue_remove(struct soft_event_queue *queue, struct soft_event_node *node)
{
	uint32_t taken;

	soft_mutex_lock(&queue->lock);
	if (node->times) {
		node->times = 0;
		unlink_node(node);
		show(queue);
	}
	taken = node->taken;
	soft_mutex_unlock(&queue->lock);
	return taken;
}

static struct soft_event_node *pop(struct soft_event_queue *queue)
{
	struct soft_event_node *node = queue->head.next;

	soft_mutex_expect(&queue->lock);
	if (is_empty(queue))
		return NULL;
	unlink_node(node);
	node->taken++;
	if (--node->times)
		append(queue, node);
	show(queue);
	return node;
}

struct soft_event_node *soft_event_queue_try_pop(struct soft_event_queue *queue)
{
	struct soft_event_node *node;

	soft_mutex_lock(&queue->lock);
	node = pop(queue);
	soft_mutex_unlock(&queue->lock);
	return node;
}

bool soft_event_queue_blocks(const struct soft_event_queue *queue)
{
	return !(fcntl(queue->fd, F_GETFL) & O_NONBLOCK);
}

/* A waiting thread is cancelled. */
static void stop_reading(void *argument)
{
	struct soft_event_queue *queue = argument;

	soft_mutex_lock(&queue->lock);
	queue->readers--;
	soft_mutex_unlock(&queue->lock);
}

/* The queue is empty. Releases the lock while it waits. */
static int wait_locked(struct soft_event_queue *queue)
{
	uint64_t count = 0;
	ssize_t result;
	int error;

	if (queue->legal && soft_event_queue_blocks(queue) && soft_legal_interrupts(queue->legal)) {
		errno = EINTR;
		return -1;
	}
	queue->readers++;
	soft_mutex_unlock(&queue->lock);
	pthread_cleanup_push(stop_reading, queue);
	result = read(queue->fd, &count, sizeof(count));
	pthread_cleanup_pop(0);
	error = errno;
	soft_mutex_lock(&queue->lock);
	queue->readers--;
	queue->written -= count;
	errno = error;
	return result < 0 ? -1 : 0;
}

int soft_event_queue_wait(struct soft_event_queue *queue)
{
	int result = 0;

	soft_mutex_lock(&queue->lock);
	if (is_empty(queue))
		result = wait_locked(queue);
	soft_mutex_unlock(&queue->lock);
	return result;
}

struct soft_event_node *soft_event_queue_pop(struct soft_event_queue *queue)
{
	struct soft_event_node *node;

	soft_mutex_lock(&queue->lock);
	while (!(node = pop(queue)) && !wait_locked(queue))
		;
	soft_mutex_unlock(&queue->lock);
	return node;
}

void soft_events_init(pthread_mutex_t *lock, pthread_cond_t *acknowledged)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(acknowledged, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void soft_events_destroy(pthread_mutex_t *lock, pthread_cond_t *acknowledged)
{
	pthread_cond_destroy(acknowledged);
	pthread_mutex_destroy(lock);
}

void soft_events_acknowledge(pthread_mutex_t *lock, pthread_cond_t *acknowledged, uint32_t *count,
			     uint32_t more)
{
	pthread_mutex_lock(lock);
	*count += more;
	/* Before the lock is released: the waiting thread then destroys both. */
	pthread_cond_broadcast(acknowledged);
	pthread_mutex_unlock(lock);
}

int soft_events_wait(pthread_mutex_t *lock, pthread_cond_t *acknowledged, struct soft_clock *wall,
		     const uint32_t *count, const uint32_t *taken)
{
	struct timespec until;
	uint64_t bound;

	if (*count == *taken)
		return 0;
	bound = wall->now(wall) + ACKNOWLEDGE_BOUND;
	until = (struct timespec){(time_t)(bound / SOFT_SECOND), (long)(bound % SOFT_SECOND)};
	while (*count != *taken)
		if (pthread_cond_timedwait(acknowledged, lock, &until))
			return EBUSY;
	return 0;
}

int soft_events_end(pthread_mutex_t *lock, pthread_cond_t *acknowledged, struct soft_clock *wall,
		    const uint32_t *count, uint32_t taken)
{
	int result;

	pthread_mutex_lock(lock);
	result = soft_events_wait(lock, acknowledged, wall, count, &taken);
	pthread_mutex_unlock(lock);
	return result;
}
