/*
 * Completion queues and their channels.
 *
 * A queue is a ring of cache lines.  Each entry carries the lap of the ring it was written in, so a
 * poller learns from one load of one line whether there is a completion, and reads it from that line.
 * Producers and consumers have a lock each and share nothing but the entries.
 */
#ifndef SOFT_CQ_H
#define SOFT_CQ_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "soft_context.h"
#include "soft_lock.h"

struct soft_cqe {
	struct ibv_wc wc;
	_Atomic uint32_t lap; /* (index >> order) + 1 of the completion it holds */
} __attribute__((aligned(SOFT_CACHE_LINE)));

enum soft_cq_armed { SOFT_CQ_IDLE, SOFT_CQ_SOLICITED, SOFT_CQ_ANY };

struct soft_cq {
	struct ibv_cq ibv;
	struct soft_cqe *ring;
	uint32_t mask;
	uint32_t order;
	_Atomic unsigned int users; /* queue pairs; two for one that uses it for both halves */
	struct soft_event_node comp_event;
	uint32_t comp_events_reported; /* taken from the channel; under ibv.mutex */
	struct soft_async_event overflow_event;

	pthread_mutex_t lock __attribute__((aligned(SOFT_CACHE_LINE)));
	uint32_t produced;
	uint32_t consumed_seen; /* a past value of consumed, read again when the ring looks full */
	enum soft_cq_armed armed;
	bool overflowed;

	pthread_mutex_t consumer_lock __attribute__((aligned(SOFT_CACHE_LINE)));
	_Atomic uint32_t consumed;
};

struct soft_comp_channel {
	struct ibv_comp_channel ibv;
	struct soft_event_queue queue;
};

struct ibv_comp_channel *soft_create_comp_channel(struct ibv_context *context);
/* EBUSY while completion queues use it. */
int soft_destroy_comp_channel(struct ibv_comp_channel *channel);

struct ibv_cq *soft_create_cq(struct ibv_context *context, int entries, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector);
/* EBUSY while queue pairs use it or while completion events are not acknowledged. */
int soft_destroy_cq(struct ibv_cq *cq);
int soft_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc);
int soft_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int soft_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void soft_ack_cq_events(struct ibv_cq *cq, unsigned int count);

/*
 * Add a completion.  solicited: the sender asked for an event, or it is an error.  A full queue is
 * an overrun (IBTA 11.6.3.1): the completion is lost and IBV_EVENT_CQ_ERR is raised once.
 */
void soft_cq_push(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited);

static inline struct soft_cq *soft_cq(struct ibv_cq *cq)
{
	return (struct soft_cq *)cq;
}

#endif
