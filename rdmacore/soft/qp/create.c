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

static int check_attributes(const struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (!soft_request_service(attr->qp_type))
		return soft_refuse(EOPNOTSUPP, "soft has queue pairs of type RC, UC and UD; one of another type "
					       "needs a device that has it (--provider verbs)");
	if (!attr->send_cq || !attr->recv_cq || cap->max_send_wr > SOFT_MAX_WR ||
	    cap->max_recv_wr > SOFT_MAX_WR || cap->max_send_sge > SOFT_MAX_SGE ||
	    cap->max_recv_sge > SOFT_MAX_SGE || cap->max_inline_data > SOFT_MAX_INLINE)
		return EINVAL;
	return 0;
}

/*
 * What is granted (ibv_create_qp(3)): queue sizes are powers of two, and inline data may fill the place of the list, as in
 * the work requests of devices.
 */
static struct ibv_qp_cap grant(const struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_cap cap = attr->cap;
	uint32_t list = cap.max_send_sge * (uint32_t)sizeof(struct ibv_sge);

	cap.max_send_wr = soft_places(cap.max_send_wr);
	if (cap.max_inline_data < list)
		cap.max_inline_data = list;
	cap.max_recv_wr = attr->srq ? 0 : soft_places(cap.max_recv_wr);
	if (attr->srq) /* ibv_create_qp(3): ignored with a shared queue */
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

static void init_events(struct soft_qp *qp)
{
	qp->events[SOFT_QP_ACCESS_EVENT].type = IBV_EVENT_QP_ACCESS_ERR;
	qp->events[SOFT_QP_REQUEST_EVENT].type = IBV_EVENT_QP_REQ_ERR;
	qp->events[SOFT_QP_LAST_WQE_EVENT].type = IBV_EVENT_QP_LAST_WQE_REACHED;
	qp->events[SOFT_QP_DRAINED_EVENT].type = IBV_EVENT_SQ_DRAINED;
	qp->events[SOFT_QP_FATAL_EVENT].type = IBV_EVENT_QP_FATAL;
	qp->events[SOFT_QP_ESTABLISHED_EVENT].type = IBV_EVENT_COMM_EST;
	for (int event = 0; event < SOFT_QP_EVENTS; event++)
		qp->events[event].element.qp = &qp->ibv;
}

struct ibv_qp *soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct soft_device *device = soft_device(pd->context->device);
	struct soft_qp *qp;
	int error = soft_context_is_removed(pd->context) ? EIO : check_attributes(attr);

	if (error)
		goto fail;
	error = ENOMEM;
	qp = aligned_alloc(SOFT_CACHE_LINE, sizeof(*qp));
	if (!qp)
		goto fail;
	*qp = (struct soft_qp){
		.ibv = {.context = pd->context, .qp_context = attr->qp_context, .pd = pd,
			.send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .srq = attr->srq,
			.qp_type = attr->qp_type, .state = IBV_QPS_RESET},
		.references = 1,
		.state = IBV_QPS_RESET,
		.device = device,
		.hears = SOFT_NOBODY,
		.service = service_of(attr->qp_type),
		.service_bit = soft_request_service(attr->qp_type),
		.cap = grant(attr),
		.srq = attr->srq ? soft_srq(attr->srq) : NULL,
		.signal_all = attr->sq_sig_all,
		.hears_itself = true,
	};
	soft_events_init(&qp->ibv.mutex, &qp->ibv.cond);
	init_events(qp);
	if (device->link && !(qp->segmentation = soft_segmentation_create(device->link, device->link->route_size)))
		goto release_qp;
	if (soft_requester_init(qp) || soft_responder_init(qp))
		goto release_qp;
	if (soft_timer_register(&device->fabric->timers, &qp->timer, soft_transmit_expire))
		goto release_qp;
	error = -soft_table_insert(&device->queue_pairs, qp, &qp->ibv.qp_num);
	if (error)
		goto unregister_timer;
	qp->ibv.handle = qp->ibv.qp_num;
	attr->cap = qp->cap;
	atomic_fetch_add(&soft_cq(attr->send_cq)->users, 1);
	atomic_fetch_add(&soft_cq(attr->recv_cq)->users, 1);
	soft_pd_add(soft_pd(pd), &qp->member, qp);
	if (qp->srq) {
		atomic_fetch_add(&qp->srq->users, 1);
		if (attr->srq->pd != pd)
			soft_pd_add(soft_pd(attr->srq->pd), &qp->receive_member, qp);
	}
	return &qp->ibv;

unregister_timer:
	soft_timer_unregister(&device->fabric->timers, &qp->timer);
release_qp:
	soft_qp_release(qp);
fail:
	errno = error;
	return NULL;
}

/* ibv_destroy_qp(3) waits until every event that was taken is acknowledged. */
static int wait_acknowledged(struct soft_qp *qp)
{
	struct soft_event_queue *async = &soft_context(qp->ibv.context)->async;
	uint32_t taken = 0;

	for (int event = 0; event < SOFT_QP_EVENTS; event++)
		taken += soft_event_queue_remove(async, &qp->events[event].node);
	return soft_events_end(&qp->ibv.mutex, &qp->ibv.cond, &soft_qp_device(qp)->fabric->wall,
			       &qp->ibv.events_completed, taken);
}

int soft_destroy_qp(struct ibv_qp *ibv_qp)
{
	struct soft_qp *qp = soft_qp(ibv_qp);
	struct soft_device *device = soft_qp_device(qp);
	int result;

	if (atomic_load(&qp->groups)) /* ibv_destroy_qp(3) */
		return EBUSY;
	/* In RESET no packet is executed, its timer does nothing, and no event is raised. */
	soft_qp_reset(qp);
	result = wait_acknowledged(qp);
	if (result)
		return result;
	soft_table_remove(&device->queue_pairs, ibv_qp->qp_num);
	soft_timer_unregister(&device->fabric->timers, &qp->timer);
	/*
	 * The user's allocator gets its memory back in this call, while its domain exists.  Other threads may hold the queue
	 * pair for longer, but in RESET there is no request that they could look at.
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
	atomic_fetch_sub(&soft_cq(ibv_qp->recv_cq)->users, 1);
	soft_qp_release(qp);
	return 0;
}
