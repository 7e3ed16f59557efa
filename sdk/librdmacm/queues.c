/* Queue pairs, of an id or without one, and shared receive queues. */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static struct id *of(struct rdma_cm_id *id) { return CONTAINER(id, struct id, base); }

void qp_attr_to_host(struct rdmarun_qp_init_attr *to, const struct ibv_qp_init_attr *from)
{
	*to = (struct rdmarun_qp_init_attr){
		.struct_size = sizeof(*to),
		.qp_type = from->qp_type,
		.max_send_wr = from->cap.max_send_wr,
		.max_recv_wr = from->cap.max_recv_wr,
		.max_send_sge = from->cap.max_send_sge,
		.max_recv_sge = from->cap.max_recv_sge,
		.max_inline_data = from->cap.max_inline_data,
		.sq_sig_all = (uint32_t)from->sq_sig_all,
		.send_cq = from->send_cq ? from->send_cq->handle : 0,
		.recv_cq = from->recv_cq ? from->recv_cq->handle : 0,
		.srq = from->srq ? from->srq->handle : 0,
	};
}

static struct ibv_qp_cap cap_of(const struct rdmarun_qp_attr *host)
{
	return (struct ibv_qp_cap){host->max_send_wr, host->max_recv_wr, host->max_send_sge, host->max_recv_sge, host->max_inline_data};
}

/* What the host says of a QP. */
static void describe(struct qp *qp, rdmarun_handle handle, const struct rdmarun_qp_attr *host)
{
	qp->base.context = device_context();
	qp->base.handle = handle;
	qp->base.qp_num = host->qp_num;
	qp->base.qp_context = qp->attr.qp_context;
	qp->base.state = (enum ibv_qp_state)host->qp_state;
	qp->base.srq = qp->attr.srq;
	note_object(handle, &qp->base);
}

/* The CQ that came with the QP, on a channel of its own as librdmacm has it. */
static struct ibv_cq *own_cq(int32_t handle, struct id *id, uint32_t cqe)
{
	struct ibv_comp_channel *channel = new_comp_channel(0);
	struct cq *cq = channel && handle > 0 ? wrap_cq((rdmarun_handle)handle, channel, &id->base, (int)cqe) : NULL;

	if (!cq && channel)
		ibv_destroy_comp_channel(channel);
	return cq ? &cq->base : NULL;
}

int adopt_qp(struct id *id, struct ibv_qp_init_attr *attr)
{
	struct rdmarun_qp_attr host = {.struct_size = sizeof(host)};
	struct rdma_cm_id *cm = &id->base;
	struct qp *qp = calloc(1, sizeof(*qp));
	int32_t handle = rdmarun_ep_qp(id->handle);

	if (!qp || cm_result(handle) || cm_result(rdmarun_query_qp((rdmarun_handle)handle, &host))) {
		free(qp);
		return -1;
	}
	if (attr) {
		attr->cap = cap_of(&host);
		qp->attr = *attr;
	}
	qp->attr.cap = cap_of(&host);
	qp->owner = id;
	cm->send_cq = qp->attr.send_cq ? qp->attr.send_cq : own_cq(rdmarun_ep_send_cq(id->handle), id, host.max_send_wr);
	if (!qp->attr.recv_cq && rdmarun_ep_recv_cq(id->handle) == (int32_t)(cm->send_cq ? cm->send_cq->handle : 0))
		cm->recv_cq = cm->send_cq;
	else
		cm->recv_cq = qp->attr.recv_cq ? qp->attr.recv_cq : own_cq(rdmarun_ep_recv_cq(id->handle), id, host.max_recv_wr);
	cm->send_cq_channel = cm->send_cq ? cm->send_cq->channel : NULL;
	cm->recv_cq_channel = cm->recv_cq ? cm->recv_cq->channel : NULL;
	describe(qp, (rdmarun_handle)handle, &host);
	qp->base.qp_type = attr ? attr->qp_type : cm->qp_type;
	qp->base.pd = cm->pd;
	qp->base.send_cq = cm->send_cq;
	qp->base.recv_cq = cm->recv_cq;
	cm->qp = &qp->base;
	return 0;
}

static void forget_own_cq(struct ibv_cq *cq)
{
	struct ibv_comp_channel *channel = cq->channel;

	forget_cq(cq);
	ibv_destroy_comp_channel(channel);
}

void forget_qp(struct id *id)
{
	struct rdma_cm_id *cm = &id->base;
	struct qp *qp;

	if (!cm->qp)
		return;
	qp = CONTAINER(cm->qp, struct qp, base);
	if (!qp->attr.send_cq && cm->send_cq)
		forget_own_cq(cm->send_cq);
	if (!qp->attr.recv_cq && cm->recv_cq && cm->recv_cq != cm->send_cq)
		forget_own_cq(cm->recv_cq);
	cm->send_cq = cm->recv_cq = NULL;
	cm->send_cq_channel = cm->recv_cq_channel = NULL;
	cm->qp = NULL;
	forget_object(&qp->base);
	free(qp);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct rdmarun_qp_init_attr host;

	if (!pd)
		pd = id->pd;
	if (!pd) {
		errno = EINVAL;
		return -1;
	}
	id->pd = pd;
	qp_attr_to_host(&host, attr);
	if (!attr->srq && id->srq)
		host.srq = id->srq->handle;
	if (cm_result(rdmarun_create_qp(of(id)->handle, pd->handle, &host)))
		return -1;
	return adopt_qp(of(id), attr);
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr plain;
	int result;

	if (attr->comp_mask & ~(uint32_t)IBV_QP_INIT_ATTR_PD) {
		errno = EOPNOTSUPP;
		return -1;
	}
	memcpy(&plain, attr, sizeof(plain)); /* the extended struct begins as the other */
	result = rdma_create_qp(id, attr->comp_mask ? attr->pd : NULL, &plain);
	if (!result)
		attr->cap = plain.cap;
	return result;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (!id->qp)
		return;
	rdmarun_destroy_qp(of(id)->handle);
	forget_qp(of(id));
}

/* ---- without an id ---- */

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct rdmarun_qp_attr host = {.struct_size = sizeof(host)};
	struct qp *qp = calloc(1, sizeof(*qp));
	struct rdmarun_qp_init_attr wanted;
	int32_t handle;

	qp_attr_to_host(&wanted, attr);
	handle = qp ? rdmarun_create_qp(0, pd->handle, &wanted) : -RDMARUN_ENOMEM;
	if (cm_result(handle) || cm_result(rdmarun_query_qp((rdmarun_handle)handle, &host))) {
		free(qp);
		return NULL;
	}
	attr->cap = cap_of(&host);
	qp->attr = *attr;
	describe(qp, (rdmarun_handle)handle, &host);
	qp->base.qp_type = attr->qp_type;
	qp->base.pd = pd;
	qp->base.send_cq = attr->send_cq;
	qp->base.recv_cq = attr->recv_cq;
	return &qp->base;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t flags)
{
	(void)qp, (void)opcode, (void)flags;
	return 0; /* no device of a guest promises it */
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	(void)qp;
	return NULL;
}

int ibv_destroy_qp(struct ibv_qp *which)
{
	struct qp *qp = CONTAINER(which, struct qp, base);
	int error;

	if (qp->owner) {
		rdma_destroy_qp(&qp->owner->base);
		return 0;
	}
	error = verbs_result(rdmarun_destroy_qp(which->handle));
	if (!error) {
		forget_object(which);
		free(qp);
	}
	return error;
}

/* ---- attributes ---- */

static void attr_from_host(struct ibv_qp_attr *to, const struct rdmarun_qp_attr *from)
{
	memset(to, 0, sizeof(*to));
	to->qp_state = (enum ibv_qp_state)from->qp_state;
	to->cur_qp_state = (enum ibv_qp_state)from->cur_qp_state;
	to->path_mtu = mtu_of(from->path_mtu);
	to->path_mig_state = (enum ibv_mig_state)from->path_mig_state;
	to->qkey = from->qkey;
	to->rq_psn = from->rq_psn;
	to->sq_psn = from->sq_psn;
	to->dest_qp_num = from->dest_qp_num;
	to->qp_access_flags = from->access_flags;
	to->cap = cap_of(from);
	ah_attr_from_host(&to->ah_attr, &from->ah_attr);
	ah_attr_from_host(&to->alt_ah_attr, &from->alt_ah_attr);
	to->pkey_index = (uint16_t)from->pkey_index;
	to->alt_pkey_index = (uint16_t)from->alt_pkey_index;
	to->en_sqd_async_notify = (uint8_t)from->en_sqd_async_notify;
	to->sq_draining = (uint8_t)from->sq_draining;
	to->max_rd_atomic = (uint8_t)from->max_rd_atomic;
	to->max_dest_rd_atomic = (uint8_t)from->max_dest_rd_atomic;
	to->min_rnr_timer = (uint8_t)from->min_rnr_timer;
	to->port_num = (uint8_t)from->port_num;
	to->timeout = (uint8_t)from->timeout;
	to->retry_cnt = (uint8_t)from->retry_cnt;
	to->rnr_retry = (uint8_t)from->rnr_retry;
	to->alt_port_num = (uint8_t)from->alt_port_num;
	to->alt_timeout = (uint8_t)from->alt_timeout;
	to->rate_limit = from->rate_limit;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct rdmarun_qp_attr host = {.struct_size = sizeof(host)};
	int32_t result = rdmarun_query_qp(qp->handle, &host);

	(void)mask;
	if (result < 0)
		return verbs_result(result);
	attr_from_host(attr, &host);
	*init = CONTAINER(qp, struct qp, base)->attr;
	init->cap = attr->cap;
	init->qp_type = qp->qp_type;
	init->send_cq = qp->send_cq;
	init->recv_cq = qp->recv_cq;
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct rdmarun_qp_attr host = {
		.struct_size = sizeof(host),
		.qp_state = attr->qp_state,
		.cur_qp_state = attr->cur_qp_state,
		.dest_qp_num = attr->dest_qp_num,
		.path_mtu = mask & IBV_QP_PATH_MTU ? 128u << attr->path_mtu : 0,
		.access_flags = attr->qp_access_flags,
		.max_rd_atomic = attr->max_rd_atomic,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
		.retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.qkey = attr->qkey,
		.rq_psn = attr->rq_psn,
		.sq_psn = attr->sq_psn,
		.min_rnr_timer = attr->min_rnr_timer,
		.timeout = attr->timeout,
		.pkey_index = attr->pkey_index,
		.port_num = attr->port_num,
		.en_sqd_async_notify = attr->en_sqd_async_notify,
		.path_mig_state = attr->path_mig_state,
		.rate_limit = attr->rate_limit,
		.alt_pkey_index = attr->alt_pkey_index,
		.alt_port_num = attr->alt_port_num,
		.alt_timeout = attr->alt_timeout,
	};
	int error;

	ah_attr_to_host(&host.ah_attr, &attr->ah_attr);
	ah_attr_to_host(&host.alt_ah_attr, &attr->alt_ah_attr);
	error = verbs_result(rdmarun_modify_qp(qp->handle, &host, (uint32_t)mask));
	if (!error && mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return error;
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	struct rdmarun_qp_attr host = {.struct_size = sizeof(host)};
	int32_t result = rdmarun_init_qp_attr(of(id)->handle, attr->qp_state, &host);

	if (result >= 0) {
		attr_from_host(attr, &host);
		*mask = result;
	}
	return cm_result(result);
}

/* ---- shared receive queues ---- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct rdmarun_srq_attr host = {.struct_size = sizeof(host),
					.max_wr = attr->attr.max_wr,
					.max_sge = attr->attr.max_sge,
					.srq_limit = attr->attr.srq_limit};
	int32_t handle = rdmarun_create_srq(pd->handle, &host);
	struct ibv_srq *srq = calloc(1, sizeof(*srq));

	if (cm_result(handle) || !srq) {
		free(srq);
		return NULL;
	}
	srq->context = pd->context;
	srq->srq_context = attr->srq_context;
	srq->pd = pd;
	srq->handle = (uint32_t)handle;
	note_object(srq->handle, srq);
	if (rdmarun_query_srq(srq->handle, &host) >= 0) {
		attr->attr.max_wr = host.max_wr;
		attr->attr.max_sge = host.max_sge;
	}
	return srq;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	int error = 0;

	if (mask & IBV_SRQ_MAX_WR)
		error = verbs_result(rdmarun_resize_srq(srq->handle, attr->max_wr));
	if (!error && mask & IBV_SRQ_LIMIT)
		error = verbs_result(rdmarun_arm_srq(srq->handle, attr->srq_limit));
	return error;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct rdmarun_srq_attr host = {.struct_size = sizeof(host)};
	int32_t result = rdmarun_query_srq(srq->handle, &host);

	if (result >= 0)
		*attr = (struct ibv_srq_attr){host.max_wr, host.max_sge, host.srq_limit};
	return verbs_result(result);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	int error = verbs_result(rdmarun_destroy_srq(srq->handle));

	if (!error) {
		forget_object(srq);
		free(srq);
	}
	return error;
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex extended = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	int error = rdma_create_srq_ex(id, &extended);

	attr->attr = extended.attr;
	return error;
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq)
		ibv_destroy_srq(id->srq);
	id->srq = NULL;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr plain = {.srq_context = attr->srq_context, .attr = attr->attr};
	struct ibv_srq *srq;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE)) {
		errno = EINVAL;
		return -1;
	}
	/* As in librdmacm, the caller sees which domain the queue is in. */
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->pd;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	if (attr->srq_type != IBV_SRQT_BASIC || !attr->pd) {
		errno = attr->pd ? EOPNOTSUPP : EINVAL; /* without a domain the id is bound to no device */
		return -1;
	}
	srq = ibv_create_srq(attr->pd, &plain);
	if (!srq)
		return -1;
	attr->attr = plain.attr;
	if (!id->pd)
		id->pd = attr->pd;
	id->srq = srq;
	return 0;
}
