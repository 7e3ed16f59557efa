#include "soft/objects/verbs.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/bounds.h"
#include "soft/base/fabric.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/pd.h"

static struct soft_cq_ring *make_ring(struct soft_pd *pd, int entries)
{
	struct soft_cq_ring *ring;
	struct soft_pd *source;
	uint32_t order = 0;
	size_t size;

	while ((1 << order) < entries)
		order++;
	size = sizeof(*ring) + ((sizeof(ring->entries[0]) + sizeof(uint64_t)) << order);
	ring = soft_parent_domain_allocate(pd, size, SOFT_COMPLETION_QUEUE, &source);
	if (!ring)
		return NULL;
	ring->next = NULL;
	ring->source = source;
	ring->order = order;
	ring->mask = (UINT32_C(1) << order) - 1;
	for (uint32_t index = 0; index <= ring->mask; index++)
		atomic_init(&ring->entries[index].lap, 0);
	return ring;
}

struct ibv_cq *soft_create_cq(struct ibv_context *context, int entries, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	return soft_create_cq_in(context, NULL, entries, cq_context, channel, comp_vector);
}

struct ibv_cq *soft_create_cq_in(struct ibv_context *context, struct soft_pd *pd, int entries,
				 void *cq_context, struct ibv_comp_channel *channel, int comp_vector)
{
	struct soft_cq_ring *ring;
	struct soft_cq *cq;

	if (soft_context_is_removed(context)) {
		errno = EIO;
		return NULL;
	}
	if (entries < 1 || entries > SOFT_MAX_CQE || comp_vector < 0 ||
	    comp_vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = aligned_alloc(SOFT_CACHE_LINE, sizeof(*cq));
	if (!cq)
		return NULL;
	*cq = (struct soft_cq){0};
	ring = make_ring(pd, entries);
	if (!ring) {
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	atomic_init(&cq->ring, ring);
	cq->filled = ring;
	cq->pd = pd;
	if (pd)
		atomic_fetch_add(&pd->users, 1);
	soft_lock_init(&cq->lock, SOFT_ORDER_CQ);
	soft_lock_init(&cq->consumer_lock, SOFT_ORDER_CONSUMER);
	soft_lock_init(&cq->polling, SOFT_ORDER_POLLING);
	cq->ibv.context = context;
	cq->progress = soft_device(context->device)->progress;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.cqe = (int)(ring->mask + 1);
	soft_events_init(&cq->ibv.mutex, &cq->ibv.cond);
	cq->overflow_event.type = IBV_EVENT_CQ_ERR;
	cq->overflow_event.element.cq = &cq->ibv;
	soft_comp_channel_use(channel, 1);
	if (soft_cq_legal_create(cq)) {
		soft_destroy_cq(&cq->ibv);
		errno = ENOMEM;
		return NULL;
	}
	return &cq->ibv;
}

static void free_rings(struct soft_cq *cq)
{
	struct soft_cq_ring *ring = atomic_load_explicit(&cq->ring, memory_order_relaxed);

	ring->next = cq->spares;
	while (ring) {
		struct soft_cq_ring *next = ring->next;

		soft_parent_domain_free(ring->source, ring, SOFT_COMPLETION_QUEUE);
		ring = next;
	}
}

/* A spare ring with at least that many entries and less than twice as many; NULL if there is none. */
static struct soft_cq_ring *take_spare(struct soft_cq *cq, int entries)
{
	struct soft_cq_ring **link = &cq->spares, *ring;

	while ((ring = *link) && ((int)ring->mask + 1 < entries || (int)ring->mask / 2 + 1 >= entries))
		link = &ring->next;
	if (ring) {
		*link = ring->next;
		for (uint32_t index = 0; index <= ring->mask; index++)
			atomic_store_explicit(&ring->entries[index].lap, 0, memory_order_relaxed);
	}
	return ring;
}

/* Both locks are held. to has room for all completions. */
static void move_to(struct soft_cq *cq, struct soft_cq_ring *to, uint32_t consumed)
{
	struct soft_cq_ring *from = atomic_load_explicit(&cq->ring, memory_order_relaxed);

	soft_lock_expect(&cq->consumer_lock);
	soft_lock_expect(&cq->lock);
	for (uint32_t index = consumed; index != cq->produced; index++) {
		struct soft_cqe *entry = &to->entries[index & to->mask];

		entry->wc = from->entries[index & from->mask].wc;
		*soft_cq_stamp(to, index) = *soft_cq_stamp(from, index);
		entry->receiver = from->entries[index & from->mask].receiver;
		if (!soft_cq_is_late(cq, index))
			atomic_store_explicit(&entry->lap, soft_cq_lap(to, index), memory_order_release);
	}
	atomic_store_explicit(&cq->ring, to, memory_order_release);
	cq->filled = to;
	from->next = cq->spares;
	cq->spares = from;
}

int soft_resize_cq(struct ibv_cq *ibv_cq, int entries)
{
	struct soft_cq *cq = soft_cq(ibv_cq);
	struct soft_cq_ring *ring;
	uint32_t consumed;
	int result = EINVAL;

	if (soft_context_is_removed(ibv_cq->context))
		return EIO;
	if (entries < 1 || entries > SOFT_MAX_CQE)
		return EINVAL;
	soft_lock_take(&cq->consumer_lock);
	soft_lock_take(&cq->lock);
	consumed = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	if ((uint32_t)entries < cq->produced - consumed)
		goto unlock;
	result = ENOMEM;
	ring = take_spare(cq, entries);
	if (!ring) /* locks are held, so the user's allocator cannot be called */
		ring = make_ring(NULL, entries);
	if (!ring)
		goto unlock;
	move_to(cq, ring, consumed);
	ibv_cq->cqe = (int)(ring->mask + 1);
	result = 0;
unlock:
	soft_lock_release(&cq->lock);
	soft_lock_release(&cq->consumer_lock);
	return result;
}

/* ibv_destroy_cq(3) waits until each event that was taken is acknowledged. */
static int wait_acknowledged(struct soft_cq *cq)
{
	struct soft_clock *wall = &soft_device(cq->ibv.context->device)->fabric->wall;
	uint32_t completions = 0, overflows;
	int result;

	if (cq->ibv.channel)
		completions = soft_comp_channel_remove(cq->ibv.channel, &cq->comp_event);
	overflows = soft_event_queue_remove(&soft_context(cq->ibv.context)->async, &cq->overflow_event.node);
	result = soft_events_end(&cq->ibv.mutex, &cq->ibv.cond, wall, &cq->ibv.comp_events_completed, completions);
	return result ? result : soft_events_end(&cq->ibv.mutex, &cq->ibv.cond, wall,
						 &cq->ibv.async_events_completed, overflows);
}

int soft_destroy_cq(struct ibv_cq *ibv_cq)
{
	struct soft_cq *cq = soft_cq(ibv_cq);
	int result;

	if (atomic_load(&cq->users))
		return EBUSY;
	soft_cq_end_moderation(cq); /* the timers raise events */
	soft_cq_legal_destroy(cq);
	result = wait_acknowledged(cq);
	if (result)
		return result;
	soft_comp_channel_use(ibv_cq->channel, -1);
	soft_events_destroy(&ibv_cq->mutex, &ibv_cq->cond);
	free_rings(cq);
	if (cq->pd)
		atomic_fetch_sub(&cq->pd->users, 1);
	free(cq);
	return 0;
}
