#include "soft/cm/calls.h"

#include <string.h>

#include "soft/base/fabric.h"
#include "soft/objects/device.h"

void soft_cm_prepare(struct soft_id *id, struct soft_cm_message *message,
		     enum soft_cm_attribute attribute)
{
	soft_mutex_expect(&id->cm->lock);
	*message = (struct soft_cm_message){
		.attribute = attribute,
		.peer_process = id->peer_process,
		.between_hosts = id->between_hosts,
		.transaction = id->transaction,
		.local = id->local,
		.remote = id->remote,
		.guid = id->cm->device->guid,
		.port_space = id->rdma.ps,
		.source = id->addr.src_storage,
		.destination = id->addr.dst_storage,
	};
}

void soft_cm_set_private_data(struct soft_cm_message *message, const void *data, uint8_t length,
			      uint8_t field)
{
	if (length)
		memcpy(message->private_data, data, length);
	message->private_data_len = field;
}

void soft_cm_send(struct soft_cm *cm, const struct soft_cm_message *message)
{
	soft_mutex_expect(&cm->lock);
	if (soft_faults_active(&cm->fabric->faults))
		soft_cm_carry(cm, message);
	else
		soft_cm_deliver(cm, message);
}

void soft_cm_send_request(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	id->retries_left = SOFT_CM_RETRIES;
	id->unlistened_retries = 0;
	id->request_timeout = id->response_timeout;
	soft_cm_repeat_request(id);
}

/*
 * Linux waits equally long before each repeat (ib_send_cm_req in core/cm.c, retry_send in core/mad.c), and so does
 * soft with a virtual clock. With a real clock each repeat waits up to a sixteenth longer. Otherwise thousands of
 * requests that were dropped together would be repeated together and dropped again.
 */
static uint64_t time_to_repeat(struct soft_id *id)
{
	struct soft_fabric *fabric = id->cm->fabric;

	if (soft_clock_is_virtual(&fabric->clock))
		return id->request_timeout;
	return id->request_timeout + soft_fabric_random(fabric) % (id->request_timeout / 16 + 1);
}

static void arm(struct soft_id *id)
{
	/* Without the timer thread the request is sent once, and its loss goes unnoticed. */
	soft_timer_arm(&id->cm->fabric->timers, &id->timer, time_to_repeat(id));
}

static void send_now(struct soft_id *id)
{
	id->request.peer_process = id->peer_process;
	soft_cm_send(id->cm, &id->request);
	arm(id);
}

/* Whether the request is unanswered, so that another process may answer it. */
static bool may_relocate(const struct soft_id *id)
{
	return (id->state == SOFT_ID_REQ_SENT && !id->remote) || id->state == SOFT_ID_SIDR_SENT;
}

void soft_cm_repeat_request(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	if (may_relocate(id) && !soft_cm_locate(id))
		arm(id); /* as if the request was lost */
	else
		send_now(id);
}

bool soft_cm_relocate(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	if (!id->peer_process || id->peer_process_fresh)
		return false;
	if (soft_cm_locate_anew(id)) {
		id->peer_process_fresh = true;
		send_now(id);
	} else {
		arm(id);
	}
	return true;
}

void soft_cm_answered(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	soft_timer_cancel(&id->cm->fabric->timers, &id->timer);
}

void soft_cm_close(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	soft_cm_answered(id);
	soft_peers_forget(id);
	soft_half_open_leave(id);
	id->state = SOFT_ID_CLOSED;
}

void soft_cm_reject(struct soft_id *id, uint32_t reason, const void *private_data, uint8_t length)
{
	struct soft_cm_message message;
	bool accepted = id->state == SOFT_ID_REP_SENT;

	soft_mutex_expect(&id->cm->lock);
	soft_cm_prepare(id, &message, SOFT_CM_REJ);
	message.answered = id->state == SOFT_ID_REQ_RECEIVED ? SOFT_ANSWERED_REQ :
			   id->state == SOFT_ID_REP_RECEIVED ? SOFT_ANSWERED_REP :
							       SOFT_ANSWERED_NONE;
	message.reason = reason;
	soft_cm_set_private_data(&message, private_data, length, SOFT_REJ_PRIVATE_DATA);
	soft_cm_send(id->cm, &message);
	/* After a REP the peer may be connected, so the id stays in TIMEWAIT, as on Linux. */
	if (accepted)
		soft_cm_enter_timewait(id);
	else
		soft_cm_close(id);
}

/* Up to four times as long by legal choice: the time is a lower bound. */
static uint64_t timewait(struct soft_id *id)
{
	uint64_t time = soft_cm_time(id->path_timeout);
	uint64_t drawn = soft_legal_choose(&id->cm->fabric->legal.calls, CORE_LEGAL_TIMEWAIT_LONG);

	return drawn ? time + soft_legal_amount(drawn, 3 * time) : time;
}

void soft_cm_enter_timewait(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	soft_peers_forget(id);
	soft_half_open_leave(id);
	id->state = SOFT_ID_TIMEWAIT;
	soft_timer_arm(&id->cm->fabric->timers, &id->timer, timewait(id));
}

void soft_cm_send_dreq(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	soft_cm_prepare(id, &id->request, SOFT_CM_DREQ);
	id->request.qp_num = id->remote_qp_num;
	id->state = SOFT_ID_DREQ_SENT;
	soft_cm_send_request(id);
}

void soft_cm_send_plain(struct soft_id *id, enum soft_cm_attribute attribute)
{
	struct soft_cm_message message;

	soft_mutex_expect(&id->cm->lock);
	soft_cm_prepare(id, &message, attribute);
	soft_cm_send(id->cm, &message);
}
