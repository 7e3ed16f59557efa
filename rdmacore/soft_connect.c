#include "soft_cm.h"

#include <errno.h>
#include <string.h>

#include "soft_device.h"
#include "soft_fabric.h"
#include "soft_qp.h"

#define SERVICE_MAX_RETRY 7 /* three-bit fields of REQ and REP */

static uint8_t clamp_retry(uint8_t count)
{
	return count > SERVICE_MAX_RETRY ? SERVICE_MAX_RETRY : count;
}

/* 0xff stands for the most that the device can (RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH). */
static bool valid_depth(uint8_t depth)
{
	return depth == RDMA_MAX_RESP_RES || depth <= SOFT_MAX_RD_ATOMIC;
}

static uint8_t offered_depth(uint8_t depth)
{
	return depth == RDMA_MAX_RESP_RES ? SOFT_MAX_RD_ATOMIC : depth;
}

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static uint32_t local_qp_num(const struct soft_id *id, const struct rdma_conn_param *param)
{
	if (id->rdma.qp)
		return id->rdma.qp->qp_num;
	return param ? param->qp_num : 0;
}

static int connect_locked(struct soft_id *id, const struct rdma_conn_param *param)
{
	struct soft_cm_message *req = &id->request;
	uint8_t field = id->rdma.ps == RDMA_PS_IB ? SOFT_REQ_PRIVATE_DATA_IB : SOFT_REQ_PRIVATE_DATA;

	if (id->state != SOFT_ID_ROUTE_RESOLVED)
		return EINVAL;
	if (!id->rdma.qp && !param)
		return EINVAL;
	if (param && (!valid_depth(param->responder_resources) ||
		      !valid_depth(param->initiator_depth) || param->private_data_len > field))
		return EINVAL;
	id->responder_resources = param ? offered_depth(param->responder_resources) : SOFT_MAX_RD_ATOMIC;
	id->initiator_depth = param ? offered_depth(param->initiator_depth) : SOFT_MAX_RD_ATOMIC;
	id->retry_count = param ? clamp_retry(param->retry_count) : SERVICE_MAX_RETRY;
	id->receive_psn = (uint32_t)soft_fabric_random(id->cm->fabric) & SOFT_PSN_MASK;

	soft_cm_prepare(id, req, SOFT_CM_REQ);
	req->port_space = id->rdma.ps;
	req->qp_num = local_qp_num(id, param);
	req->starting_psn = id->receive_psn;
	req->responder_resources = id->responder_resources;
	req->initiator_depth = id->initiator_depth;
	req->flow_control = param ? param->flow_control : 1;
	req->retry_count = id->retry_count;
	req->rnr_retry_count = param ? clamp_retry(param->rnr_retry_count) : SERVICE_MAX_RETRY;
	req->srq = param ? param->srq : 0;
	req->ack_timeout = id->ack_timeout;
	soft_cm_set_private_data(req, param ? param->private_data : NULL,
				 param ? param->private_data_len : 0, field);
	id->state = SOFT_ID_REQ_SENT;
	soft_cm_send_request(id);
	return 0;
}

int soft_connect(struct rdma_cm_id *rdma_id, struct rdma_conn_param *param)
{
	struct soft_id *id = soft_id(rdma_id);

	pthread_mutex_lock(&id->cm->lock);
	return soft_cm_finish(id->cm, connect_locked(id, param));
}

static int accept_locked(struct soft_id *id, const struct rdma_conn_param *param)
{
	struct soft_cm_message *rep = &id->request;

	if (id->state != SOFT_ID_REQ_RECEIVED || (!id->rdma.qp && !param))
		return EINVAL;
	if (param && (!valid_depth(param->responder_resources) || !valid_depth(param->initiator_depth)))
		return EINVAL;
	/* rdma_accept(3): an explicit value is used as it is, else the lesser of offer and device. */
	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		id->responder_resources = param->responder_resources;
	else
		id->responder_resources = least(id->responder_resources, SOFT_MAX_RD_ATOMIC);
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = param->initiator_depth;
	else
		id->initiator_depth = least(id->initiator_depth, SOFT_MAX_RD_ATOMIC);
	id->receive_psn = (uint32_t)soft_fabric_random(id->cm->fabric) & SOFT_PSN_MASK;
	if (param && param->private_data_len > SOFT_REP_PRIVATE_DATA)
		return EINVAL;
	if (id->rdma.qp) {
		int error = soft_id_connect_qp(id);

		if (error)
			return error;
	}
	soft_cm_prepare(id, rep, SOFT_CM_REP);
	rep->qp_num = local_qp_num(id, param);
	rep->starting_psn = id->receive_psn;
	rep->responder_resources = id->responder_resources;
	rep->initiator_depth = id->initiator_depth;
	rep->flow_control = param ? param->flow_control : 1;
	rep->rnr_retry_count = param ? clamp_retry(param->rnr_retry_count) : SERVICE_MAX_RETRY;
	rep->srq = param ? param->srq : 0;
	soft_cm_set_private_data(rep, param ? param->private_data : NULL,
				 param ? param->private_data_len : 0, SOFT_REP_PRIVATE_DATA);
	id->state = SOFT_ID_REP_SENT;
	soft_cm_send_request(id);
	return 0;
}

int soft_accept(struct rdma_cm_id *rdma_id, struct rdma_conn_param *param)
{
	struct soft_id *id = soft_id(rdma_id);
	int error;

	pthread_mutex_lock(&id->cm->lock);
	error = accept_locked(id, param);
	/* As the kernel does: a request that cannot be accepted is rejected for the user. */
	if (error && id->state == SOFT_ID_REQ_RECEIVED && (id->rdma.qp || param)) {
		soft_id_fail_qp(id);
		soft_cm_reject(id, SOFT_REJ_CONSUMER_DEFINED, NULL, 0);
	}
	return soft_cm_finish(id->cm, error);
}

int soft_reject(struct rdma_cm_id *rdma_id, const void *private_data, uint8_t private_data_len)
{
	struct soft_id *id = soft_id(rdma_id);
	int error = 0;

	pthread_mutex_lock(&id->cm->lock);
	if ((id->state != SOFT_ID_REQ_RECEIVED && id->state != SOFT_ID_REP_RECEIVED) ||
	    private_data_len > SOFT_REJ_PRIVATE_DATA)
		error = EINVAL;
	else
		soft_cm_reject(id, SOFT_REJ_CONSUMER_DEFINED, private_data, private_data_len);
	return soft_cm_finish(id->cm, error);
}

int soft_establish(struct rdma_cm_id *rdma_id)
{
	struct soft_id *id = soft_id(rdma_id);
	int error = 0;

	pthread_mutex_lock(&id->cm->lock);
	if (id->rdma.qp || id->state != SOFT_ID_REP_RECEIVED) {
		error = EINVAL;
	} else {
		soft_cm_send_plain(id, SOFT_CM_RTU);
		id->state = SOFT_ID_ESTABLISHED;
	}
	return soft_cm_finish(id->cm, error);
}

int soft_disconnect(struct rdma_cm_id *rdma_id)
{
	struct soft_id *id = soft_id(rdma_id);
	int error = 0;

	pthread_mutex_lock(&id->cm->lock);
	switch (id->state) {
	case SOFT_ID_IDLE:
	case SOFT_ID_BOUND:
	case SOFT_ID_ADDR_RESOLVED:
	case SOFT_ID_ROUTE_RESOLVED:
	case SOFT_ID_LISTEN:
		error = EINVAL; /* there was never a connection */
		break;
	case SOFT_ID_ESTABLISHED:
	case SOFT_ID_REP_SENT:
		soft_id_fail_qp(id);
		soft_cm_prepare(id, &id->request, SOFT_CM_DREQ);
		id->state = SOFT_ID_DREQ_SENT;
		soft_cm_send_request(id);
		break;
	case SOFT_ID_DREQ_RECEIVED:
		soft_id_fail_qp(id);
		soft_cm_send_plain(id, SOFT_CM_DREP);
		soft_cm_enter_timewait(id);
		break;
	default:
		/* Nothing to end on the wire; Linux answers 0 all the same. */
		soft_id_fail_qp(id);
		break;
	}
	return soft_cm_finish(id->cm, error);
}
