/*
 * Completion queues.
 *
 * A queue is a ring of cache lines.  Each entry carries the lap of the ring it was written in, so a
 * poller learns from one load of one line whether there is a completion, and reads it from that line.
 * Producers and consumers have a lock each and share nothing but the entries.
 */
#ifndef SOFT_OBJECTS_CQ_H
#define SOFT_OBJECTS_CQ_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "soft/base/event_queue.h"
#include "soft/base/lock.h"
#include "soft/base/timer.h"
#include "soft/objects/context.h"
#include "soft/objects/qp.h"

struct soft_pd;
struct soft_progress;

struct soft_cqe {
	struct ibv_wc wc;
	_Atomic uint32_t lap; /* (index >> order) + 1 of the completion it holds */
	struct soft_qp *receiver; /* of a receive, or NULL: its poller waits for the sender and makes room (soft_cqe_polled) */
} __attribute__((aligned(SOFT_CACHE_LINE)));

struct soft_cq_ring {
	struct soft_cq_ring *next; /* spares */
	struct soft_pd *source; /* see soft_parent_domain_allocate */
	uint32_t order;
	uint32_t mask;
	struct soft_cqe entries[]; /* each a cache line; behind them their stamps */
};

/* In order: each covers more completions. */
enum soft_cq_armed { SOFT_CQ_IDLE, SOFT_CQ_SOLICITED, SOFT_CQ_ANY };

/* Guarded by cq.lock. */
struct soft_cq_moderation {
	struct soft_cq *cq;
	struct soft_timer timer; /* armed while any wait */
	uint32_t count; /* completions an event is for; 0: it is off */
	uint32_t waiting; /* completions that would have been an event */
	uint64_t period; /* nanoseconds that the first of them waits at most */
};

struct soft_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex extended; /* begins like ibv */
	};
	/*
	 * Replaced under both locks, together with filled.  soft_cq_looks_empty reads it with none, so a ring that was
	 * replaced is not freed but kept for the next resize to its size.
	 */
	_Atomic(struct soft_cq_ring *) ring;
	struct soft_progress *progress; /* the device's */
	struct soft_cq_ring *spares;
	struct soft_pd *pd; /* the parent domain that it was made with, or NULL */
	_Atomic unsigned int users; /* queue pairs; two for one that uses it for both halves */
	struct soft_event_node comp_event;
	struct soft_async_event overflow_event;

	struct soft_lock lock __attribute__((aligned(SOFT_CACHE_LINE)));
	uint32_t produced;
	struct soft_cq_ring *filled; /* the ring */
	uint32_t consumed_seen; /* a past value of consumed, read again when the ring looks full */
	enum soft_cq_armed armed;
	bool overflowed;
	bool stamps; /* completions have their time */
	struct soft_cq_moderation *moderation; /* NULL until ibv_modify_cq */

	struct soft_lock consumer_lock __attribute__((aligned(SOFT_CACHE_LINE)));
	_Atomic uint32_t consumed;
	struct soft_lock polling; /* from start_poll to end_poll */
	uint64_t current_stamp;
	struct ibv_wc current; /* what is shown meanwhile; it has left the queue */
};

int soft_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc);
int soft_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int soft_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void soft_ack_cq_events(struct ibv_cq *cq, unsigned int count);

/*
 * Drop the completions of a queue pair that was reset: a user that connects it again would take them for those of new
 * requests.  Drivers of InfiniBand devices do this as well (mlx5_modify_qp of rdma-core).
 */
void soft_cq_forget(struct soft_cq *cq, uint32_t qp_num);

/* The queue pair is reset or destroyed: its completions that are not polled yet make no room in it. */
void soft_cq_disown(struct soft_cq *cq, const struct soft_qp *receiver);

/* The lap of the completion of that index, never 0, which marks a fresh entry; repeats after 2^32. */
static inline uint32_t soft_cq_lap(const struct soft_cq_ring *ring, uint32_t index)
{
	return (index >> ring->order) + 1;
}

/* When the completion of that index was added, by the fabric's clock; where the queue stamps. */
static inline uint64_t *soft_cq_stamp(struct soft_cq_ring *ring, uint32_t index)
{
	return (uint64_t *)(void *)&ring->entries[ring->mask + 1] + (index & ring->mask);
}

static inline struct soft_cq *soft_cq(struct ibv_cq *cq)
{
	return (struct soft_cq *)cq;
}

/* Takes no lock; a completion that comes meanwhile is seen the next time. */
static inline bool soft_cq_looks_empty(struct soft_cq *cq)
{
	uint32_t index = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	struct soft_cq_ring *ring = atomic_load_explicit(&cq->ring, memory_order_acquire);

	return atomic_load_explicit(&ring->entries[index & ring->mask].lap, memory_order_relaxed) !=
	       soft_cq_lap(ring, index);
}

/* The queue looks empty.  True when, after another look, it does not any more. */
bool soft_cq_progress(struct soft_cq *cq);

/* The completion is polled.  consumer_lock is held. */
static inline void soft_cqe_polled(const struct soft_cqe *entry)
{
	if (entry->receiver) {
		soft_qp_await_sender(entry->receiver);
		soft_receive_queue_return(&entry->receiver->receive);
	}
}

/* Whether the queue has room after all: consumed_seen may be old.  cq->lock is held, and released when it has none. */
bool soft_cq_has_room(struct soft_cq *cq);
uint64_t soft_cq_now(struct soft_cq *cq);
/* Moderation: whether the event of a completion is raised now.  cq->lock is held. */
bool soft_cq_is_due(struct soft_cq *cq);
struct soft_timers *soft_cq_timers(struct soft_cq *cq);

/* --- comp_channel.c: where completion queues raise their events ----------------------------------- */

/* One more completion queue uses the channel (1), or one less (-1).  NULL: nothing to do. */
void soft_comp_channel_use(struct ibv_comp_channel *channel, int change);
/* Deliver the event of a completion queue once more. */
void soft_comp_channel_push(struct ibv_comp_channel *channel, struct soft_event_node *event);
/* The oldest event, waited for where the channel's descriptor blocks; NULL and errno when there is none. */
struct soft_event_node *soft_comp_channel_pop(struct ibv_comp_channel *channel);
/* Drop every delivery of the event that is still to come; returns how often it was taken. */
uint32_t soft_comp_channel_remove(struct ibv_comp_channel *channel, struct soft_event_node *event);

/* Raise the event of a queue that was armed. */
static inline void soft_cq_notify(struct soft_cq *cq)
{
	if (cq->ibv.channel)
		soft_comp_channel_push(cq->ibv.channel, &cq->comp_event);
}

/*
 * The entry of the next completion, to be filled and passed to soft_cq_end; cq->lock is held until then.  NULL when the
 * queue overruns (IBTA 11.6.3.1): the completion is lost, IBV_EVENT_CQ_ERR is raised once, and no lock is held.
 */
static inline struct soft_cqe *soft_cq_begin(struct soft_cq *cq)
{
	struct soft_cq_ring *ring;

	soft_lock_take(&cq->lock);
	ring = cq->filled;
	if (cq->produced - cq->consumed_seen > ring->mask && !soft_cq_has_room(cq))
		return NULL;
	ring->entries[cq->produced & ring->mask].receiver = NULL;
	return &ring->entries[cq->produced & ring->mask];
}

/* solicited: the sender asked for an event, or it is an error. */
static inline void soft_cq_end(struct soft_cq *cq, struct soft_cqe *entry, bool solicited)
{
	bool notify = cq->armed > (solicited ? SOFT_CQ_IDLE : SOFT_CQ_SOLICITED);

	soft_lock_expect(&cq->lock);
	if (cq->stamps)
		*soft_cq_stamp(cq->filled, cq->produced) = soft_cq_now(cq);
	atomic_store_explicit(&entry->lap, soft_cq_lap(cq->filled, cq->produced), memory_order_release);
	cq->produced++;
	if (notify && cq->moderation)
		notify = soft_cq_is_due(cq);
	if (notify)
		cq->armed = SOFT_CQ_IDLE;
	soft_lock_release(&cq->lock);
	if (notify)
		soft_cq_notify(cq);
}

#endif
