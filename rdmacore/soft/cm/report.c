#include "soft/cm/calls.h"

#include <stdlib.h>
#include <string.h>

#include "provider/newer.h"
#include "soft/base/lock.h"
#include "soft/ipc/ipc.h"

static struct soft_event_channel *channel_of(struct soft_id *id)
{
	return (struct soft_event_channel *)id->rdma.channel;
}

/* The parameters of a SIDR REQ or SIDR REP. */
static void set_datagram_param(struct soft_cm_event *event, const struct soft_cm_message *message)
{
	struct rdma_ud_param *ud = &event->rdma.param.ud;

	memcpy(event->private_data, message->private_data, message->private_data_len);
	ud->private_data = event->private_data;
	ud->private_data_len = message->private_data_len;
	if (message->attribute != SOFT_CM_SIDR_REP || message->reason != SOFT_SIDR_SUCCESS)
		return;
	soft_id_ah_attr(soft_id(event->rdma.id), &ud->ah_attr);
	ud->qp_num = message->qp_num;
	ud->qkey = message->qkey;
}

/* The parameters of other messages, from the receiver's view: this end responds to what the peer initiates. */
static void set_param(struct soft_cm_event *event, const struct soft_cm_message *message)
{
	struct rdma_conn_param *conn = &event->rdma.param.conn;

	memcpy(event->private_data, message->private_data, message->private_data_len);
	conn->private_data = event->private_data;
	conn->private_data_len = message->private_data_len;
	conn->responder_resources = message->initiator_depth;
	conn->initiator_depth = message->responder_resources;
	conn->flow_control = message->flow_control;
	conn->retry_count = message->retry_count;
	conn->rnr_retry_count = message->rnr_retry_count;
	conn->srq = message->srq;
	conn->qp_num = message->qp_num;
}

static void set_event_param(struct soft_cm_event *event, const struct soft_cm_message *message)
{
	if (message->attribute == SOFT_CM_SIDR_REQ || message->attribute == SOFT_CM_SIDR_REP)
		set_datagram_param(event, message);
	else
		set_param(event, message);
}

/* Count unread requests, of the listener and of the process or host that sent them. */
static void count_request(struct soft_cm_event *event, int more)
{
	if (event->rdma.event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	if (more > 0)
		soft_half_open_reported(soft_id(event->rdma.id), event);
	else
		soft_half_open_read(soft_id(event->rdma.id));
	event->owner->requests += more;
	soft_backlog_count(soft_id(event->rdma.id), more);
}

/* Queue the event for owner's user. */
static void push(struct soft_id *owner, struct soft_cm_event *event)
{
	*owner->last_unread = event;
	owner->last_unread = &event->next;
	count_request(event, 1);
	soft_event_queue_push(&channel_of(owner)->queue, &event->node);
}

static struct soft_cm_event *new_event(struct soft_id *owner, struct soft_id *id, int type, int status)
{
	/* The channel may be destroyed already (soft_id_leave_channel). */
	struct soft_cm_event *event = owner->rdma.channel ? calloc(1, sizeof(*event)) : NULL;

	if (!event)
		return NULL;
	event->owner = owner;
	event->rdma.id = &id->rdma;
	event->rdma.listen_id = owner == id ? NULL : &owner->rdma;
	event->rdma.event = (enum rdma_cm_event_type)type;
	event->rdma.status = status;
	return event;
}

bool soft_cm_report(struct soft_id *owner, struct soft_id *id, enum rdma_cm_event_type type,
		    int status, const struct soft_cm_message *message)
{
	struct soft_cm_event *event = new_event(owner, id, (int)type, status);

	soft_mutex_expect(&owner->cm->lock);
	if (!event)
		return false;
	if (message)
		set_event_param(event, message);
	push(owner, event);
	return true;
}

bool soft_cm_report_multicast(struct soft_id *id, int status, const struct rdma_ud_param *param)
{
	struct soft_cm_event *event = new_event(
		id, id, status ? RDMA_CM_EVENT_MULTICAST_ERROR : RDMA_CM_EVENT_MULTICAST_JOIN, status);

	soft_mutex_expect(&id->cm->lock);
	if (!event)
		return false;
	event->rdma.param.ud = *param;
	push(id, event);
	return true;
}

bool soft_cm_report_user(struct soft_id *id, int status, uint64_t argument)
{
	struct soft_cm_event *event = new_event(id, id, CORE_CM_EVENT_USER, status);

	soft_mutex_expect(&id->cm->lock);
	if (!event)
		return false;
	memcpy(&event->rdma.param, &argument, sizeof(argument)); /* param.arg */
	push(id, event);
	return true;
}

bool soft_cm_report_disconnected(struct soft_id *id, int status)
{
	soft_mutex_expect(&id->cm->lock);
	if (id->disconnected)
		return true;
	id->disconnected = soft_cm_report(id, id, RDMA_CM_EVENT_DISCONNECTED, status, NULL);
	return id->disconnected;
}

static void unlink_unread(struct soft_cm_event *event)
{
	struct soft_cm_event **link = &event->owner->unread;

	while (*link != event)
		link = &(*link)->next;
	*link = event->next;
	if (!event->next)
		event->owner->last_unread = link;
	count_request(event, -1);
}

struct soft_cm_event *soft_cm_take_event(struct soft_event_channel *channel)
{
	struct soft_event_node *node = soft_event_queue_try_pop(&channel->queue);
	struct soft_cm_event *event;

	if (!node)
		return NULL;
	event = soft_container_of(node, struct soft_cm_event, node);
	unlink_unread(event);
	return event;
}

void soft_cm_withdraw_event(struct soft_cm_event *event)
{
	soft_mutex_expect(&event->owner->cm->lock);
	unlink_unread(event);
	soft_event_queue_remove(&channel_of(event->owner)->queue, &event->node);
}

struct soft_cm_event *soft_cm_take_unread(struct soft_id *owner)
{
	struct soft_cm_event *event = owner->unread;

	soft_mutex_expect(&owner->cm->lock);
	if (event)
		soft_cm_withdraw_event(event);
	return event;
}

void soft_cm_forget_multicast(struct soft_id *id, const void *private_data)
{
	struct soft_cm_event *event, *next;

	soft_mutex_expect(&id->cm->lock);
	for (event = id->unread; event; event = next) {
		next = event->next;
		if ((event->rdma.event != RDMA_CM_EVENT_MULTICAST_JOIN &&
		     event->rdma.event != RDMA_CM_EVENT_MULTICAST_ERROR) ||
		    event->rdma.param.ud.private_data != private_data)
			continue;
		unlink_unread(event);
		soft_event_queue_remove(&channel_of(id)->queue, &event->node);
		free(event);
	}
}

void soft_cm_move_unread(struct soft_id *owner, struct soft_event_channel *to)
{
	soft_mutex_expect(&owner->cm->lock);
	for (struct soft_cm_event *event = owner->unread; event; event = event->next) {
		soft_event_queue_remove(&channel_of(owner)->queue, &event->node);
		soft_event_queue_push(&to->queue, &event->node);
	}
}
