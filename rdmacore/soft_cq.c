#include "soft_cq.h"

#include <errno.h>
#include <stdlib.h>

#include "soft_device.h"

static struct soft_comp_channel *soft_channel(struct ibv_comp_channel *channel)
{
	return (struct soft_comp_channel *)channel;
}

struct ibv_comp_channel *soft_create_comp_channel(struct ibv_context *context)
{
	struct soft_comp_channel *channel = calloc(1, sizeof(*channel));
	int result;

	if (!channel)
		return NULL;
	result = soft_event_queue_init(&channel->queue);
	if (result) {
		free(channel);
		errno = -result;
		return NULL;
	}
	channel->ibv.context = context;
	channel->ibv.fd = channel->queue.fd;
	return &channel->ibv;
}

int soft_destroy_comp_channel(struct ibv_comp_channel *ibv_channel)
{
	struct soft_comp_channel *channel = soft_channel(ibv_channel);
	int users;

	pthread_mutex_lock(&ibv_channel->context->mutex);
	users = ibv_channel->refcnt;
	pthread_mutex_unlock(&ibv_channel->context->mutex);
	if (users)
		return EBUSY;
	soft_event_queue_destroy(&channel->queue);
	free(channel);
	return 0;
}

static void channel_use(struct ibv_comp_channel *channel, int change)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += change;
	pthread_mutex_unlock(&channel->context->mutex);
}

struct ibv_cq *soft_create_cq(struct ibv_context *context, int entries, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	struct soft_cq *cq;
	uint32_t order = 0;

	if (entries < 1 || entries > SOFT_MAX_CQE || comp_vector < 0 ||
	    comp_vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	while ((1 << order) < entries)
		order++;
	cq = aligned_alloc(SOFT_CACHE_LINE, sizeof(*cq));
	if (!cq)
		return NULL;
	*cq = (struct soft_cq){.order = order, .mask = (UINT32_C(1) << order) - 1};
	cq->ring = aligned_alloc(SOFT_CACHE_LINE, sizeof(*cq->ring) << order);
	if (!cq->ring) {
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	for (uint32_t index = 0; index <= cq->mask; index++)
		atomic_init(&cq->ring[index].lap, 0);
	soft_lock_init(&cq->lock);
	soft_lock_init(&cq->consumer_lock);
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.cqe = (int)(cq->mask + 1);
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	cq->overflow_event.type = IBV_EVENT_CQ_ERR;
	cq->overflow_event.element.cq = &cq->ibv;
	channel_use(channel, 1);
	return &cq->ibv;
}

int soft_destroy_cq(struct ibv_cq *ibv_cq)
{
	struct soft_cq *cq = soft_cq(ibv_cq);
	struct soft_comp_channel *channel = soft_channel(ibv_cq->channel);
	bool unacknowledged;

	if (atomic_load(&cq->users))
		return EBUSY;
	pthread_mutex_lock(&ibv_cq->mutex);
	unacknowledged = cq->comp_events_reported != ibv_cq->comp_events_completed;
	pthread_mutex_unlock(&ibv_cq->mutex);
	if (unacknowledged)
		return EBUSY;
	if (channel)
		soft_event_queue_remove(&channel->queue, &cq->comp_event);
	soft_event_queue_remove(&soft_context(ibv_cq->context)->async, &cq->overflow_event.node);
	channel_use(ibv_cq->channel, -1);
	pthread_cond_destroy(&ibv_cq->cond);
	pthread_mutex_destroy(&ibv_cq->mutex);
	pthread_mutex_destroy(&cq->consumer_lock);
	pthread_mutex_destroy(&cq->lock);
	free(cq->ring);
	free(cq);
	return 0;
}

static uint32_t lap_of(const struct soft_cq *cq, uint32_t index)
{
	/* Never 0, which marks a fresh entry; repeats only after 2^32 completions. */
	return (index >> cq->order) + 1;
}

int soft_poll_cq(struct ibv_cq *ibv_cq, int max, struct ibv_wc *wc)
{
	struct soft_cq *cq = soft_cq(ibv_cq);
	uint32_t index = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	struct soft_cqe *entry = &cq->ring[index & cq->mask];
	int polled = 0;

	if (max < 0)
		return -EINVAL;
	if (atomic_load_explicit(&entry->lap, memory_order_relaxed) != lap_of(cq, index))
		return 0;
	pthread_mutex_lock(&cq->consumer_lock);
	index = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	while (polled < max) {
		entry = &cq->ring[index & cq->mask];
		if (atomic_load_explicit(&entry->lap, memory_order_acquire) != lap_of(cq, index))
			break;
		wc[polled++] = entry->wc;
		index++;
	}
	atomic_store_explicit(&cq->consumed, index, memory_order_release);
	pthread_mutex_unlock(&cq->consumer_lock);
	return polled;
}

/*
 * Both this and soft_cq_push hold cq->lock, so a completion is either seen by the poll that follows
 * the arming or finds the queue armed (ibv_req_notify_cq(3)).
 */
int soft_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
	struct soft_cq *cq = soft_cq(ibv_cq);
	enum soft_cq_armed armed = solicited_only ? SOFT_CQ_SOLICITED : SOFT_CQ_ANY;

	pthread_mutex_lock(&cq->lock);
	if (cq->armed < armed)
		cq->armed = armed;
	pthread_mutex_unlock(&cq->lock);
	return 0;
}

void soft_cq_push(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	bool notify, overflowed = false;

	pthread_mutex_lock(&cq->lock);
	if (cq->produced - cq->consumed_seen > cq->mask)
		cq->consumed_seen = atomic_load_explicit(&cq->consumed, memory_order_acquire);
	if (cq->produced - cq->consumed_seen > cq->mask) {
		overflowed = !cq->overflowed;
		cq->overflowed = true;
		notify = false;
	} else {
		struct soft_cqe *entry = &cq->ring[cq->produced & cq->mask];

		entry->wc = *wc;
		atomic_store_explicit(&entry->lap, lap_of(cq, cq->produced), memory_order_release);
		cq->produced++;
		notify = cq->armed == SOFT_CQ_ANY || (cq->armed == SOFT_CQ_SOLICITED && solicited);
		if (notify)
			cq->armed = SOFT_CQ_IDLE;
	}
	pthread_mutex_unlock(&cq->lock);
	if (notify && cq->ibv.channel)
		soft_event_queue_push(&soft_channel(cq->ibv.channel)->queue, &cq->comp_event);
	if (overflowed)
		soft_async_raise(cq->ibv.context, &cq->overflow_event);
}

int soft_get_cq_event(struct ibv_comp_channel *ibv_channel, struct ibv_cq **out, void **cq_context)
{
	struct soft_event_node *node = soft_event_queue_pop(&soft_channel(ibv_channel)->queue);
	struct soft_cq *cq;

	if (!node)
		return -1;
	cq = soft_container_of(node, struct soft_cq, comp_event);
	pthread_mutex_lock(&cq->ibv.mutex);
	cq->comp_events_reported++;
	pthread_mutex_unlock(&cq->ibv.mutex);
	*out = &cq->ibv;
	*cq_context = cq->ibv.cq_context;
	return 0;
}

void soft_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += count;
	pthread_mutex_unlock(&cq->mutex);
}
