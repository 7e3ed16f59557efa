/* rdma_connect(3), rdma_accept(3), rdma_establish(3). */
#include "soft/rdma/rdma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/base/refusal.h"
#include "soft/cm/calls.h"
#include "soft/objects/device.h"
#include "soft/qp/verbs.h"
#include "soft/wire/packet.h"

#define SERVICE_MAX_RETRY 7 /* REQ and REP have three bits for it */

static uint8_t clamp_retry(uint8_t count)
{
	return count > SERVICE_MAX_RETRY ? SERVICE_MAX_RETRY : count;
}

/* 0xff is the maximum of the device (RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH). */
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

/* What librdmacm checks before it calls the kernel, only in RDMA_PS_TCP (ucma_valid_param). */
static int check_param(const struct soft_id *id, const struct rdma_conn_param *param)
{
	if (id->rdma.ps != RDMA_PS_TCP)
		return 0;
	if (!id->rdma.qp && !param)
		return soft_refuse(EINVAL, "there is neither a queue pair nor a qp_num in parameters");
	if (param && (!valid_depth(param->responder_resources) || !valid_depth(param->initiator_depth)))
		return soft_refuse(EINVAL, "responder resources and initiator depth are %d at most, or 255",
				   SOFT_MAX_RD_ATOMIC);
	return 0;
}

static uint8_t uses_srq(const struct soft_id *id, const struct rdma_conn_param *param)
{
	if (id->rdma.qp)
		return id->rdma.qp->srq != NULL;
	return param ? param->srq : 0;
}

/* The service that the peer's half needs (IBTA 12.6.5, table 99). */
static enum soft_cm_transport transport_of(const struct soft_id *id)
{
	switch (id->rdma.qp_type) {
	case IBV_QPT_XRC_SEND:
		return SOFT_TRANSPORT_EXTENDED;
	case IBV_QPT_UC:
		return SOFT_TRANSPORT_UC;
	default:
		return SOFT_TRANSPORT_RC;
	}
}

static int set_request_data(struct soft_id *id, struct soft_cm_message *req,
			    const struct rdma_conn_param *param)
{
	uint8_t length = param ? param->private_data_len : 0;
	uint8_t field = soft_id_is_ud(id) ? SOFT_SIDR_REQ_PRIVATE_DATA : SOFT_REQ_PRIVATE_DATA;
	uint8_t data[UINT8_MAX + 1];

	if (id->connect_prefix_len + length > field)
		return soft_refuse(EINVAL, "%d bytes of private data do not fit: %d at most",
				   id->connect_prefix_len + length, field);
	if (id->connect_prefix)
		memcpy(data, id->connect_prefix, id->connect_prefix_len);
	if (length)
		memcpy(data + id->connect_prefix_len, param->private_data, length);
	soft_cm_set_private_data(req, data, (uint8_t)(id->connect_prefix_len + length), field);
	return 0;
}

/* The peer gets the number with the message, as the retries of its own sends. */
static uint8_t arrange_rnr_retries(struct soft_id *id, const struct rdma_conn_param *param)
{
	uint8_t retries = param ? clamp_retry(param->rnr_retry_count) : SERVICE_MAX_RETRY;

	if (id->rdma.qp)
		soft_qp_set_peer_retries(id->rdma.qp, retries);
	return retries;
}

/* By legal choice data may come before ESTABLISHED, and raise IBV_EVENT_COMM_EST. */
static void choose_late_rtu(struct soft_id *id)
{
	id->rtu_late = id->rdma.qp ? soft_legal_choose(&id->cm->fabric->legal.calls, CORE_LEGAL_COMM_EST) : 0;
	if (id->rtu_late)
		soft_qp_await_rtu(id->rdma.qp, true);
}

static int connect_locked(struct soft_id *id, const struct rdma_conn_param *param)
{
	struct soft_cm_message *req = &id->request;
	enum soft_cm_attribute attribute = soft_id_is_ud(id) ? SOFT_CM_SIDR_REQ : SOFT_CM_REQ;
	int error = check_param(id, param);

	if (error)
		return error;
	if (id->state != SOFT_ID_ROUTE_RESOLVED)
		return soft_refuse(EINVAL, "rdma_connect needs a resolved route, and is done once an id");
	id->transaction = id->cm->device->guid << 32 | id->local;
	soft_cm_prepare(id, req, attribute);
	error = set_request_data(id, req, param);
	if (error)
		return error;
	free(id->connect_prefix);
	id->connect_prefix = NULL;
	id->connect_prefix_len = 0;
	id->local_qp_num = soft_local_qp_num(id, param);
	req->qp_num = id->local_qp_num;
	if (attribute == SOFT_CM_SIDR_REQ) {
		soft_sidr_request(id);
		return 0;
	}
	id->responder_resources = param ? offered_depth(param->responder_resources) : SOFT_MAX_RD_ATOMIC;
	id->initiator_depth = param ? offered_depth(param->initiator_depth) : SOFT_MAX_RD_ATOMIC;
	id->retry_count = param ? clamp_retry(param->retry_count) : SERVICE_MAX_RETRY;
	id->receive_psn = soft_fabric_starting_psn(id->cm->fabric);
	req->starting_psn = id->receive_psn;
	req->responder_resources = id->responder_resources;
	req->initiator_depth = id->initiator_depth;
	req->flow_control = param ? param->flow_control : 0;
	req->retry_count = id->retry_count;
	req->rnr_retry_count = arrange_rnr_retries(id, param);
	req->srq = uses_srq(id, param);
	req->transport = transport_of(id);
	req->ack_timeout = id->path_timeout;
	req->path = (struct soft_cm_path){.mtu = id->path.mtu, .rate = id->path.rate, .hop_limit = id->path.hop_limit,
					  .traffic_class = id->path.traffic_class};
	req->remote_response_timeout = req->local_response_timeout = SOFT_CM_RESPONSE_CODE;
	req->max_cm_retries = SOFT_CM_RETRIES;
	req->ece = id->local_ece;
	id->state = SOFT_ID_REQ_SENT;
	soft_cm_send_request(id);
	return 0;
}

int soft_connect(struct rdma_cm_id *rdma_id, struct rdma_conn_param *param)
{
	struct soft_id *id = soft_id_lock(rdma_id);

	if (!id)
		return -1;
	return soft_cm_finish(id->cm, connect_locked(id, param)) ? -1 : soft_id_complete(rdma_id);
}

/* rdma_accept(3): an explicit value is used as it is; otherwise the lesser of the offer and the device's maximum. */
static void negotiate_depths(struct soft_id *id, const struct rdma_conn_param *param)
{
	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		id->responder_resources = param->responder_resources;
	else
		id->responder_resources = least(id->responder_resources, SOFT_MAX_RD_ATOMIC);
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = param->initiator_depth;
	else
		id->initiator_depth = least(id->initiator_depth, SOFT_MAX_RD_ATOMIC);
}

/* The kernel's half of rdma_accept; if it fails, the request ends. */
static int send_rep(struct soft_id *id, const struct rdma_conn_param *param)
{
	struct soft_cm_message *rep = &id->request;

	if (id->state != SOFT_ID_REQ_RECEIVED)
		return soft_refuse(EINVAL, "the id has no request to accept");
	if (param && param->private_data_len > SOFT_REP_PRIVATE_DATA)
		return soft_refuse(EINVAL, "%d bytes of private data do not fit: %d at most",
				   param->private_data_len, SOFT_REP_PRIVATE_DATA);
	soft_cm_prepare(id, rep, SOFT_CM_REP);
	id->local_qp_num = soft_local_qp_num(id, param);
	rep->qp_num = id->local_qp_num;
	rep->starting_psn = id->receive_psn;
	rep->responder_resources = id->responder_resources;
	rep->initiator_depth = id->initiator_depth;
	rep->flow_control = param ? param->flow_control : 0;
	rep->rnr_retry_count = arrange_rnr_retries(id, param);
	rep->srq = uses_srq(id, param);
	rep->ack_timeout = SOFT_ACK_DELAY;
	rep->ece = id->local_ece;
	soft_cm_set_private_data(rep, param ? param->private_data : NULL,
				 param ? param->private_data_len : 0, SOFT_REP_PRIVATE_DATA);
	id->state = SOFT_ID_REP_SENT;
	choose_late_rtu(id);
	soft_half_open_accepted(id);
	soft_cm_send_request(id);
	return 0;
}

/* Like the kernel after an accept that failed. */
static void reject_unaccepted(struct soft_id *id)
{
	soft_id_fail_qp(id);
	if (id->state == SOFT_ID_SIDR_RECEIVED)
		soft_sidr_reply(id, SOFT_SIDR_REJECT, NULL);
	else if (id->state == SOFT_ID_REQ_RECEIVED || id->state == SOFT_ID_REP_SENT ||
		 id->state == SOFT_ID_REP_RECEIVED)
		soft_cm_reject(id, SOFT_REJ_CONSUMER_DEFINED, NULL, 0);
}

static int accept_datagrams(struct soft_id *id, const struct rdma_conn_param *param)
{
	int error = soft_sidr_reply(id, SOFT_SIDR_SUCCESS, param);

	if (error)
		reject_unaccepted(id);
	return error;
}

static int accept_connection(struct soft_id *id, const struct rdma_conn_param *param)
{
	int error = check_param(id, param);

	/* The access flags follow the offer: Linux applies the granted depths when it sends the REP. */
	if (!error && id->rdma.qp)
		error = soft_id_prepare_qp(id);
	if (error)
		return error;
	if (id->state == SOFT_ID_REQ_RECEIVED)
		negotiate_depths(id, param);
	if (id->rdma.qp) {
		error = soft_id_connect_qp(id);
		if (error)
			return error;
	}
	error = send_rep(id, param);
	if (error)
		reject_unaccepted(id);
	return error;
}

int soft_accept(struct rdma_cm_id *rdma_id, struct rdma_conn_param *param)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	bool datagrams;
	int error;

	if (!id)
		return -1;
	datagrams = soft_id_is_ud(id);
	if (!id->rdma.qp && !param)
		error = soft_refuse(EINVAL, "there is neither a queue pair nor a qp_num in parameters; "
				    "librdmacm would crash here");
	else
		error = datagrams ? accept_datagrams(id, param) : accept_connection(id, param);
	if (!error)
		id->unaccepted = false;
	if (soft_cm_finish(id->cm, error))
		return -1;
	if (!datagrams)
		return soft_id_complete(rdma_id);
	if (id->sync) /* no event follows */
		soft_id_drop_event(rdma_id);
	return 0;
}

/* The kernel treats it as an accept, and rejects the connection if it fails. */
int soft_establish(struct rdma_cm_id *rdma_id)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	int error = 0;

	if (!id)
		return -1;
	if (id->rdma.qp) {
		error = soft_refuse(EINVAL, "an id with a queue pair is established by itself");
	} else if (id->state == SOFT_ID_REP_RECEIVED) {
		soft_cm_send_plain(id, SOFT_CM_RTU);
		id->state = SOFT_ID_ESTABLISHED;
	} else {
		error = soft_refuse(EINVAL, "rdma_establish needs CONNECT_RESPONSE");
		reject_unaccepted(id);
	}
	return soft_cm_finish(id->cm, error);
}
