/*
 * Completion queues.
 *
 * A queue is a ring of cache lines. Each entry contains the lap of the ring in which it was written. So a poller
 * loads one line to learn whether there is a completion, and reads it from that line. Producers and consumers have a
 * lock each, and share only the entries.
 */
#ifndef SOFT_OBJECTS_CQ_H
#define SOFT_OBJECTS_CQ_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "soft/base/event_queue.h"
#include "soft/base/legal.h"
#include "soft/base/lock.h"
#include "soft/base/timer.h"
#include "soft/objects/context.h"
#include "soft/objects/qp.h"

struct soft_pd;
struct soft_progress;

struct soft_cqe {
	struct ibv_wc wc;
	_Atomic uint32_t lap; /* (index >> order) + 1 of the completion it holds */
	/* queue pair of a receive, or NULL: polling waits for its sender and makes room (soft_cqe_polled) */
	struct soft_qp *receiver;
} __attribute__((aligned(SOFT_CACHE_LINE)));

struct soft_cq_ring {
	struct soft_cq_ring *next; /* next spare ring */
	struct soft_pd *source; /* see soft_parent_domain_allocate */
	uint32_t order;
	uint32_t mask;
	struct soft_cqe entries[]; /* a cache line each; their time stamps follow */
};

/* In order: each value covers more completions. */
enum soft_cq_armed { SOFT_CQ_IDLE, SOFT_CQ_SOLICITED, SOFT_CQ_ANY };

/* Legal choices of a queue (provider/legal.h). Guarded by cq.lock. */
struct soft_cq_legal {
	struct soft_cq *cq;
	struct soft_legal_draws draws; /* guarded by nothing */
	struct soft_timer timer; /* armed while completions are late */
	uint32_t late; /* the newest completions, which cannot be polled yet */
	/*
	 * With a virtual clock: how many polls find the queue empty before they can be polled. A native loop that
	 * polls does not let time pass. 0: the clock is real.
	 */
	uint32_t polls_left;
	bool solicited; /* of one of them */
	uint32_t flushed_qp; /* the queue pair of the flush that was drawn last; 0: none */
};

/* Guarded by cq.lock. */
struct soft_cq_moderation {
	struct soft_cq *cq;
	struct soft_timer timer; /* armed while completions wait */
	uint32_t count; /* completions for one event; 0: moderation is off */
	uint32_t waiting; /* completions that have not raised their event yet */
	uint64_t period; /* nanoseconds that the first of them waits at most */
};

struct soft_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex extended; /* begins like ibv */
	};
	/*
	 * Replaced under both locks, together with filled. soft_cq_looks_empty reads it without a lock. So a ring
	 * that was replaced is not freed, but kept for the next resize to its size.
	 */
	_Atomic(struct soft_cq_ring *) ring;
	struct soft_progress *progress; /* of the device */
	struct soft_cq_legal *legal; /* NULL: no choice is ever made */
	struct soft_cq_ring *spares;
	struct soft_pd *pd; /* the parent domain of its creation, or NULL */
	_Atomic unsigned int users; /* queue pairs; one that uses it for both halves counts twice */
	struct soft_event_node comp_event;
	struct soft_async_event overflow_event;

	struct soft_lock lock __attribute__((aligned(SOFT_CACHE_LINE)));
	uint32_t produced;
	struct soft_cq_ring *filled; /* the ring */
	uint32_t consumed_seen; /* an earlier value of consumed, read again when the ring looks full */
	enum soft_cq_armed armed;
	bool overflowed;
	bool stamps; /* completions have time stamps */
	struct soft_cq_moderation *moderation; /* NULL until ibv_modify_cq */

	struct soft_lock consumer_lock __attribute__((aligned(SOFT_CACHE_LINE)));
	_Atomic uint32_t consumed;
	struct soft_lock polling; /* held from start_poll to end_poll */
	uint64_t current_stamp;
	struct ibv_wc current; /* the completion that is shown; it has left the queue */
};

/* A poller reads them each time, also while producers write. */
_Static_assert(offsetof(struct soft_cq, legal) < offsetof(struct soft_cq, lock), "not in the line of producers");

int soft_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc);
int soft_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int soft_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void soft_ack_cq_events(struct ibv_cq *cq, unsigned int count);

/*
 * Drop the completions of a queue pair that was reset. A user who connects it again would take them for completions
 * of new requests. Drivers of InfiniBand devices drop them, too (mlx5_modify_qp of rdma-core).
 */
void soft_cq_forget(struct soft_cq *cq, uint32_t qp_num);

/* The queue pair is reset or destroyed: completions that are not polled yet make no room in it. */
void soft_cq_disown(struct soft_cq *cq, const struct soft_qp *receiver);

/* The lap of the completion of that index. Never 0, which marks a fresh entry; repeats after 2^32. */
static inline uint32_t soft_cq_lap(const struct soft_cq_ring *ring, uint32_t index)
{
	return (index >> ring->order) + 1;
}

/* When the completion of that index was added, in time of the fabric's clock; only if the queue has time stamps. */
static inline uint64_t *soft_cq_stamp(struct soft_cq_ring *ring, uint32_t index)
{
	return (uint64_t *)(void *)&ring->entries[ring->mask + 1] + (index & ring->mask);
}

static inline struct soft_cq *soft_cq(struct ibv_cq *cq)
{
	return (struct soft_cq *)cq;
}

/* Takes no lock. A completion that is added meanwhile is seen the next time. */
static inline bool soft_cq_looks_empty(struct soft_cq *cq)
{
	uint32_t index = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	struct soft_cq_ring *ring = atomic_load_explicit(&cq->ring, memory_order_acquire);

	return atomic_load_explicit(&ring->entries[index & ring->mask].lap, memory_order_relaxed) !=
	       soft_cq_lap(ring, index);
}

/* The queue looks empty: let the link receive. True when the queue is not empty any more. */
bool soft_cq_progress(struct soft_cq *cq);

/* The completion is polled. consumer_lock is held. */
static inline void soft_cqe_polled(const struct soft_cqe *entry)
{
	if (entry->receiver) {
		soft_qp_await_sender(entry->receiver);
		soft_receive_queue_return(&entry->receiver->receive);
	}
}

/* Whether the queue has room: read consumed_seen again. cq->lock is held, and released if there is no room. */
bool soft_cq_has_room(struct soft_cq *cq);
uint64_t soft_cq_now(struct soft_cq *cq);
/* Moderation: whether the event of a completion is raised now. cq->lock is held. */
bool soft_cq_is_due(struct soft_cq *cq);
struct soft_timers *soft_cq_timers(struct soft_cq *cq);

/* --- queues that make legal choices ---------------------------------------------------------- */

/* For a new queue. -ENOMEM. */
int soft_cq_legal_create(struct soft_cq *cq);
/* No queue pair uses the queue. */
void soft_cq_legal_destroy(struct soft_cq *cq);
/* soft_cq_end of such a queue. */
void soft_cq_legal_end(struct soft_cq *cq, struct soft_cqe *entry, bool solicited);
/* The queue is being armed: whether its event is raised now, and the queue not armed. cq->lock is held. */
bool soft_cq_legal_arm(struct soft_cq *cq);
/* A poll has found the queue empty. Whether it is not any more. */
bool soft_cq_legal_hurry(struct soft_cq *cq);
/* How many of max completions a poll returns at most. */
int soft_cq_legal_limit(struct soft_cq *cq, int max);
/*
 * The poll took fewer. For the program the queue was empty then (infiniband/verbs.h), so what is left has come since:
 * an armed queue raises its event. No lock is held.
 */
void soft_cq_legal_left(struct soft_cq *cq);
/* Completions were polled: what the program may expect to see after them. No lock is held. */
void soft_cq_legal_polled(struct soft_cq *cq);
/* Whether that completion cannot be polled yet. cq->lock is held. */
static inline bool soft_cq_is_late(const struct soft_cq *cq, uint32_t index)
{
	return cq->legal && cq->produced - index <= cq->legal->late;
}

/* --- comp_channel.c: channels of completion events ------------------------------------------------ */

/* Count a completion queue that uses the channel (1), or no longer uses it (-1). NULL: nothing to do. */
void soft_comp_channel_use(struct ibv_comp_channel *channel, int change);
/* Queue the event of a completion queue once more. */
void soft_comp_channel_push(struct ibv_comp_channel *channel, struct soft_event_node *event);
/* The oldest event. Waits for one if the channel's descriptor blocks; NULL and errno if there is none. */
struct soft_event_node *soft_comp_channel_pop(struct ibv_comp_channel *channel);
/* Drop all queued deliveries of the event; returns how often it was taken. */
uint32_t soft_comp_channel_remove(struct ibv_comp_channel *channel, struct soft_event_node *event);

/* Raise the event of an armed queue. */
static inline void soft_cq_notify(struct soft_cq *cq)
{
	if (cq->ibv.channel)
		soft_comp_channel_push(cq->ibv.channel, &cq->comp_event);
}

/*
 * The entry of the next completion, which the caller fills and passes to soft_cq_end; cq->lock is held until then.
 * NULL when the queue overruns (IBTA 11.6.3.1): the completion is lost, IBV_EVENT_CQ_ERR is raised once, and no lock
 * is held.
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

/* solicited: the sender requested an event, or it is an error. */
static inline void soft_cq_end(struct soft_cq *cq, struct soft_cqe *entry, bool solicited)
{
	bool notify = cq->armed > (solicited ? SOFT_CQ_IDLE : SOFT_CQ_SOLICITED);

	soft_lock_expect(&cq->lock);
	if (cq->legal) {
		soft_cq_legal_end(cq, entry, solicited);
		return;
	}
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
