/* Messages of other processes arrive, and other processes end. */
#include "soft/cm/calls.h"

#include "soft/base/fabric.h"
#include "soft/base/lock.h"
#include "soft/ipc/ipc.h"

static struct soft_cm *cm_of(struct soft_ipc *ipc)
{
	return soft_container_of(ipc->lock, struct soft_cm, lock);
}

static bool is_request(const struct soft_cm_message *message)
{
	return message->attribute == SOFT_CM_REQ || message->attribute == SOFT_CM_SIDR_REQ;
}

/*
 * Any process of this machine may have sent the message. So both addresses must be the machine's, and only a client
 * sends requests. A message that another process forwards comes from another host. Asking the kernel about each of
 * these addresses again would take longer than all other checks.
 */
static bool is_allowed(struct soft_cm *cm, const struct soft_cm_message *message)
{
	if (message->between_hosts)
		return soft_address_is_elsewhere(cm->device, (const struct sockaddr *)&message->source) &&
		       soft_address_was_local(cm->device, (const struct sockaddr *)&message->destination);
	return soft_address_was_local(cm->device, (const struct sockaddr *)&message->source) &&
	       soft_address_was_local(cm->device, (const struct sockaddr *)&message->destination) &&
	       !(message->peer_process->outgoing && is_request(message));
}

void soft_cm_arrived(struct soft_cm *cm, const struct soft_cm_message *message)
{
	soft_mutex_expect(&cm->lock);
	if (soft_faults_active(&cm->fabric->faults))
		soft_cm_carry(cm, message);
	else
		soft_cm_receive(cm, message);
}

void soft_cm_arrive(struct soft_ipc *ipc, struct soft_cm_message *message)
{
	struct soft_cm *cm = cm_of(ipc);

	soft_mutex_expect(&cm->lock);
	if (!is_allowed(cm, message))
		ipc->counts.invalid++;
	else if (!message->between_hosts || !soft_gate_keeps(cm, message))
		soft_cm_arrived(cm, message);
}

/*
 * The message that the kernel of a dead process would send to id (cm_destroy_id of Linux, by the state of the peer);
 * 0: none.
 */
static enum soft_cm_attribute last_message(const struct soft_id *id, struct soft_cm_message *last)
{
	switch (id->state) {
	case SOFT_ID_REQ_RECEIVED: /* the peer is in REQ_SENT or MRA_REQ_RCVD */
		last->reason = SOFT_REJ_TIMEOUT;
		return SOFT_CM_REJ;
	case SOFT_ID_REQ_SENT: /* the peer is in REQ_RCVD or MRA_REQ_SENT */
	case SOFT_ID_REP_SENT: /* REP_RCVD or MRA_REP_SENT */
	case SOFT_ID_REP_RECEIVED: /* REP_SENT or MRA_REP_RCVD */
		last->reason = SOFT_REJ_CONSUMER_DEFINED;
		return SOFT_CM_REJ;
	case SOFT_ID_ESTABLISHED: /* ESTABLISHED */
		last->qp_num = id->local_qp_num;
		return SOFT_CM_DREQ;
	case SOFT_ID_DREQ_SENT: /* DREQ_RCVD */
		return SOFT_CM_DREP;
	case SOFT_ID_SIDR_SENT: /* SIDR_REQ_RCVD */
		last->reason = SOFT_SIDR_REJECT;
		return SOFT_CM_SIDR_REP;
	default:
		return 0;
	}
}

static void peer_died(struct soft_cm *cm, struct soft_id *id)
{
	struct soft_cm_message last = {
		.peer_process = id->peer_process,
		.arrived = true,
		.local = id->remote,
		.remote = id->local,
		.guid = id->remote_guid,
		.source = id->addr.dst_storage,
		.destination = id->addr.src_storage,
	};
	bool unanswered = (id->state == SOFT_ID_REQ_SENT && !id->remote) || id->state == SOFT_ID_SIDR_SENT;

	/* The process may have ended before the request was sent. */
	if (unanswered && soft_cm_relocate(id))
		return;
	last.attribute = last_message(id, &last);
	if (last.attribute)
		soft_cm_arrived(cm, &last);
}

void soft_cm_peer_died(struct soft_ipc *ipc, struct soft_ipc_peer *peer)
{
	struct soft_cm *cm = cm_of(ipc);
	uint32_t slot = 0;
	struct soft_id *id;

	soft_mutex_expect(&cm->lock);
	while ((id = soft_table_next(&cm->ids, &slot, NULL))) {
		if (id->peer_process == peer)
			peer_died(cm, id);
		slot++;
	}
}

void soft_cm_ready(struct soft_source *source, uint32_t events)
{
	struct soft_ipc *ipc = soft_container_of(source, struct soft_ipc, source);
	struct soft_cm *cm = cm_of(ipc);

	(void)events;
	soft_mutex_lock(&cm->lock);
	soft_ipc_progress(ipc);
	soft_cm_unlock(cm);
}
