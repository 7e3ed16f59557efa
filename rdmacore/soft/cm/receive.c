#include "soft/cm/calls.h"

#include "soft/base/fabric.h"

/* IBTA 12.6.6.1: service timeout in 4.096 us * 2^code; Linux sends 24. */
#define MRA_SERVICE_TIMEOUT 24
#define RTU_LATE_MAX (5 * SOFT_MILLISECOND) /* by legal choice */

/* Send a REJ of a REQ, or of a REP from a sender that knows the id that it is for. */
static void refuse(struct soft_cm *cm, const struct soft_cm_message *refused, uint32_t reason)
{
	struct soft_cm_message rej = {
		.attribute = SOFT_CM_REJ,
		.peer_process = refused->peer_process,
		.between_hosts = refused->between_hosts,
		.transaction = refused->transaction,
		.local = refused->remote,
		.remote = refused->local,
		.answered = refused->attribute == SOFT_CM_REP ? SOFT_ANSWERED_REP : SOFT_ANSWERED_REQ,
		.reason = reason,
		.source = refused->destination,
		.destination = refused->source,
		.private_data_len = SOFT_REJ_PRIVATE_DATA,
	};

	soft_cm_send(cm, &rej);
}

static void send_mra(struct soft_id *id)
{
	struct soft_cm_message mra;

	id->mra_sent = true;
	soft_cm_prepare(id, &mra, SOFT_CM_MRA);
	mra.answered = id->state == SOFT_ID_REQ_RECEIVED ? SOFT_ANSWERED_REQ : SOFT_ANSWERED_REP;
	mra.service_timeout = MRA_SERVICE_TIMEOUT;
	soft_cm_send(id->cm, &mra);
}

/*
 * The peer uses the queue pair of a connection for a new one. So the old connection is stale (IBTA 12.4.1): reject the
 * REQ and end it.
 */
static void end_stale(struct soft_cm *cm, const struct soft_cm_message *message,
		      struct soft_id *stale)
{
	refuse(cm, message, SOFT_REJ_STALE_CONN);
	if (stale->state == SOFT_ID_ESTABLISHED)
		soft_cm_send_dreq(stale);
}

static void receive_req(struct soft_cm *cm, const struct soft_cm_message *req)
{
	struct soft_id *child = soft_peers_find_id(cm, req);
	struct soft_id *listener, *stale;

	if (child) { /* a repeat */
		if (child->state == SOFT_ID_REQ_RECEIVED && soft_half_open_may_wait(child))
			send_mra(child); /* the first MRA was lost */
		return;
	}
	if (!soft_cm_make_room(cm, req))
		return;
	child = soft_cm_request_child(cm, req, &listener);
	if (!listener && soft_cm_defer_refusal(cm, req))
		return;
	if (!listener)
		refuse(cm, req, soft_cm_is_served(cm, req) ? SOFT_REJ_CONSUMER_DEFINED :
							     SOFT_REJ_INVALID_SERVICE_ID);
	if (!child)
		return;
	soft_peers_register_id(child);
	stale = soft_peers_register_qp(child);
	if (stale)
		end_stale(cm, req, stale);
	if (stale || !soft_cm_report(listener, child, RDMA_CM_EVENT_CONNECT_REQUEST, 0, req)) {
		soft_cm_free_unreported(child);
		return;
	}
	/* The user may take long to answer: ask the peer to wait (IBTA 12.9.8.1). */
	if (soft_half_open_may_wait(child))
		send_mra(child);
}

static void receive_mra(struct soft_id *id, const struct soft_cm_message *mra)
{
	if (id->state == SOFT_ID_REQ_SENT)
		id->remote = mra->local;
	else if (id->state != SOFT_ID_REP_SENT)
		return;
	else
		id->rep_answered = true;
	id->request_timeout =
		soft_cm_time(mra->service_timeout) + soft_cm_time(id->path_timeout);
	soft_timer_arm(&id->cm->fabric->timers, &id->timer, id->request_timeout);
}

static void take_rep(struct soft_id *id, const struct soft_cm_message *rep)
{
	/* The passive side decides the depths. Each end responds to what the other end initiates. */
	id->remote_ece = rep->ece;
	id->send_psn = rep->starting_psn;
	id->responder_resources = rep->initiator_depth;
	id->initiator_depth = rep->responder_resources;
	id->rnr_retry_count = rep->rnr_retry_count;
}

static void receive_rep(struct soft_id *id, const struct soft_cm_message *rep)
{
	struct soft_id *stale;

	if (id->state == SOFT_ID_ESTABLISHED) { /* the RTU was lost */
		soft_cm_send_plain(id, SOFT_CM_RTU);
		return;
	}
	if (id->state == SOFT_ID_REP_RECEIVED) { /* the MRA was lost */
		send_mra(id);
		return;
	}
	if (id->state != SOFT_ID_REQ_SENT)
		return;
	id->remote = rep->local;
	id->remote_guid = rep->guid;
	id->remote_qp_num = rep->qp_num;
	if (soft_peers_register_id(id))
		return;
	stale = soft_peers_register_qp(id);
	if (stale) {
		soft_peers_forget(id);
		end_stale(id->cm, rep, stale);
		return;
	}
	take_rep(id, rep);
	if (!soft_cm_report(id, id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, rep)) {
		soft_peers_forget(id);
		return;
	}
	id->state = SOFT_ID_REP_RECEIVED;
	soft_cm_answered(id);
	send_mra(id);
}

static void receive_rtu(struct soft_id *id, const struct soft_cm_message *rtu)
{
	uint64_t late = id->rtu_late;

	id->rtu_late = 0;
	if (id->state == SOFT_ID_REP_SENT && late) {
		soft_cm_hold(id->cm, rtu, soft_legal_amount(late, RTU_LATE_MAX));
		return;
	}
	if (id->state != SOFT_ID_REP_SENT ||
	    !soft_cm_report(id, id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL))
		return;
	id->state = SOFT_ID_ESTABLISHED;
	soft_half_open_leave(id);
	soft_cm_answered(id);
}

static void receive_rej(struct soft_id *id, const struct soft_cm_message *rej)
{
	bool lingers = rej->reason == SOFT_REJ_STALE_CONN;

	if (id->state == SOFT_ID_REQ_SENT && !id->remote && soft_cm_relocate(id))
		return;
	switch (id->state) {
	case SOFT_ID_REQ_RECEIVED:
		/* Not accepted yet: Linux reports nothing, and a later accept fails. */
		soft_cm_close(id);
		return;
	case SOFT_ID_REQ_SENT:
	case SOFT_ID_REP_SENT:
		break;
	case SOFT_ID_REP_RECEIVED:
	case SOFT_ID_ESTABLISHED:
	case SOFT_ID_DREQ_SENT:
		lingers = true;
		break;
	default:
		return;
	}
	if (!id->disconnected &&
	    !soft_cm_report(id, id, RDMA_CM_EVENT_REJECTED, (int)rej->reason, rej))
		return;
	if (lingers)
		soft_cm_enter_timewait(id);
	else
		soft_cm_close(id);
}

static void receive_dreq(struct soft_id *id, const struct soft_cm_message *dreq)
{
	if (dreq->qp_num != id->local_qp_num)
		return;
	switch (id->state) {
	case SOFT_ID_REP_SENT:
	case SOFT_ID_ESTABLISHED:
	case SOFT_ID_DREQ_SENT:
		/* The user answers by rdma_disconnect (IBTA 12.9.8.3.1, and Linux). */
		if (!soft_cm_report_disconnected(id, 0))
			return;
		soft_cm_answered(id);
		soft_half_open_leave(id);
		id->state = SOFT_ID_DREQ_RECEIVED;
		break;
	case SOFT_ID_TIMEWAIT:
		soft_cm_send_plain(id, SOFT_CM_DREP); /* the first DREP was lost */
		break;
	default:
		break;
	}
}

static void receive_drep(struct soft_id *id)
{
	if ((id->state != SOFT_ID_DREQ_SENT && id->state != SOFT_ID_DREQ_RECEIVED) ||
	    !soft_cm_report_disconnected(id, 0))
		return;
	soft_cm_enter_timewait(id);
}

/* Whether the message comes from the process or host of the id's peer. */
static bool may_speak(const struct soft_id *id, const struct soft_cm_message *message)
{
	if (id->between_hosts != message->between_hosts || id->peer_process != message->peer_process)
		return false;
	return !message->between_hosts ||
	       soft_address_is_same(&id->addr.dst_addr, (const struct sockaddr *)&message->source);
}

/* The sender of a REJ (timeout) may not know the id's communication id. */
static struct soft_id *find_receiver(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_id *id;

	if (message->attribute == SOFT_CM_REJ && message->reason == SOFT_REJ_TIMEOUT)
		return soft_peers_find_id(cm, message);
	id = soft_table_find(&cm->ids, message->remote, NULL);
	if (id && !may_speak(id, message))
		return NULL;
	/*
	 * From the REP on the remote id is known, and a message with another one is dropped (cm_acquire_id of Linux).
	 */
	if (id && id->state != SOFT_ID_REQ_SENT && id->remote && id->remote != message->local)
		return NULL;
	return id;
}

/*
 * No id has the connection. A DREQ is answered, so that its sender can end (IBTA 12.9.8.3.1). Other messages are
 * late.
 */
static void receive_lost(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_cm_message drep = {
		.attribute = SOFT_CM_DREP,
		.peer_process = message->peer_process,
		.between_hosts = message->between_hosts,
		.transaction = message->transaction,
		.local = message->remote,
		.remote = message->local,
		.source = message->destination,
		.destination = message->source,
	};

	if (message->attribute == SOFT_CM_DREQ && (!message->between_hosts || soft_gate_may_answer(cm, message)))
		soft_cm_send(cm, &drep);
}

void soft_cm_receive(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_id *id;

	soft_mutex_expect(&cm->lock);
	if (message->attribute == SOFT_CM_REQ) {
		receive_req(cm, message);
		return;
	}
	if (message->attribute == SOFT_CM_SIDR_REQ) {
		soft_sidr_receive_request(cm, message);
		return;
	}
	id = find_receiver(cm, message);
	if (!id) {
		receive_lost(cm, message);
		return;
	}
	switch (message->attribute) {
	case SOFT_CM_MRA:
		receive_mra(id, message);
		break;
	case SOFT_CM_REP:
		receive_rep(id, message);
		break;
	case SOFT_CM_RTU:
		receive_rtu(id, message);
		break;
	case SOFT_CM_REJ:
		receive_rej(id, message);
		break;
	case SOFT_CM_DREQ:
		receive_dreq(id, message);
		break;
	case SOFT_CM_DREP:
		receive_drep(id);
		break;
	case SOFT_CM_SIDR_REP:
		soft_sidr_receive_reply(id, message);
		break;
	case SOFT_CM_REQ:
	case SOFT_CM_SIDR_REQ:
	case SOFT_CM_PATH_RECORD:
	case SOFT_CM_ARP:
		break;
	}
}
