#include "soft_cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft_context.h"
#include "soft_fabric.h"
#include "soft_join.h"
#include "soft_qp.h"

struct soft_event_channel *soft_event_channel_create(struct soft_cm *cm)
{
	struct soft_event_channel *channel = calloc(1, sizeof(*channel));
	int result;

	if (!channel)
		return NULL;
	result = soft_event_queue_init(&channel->queue);
	if (result) {
		free(channel);
		errno = -result;
		return NULL;
	}
	channel->rdma.fd = channel->queue.fd;
	channel->cm = cm;
	return channel;
}

struct rdma_event_channel *soft_create_event_channel(void)
{
	struct soft_event_channel *channel = soft_event_channel_create(soft_cm_current());

	return channel ? &channel->rdma : NULL;
}

/*
 * Ids that are still on it lose their connections, as when the descriptor is closed on Linux.  All that
 * can be done with them after that is to destroy them.
 */
void soft_destroy_event_channel(struct rdma_event_channel *rdma_channel)
{
	struct soft_event_channel *channel = (struct soft_event_channel *)rdma_channel;
	struct soft_id *id;

	if (!channel)
		return;
	pthread_mutex_lock(&channel->cm->lock);
	while ((id = channel->ids)) {
		soft_id_leave(id);
		soft_port_release(id);
		soft_cm_drop_unread(id);
		soft_id_set_channel(id, NULL);
	}
	soft_cm_unlock(channel->cm);
	soft_event_queue_destroy(&channel->queue);
	free(channel);
}

static struct soft_event_channel *channel_of(struct soft_id *id)
{
	return (struct soft_event_channel *)id->rdma.channel;
}

/* Where a datagram is to go; the view of one side, as there is no connection. */
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

/* The event's connection parameters are the receiver's view: what the peer starts, we respond to. */
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

/* owner's newest event, to be read. */
static void push(struct soft_id *owner, struct soft_cm_event *event)
{
	*owner->last_unread = event;
	owner->last_unread = &event->next;
	if (event->rdma.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		owner->requests++;
	soft_event_queue_push(&channel_of(owner)->queue, &event->node);
}

static struct soft_cm_event *new_event(struct soft_id *owner, struct soft_id *id, int type, int status)
{
	struct soft_cm_event *event = calloc(1, sizeof(*event));

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

	if (!event)
		return false;
	event->rdma.param.ud = *param;
	push(id, event);
	return true;
}

static void unlink_unread(struct soft_cm_event *event)
{
	struct soft_cm_event **link = &event->owner->unread;

	while (*link != event)
		link = &(*link)->next;
	*link = event->next;
	if (!event->next)
		event->owner->last_unread = link;
	if (event->rdma.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		event->owner->requests--;
}

void soft_cm_drop_unread(struct soft_id *owner)
{
	struct soft_cm_event *event;

	while ((event = owner->unread)) {
		unlink_unread(event);
		soft_event_queue_remove(&channel_of(owner)->queue, &event->node);
		if (event->rdma.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			soft_id_free(soft_id(event->rdma.id));
		free(event);
	}
}

void soft_cm_move_unread(struct soft_id *owner, struct soft_event_channel *to)
{
	for (struct soft_cm_event *event = owner->unread; event; event = event->next) {
		soft_event_queue_remove(&channel_of(owner)->queue, &event->node);
		soft_event_queue_push(&to->queue, &event->node);
	}
}

/* REP has arrived: with a queue pair of its own the id becomes established now (ucma_process_conn_resp). */
static void complete_connect(struct soft_cm_event *event)
{
	struct soft_id *id = soft_id(event->rdma.id);

	if (!id->rdma.qp)
		return;
	if (soft_id_prepare_qp(id) || soft_id_connect_qp(id)) { /* or the server has withdrawn its REP meanwhile */
		/* Nothing is sent: the peer hears of it when the id is destroyed. */
		event->rdma.event = RDMA_CM_EVENT_CONNECT_ERROR;
		event->rdma.status = -1;
		id->connect_error = true;
		soft_id_fail_qp(id);
		return;
	}
	event->rdma.event = RDMA_CM_EVENT_ESTABLISHED;
	soft_cm_send_plain(id, SOFT_CM_RTU);
	id->state = SOFT_ID_ESTABLISHED;
}

/*
 * The child of a synchronous listener is synchronous, with a channel of its own; any other is on the
 * channel that its listener is on now (ucma_process_conn_req).
 */
static bool adopt(struct soft_cm_event *event)
{
	struct soft_id *child = soft_id(event->rdma.id);
	struct soft_event_channel *channel = channel_of(event->owner);

	if (event->owner->sync) {
		channel = soft_event_channel_create(event->owner->cm);
		if (!channel)
			return false;
		child->sync = true;
	}
	soft_id_set_channel(child, channel);
	return true;
}

/* librdmacm asks the kernel what it has found, which has no answer when the device is gone. */
static void fail_query(struct soft_cm_event *event, enum rdma_cm_event_type failure)
{
	event->rdma.event = failure;
	event->rdma.status = -1;
}

/* What librdmacm does to the id when its user reads the event. */
static void apply(struct soft_cm_event *event)
{
	struct soft_id *id = soft_id(event->rdma.id);

	switch (event->rdma.event) {
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		soft_join_apply(id, &event->rdma);
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (id->state == SOFT_ID_REMOVED) {
			fail_query(event, RDMA_CM_EVENT_ADDR_ERROR);
		} else if (soft_id_bind_device(id)) {
			event->rdma.event = RDMA_CM_EVENT_ADDR_ERROR;
			event->rdma.status = -ENOMEM;
			id->state = SOFT_ID_BOUND;
		}
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (id->state == SOFT_ID_REMOVED)
			fail_query(event, RDMA_CM_EVENT_ROUTE_ERROR);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		complete_connect(event);
		break;
	case RDMA_CM_EVENT_REJECTED:
		soft_id_fail_qp(id);
		break;
	default:
		break;
	}
}

/* Wait for the channel's next event, and take it; cm.lock is held unless NULL is returned. */
static struct soft_cm_event *take(struct soft_event_channel *channel)
{
	struct soft_cm *cm = channel->cm;
	struct soft_event_node *node;
	struct soft_cm_event *event;

	pthread_mutex_lock(&cm->lock);
	while (!(node = soft_event_queue_try_pop(&channel->queue))) {
		soft_cm_unlock(cm);
		if (soft_event_queue_wait(&channel->queue))
			return NULL;
		pthread_mutex_lock(&cm->lock);
	}
	event = soft_container_of(node, struct soft_cm_event, node);
	unlink_unread(event);
	return event;
}

/*
 * What nobody is told: the end of a connection that the user knows as failed, and the request of a child
 * that cannot have its channel, which goes with it (rdma_get_cm_event of librdmacm).
 */
static bool swallow(struct soft_cm_event *event)
{
	struct soft_id *id = soft_id(event->rdma.id);

	switch (event->rdma.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		/* Of a request whose device is gone librdmacm cannot learn the rest, either. */
		if (id->state != SOFT_ID_REMOVED && adopt(event))
			return false;
		soft_id_free(id);
		return true;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
		return id->connect_error;
	default:
		return false;
	}
}

/* Taken and applied under cm.lock, so that no one can destroy the id in between. */
int soft_get_cm_event(struct rdma_event_channel *rdma_channel, struct rdma_cm_event **out)
{
	struct soft_event_channel *channel = (struct soft_event_channel *)rdma_channel;
	struct soft_cm_event *event;

	if (!channel || !out) {
		errno = EINVAL;
		return -1;
	}
	while ((event = take(channel))) {
		if (!swallow(event))
			break;
		free(event);
		soft_cm_unlock(channel->cm);
	}
	if (!event)
		return -1;
	event->owner->events_reported++;
	apply(event);
	soft_cm_unlock(channel->cm);
	*out = &event->rdma;
	return 0;
}

int soft_ack_cm_event(struct rdma_cm_event *rdma_event)
{
	struct soft_cm_event *event = (struct soft_cm_event *)rdma_event;
	struct soft_cm *cm;

	if (!event) {
		errno = EINVAL;
		return -1;
	}
	cm = event->owner->cm;
	pthread_mutex_lock(&cm->lock);
	event->owner->events_acknowledged++;
	pthread_cond_broadcast(&cm->acknowledged);
	pthread_mutex_unlock(&cm->lock);
	free(event);
	return 0;
}

int soft_write_cm_event(struct rdma_cm_id *rdma_id, enum rdma_cm_event_type type, int status,
			uint64_t argument)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	struct soft_cm_event *event = NULL;
	int error = 0;

	if (!id)
		return -1;
	if ((int)type != SOFT_CM_EVENT_USER || !id->rdma.channel)
		error = EINVAL;
	else
		event = new_event(id, id, SOFT_CM_EVENT_USER, status);
	if (event) {
		memcpy(&event->rdma.param, &argument, sizeof(argument)); /* param.arg */
		push(id, event);
	} else if (!error) {
		error = ENOMEM;
	}
	return soft_cm_finish(id->cm, error);
}
