/* The queue pair of an id: what rdma_create_qp makes, and its way through INIT, RTR and RTS. */
#include "soft_cm.h"

#include <errno.h>
#include <stdlib.h>

#include "soft_context.h"
#include "soft_cq.h"
#include "soft_device.h"
#include "soft_qp.h"

/* A queue with a completion channel of its own (ucma_create_cqs of librdmacm). */
static int create_cq(struct rdma_cm_id *id, uint32_t entries, struct ibv_comp_channel **channel,
		     struct ibv_cq **cq)
{
	*channel = soft_create_comp_channel(id->verbs);
	if (!*channel)
		return -1;
	*cq = soft_create_cq(id->verbs, entries ? (int)entries : 1, id, *channel, 0);
	if (*cq)
		return 0;
	soft_destroy_comp_channel(*channel);
	*channel = NULL;
	return -1;
}

static void destroy_cq(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	if (*cq)
		soft_destroy_cq(*cq);
	if (*channel)
		soft_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

static void destroy_cqs(struct rdma_cm_id *id)
{
	destroy_cq(&id->recv_cq_channel, &id->recv_cq);
	destroy_cq(&id->send_cq_channel, &id->send_cq);
}

static int create_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr *attr)
{
	if (!attr->recv_cq) {
		if (create_cq(id, attr->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq))
			return -1;
		attr->recv_cq = id->recv_cq;
	}
	if (!attr->send_cq) {
		if (create_cq(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq))
			return -1;
		attr->send_cq = id->send_cq;
	}
	return 0;
}

int soft_id_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = SOFT_PORT};
	struct ibv_qp *qp;
	int error;

	if (id->qp || !id->verbs || (pd && pd->context != id->verbs)) {
		errno = EINVAL;
		return -1;
	}
	if (create_cqs(id, attr))
		goto destroy_queues;
	qp = soft_create_qp(pd ? pd : id->pd, attr);
	if (!qp)
		goto destroy_queues;
	/* Rights come with the connection; until then nobody has any. */
	error = soft_modify_qp(qp, &init,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (error)
		goto destroy_queue_pair;
	id->qp = qp;
	return 0;

destroy_queue_pair:
	soft_destroy_qp(qp);
	errno = error;
destroy_queues:
	error = errno;
	destroy_cqs(id);
	errno = error;
	return -1;
}

void soft_id_destroy_qp(struct rdma_cm_id *id)
{
	if (!id->qp)
		return;
	soft_destroy_qp(id->qp);
	id->qp = NULL;
	destroy_cqs(id);
}

/*
 * The attributes for the state in attr->qp_state (rdma_init_qp_attr(3)).  The rights of a connected
 * queue pair are remote write always, and read only where responder resources were granted.
 */
static int init_qp_attr(const struct soft_id *id, struct ibv_qp_attr *attr, int *mask)
{
	const struct rdma_addr *addr = &id->rdma.route.addr;
	enum ibv_qp_state state = attr->qp_state;

	*attr = (struct ibv_qp_attr){.qp_state = state, .port_num = SOFT_PORT};
	switch (state) {
	case IBV_QPS_INIT:
		*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		if (id->responder_resources)
			attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
		return 0;
	case IBV_QPS_RTR:
		*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		attr->path_mtu = IBV_MTU_4096;
		attr->dest_qp_num = id->remote_qp_num;
		attr->rq_psn = id->receive_psn;
		attr->max_dest_rd_atomic = id->responder_resources;
		attr->ah_attr.is_global = 1;
		attr->ah_attr.port_num = SOFT_PORT;
		attr->ah_attr.grh.hop_limit = 64;
		attr->ah_attr.grh.sgid_index = addr->src_addr.sa_family == AF_INET ? 0 : 1;
		soft_address_to_gid(&addr->dst_addr, &attr->ah_attr.grh.dgid);
		return 0;
	case IBV_QPS_RTS:
		*mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
		attr->timeout = id->ack_timeout;
		attr->retry_cnt = id->retry_count;
		attr->rnr_retry = id->rnr_retry_count;
		attr->sq_psn = id->send_psn;
		attr->max_rd_atomic = id->initiator_depth;
		return 0;
	case IBV_QPS_ERR:
		*mask = IBV_QP_STATE;
		return 0;
	default:
		return EINVAL;
	}
}

int soft_init_qp_attr(struct rdma_cm_id *rdma_id, struct ibv_qp_attr *attr, int *mask)
{
	struct soft_id *id = soft_id(rdma_id);
	int error;

	pthread_mutex_lock(&id->cm->lock);
	error = id->device_bound ? init_qp_attr(id, attr, mask) : EINVAL;
	pthread_mutex_unlock(&id->cm->lock);
	errno = error;
	return error ? -1 : 0;
}

int soft_id_connect_qp(struct soft_id *id)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};

	for (size_t step = 0; step < sizeof(way) / sizeof(way[0]); step++) {
		struct ibv_qp_attr attr = {.qp_state = way[step]};
		int mask;
		int error = init_qp_attr(id, &attr, &mask);

		if (!error)
			error = soft_modify_qp(id->rdma.qp, &attr, mask);
		if (error)
			return error;
	}
	return 0;
}

void soft_id_fail_qp(struct soft_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (id->rdma.qp)
		soft_modify_qp(id->rdma.qp, &attr, IBV_QP_STATE);
}
