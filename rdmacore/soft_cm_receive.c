#include "soft_cm.h"

#include <errno.h>
#include <string.h>

#include "soft_clock.h"
#include "soft_fabric.h"

/* IBTA 12.6.6.1: service timeout in 4.096 us * 2^code; Linux offers 24, which is 68.7 s. */
#define MRA_SERVICE_TIMEOUT 24

/* A request that no id stands for: refused in the name of a communication id that does not exist. */
static void refuse(struct soft_cm *cm, const struct soft_cm_message *req, uint32_t reason)
{
	struct soft_cm_message rej = {
		.attribute = SOFT_CM_REJ,
		.remote = req->local,
		.reason = reason,
		.source = req->destination,
		.destination = req->source,
		.private_data_len = SOFT_REJ_PRIVATE_DATA,
	};

	soft_cm_send(cm, &rej);
}

/* The child that an earlier copy of this REQ made. */
static struct soft_id *find_child(struct soft_cm *cm, const struct soft_cm_message *req)
{
	struct soft_id *active = soft_table_find(&cm->ids, req->local, NULL);

	/* Both ends are in this process: the active id knows its peer once the child answered. */
	return active && active->remote ? soft_table_find(&cm->ids, active->remote, NULL) : NULL;
}

static struct soft_id *create_child(struct soft_id *listener, const struct soft_cm_message *req)
{
	struct soft_id *child;

	child = soft_id_alloc(listener->cm, (struct soft_event_channel *)listener->rdma.channel,
			      listener->rdma.context, listener->rdma.ps);
	if (!child)
		return NULL;
	if (soft_id_bind_device(child)) {
		soft_id_free(child);
		return NULL;
	}
	child->rdma.qp_type = listener->rdma.qp_type;
	memcpy(&child->rdma.route.addr.src_storage, &req->destination, sizeof(req->destination));
	memcpy(&child->rdma.route.addr.dst_storage, &req->source, sizeof(req->source));
	child->state = SOFT_ID_REQ_RECEIVED;
	child->remote = req->local;
	child->remote_qp_num = req->qp_num;
	child->send_psn = req->starting_psn;
	child->responder_resources = req->initiator_depth;
	child->initiator_depth = req->responder_resources;
	child->retry_count = req->retry_count;
	child->rnr_retry_count = req->rnr_retry_count;
	child->ack_timeout = req->ack_timeout;
	return child;
}

static void receive_req(struct soft_cm *cm, const struct soft_cm_message *req)
{
	struct soft_id *child = find_child(cm, req);
	struct soft_id *listener;
	struct soft_cm_message mra;

	if (child) {
		if (child->state == SOFT_ID_REP_SENT)
			soft_cm_send(cm, &child->request);
		return;
	}
	listener = soft_port_find_listener(cm, req->port_space,
					   (const struct sockaddr *)&req->destination);
	if (!listener) {
		refuse(cm, req, SOFT_REJ_INVALID_SERVICE_ID);
		return;
	}
	/* A full backlog is silence, so that the peer tries again (rdma_listen(3)). */
	if (listener->requests >= listener->backlog)
		return;
	child = create_child(listener, req);
	if (!child)
		return;
	if (!soft_cm_report(listener, child, RDMA_CM_EVENT_CONNECT_REQUEST, 0, req)) {
		child->state = SOFT_ID_CLOSED;
		soft_id_free(child);
		return;
	}
	listener->requests++;
	/* The user may take long over it: ask for time (IBTA 12.9.8.1). */
	soft_cm_prepare(child, &mra, SOFT_CM_MRA);
	mra.service_timeout = MRA_SERVICE_TIMEOUT;
	soft_cm_send(cm, &mra);
}

static void receive_mra(struct soft_id *id, const struct soft_cm_message *mra)
{
	if (id->state != SOFT_ID_REQ_SENT)
		return;
	id->remote = mra->local;
	soft_timer_arm(&id->cm->fabric->timers, &id->timer, UINT64_C(4096) << mra->service_timeout);
}

static void receive_rep(struct soft_id *id, const struct soft_cm_message *rep)
{
	if (id->state == SOFT_ID_ESTABLISHED) { /* our RTU was lost */
		soft_cm_send_plain(id, SOFT_CM_RTU);
		return;
	}
	if (id->state != SOFT_ID_REQ_SENT)
		return;
	/* The passive side has the last word on depths; the roles change places on the way. */
	id->remote = rep->local;
	id->remote_qp_num = rep->qp_num;
	id->send_psn = rep->starting_psn;
	id->responder_resources = rep->initiator_depth;
	id->initiator_depth = rep->responder_resources;
	id->rnr_retry_count = rep->rnr_retry_count;
	if (!soft_cm_report(id, id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, rep))
		return;
	id->state = SOFT_ID_REP_RECEIVED;
	soft_cm_answered(id);
}

static void receive_rtu(struct soft_id *id)
{
	if (id->state != SOFT_ID_REP_SENT ||
	    !soft_cm_report(id, id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL))
		return;
	id->state = SOFT_ID_ESTABLISHED;
	soft_cm_answered(id);
}

static void receive_rej(struct soft_id *id, const struct soft_cm_message *rej)
{
	if (id->state == SOFT_ID_REQ_RECEIVED) {
		/* Not accepted yet: Linux tells the user nothing; a later accept fails. */
		id->state = SOFT_ID_CLOSED;
		return;
	}
	if (id->state != SOFT_ID_REQ_SENT && id->state != SOFT_ID_REP_SENT &&
	    id->state != SOFT_ID_REP_RECEIVED)
		return;
	if (!soft_cm_report(id, id, RDMA_CM_EVENT_REJECTED, (int)rej->reason, rej))
		return;
	id->state = SOFT_ID_CLOSED;
	soft_cm_answered(id);
}

static void receive_dreq(struct soft_id *id)
{
	switch (id->state) {
	case SOFT_ID_REP_SENT:
	case SOFT_ID_ESTABLISHED:
	case SOFT_ID_DREQ_SENT:
		/* The answer is the user's rdma_disconnect (IBTA 12.9.8.3.1, and Linux). */
		if (!soft_cm_report(id, id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL))
			return;
		soft_cm_answered(id);
		id->state = SOFT_ID_DREQ_RECEIVED;
		break;
	case SOFT_ID_TIMEWAIT:
		soft_cm_send_plain(id, SOFT_CM_DREP); /* our answer to the first one was lost */
		break;
	default:
		break;
	}
}

static void receive_drep(struct soft_id *id)
{
	if (id->state != SOFT_ID_DREQ_SENT ||
	    !soft_cm_report(id, id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL))
		return;
	soft_cm_enter_timewait(id);
}

void soft_cm_receive(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_id *id;

	if (message->attribute == SOFT_CM_REQ) {
		receive_req(cm, message);
		return;
	}
	id = soft_table_find(&cm->ids, message->remote, NULL);
	if (!id || (id->remote && message->local && id->remote != message->local)) {
		/* A DREQ for an unknown connection is answered, so that its sender can end (IBTA
		 * 12.9.8.3.1); anything else for one is late and of no use. */
		if (message->attribute == SOFT_CM_DREQ) {
			struct soft_cm_message drep = {
				.attribute = SOFT_CM_DREP,
				.local = message->remote,
				.remote = message->local,
				.source = message->destination,
				.destination = message->source,
			};

			soft_cm_send(cm, &drep);
		}
		return;
	}
	switch (message->attribute) {
	case SOFT_CM_REQ:
		break;
	case SOFT_CM_MRA:
		receive_mra(id, message);
		break;
	case SOFT_CM_REP:
		receive_rep(id, message);
		break;
	case SOFT_CM_RTU:
		receive_rtu(id);
		break;
	case SOFT_CM_REJ:
		receive_rej(id, message);
		break;
	case SOFT_CM_DREQ:
		receive_dreq(id);
		break;
	case SOFT_CM_DREP:
		receive_drep(id);
		break;
	}
}
