/*
 * Datagram services (IBTA 12.11): a SIDR REQ asks for the queue pair of a port, and a SIDR REP contains it. There is
 * no connection. rdma_connect ends in ESTABLISHED with the address of the queue pair, or in UNREACHABLE.
 */
#include "soft/cm/calls.h"

#include <errno.h>

#include "soft/base/refusal.h"

void soft_sidr_request(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	id->state = SOFT_ID_SIDR_SENT;
	id->response_timeout = soft_cm_time(SOFT_CM_RESPONSE_CODE);
	soft_cm_send_request(id);
}

int soft_sidr_reply(struct soft_id *id, enum soft_sidr_status status,
		    const struct rdma_conn_param *param)
{
	struct soft_cm_message reply;

	soft_mutex_expect(&id->cm->lock);
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
	soft_half_open_leave(id);
	id->state = status == SOFT_SIDR_SUCCESS ? SOFT_ID_RESOLVED_UD : SOFT_ID_CLOSED;
	return 0;
}
