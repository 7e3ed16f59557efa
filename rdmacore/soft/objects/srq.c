#include "soft/objects/srq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/bounds.h"
#include "soft/base/fabric.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/xrc.h"

/* xrcd and cq: NULL unless the queue is for XRC. */
static struct ibv_srq *create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct soft_xrcd *xrcd, struct soft_cq *cq)
{
	struct soft_device *device = soft_device(pd->context->device);
	struct soft_srq *srq;

	if (soft_context_is_removed(pd->context)) {
		errno = EIO;
		return NULL;
	}
	if (!attr->attr.max_wr || attr->attr.max_wr > SOFT_MAX_WR ||
	    attr->attr.max_sge > SOFT_MAX_SGE) {
		errno = EINVAL;
		return NULL;
	}
	srq = aligned_alloc(SOFT_CACHE_LINE, sizeof(*srq));
	if (!srq)
		return NULL;
	*srq = (struct soft_srq){
		.ibv = {.context = pd->context, .srq_context = attr->srq_context, .pd = pd},
		.references = 1,
		.xrcd = xrcd,
		.domain = xrcd ? xrcd->domain : NULL,
		.cq = cq,
		.limit_event = {.type = IBV_EVENT_SRQ_LIMIT_REACHED, .element.srq = &srq->ibv},
	};
	if (soft_receive_queue_init(&srq->receive, soft_pd(pd), attr->attr.max_wr, attr->attr.max_sge))
		goto free_srq;
	soft_lock_init(&srq->transfer, SOFT_ORDER_TRANSFER);
	soft_events_init(&srq->ibv.mutex, &srq->ibv.cond);
	/* Before it gets its number, by which packets find it. */
	if (xrcd)
		soft_pd_add(soft_pd(pd), &srq->member, &srq->transfer, NULL);
	if (soft_table_insert(&device->shared_queues, srq, &srq->number))
		goto leave_domain;
	srq->ibv.handle = srq->number;
	atomic_fetch_add(&soft_pd(pd)->users, 1);
	if (xrcd) {
		atomic_fetch_add(&xrcd->users, 1);
		atomic_fetch_add(&cq->users, 1);
	}
	attr->attr.max_wr = srq->receive.size;
	/* ibv_create_srq(3): srq_limit is ignored here. */
	attr->attr.srq_limit = 0;
	return &srq->ibv;

leave_domain:
	if (xrcd)
		soft_pd_remove(soft_pd(pd), &srq->member);
	soft_events_destroy(&srq->ibv.mutex, &srq->ibv.cond);
	soft_receive_queue_destroy(&srq->receive);
free_srq:
	free(srq);
	errno = ENOMEM;
	return NULL;
}

struct ibv_srq *soft_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	return create(pd, attr, NULL, NULL);
}

#define XRC_ATTRIBUTES (uint32_t)(IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD)

struct ibv_srq *soft_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr basic = {.srq_context = attr->srq_context, .attr = attr->attr};
	enum ibv_srq_type type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
	bool xrc = type == IBV_SRQT_XRC;
	struct ibv_srq *srq;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context) {
		errno = EINVAL;
		return NULL;
	}
	if ((type != IBV_SRQT_BASIC && !xrc) ||
	    attr->comp_mask & ~(uint32_t)(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | (xrc ? XRC_ATTRIBUTES : 0))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (xrc && ((attr->comp_mask & XRC_ATTRIBUTES) != XRC_ATTRIBUTES || !attr->xrcd || !attr->cq ||
		    attr->xrcd->context != context || attr->cq->context != context)) {
		errno = EINVAL;
		return NULL;
	}
	srq = create(attr->pd, &basic, xrc ? soft_xrcd(attr->xrcd) : NULL, xrc ? soft_cq(attr->cq) : NULL);
	if (srq)
		attr->attr = basic.attr;
	return srq;
}

int soft_modify_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr, int mask)
{
	struct soft_srq *srq = soft_srq(ibv_srq);
	struct soft_receive_queue *queue = &srq->receive, old = {0};
	uint32_t size;
	int result = 0;

	if (soft_context_is_removed(ibv_srq->context))
		return EIO;
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	soft_lock_take(&queue->lock);
	size = mask & IBV_SRQ_MAX_WR ? attr->max_wr : queue->size;
	if (!size || size > SOFT_MAX_WR ||
	    (mask & IBV_SRQ_LIMIT ? attr->srq_limit : srq->limit) > size)
		result = EINVAL;
	if (!result && mask & IBV_SRQ_MAX_WR)
		result = -soft_receive_queue_resize(queue, size, &old);
	if (!result && mask & IBV_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	soft_lock_release(&queue->lock);
	soft_receive_queue_destroy(&old);
	return result;
}

int soft_query_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr)
{
	struct soft_srq *srq = soft_srq(ibv_srq);

	if (soft_context_is_removed(ibv_srq->context))
		return EIO;
	soft_lock_take(&srq->receive.lock);
	*attr = (struct ibv_srq_attr){srq->receive.size, srq->receive.max_sge, srq->limit};
	soft_lock_release(&srq->receive.lock);
	return 0;
}

int soft_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	*number = soft_srq(srq)->number;
	return 0;
}

/* End transfers of an XRC queue: none is under way afterwards and none begins, although references remain. */
static void end_transfers(struct soft_srq *srq)
{
	soft_lock_take_turn(&srq->transfer);
	srq->ended = true;
	soft_lock_release(&srq->transfer);
	soft_pd_remove(soft_pd(srq->ibv.pd), &srq->member);
	atomic_fetch_sub(&srq->xrcd->users, 1);
	atomic_fetch_sub(&srq->cq->users, 1);
}

int soft_destroy_srq(struct ibv_srq *ibv_srq)
{
	struct soft_device *device = soft_device(ibv_srq->context->device);
	struct soft_srq *srq = soft_srq(ibv_srq);
	uint32_t taken;
	int result;

	if (atomic_load(&srq->users))
		return EBUSY;
	taken = soft_event_queue_remove(&soft_context(ibv_srq->context)->async, &srq->limit_event.node);
	result = soft_events_end(&ibv_srq->mutex, &ibv_srq->cond, &device->fabric->wall,
				 &ibv_srq->events_completed, taken);
	if (result)
		return result;
	soft_table_remove(&device->shared_queues, srq->number);
	if (srq->xrcd)
		end_transfers(srq);
	soft_events_destroy(&ibv_srq->mutex, &ibv_srq->cond);
	soft_receive_queue_destroy(&srq->receive);
	atomic_fetch_sub(&soft_pd(ibv_srq->pd)->users, 1);
	soft_srq_release(srq);
	return 0;
}

void soft_srq_hold(void *srq)
{
	atomic_fetch_add_explicit(&((struct soft_srq *)srq)->references, 1, memory_order_relaxed);
}

void soft_srq_release(struct soft_srq *srq)
{
	if (atomic_fetch_sub_explicit(&srq->references, 1, memory_order_acq_rel) == 1)
		free(srq);
}

int soft_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct soft_receive_queue *queue = &soft_srq(ibv_srq)->receive;
	int result = 0;

	soft_lock_take(&queue->lock);
	while (wr && !result) {
		result = soft_receive_queue_append(queue, wr);
		if (!result)
			wr = wr->next;
	}
	soft_lock_release(&queue->lock);
	if (result)
		*bad = wr;
	return result;
}

bool soft_srq_take(struct soft_srq *srq, struct soft_receive *receive)
{
	struct soft_receive_queue *queue = &srq->receive;
	struct soft_recv_wqe *wqe;
	uint32_t left;
	bool limit_reached = false;

	soft_lock_take(&queue->lock);
	left = atomic_load_explicit(&queue->posted, memory_order_relaxed) - queue->consumed;
	if (left) {
		wqe = soft_recv_wqe(queue, queue->consumed++);
		receive->wr_id = wqe->wr_id;
		receive->num_sge = wqe->num_sge;
		receive->sge = receive->copy;
		memcpy(receive->copy, wqe->sge, wqe->num_sge * sizeof(wqe->sge[0]));
		soft_receive_queue_return(queue);
		limit_reached = left - 1 < srq->limit;
		if (limit_reached)
			srq->limit = 0; /* one event for each arming (ibv_modify_srq(3)) */
	}
	soft_lock_release(&queue->lock);
	if (limit_reached)
		soft_async_raise(srq->ibv.context, &srq->limit_event);
	return left;
}
