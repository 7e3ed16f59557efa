#include "soft/objects/cq.h"

#include <errno.h>

#include "soft/base/fabric.h"
#include "soft/objects/device.h"

bool soft_cq_progress(struct soft_cq *cq)
{
	cq->progress->poll(cq->progress);
	return !soft_cq_looks_empty(cq);
}

int soft_poll_cq(struct ibv_cq *ibv_cq, int max, struct ibv_wc *wc)
{
	struct soft_cq *cq = soft_cq(ibv_cq);
	struct soft_cq_ring *ring;
	struct soft_cqe *entry;
	uint32_t index;
	int polled = 0;

	if (max < 0)
		return -EINVAL;
	if (soft_cq_looks_empty(cq) && (!cq->progress || !soft_cq_progress(cq)))
		return 0;
	soft_lock_take(&cq->consumer_lock);
	index = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	ring = atomic_load_explicit(&cq->ring, memory_order_relaxed);
	while (polled < max) {
		entry = &ring->entries[index & ring->mask];
		if (atomic_load_explicit(&entry->lap, memory_order_acquire) != soft_cq_lap(ring, index))
			break;
		wc[polled++] = entry->wc;
		soft_cqe_polled(entry);
		index++;
	}
	atomic_store_explicit(&cq->consumed, index, memory_order_release);
	soft_lock_release(&cq->consumer_lock);
	return polled;
}

/*
 * Under cq->lock, like soft_cq_end: a completion is either seen by the poll after the arming, or finds the queue armed
 * (ibv_req_notify_cq(3)).
 */
int soft_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
	struct soft_cq *cq = soft_cq(ibv_cq);
	enum soft_cq_armed armed = solicited_only ? SOFT_CQ_SOLICITED : SOFT_CQ_ANY;

	soft_lock_take(&cq->lock);
	if (cq->armed < armed)
		cq->armed = armed;
	soft_lock_release(&cq->lock);
	if (cq->progress)
		cq->progress->sleep(cq->progress);
	return 0;
}

struct soft_timers *soft_cq_timers(struct soft_cq *cq)
{
	return &soft_device(cq->ibv.context->device)->fabric->timers;
}

bool soft_cq_is_due(struct soft_cq *cq)
{
	struct soft_cq_moderation *moderation = cq->moderation;

	soft_lock_expect(&cq->lock);
	moderation->waiting++;
	if (!moderation->count || moderation->waiting >= moderation->count) {
		soft_timer_cancel(soft_cq_timers(cq), &moderation->timer);
		moderation->waiting = 0;
		return true;
	}
	if (moderation->waiting > 1 ||
	    !soft_timer_arm(soft_cq_timers(cq), &moderation->timer, moderation->period))
		return false;
	/* The timer could not be armed, and without it the event might never come. */
	moderation->waiting = 0;
	return true;
}

uint64_t soft_cq_now(struct soft_cq *cq)
{
	struct soft_clock *clock = &soft_device(cq->ibv.context->device)->fabric->clock;

	return clock->now(clock);
}

bool soft_cq_has_room(struct soft_cq *cq)
{
	const struct soft_cq_ring *ring = atomic_load_explicit(&cq->ring, memory_order_relaxed);
	bool first;

	soft_lock_expect(&cq->lock);
	cq->consumed_seen = atomic_load_explicit(&cq->consumed, memory_order_acquire);
	if (cq->produced - cq->consumed_seen <= ring->mask)
		return true;
	first = !cq->overflowed;
	cq->overflowed = true;
	soft_lock_release(&cq->lock);
	if (first)
		soft_async_raise(cq->ibv.context, &cq->overflow_event);
	return false;
}

/* The other completions move towards the newest, so that producers need not know. */
void soft_cq_forget(struct soft_cq *cq, uint32_t qp_num)
{
	struct soft_cq_ring *ring;
	uint32_t consumed, kept;

	soft_lock_take_turn(&cq->consumer_lock);
	soft_lock_take_turn(&cq->lock);
	ring = atomic_load_explicit(&cq->ring, memory_order_relaxed);
	consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	kept = cq->produced;
	for (uint32_t index = cq->produced; index-- != consumed;) {
		const struct soft_cqe *from = &ring->entries[index & ring->mask];
		struct soft_cqe *to;

		if (from->wc.qp_num == qp_num)
			continue;
		to = &ring->entries[--kept & ring->mask];
		to->wc = from->wc;
		*soft_cq_stamp(ring, kept) = *soft_cq_stamp(ring, index);
		to->receiver = from->receiver;
	}
	atomic_store_explicit(&cq->consumed, kept, memory_order_release);
	soft_lock_release(&cq->lock);
	soft_lock_release(&cq->consumer_lock);
}

void soft_cq_disown(struct soft_cq *cq, const struct soft_qp *receiver)
{
	struct soft_cq_ring *ring;

	soft_lock_take_turn(&cq->consumer_lock);
	soft_lock_take_turn(&cq->lock);
	ring = atomic_load_explicit(&cq->ring, memory_order_relaxed);
	for (uint32_t index = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	     index != cq->produced; index++)
		if (ring->entries[index & ring->mask].receiver == receiver)
			ring->entries[index & ring->mask].receiver = NULL;
	soft_lock_release(&cq->lock);
	soft_lock_release(&cq->consumer_lock);
}

int soft_get_cq_event(struct ibv_comp_channel *ibv_channel, struct ibv_cq **out, void **cq_context)
{
	struct soft_event_node *node = soft_comp_channel_pop(ibv_channel);
	struct soft_cq *cq;

	if (!node)
		return -1;
	cq = soft_container_of(node, struct soft_cq, comp_event);
	*out = &cq->ibv;
	*cq_context = cq->ibv.cq_context;
	return 0;
}

void soft_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	soft_events_acknowledge(&cq->mutex, &cq->cond, &cq->comp_events_completed, count);
}
