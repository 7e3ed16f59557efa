/*
 * The queue that receives are posted to: a queue pair's own, or a shared one.
 *
 * One responder takes receives from a queue pair's own queue, under responder.lock, and needs no other lock. Many
 * take them from a shared queue, so a receive is copied under the queue's lock.
 */
#ifndef SOFT_OBJECTS_RECEIVE_QUEUE_H
#define SOFT_OBJECTS_RECEIVE_QUEUE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>

#include "soft/base/bounds.h"
#include "soft/base/lock.h"

struct soft_pd;

struct soft_recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t reserved;
	struct ibv_sge sge[];
};

/*
 * Users and responders each write a cache line of their own. A responder reads the users' line only when it has taken
 * all receives that it saw there. Users never read the responder's line, because polling makes room. A receive leaves
 * a queue pair's own queue when its completion is polled (IBTA 10.8.5, and drivers of InfiniBand devices).
 */
struct soft_receive_queue {
	char *ring;
	struct soft_pd *ring_source; /* see soft_parent_domain_allocate */
	uint32_t stride; /* whole cache lines: a responder may read one while the next is written */
	uint32_t size;
	uint32_t mask;
	uint32_t max_sge;

	struct soft_lock lock __attribute__((aligned(SOFT_CACHE_LINE)));
	_Atomic uint32_t posted;
	_Atomic uint32_t returned; /* receives that made room; guarded as soft_receive_queue_return says */

	/* Under responder.lock; for a shared queue, under the lock. */
	uint32_t consumed __attribute__((aligned(SOFT_CACHE_LINE)));
	uint32_t posted_seen;
};

/* Room for at least max_wr receives, in memory of pd's allocator if it has one. -ENOMEM. */
int soft_receive_queue_init(struct soft_receive_queue *queue, struct soft_pd *pd, uint32_t max_wr,
			    uint32_t max_sge);
void soft_receive_queue_destroy(struct soft_receive_queue *queue);
/* Drop all receives. */
void soft_receive_queue_reset(struct soft_receive_queue *queue);
/*
 * Make room for at least max_wr receives. -EINVAL if more are posted; -ENOMEM. The lock is held, so the user's
 * allocator is not called. The old ring is left in *old, and the caller destroys it after releasing the lock.
 */
int soft_receive_queue_resize(struct soft_receive_queue *queue, uint32_t max_wr,
			      struct soft_receive_queue *old);
/* Post one: 0, EINVAL (too many entries) or ENOMEM (full). The lock is held. */
int soft_receive_queue_append(struct soft_receive_queue *queue, const struct ibv_recv_wr *wr);

static inline struct soft_recv_wqe *soft_recv_wqe(struct soft_receive_queue *queue, uint32_t index)
{
	return (struct soft_recv_wqe *)(void *)(queue->ring + (size_t)(index & queue->mask) * queue->stride);
}

/* Room for one more. The consumer_lock of the receive completion queue is held; for a shared queue, the lock. */
static inline void soft_receive_queue_return(struct soft_receive_queue *queue)
{
	uint32_t returned = atomic_load_explicit(&queue->returned, memory_order_relaxed);

	atomic_store_explicit(&queue->returned, returned + 1, memory_order_release);
}

/* A receive that a responder has taken. */
struct soft_receive {
	uint64_t wr_id;
	uint32_t num_sge;
	const struct ibv_sge *sge; /* in the ring, or copy */
	struct ibv_sge copy[SOFT_MAX_SGE];
};

#endif
