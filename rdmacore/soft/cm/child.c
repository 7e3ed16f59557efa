#include "soft/cm/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/ipc/ipc.h"
#include "soft/wire/packet.h"

static struct soft_id *create_child(struct soft_id *listener, const struct soft_cm_message *req)
{
	struct soft_id *child;

	child = soft_id_alloc(listener->cm, (struct soft_event_channel *)listener->rdma.channel,
			      listener->rdma.context, listener->rdma.ps);
	if (!child)
		return NULL;
	child->transaction = req->transaction;
	child->peer_process = req->peer_process;
	child->between_hosts = req->between_hosts;
	soft_ipc_use(child->peer_process);
	child->on_device = true;
	child->rdma.qp_type = listener->rdma.qp_type;
	memcpy(&child->addr.src_storage, &req->destination, sizeof(req->destination));
	memcpy(&child->addr.dst_storage, &req->source, sizeof(req->source));
	child->state = SOFT_ID_REQ_RECEIVED;
	child->unaccepted = true;
	child->hardware_address = child->cm->hardware_address;
	child->response_timeout = soft_cm_time(SOFT_CM_RESPONSE_CODE);
	child->remote = req->local;
	child->remote_guid = req->guid;
	child->remote_qp_num = req->qp_num;
	child->remote_ece = req->ece;
	child->send_psn = req->starting_psn;
	/* Chosen now, because the user may connect a queue pair before rdma_accept. */
	child->receive_psn = soft_fabric_starting_psn(child->cm->fabric);
	child->responder_resources = req->initiator_depth;
	child->initiator_depth = req->responder_resources;
	child->retry_count = req->retry_count;
	child->rnr_retry_count = req->rnr_retry_count;
	if (req->attribute == SOFT_CM_REQ)
		child->path_timeout = req->ack_timeout;
	soft_id_set_path_of_request(child, req);
	soft_half_open_enter(child);
	return child;
}

/*
 * Whether the listener accepts queue pairs of that type (cma_ib_check_req_qp_type of Linux). The kernel's ids of an
 * IP port space have the type of that space; in RDMA_PS_IB the user chooses it.
 */
static bool is_of_type(const struct soft_id *listener, const struct soft_cm_message *req)
{
	if (req->attribute == SOFT_CM_SIDR_REQ || soft_id_is_ud(listener))
		return req->attribute == SOFT_CM_SIDR_REQ && soft_id_is_ud(listener);
	if (listener->rdma.ps != RDMA_PS_IB)
		return true;
	switch (listener->rdma.qp_type) {
	case IBV_QPT_XRC_RECV:
		return req->transport == SOFT_TRANSPORT_EXTENDED;
	case IBV_QPT_UC:
		return req->transport == SOFT_TRANSPORT_UC;
	default:
		return req->transport == SOFT_TRANSPORT_RC;
	}
}

struct soft_id *soft_cm_request_child(struct soft_cm *cm, const struct soft_cm_message *req,
				      struct soft_id **listener)
{
	soft_mutex_expect(&cm->lock);
	*listener = soft_port_find_listener(cm, req->port_space,
					    (const struct sockaddr *)&req->destination);
	/* A listener of another type counts as none. */
	if (*listener && !is_of_type(*listener, req))
		*listener = NULL;
	/* With a full backlog the request is dropped, and the peer repeats it (rdma_listen(3)). */
	if (!*listener || (*listener)->requests >= (*listener)->backlog)
		return NULL;
	if (!soft_backlog_has_room(cm, req))
		return NULL;
	return create_child(*listener, req);
}

/*
 * On Linux the service id, which contains the port, selects the CM id of the listener. Only then does cma.c compare
 * addresses.
 */
bool soft_cm_is_served(struct soft_cm *cm, const struct soft_cm_message *request)
{
	soft_mutex_expect(&cm->lock);
	return request->served ||
	       soft_port_has_listener(cm, request->port_space, soft_address_port((const struct sockaddr *)&request->destination));
}

bool soft_cm_defer_refusal(struct soft_cm *cm, const struct soft_cm_message *request)
{
	struct soft_cm_message *copy;

	soft_mutex_expect(&cm->lock);
	/*
	 * Requests of other processes are not deferred, because their sender reads the list (soft_cm_relocate).
	 * Requests of other hosts come after the list was read.
	 */
	if (!cm->ipc || request->peer_process || request->between_hosts || request->looked ||
	    soft_cm_is_served(cm, request))
		return false;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return true; /* the request is lost, as on a wire */
	*copy = *request;
	copy->next = cm->deferred_requests;
	cm->deferred_requests = copy;
	return true;
}

void soft_cm_free_unreported(struct soft_id *child)
{
	soft_mutex_expect(&child->cm->lock);
	soft_cm_close(child);
	soft_id_free(child);
}

/* Free an unread request. Its peer repeats it; a peer that waits because of an MRA gets a REJ. */
static void drop_unread(struct soft_id *child)
{
	struct soft_cm_event *event = child->half_open_event;

	soft_cm_withdraw_event(event);
	free(event);
	if (child->mra_sent)
		soft_id_free(child);
	else
		soft_cm_free_unreported(child);
}

/* End an accepted request as if the last repeat of its REP was not answered. NULL: nothing happens. */
static void replace(struct soft_cm *cm, struct soft_id *oldest)
{
	if (!oldest)
		return;
	cm->half_open.replaced++;
	if (oldest->half_open_stage == SOFT_HALF_OPEN_UNREAD) {
		drop_unread(oldest);
		return;
	}
	if (oldest->state != SOFT_ID_REP_SENT) { /* its device was removed */
		soft_half_open_leave(oldest);
		return;
	}
	soft_cm_close(oldest);
	soft_cm_report(oldest, oldest, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
}

bool soft_cm_make_room(struct soft_cm *cm, const struct soft_cm_message *request)
{
	const struct sockaddr *destination = (const struct sockaddr *)&request->destination;
	enum soft_half_open_room room;
	struct soft_id *listener, *oldest;

	soft_mutex_expect(&cm->lock);
	/* A request without a listener replaces none. */
	listener = request->between_hosts ? soft_port_find_listener(cm, request->port_space, destination) : NULL;
	if (!listener)
		return true;
	cm->half_open.requests++;
	replace(cm, soft_half_open_unanswered(cm, request));
	if (listener->requests >= listener->backlog && !request->peer_process)
		replace(cm, soft_half_open_crowding(cm, listener, request));
	room = soft_half_open_room(cm, request);
	if (room == SOFT_HALF_OPEN_FREE)
		return true;
	/* A message of another process refers to that process, which may end while cm.lock is released. */
	oldest = room == SOFT_HALF_OPEN_REPLACE && !request->peer_process ? soft_half_open_oldest(cm) : NULL;
	if (!oldest) {
		cm->half_open.dropped++;
		return false;
	}
	replace(cm, oldest);
	return true;
}
