/* The queue pair of an id: rdma_create_qp(3), and its states INIT, RTR and RTS. */
#include "soft/rdma/rdma.h"

#include <errno.h>
#include <string.h>

#include "soft/base/refusal.h"
#include "soft/cm/calls.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

/* A queue with a completion channel of its own (ucma_create_cqs of librdmacm). */
static int create_cq(struct rdma_cm_id *id, uint32_t entries, struct ibv_comp_channel **channel,
		     struct ibv_cq **cq)
{
	*channel = soft_create_comp_channel(id->verbs);
	if (!*channel)
		return -1;
	*cq = soft_create_cq(id->verbs, (int)entries, id, *channel, 0);
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

void soft_id_destroy_cqs(struct rdma_cm_id *id)
{
	if (id->qp_type == IBV_QPT_XRC_RECV && id->srq) /* they are for the shared queue */
		return;
	destroy_cq(&id->recv_cq_channel, &id->recv_cq);
	destroy_cq(&id->send_cq_channel, &id->send_cq);
}

int soft_id_create_cqs(struct rdma_cm_id *id, uint32_t send_entries, uint32_t recv_entries)
{
	int error;

	if ((!recv_entries || !create_cq(id, recv_entries, &id->recv_cq_channel, &id->recv_cq)) &&
	    (!send_entries || !create_cq(id, send_entries, &id->send_cq_channel, &id->send_cq)))
		return 0;
	error = errno;
	soft_id_destroy_cqs(id);
	errno = error;
	return -1;
}

/* A queue pair needs both queues, even for no requests of one kind, unless it is one end of XRC. */
static uint32_t entries_for(const struct ibv_cq *given, const struct ibv_cq *own, uint32_t requests, bool needed)
{
	if (given || own)
		return 0;
	return requests || !needed ? requests : 1;
}

static int provide_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	bool receives = attr->qp_type != IBV_QPT_XRC_SEND && attr->qp_type != IBV_QPT_XRC_RECV;
	bool sends = attr->qp_type != IBV_QPT_XRC_RECV;

	if (soft_id_create_cqs(id, entries_for(attr->send_cq, id->send_cq, attr->cap.max_send_wr, sends),
			       entries_for(attr->recv_cq, id->recv_cq, attr->cap.max_recv_wr, receives)))
		return -1;
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	return 0;
}

static struct ibv_qp *make_qp(struct ibv_qp_init_attr_ex *attr)
{
	/* Up to comp_mask both structs have the same fields (verbs.h). */
	if (attr->comp_mask == IBV_QP_INIT_ATTR_PD)
		return soft_create_qp(attr->pd, (struct ibv_qp_init_attr *)attr);
	return ibv_create_qp_ex(attr->pd->context, attr);
}

/* Without a connection, and for datagrams: no access flags. */
static int plain_attr(const struct soft_id *id, struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (soft_id_is_ud(id)) {
		attr->qkey = id->qkey;
		*mask |= IBV_QP_QKEY;
	} else {
		*mask |= IBV_QP_ACCESS_FLAGS;
	}
	return 0;
}

static bool has_connection(const struct soft_id *id)
{
	switch (id->state) {
	case SOFT_ID_REQ_SENT:
	case SOFT_ID_REQ_RECEIVED:
	case SOFT_ID_REP_SENT:
	case SOFT_ID_REP_RECEIVED:
	case SOFT_ID_ESTABLISHED:
		return true;
	default:
		return false;
	}
}

/* Whether the peer's queue pair is known. */
static bool has_peer(const struct soft_id *id)
{
	return has_connection(id) && id->state != SOFT_ID_REQ_SENT;
}

/* Before rdma_listen and rdma_connect; afterwards Linux asks the communication manager (rdma_init_qp_attr of cma.c). */
static bool before_connection(const struct soft_id *id)
{
	return id->state < SOFT_ID_LISTEN;
}

/*
 * The attributes for the state in attr->qp_state (rdma_init_qp_attr(3)). A connected queue pair always allows remote
 * write, and remote read only if responder resources were granted.
 */
static int init_qp_attr(const struct soft_id *id, struct ibv_qp_attr *attr, int *mask)
{
	enum ibv_qp_state state = attr->qp_state;

	*attr = (struct ibv_qp_attr){.qp_state = state, .port_num = SOFT_PORT};
	if (state > IBV_QPS_ERR)
		return EINVAL;
	if (soft_id_is_ud(id) || before_connection(id))
		return plain_attr(id, attr, mask);
	switch (state) {
	case IBV_QPS_INIT:
		if (!has_connection(id))
			return EINVAL;
		*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		if (id->responder_resources)
			attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
		return 0;
	case IBV_QPS_RTR:
		if (!has_peer(id))
			return EINVAL;
		*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
		if (id->rdma.qp_type != IBV_QPT_XRC_SEND)
			*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		attr->path_mtu = id->path.mtu;
		attr->dest_qp_num = id->remote_qp_num;
		attr->rq_psn = id->receive_psn;
		attr->max_dest_rd_atomic = id->responder_resources;
		soft_id_ah_attr(id, &attr->ah_attr);
		return 0;
	case IBV_QPS_RTS:
		if (!has_peer(id))
			return EINVAL;
		*mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
		if (id->rdma.qp_type != IBV_QPT_XRC_RECV)
			*mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
		attr->timeout = id->ack_timeout_set ? id->ack_timeout : id->path_timeout;
		attr->retry_cnt = id->retry_count;
		attr->rnr_retry = id->rnr_retry_count;
		attr->sq_psn = id->send_psn;
		attr->max_rd_atomic = id->initiator_depth;
		return 0;
	default:
		return EINVAL;
	}
}

/*
 * Change the queue pair to INIT, with the access flags of the connection. A datagram queue pair changes to RTS,
 * because it needs no peer. Fails if the connection has ended already.
 */
static int make_ready(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp_attr receive = {.qp_state = IBV_QPS_RTR}, send = {.qp_state = IBV_QPS_RTS};
	struct soft_cm *cm = soft_id(id)->cm;
	int mask, error;

	soft_mutex_lock(&cm->lock);
	error = init_qp_attr(soft_id(id), &init, &mask);
	soft_mutex_unlock(&cm->lock);
	if (!error)
		error = soft_modify_qp(qp, &init, mask);
	if (error || !soft_id_is_ud(soft_id(id)))
		return error;
	error = soft_modify_qp(qp, &receive, IBV_QP_STATE);
	if (!error)
		error = soft_modify_qp(qp, &send, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return error;
}

static int check_create(struct rdma_cm_id *id, const struct ibv_qp_init_attr_ex *attr)
{
	if (id->qp)
		return soft_refuse(EINVAL, "the id has a queue pair already");
	if (!id->verbs || !attr->pd)
		return soft_refuse(EINVAL, "the id is bound to no device; librdmacm would crash here");
	if (attr->pd->context != id->verbs)
		return soft_refuse(EINVAL, "the protection domain is of another context than the id");
	if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
	    (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq))
		return soft_refuse(EINVAL, "the id has a completion queue of its own for that");
	return 0;
}

static int provide_xrcd(struct soft_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD && attr->xrcd)
		return 0;
	soft_mutex_lock(&id->cm->lock);
	attr->xrcd = soft_id_default_xrcd(id);
	soft_mutex_unlock(&id->cm->lock);
	attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	return attr->xrcd ? 0 : -1;
}

int soft_id_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct soft_id *locked = soft_id_lock_any(id); /* if its device was removed, its verbs fail with EIO */
	struct ibv_qp *qp;
	int error;

	if (!locked)
		return -1;
	soft_mutex_unlock(&locked->cm->lock);
	if (!attr) {
		errno = soft_refuse(EINVAL, "there are no attributes; librdmacm would crash here");
		return -1;
	}
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	error = check_create(id, attr);
	if (error) {
		errno = error;
		return -1;
	}
	if (id->qp_type == IBV_QPT_XRC_RECV && provide_xrcd(locked, attr))
		return -1;
	if (provide_cqs(id, attr))
		return -1;
	if (id->srq && !attr->srq)
		attr->srq = id->srq;
	qp = make_qp(attr);
	if (!qp)
		goto destroy_queues;
	error = make_ready(id, qp);
	if (error)
		goto destroy_queue_pair;
	soft_mutex_lock(&locked->cm->lock);
	id->pd = qp->pd;
	id->qp = qp;
	soft_mutex_unlock(&locked->cm->lock);
	return 0;

destroy_queue_pair:
	soft_destroy_qp(qp);
	errno = error;
destroy_queues:
	error = errno;
	if (!id->srq) /* otherwise the shared queue may use them */
		soft_id_destroy_cqs(id);
	errno = error;
	return -1;
}

int soft_id_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex extended = {0};
	int result;

	if (!attr)
		return soft_id_create_qp_ex(id, NULL);
	memcpy(&extended, attr, sizeof(*attr));
	extended.comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0;
	extended.pd = pd;
	result = soft_id_create_qp_ex(id, &extended);
	/* Return the granted capacity, and the queues that were created (rdma_create_qp(3)). */
	if (!result)
		memcpy(attr, &extended, sizeof(*attr));
	return result;
}

void soft_id_destroy_qp(struct rdma_cm_id *id)
{
	struct soft_id *locked;
	struct ibv_qp *qp;
	int error;

	if (!id || !(locked = soft_id_lock_any(id)))
		return;
	error = soft_id_wait_moved(locked);
	if (error || !id->qp) {
		soft_cm_finish(locked->cm, error);
		return;
	}
	/* A member of a group cannot be destroyed; librdmacm leaks it. */
	soft_joins_detach(locked);
	qp = id->qp;
	id->qp = NULL;
	soft_cm_unlock(locked->cm);
	error = soft_destroy_qp(qp);
	if (!error) {
		soft_id_destroy_cqs(id);
		return;
	}
	/* The id keeps it, so that it can be destroyed later. */
	soft_refuse(error, "an event of the queue pair was taken and not acknowledged, or it is attached to a group; "
			   "librdmacm would wait for ever, or lose it");
	soft_mutex_lock(&locked->cm->lock);
	id->qp = qp;
	soft_cm_finish(locked->cm, error);
}

int soft_init_qp_attr(struct rdma_cm_id *rdma_id, struct ibv_qp_attr *attr, int *mask)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	int error = EINVAL;

	if (!id)
		return -1;
	if (attr && mask && id->on_device) /* ucma_get_ctx_dev */
		error = init_qp_attr(id, attr, mask);
	return soft_cm_finish(id->cm, error);
}

/*
 * ibv_modify_qp waits while the queue pair sends or receives, so cm.lock is released meanwhile, for other
 * connections. id->moving prevents that the id and its queue pair are destroyed (soft_id_wait_moved).
 */
static int modify_qp(struct soft_id *id, struct ibv_qp_attr *attr, int mask)
{
	struct soft_cm *cm = id->cm;
	struct ibv_qp *qp = id->rdma.qp;
	int error;

	if (!qp)
		return EINVAL;
	id->moving++;
	soft_mutex_unlock(&cm->lock);
	error = soft_modify_qp(qp, attr, mask);
	soft_mutex_lock(&cm->lock);
	id->moving--;
	pthread_cond_broadcast(&cm->acknowledged);
	return error;
}

static int move_qp(struct soft_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;
	int error = init_qp_attr(id, &attr, &mask);

	return error ? error : modify_qp(id, &attr, mask);
}

int soft_id_prepare_qp(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	return move_qp(id, IBV_QPS_INIT);
}

int soft_id_connect_qp(struct soft_id *id)
{
	int error = move_qp(id, IBV_QPS_RTR);

	soft_mutex_expect(&id->cm->lock);
	return error ? error : move_qp(id, IBV_QPS_RTS);
}

void soft_id_fail_qp(struct soft_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	soft_mutex_expect(&id->cm->lock);
	modify_qp(id, &attr, IBV_QP_STATE);
}
