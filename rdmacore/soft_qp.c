#include "soft_qp.h"

#include <errno.h>
#include <stdlib.h>

#include "soft_cq.h"
#include "soft_fabric.h"
#include "soft_link.h"
#include "soft_pd.h"
#include "soft_segment.h"
#include "soft_srq.h"

void soft_qp_hold(void *qp)
{
	atomic_fetch_add_explicit(&((struct soft_qp *)qp)->references, 1, memory_order_relaxed);
}

void soft_qp_release(struct soft_qp *qp)
{
	if (atomic_fetch_sub_explicit(&qp->references, 1, memory_order_acq_rel) != 1)
		return;
	soft_responder_destroy(qp);
	soft_requester_destroy(qp);
	pthread_cond_destroy(&qp->ibv.cond);
	pthread_mutex_destroy(&qp->ibv.mutex);
	free(qp->segmentation);
	free(qp);
}

static int check_attributes(const struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (!soft_request_service(attr->qp_type))
		return EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq || cap->max_send_wr > SOFT_MAX_WR ||
	    cap->max_recv_wr > SOFT_MAX_WR || cap->max_send_sge > SOFT_MAX_SGE ||
	    cap->max_recv_sge > SOFT_MAX_SGE || cap->max_inline_data > SOFT_MAX_INLINE)
		return EINVAL;
	return 0;
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
		.service = service_of(attr->qp_type),
		.service_bit = soft_request_service(attr->qp_type),
		.cap = attr->cap,
		.srq = attr->srq ? soft_srq(attr->srq) : NULL,
		.signal_all = attr->sq_sig_all,
		.hears_itself = true,
	};
	if (qp->srq) {
		/* ibv_create_qp(3): these are ignored with a shared queue. */
		qp->cap.max_recv_wr = attr->cap.max_recv_wr = 0;
		qp->cap.max_recv_sge = attr->cap.max_recv_sge = 0;
	}
	init_events(qp);
	if (device->link && !(qp->segmentation = soft_segmentation_create(device->link)))
		goto free_qp;
	if (soft_requester_init(qp))
		goto free_segmentation;
	if (soft_responder_init(qp))
		goto destroy_requester;
	if (soft_timer_register(&device->fabric->timers, &qp->timer, soft_link_expire))
		goto destroy_responder;
	if (soft_table_insert(&device->queue_pairs, qp, &qp->ibv.qp_num))
		goto unregister_timer;
	qp->ibv.handle = qp->ibv.qp_num;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
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
destroy_responder:
	soft_responder_destroy(qp);
destroy_requester:
	soft_requester_destroy(qp);
free_segmentation:
	free(qp->segmentation);
free_qp:
	free(qp);
fail:
	errno = error;
	return NULL;
}

int soft_destroy_qp(struct ibv_qp *ibv_qp)
{
	struct soft_qp *qp = soft_qp(ibv_qp);
	struct soft_device *device = soft_qp_device(qp);

	if (atomic_load(&qp->groups)) /* ibv_destroy_qp(3) */
		return EBUSY;
	soft_table_remove(&device->queue_pairs, ibv_qp->qp_num);
	/* From RESET on no packet is executed and no timer does anything. */
	soft_qp_reset(qp);
	soft_timer_unregister(&device->fabric->timers, &qp->timer);
	soft_pd_remove(soft_pd(ibv_qp->pd), &qp->member);
	if (qp->srq) {
		if (ibv_qp->srq->pd != ibv_qp->pd)
			soft_pd_remove(soft_pd(ibv_qp->srq->pd), &qp->receive_member);
		atomic_fetch_sub(&qp->srq->users, 1);
	}
	for (int event = 0; event < SOFT_QP_EVENTS; event++)
		soft_event_queue_remove(&soft_context(ibv_qp->context)->async, &qp->events[event].node);
	atomic_fetch_sub(&soft_cq(ibv_qp->send_cq)->users, 1);
	atomic_fetch_sub(&soft_cq(ibv_qp->recv_cq)->users, 1);
	soft_qp_release(qp);
	return 0;
}

/* A soft device has no option of a vendor, as other devices without a vendor's firmware. */
int soft_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return EOPNOTSUPP;
}

int soft_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return EOPNOTSUPP;
}
