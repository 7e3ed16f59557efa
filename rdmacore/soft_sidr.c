/*
 * Resolution of datagram services: SIDR REQ asks for the queue pair behind a port, SIDR REP names it (IBTA
 * 12.11).  There is no connection; rdma_connect ends in ESTABLISHED with where to send, or in UNREACHABLE.
 */
#include "soft_cm.h"

#include <errno.h>
#include <string.h>

#include "soft_refusal.h"

bool soft_id_is_ud(const struct soft_id *id)
{
	return id->rdma.qp_type == IBV_QPT_UD;
}

void soft_sidr_request(struct soft_id *id)
{
	id->state = SOFT_ID_SIDR_SENT;
	id->response_timeout = soft_cm_time(SOFT_CM_RESPONSE_CODE);
	soft_cm_send_request(id);
}

int soft_sidr_reply(struct soft_id *id, enum soft_sidr_status status,
		    const struct rdma_conn_param *param)
{
	struct soft_cm_message reply;

	if (id->state != SOFT_ID_SIDR_RECEIVED)
		return soft_refuse(EINVAL, "the id has no request to answer");
	if (param && param->private_data_len > SOFT_SIDR_REP_PRIVATE_DATA)
		return soft_refuse(EINVAL, "%d bytes of private data do not fit: %d at most",
				   param->private_data_len, SOFT_SIDR_REP_PRIVATE_DATA);
	soft_cm_prepare(id, &reply, SOFT_CM_SIDR_REP);
	reply.reason = status;
	if (status == SOFT_SIDR_SUCCESS) {
		reply.qp_num = soft_local_qp_num(id, param);
		reply.qkey = id->qkey;
	}
	soft_cm_set_private_data(&reply, param ? param->private_data : NULL,
				 param ? param->private_data_len : 0, SOFT_SIDR_REP_PRIVATE_DATA);
	soft_cm_send(id->cm, &reply);
	soft_peers_forget(id);
	id->state = status == SOFT_SIDR_SUCCESS ? SOFT_ID_RESOLVED_UD : SOFT_ID_CLOSED;
	return 0;
}

static void refuse(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct soft_cm_message reply = {
		.attribute = SOFT_CM_SIDR_REP,
		.remote = request->local,
		.reason = soft_cm_is_served(cm, request) ? SOFT_SIDR_REJECT : SOFT_SIDR_UNSUPPORTED,
		.source = request->destination,
		.destination = request->source,
		.private_data_len = SOFT_SIDR_REP_PRIVATE_DATA,
	};

	soft_cm_send(cm, &reply);
}

void soft_sidr_receive_request(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct soft_id *listener, *child;

	if (soft_peers_find_id(cm, request->guid, request->local))
		return; /* a copy of one that is not answered yet */
	child = soft_cm_request_child(cm, request, &listener);
	if (!listener)
		refuse(cm, request);
	if (!child)
		return;
	child->state = SOFT_ID_SIDR_RECEIVED;
	soft_peers_claim_id(child);
	if (soft_cm_report(listener, child, RDMA_CM_EVENT_CONNECT_REQUEST, 0, request))
		return;
	soft_cm_close(child);
	soft_id_free(child);
}

void soft_sidr_receive_reply(struct soft_id *id, const struct soft_cm_message *reply)
{
	bool success = reply->reason == SOFT_SIDR_SUCCESS;

	if (id->state != SOFT_ID_SIDR_SENT ||
	    !soft_cm_report(id, id, success ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE,
			    (int)reply->reason, reply))
		return;
	soft_cm_close(id);
	if (success)
		id->state = SOFT_ID_RESOLVED_UD;
}
