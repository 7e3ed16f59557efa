#include "soft/objects/receive_queue.h"

#include <errno.h>
#include <string.h>

#include "soft/objects/pd.h"

/* max_wr: a result of soft_ring_slots. */
static char *make_ring(struct soft_pd *pd, uint32_t max_wr, uint32_t stride, uint32_t *mask,
		       struct soft_pd **source)
{
	uint32_t entries = max_wr ? max_wr : 1;

	*mask = entries - 1;
	return soft_parent_domain_allocate(pd, (size_t)entries * stride, SOFT_RECEIVE_QUEUE, source);
}

int soft_receive_queue_init(struct soft_receive_queue *queue, struct soft_pd *pd, uint32_t max_wr,
			    uint32_t max_sge)
{
	size_t stride = sizeof(struct soft_recv_wqe) + max_sge * sizeof(struct ibv_sge);

	queue->stride = (uint32_t)((stride + SOFT_CACHE_LINE - 1) & ~(SOFT_CACHE_LINE - 1ul));
	max_wr = soft_ring_slots(max_wr);
	queue->size = max_wr;
	queue->max_sge = max_sge;
	queue->ring = make_ring(pd, max_wr, queue->stride, &queue->mask, &queue->ring_source);
	if (!queue->ring)
		return -ENOMEM;
	atomic_init(&queue->posted, 0);
	atomic_init(&queue->returned, 0);
	queue->consumed = 0;
	queue->posted_seen = 0;
	soft_lock_init(&queue->lock, SOFT_ORDER_RECEIVE_QUEUE);
	return 0;
}

void soft_receive_queue_destroy(struct soft_receive_queue *queue)
{
	soft_parent_domain_free(queue->ring_source, queue->ring, SOFT_RECEIVE_QUEUE);
	queue->ring_source = NULL;
	queue->ring = NULL;
}

void soft_receive_queue_reset(struct soft_receive_queue *queue)
{
	soft_lock_take(&queue->lock);
	atomic_store_explicit(&queue->posted, 0, memory_order_relaxed);
	atomic_store_explicit(&queue->returned, 0, memory_order_relaxed);
	queue->consumed = 0;
	queue->posted_seen = 0;
	soft_lock_release(&queue->lock);
}

int soft_receive_queue_resize(struct soft_receive_queue *queue, uint32_t max_wr,
			      struct soft_receive_queue *old)
{
	uint32_t length = atomic_load_explicit(&queue->posted, memory_order_relaxed) - queue->consumed;
	struct soft_pd *source;
	uint32_t mask;
	char *ring;

	soft_lock_expect(&queue->lock);
	if (max_wr < length)
		return -EINVAL;
	max_wr = soft_ring_slots(max_wr);
	ring = make_ring(NULL, max_wr, queue->stride, &mask, &source);
	if (!ring)
		return -ENOMEM;
	for (uint32_t index = 0; index < length; index++)
		memcpy(ring + (size_t)((queue->consumed + index) & mask) * queue->stride,
		       soft_recv_wqe(queue, queue->consumed + index), queue->stride);
	old->ring = queue->ring;
	old->ring_source = queue->ring_source;
	queue->ring = ring;
	queue->ring_source = source;
	queue->mask = mask;
	queue->size = max_wr;
	return 0;
}

int soft_receive_queue_append(struct soft_receive_queue *queue, const struct ibv_recv_wr *wr)
{
	uint32_t posted = atomic_load_explicit(&queue->posted, memory_order_relaxed);
	struct soft_recv_wqe *wqe;

	soft_lock_expect(&queue->lock);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->max_sge)
		return EINVAL;
	if (posted - atomic_load_explicit(&queue->returned, memory_order_acquire) >= queue->size)
		return ENOMEM;
	wqe = soft_recv_wqe(queue, posted);
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = (uint32_t)wr->num_sge;
	for (int index = 0; index < wr->num_sge; index++)
		wqe->sge[index] = wr->sg_list[index];
	atomic_store_explicit(&queue->posted, posted + 1, memory_order_release);
	return 0;
}
