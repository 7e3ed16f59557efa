/* SIDR REQ and SIDR REP arrive (soft/cm/sidr.c). */
#include "soft/cm/calls.h"

static void refuse(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct soft_cm_message reply = {
		.attribute = SOFT_CM_SIDR_REP,
		.peer_process = request->peer_process,
		.between_hosts = request->between_hosts,
		.transaction = request->transaction,
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

	soft_mutex_expect(&cm->lock);
	if (soft_peers_find_id(cm, request))
		return; /* a repeat of a request that is not answered yet */
	if (!soft_cm_make_room(cm, request))
		return;
	child = soft_cm_request_child(cm, request, &listener);
	if (!listener && soft_cm_defer_refusal(cm, request))
		return;
	if (!listener)
		refuse(cm, request);
	if (!child)
		return;
	child->state = SOFT_ID_SIDR_RECEIVED;
	soft_peers_register_id(child);
	if (soft_cm_report(listener, child, RDMA_CM_EVENT_CONNECT_REQUEST, 0, request))
		return;
	soft_cm_free_unreported(child);
}

void soft_sidr_receive_reply(struct soft_id *id, const struct soft_cm_message *reply)
{
	bool success = reply->reason == SOFT_SIDR_SUCCESS;

	soft_mutex_expect(&id->cm->lock);
	if (id->state == SOFT_ID_SIDR_SENT && reply->reason == SOFT_SIDR_UNSUPPORTED && soft_cm_relocate(id))
		return;
	if (id->state != SOFT_ID_SIDR_SENT ||
	    !soft_cm_report(id, id, success ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE,
			    (int)reply->reason, reply))
		return;
	soft_cm_close(id);
	if (success)
		id->state = SOFT_ID_RESOLVED_UD;
}
