#include "soft/qp/verbs.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/bounds.h"
#include "soft/base/fabric.h"
#include "soft/base/refusal.h"
#include "soft/engine/calls.h"
#include "soft/link/calls.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"
#include "soft/objects/srq.h"
#include "soft/qp/internal.h"

static int check_attributes(const struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (!soft_request_service(attr->qp_type))
		return soft_refuse(EOPNOTSUPP, "soft has queue pairs of type RC, UC, UD and XRC; one of another type "
					       "needs a device that has it (--provider verbs)");
	if (!attr->send_cq || (!attr->recv_cq && attr->qp_type != IBV_QPT_XRC_SEND) || cap->max_send_wr > SOFT_MAX_WR ||
	    cap->max_recv_wr > SOFT_MAX_WR || cap->max_send_sge > SOFT_MAX_SGE ||
	    cap->max_recv_sge > SOFT_MAX_SGE)
		return EINVAL; /* as ibv_query_device(3), which has no limit of inline data, shows */
	if (cap->max_inline_data > SOFT_MAX_INLINE)
		return soft_refuse(EINVAL, "max_inline_data is %u, and the device has at most %u", cap->max_inline_data,
				   SOFT_MAX_INLINE);
	return 0;
}

static bool sends_only(const struct ibv_qp_init_attr *attr)
{
	return attr->qp_type == IBV_QPT_XRC_SEND;
}

/*
 * The capacity that is granted (ibv_create_qp(3)). Queue sizes are powers of two. Inline data may use the space of
 * the list, as in work requests of devices.
 */
static struct ibv_qp_cap grant(const struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_cap cap = attr->cap;
	uint32_t list = cap.max_send_sge * (uint32_t)sizeof(struct ibv_sge);

	cap.max_send_wr = soft_ring_slots(cap.max_send_wr);
	if (cap.max_inline_data < list)
		cap.max_inline_data = list;
	/* ibv_create_qp(3): ignored with a shared queue. A queue pair that only sends receives nothing. */
	cap.max_recv_wr = attr->srq || sends_only(attr) ? 0 : soft_ring_slots(cap.max_recv_wr);
	if (attr->srq || sends_only(attr))
		cap.max_recv_sge = 0;
	return cap;
}

static uint8_t service_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UC:
		return SOFT_UNRELIABLE_CONNECTION;
	case IBV_QPT_UD:
		return SOFT_UNRELIABLE_DATAGRAM;
	default:
		return SOFT_RELIABLE_CONNECTION;
	}
}

struct ibv_qp *soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	bool sender = sends_only(attr);
	struct ibv_srq *srq = sender ? NULL : attr->srq;
	struct ibv_cq *recv_cq = sender ? NULL : attr->recv_cq;
	struct soft_qp *qp;

	errno = soft_context_is_removed(pd->context) ? EIO : check_attributes(attr);
	if (errno)
		return NULL;
	qp = soft_qp_make(&(struct soft_qp){
		.ibv = {.context = pd->context, .qp_context = attr->qp_context, .pd = pd, .send_cq = attr->send_cq,
			.recv_cq = recv_cq, .srq = srq, .qp_type = attr->qp_type},
		.device = soft_device(pd->context->device),
		.service = service_of(attr->qp_type),
		.service_bit = soft_request_service(attr->qp_type),
		.xrc = sender ? SOFT_INITIATOR : SOFT_NO_XRC,
		.cap = grant(attr),
		.srq = srq ? soft_srq(srq) : NULL,
		.signal_all = attr->sq_sig_all,
	});
	if (!qp)
		return NULL;
	attr->cap = qp->cap;
	atomic_fetch_add(&soft_cq(attr->send_cq)->users, 1);
	if (recv_cq)
		atomic_fetch_add(&soft_cq(recv_cq)->users, 1);
	soft_pd_add(soft_pd(pd), &qp->member, &qp->requester.lock, &qp->responder.lock);
	if (qp->srq) {
		atomic_fetch_add(&qp->srq->users, 1);
		if (srq->pd != pd)
			soft_pd_add(soft_pd(srq->pd), &qp->receive_member, &qp->requester.lock, &qp->responder.lock);
	}
	return &qp->ibv;
}

int soft_destroy_qp(struct ibv_qp *ibv_qp)
{
	struct soft_qp *qp = soft_qp(ibv_qp);
	struct soft_device *device = soft_qp_device(qp);
	int result;

	if (qp->target_qp)
		return soft_close_target(qp);
	if (atomic_load(&qp->groups)) /* ibv_destroy_qp(3) */
		return EBUSY;
	if (qp->segmentation)
		soft_link_acknowledge(qp);
	/* In RESET no packet is executed, the timer does nothing, and no event is raised. */
	soft_qp_reset(qp);
	result = soft_qp_wait_acknowledged(qp);
	if (result)
		return result;
	soft_table_remove(&device->queue_pairs, ibv_qp->qp_num);
	soft_timer_unregister(&device->fabric->timers, &qp->timer);
	/*
	 * The user's allocator gets its memory back in this call, while its domain exists. Other threads may refer
	 * to the queue pair for longer, but in RESET there is no request that they could read.
	 */
	if (soft_pd(ibv_qp->pd)->parent.alloc)
		soft_qp_free_queues(qp);
	soft_pd_remove(soft_pd(ibv_qp->pd), &qp->member);
	if (qp->srq) {
		if (ibv_qp->srq->pd != ibv_qp->pd)
			soft_pd_remove(soft_pd(ibv_qp->srq->pd), &qp->receive_member);
		atomic_fetch_sub(&qp->srq->users, 1);
	}
	atomic_fetch_sub(&soft_cq(ibv_qp->send_cq)->users, 1);
	if (ibv_qp->recv_cq)
		atomic_fetch_sub(&soft_cq(ibv_qp->recv_cq)->users, 1);
	soft_qp_release(qp);
	return 0;
}
