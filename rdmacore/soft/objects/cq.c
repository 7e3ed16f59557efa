#include "soft/objects/cq.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/fabric.h"
#include "soft/objects/device.h"
#include "soft/objects/late_writes.h"

#define LATE_MAX (200 * SOFT_MICROSECOND) /* of a completion, by legal choice */
#define FLUSH_LATE_MAX (20 * SOFT_MILLISECOND) /* of one that flushes a request */
#define POLLS_MAX 8 /* empty polls before a late completion with a virtual clock */

bool soft_cq_progress(struct soft_cq *cq)
{
	cq->progress->poll(cq->progress);
	return !soft_cq_looks_empty(cq);
}

/* Whether a poll finds no completion, after the link was let receive. */
static inline bool is_empty(struct soft_cq *cq)
{
	return soft_cq_looks_empty(cq) && (!cq->progress || !soft_cq_progress(cq));
}

/* Poll up to max completions; returns how many. */
static inline __attribute__((always_inline)) int take(struct soft_cq *cq, int max, struct ibv_wc *wc)
{
	struct soft_cq_ring *ring;
	struct soft_cqe *entry;
	uint32_t index;
	int polled = 0;

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

/* The same with legal choices. */
static __attribute__((noinline)) int poll_legally(struct soft_cq *cq, int max, struct ibv_wc *wc)
{
	int limit, polled;

	if (is_empty(cq) && !soft_cq_legal_hurry(cq))
		return 0;
	limit = soft_cq_legal_limit(cq, max);
	polled = take(cq, limit, wc);
	if (limit < max && polled == limit)
		soft_cq_legal_left(cq);
	if (polled)
		soft_cq_legal_polled(cq);
	return polled;
}

int soft_poll_cq(struct ibv_cq *ibv_cq, int max, struct ibv_wc *wc)
{
	struct soft_cq *cq = soft_cq(ibv_cq);

	if (max < 0)
		return -EINVAL;
	if (cq->legal)
		return poll_legally(cq, max, wc);
	return is_empty(cq) ? 0 : take(cq, max, wc);
}

/*
 * Under cq->lock, like soft_cq_end: a completion is either seen by the poll after arming, or finds the queue armed
 * (ibv_req_notify_cq(3)).
 */
int soft_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
	struct soft_cq *cq = soft_cq(ibv_cq);
	enum soft_cq_armed armed = solicited_only ? SOFT_CQ_SOLICITED : SOFT_CQ_ANY;
	bool notify;

	soft_lock_take(&cq->lock);
	notify = cq->legal && soft_cq_legal_arm(cq);
	if (notify)
		cq->armed = SOFT_CQ_IDLE;
	else if (cq->armed < armed)
		cq->armed = armed;
	soft_lock_release(&cq->lock);
	if (notify)
		soft_cq_notify(cq);
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
	/* Without the timer the event might never be raised, so raise it now. */
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

/* Move the remaining completions towards the newest, so that the producers' index does not change. */
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

/* --- legal choices (provider/legal.h) ------------------------------------------------------------- */

/* Completions of one work queue keep their order (IBTA 10.8.3.3). */
static bool same_work_queue(const struct ibv_wc *a, const struct ibv_wc *b)
{
	return a->qp_num == b->qp_num && !((a->opcode ^ b->opcode) & IBV_WC_RECV);
}

static void swap(struct soft_cq *cq, uint32_t a, uint32_t b)
{
	struct soft_cq_ring *ring = cq->filled;
	struct soft_cqe *first = &ring->entries[a & ring->mask], *second = &ring->entries[b & ring->mask];
	struct ibv_wc wc = first->wc;
	struct soft_qp *receiver = first->receiver;
	uint64_t stamp = *soft_cq_stamp(ring, a);

	first->wc = second->wc;
	first->receiver = second->receiver;
	*soft_cq_stamp(ring, a) = *soft_cq_stamp(ring, b);
	second->wc = wc;
	second->receiver = receiver;
	*soft_cq_stamp(ring, b) = stamp;
}

/* Move some of the late completions before those of other work queues. */
static void reorder(struct soft_cq *cq, uint32_t first)
{
	struct soft_cq_ring *ring = cq->filled;

	soft_lock_expect(&cq->lock);
	for (uint32_t index = first + 1; index != cq->produced; index++) {
		uint64_t drawn = soft_legal_choose(&cq->legal->draws, CORE_LEGAL_COMPLETION_ORDER);
		uint64_t steps = drawn ? soft_legal_amount(drawn, index - first) : 0;

		for (uint32_t at = index; steps && !same_work_queue(&ring->entries[at & ring->mask].wc,
								     &ring->entries[(at - 1) & ring->mask].wc);
		     at--, steps--)
			swap(cq, at, at - 1);
	}
}

/* The late completions can be polled from now on. Returns whether the caller must raise the event. */
static bool publish(struct soft_cq *cq)
{
	struct soft_cq_legal *legal = cq->legal;
	uint32_t consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	uint32_t first = cq->produced - legal->late;
	bool notify;

	soft_lock_expect(&cq->lock);
	if ((int32_t)(first - consumed) < 0) /* those of a queue pair that was reset are gone */
		first = consumed;
	notify = first != cq->produced && cq->armed > (legal->solicited ? SOFT_CQ_IDLE : SOFT_CQ_SOLICITED);
	if (first != cq->produced)
		reorder(cq, first);
	for (uint32_t index = first; index != cq->produced; index++)
		atomic_store_explicit(&cq->filled->entries[index & cq->filled->mask].lap,
				      soft_cq_lap(cq->filled, index), memory_order_release);
	legal->late = 0;
	legal->solicited = false;
	if (notify && cq->moderation)
		notify = soft_cq_is_due(cq);
	if (notify)
		cq->armed = SOFT_CQ_IDLE;
	return notify;
}

static void expire(struct soft_timer *timer)
{
	struct soft_cq *cq = soft_container_of(timer, struct soft_cq_legal, timer)->cq;
	bool notify;

	soft_lock_take(&cq->lock);
	notify = publish(cq);
	soft_lock_release(&cq->lock);
	if (notify)
		soft_cq_notify(cq);
}

int soft_cq_legal_create(struct soft_cq *cq)
{
	struct soft_legal *choices = soft_device(cq->ibv.context->device)->legal;
	struct soft_cq_legal *legal;

	if (!choices)
		return 0;
	legal = calloc(1, sizeof(*legal));
	if (!legal)
		return -ENOMEM;
	legal->cq = cq;
	soft_legal_draws_init(&legal->draws, choices);
	if (soft_timer_register(soft_cq_timers(cq), &legal->timer, expire)) {
		free(legal);
		return -ENOMEM;
	}
	cq->legal = legal;
	return 0;
}

void soft_cq_legal_destroy(struct soft_cq *cq)
{
	if (!cq->legal)
		return;
	soft_timer_unregister(soft_cq_timers(cq), &cq->legal->timer);
	free(cq->legal);
	cq->legal = NULL;
}

/* How long the completion, and those that follow it, cannot be polled; 0: not late. */
static uint64_t choose_late(struct soft_cq *cq, const struct ibv_wc *wc)
{
	uint64_t drawn = soft_legal_choose(&cq->legal->draws, CORE_LEGAL_COMPLETION_LATE);

	if (drawn)
		return soft_legal_amount(drawn, LATE_MAX);
	/* Drawn once for all requests of the queue pair. */
	if (wc->status == IBV_WC_WR_FLUSH_ERR && cq->legal->flushed_qp != wc->qp_num) {
		cq->legal->flushed_qp = wc->qp_num;
		drawn = soft_legal_choose(&cq->legal->draws, CORE_LEGAL_FLUSH_LATE);
	}
	return drawn ? soft_legal_amount(drawn, FLUSH_LATE_MAX) : 0;
}

/* A program that reads these fields of a failed completion takes a receive for a send. */
static void change_invalid_fields(struct soft_cq *cq, struct ibv_wc *wc)
{
	uint64_t drawn = wc->status ? soft_legal_choose(&cq->legal->draws, CORE_LEGAL_FAILED_FIELDS) : 0;

	if (!drawn)
		return;
	wc->opcode = wc->opcode & IBV_WC_RECV ? IBV_WC_SEND : IBV_WC_RECV;
	wc->byte_len = (uint32_t)soft_legal_amount(drawn, UINT32_MAX);
	wc->wc_flags = IBV_WC_GRH | IBV_WC_WITH_IMM;
}

void soft_cq_legal_end(struct soft_cq *cq, struct soft_cqe *entry, bool solicited)
{
	struct soft_cq_legal *legal = cq->legal;
	bool notify = false;
	uint64_t late;

	soft_lock_expect(&cq->lock);
	change_invalid_fields(cq, &entry->wc);
	if (cq->stamps)
		*soft_cq_stamp(cq->filled, cq->produced) = soft_cq_now(cq);
	cq->produced++;
	legal->solicited |= solicited;
	if (!legal->late++) {
		late = choose_late(cq, &entry->wc);
		if (!late || soft_timer_arm(soft_cq_timers(cq), &legal->timer, late))
			notify = publish(cq);
		else if (soft_clock_is_virtual(soft_cq_timers(cq)->clock))
			legal->polls_left = (uint32_t)(1 + late % POLLS_MAX);
	}
	soft_lock_release(&cq->lock);
	if (notify)
		soft_cq_notify(cq);
}

bool soft_cq_legal_hurry(struct soft_cq *cq)
{
	struct soft_cq_legal *legal = cq->legal;
	bool notify = false, now;

	soft_lock_take(&cq->lock);
	now = legal->late && legal->polls_left && !--legal->polls_left;
	if (now) {
		soft_timer_cancel(soft_cq_timers(cq), &legal->timer);
		notify = publish(cq);
	}
	soft_lock_release(&cq->lock);
	if (notify)
		soft_cq_notify(cq);
	return now;
}

bool soft_cq_legal_arm(struct soft_cq *cq)
{
	struct soft_cq_legal *legal = cq->legal;

	soft_lock_expect(&cq->lock);
	/* They came before the program armed the queue. If it is armed already, they raise the event. */
	if (legal->late && cq->armed == SOFT_CQ_IDLE && soft_legal_choose(&legal->draws, CORE_LEGAL_EVENT_MISSED)) {
		soft_timer_cancel(soft_cq_timers(cq), &legal->timer);
		publish(cq);
	}
	return cq->ibv.channel && soft_legal_choose(&legal->draws, CORE_LEGAL_EVENT_EMPTY);
}

int soft_cq_legal_limit(struct soft_cq *cq, int max)
{
	uint64_t drawn;

	if (max < 2 || !(drawn = soft_legal_choose(&cq->legal->draws, CORE_LEGAL_POLL_SHORT)))
		return max;
	return (int)soft_legal_amount(drawn, (uint64_t)max - 1);
}

void soft_cq_legal_left(struct soft_cq *cq)
{
	bool notify;

	soft_lock_take(&cq->lock);
	notify = cq->armed != SOFT_CQ_IDLE && !soft_cq_looks_empty(cq);
	if (notify)
		cq->armed = SOFT_CQ_IDLE;
	soft_lock_release(&cq->lock);
	if (notify)
		soft_cq_notify(cq);
}

void soft_cq_legal_polled(struct soft_cq *cq)
{
	soft_late_writes_flush(soft_device(cq->ibv.context->device)->late_writes);
}
