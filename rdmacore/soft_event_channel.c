#include "soft_cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft_context.h"
#include "soft_fabric.h"
#include "soft_qp.h"

struct rdma_event_channel *soft_create_event_channel(void)
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
	channel->cm = soft_cm_current();
	return &channel->rdma;
}

void soft_destroy_event_channel(struct rdma_event_channel *rdma_channel)
{
	struct soft_event_channel *channel = (struct soft_event_channel *)rdma_channel;

	soft_event_queue_destroy(&channel->queue);
	free(channel);
}

static struct soft_event_channel *channel_of(struct soft_id *id)
{
	return (struct soft_event_channel *)id->rdma.channel;
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

bool soft_cm_report(struct soft_id *owner, struct soft_id *id, enum rdma_cm_event_type type,
		    int status, const struct soft_cm_message *message)
{
	struct soft_cm_event *event = calloc(1, sizeof(*event));
	struct soft_cm_event **last = &owner->unread;

	if (!event)
		return false;
	event->owner = owner;
	event->rdma.id = &id->rdma;
	event->rdma.listen_id = owner == id ? NULL : &owner->rdma;
	event->rdma.event = type;
	event->rdma.status = status;
	if (message)
		set_param(event, message);
	while (*last)
		last = &(*last)->next;
	*last = event;
	soft_event_queue_push(&channel_of(owner)->queue, &event->node);
	return true;
}

static void unlink_unread(struct soft_cm_event *event)
{
	struct soft_cm_event **link = &event->owner->unread;

	while (*link != event)
		link = &(*link)->next;
	*link = event->next;
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

/* REP has arrived: with a queue pair of its own the id becomes established now (ucma_process_conn_resp). */
static void complete_connect(struct soft_cm_event *event)
{
	struct soft_id *id = soft_id(event->rdma.id);
	int error;

	if (!id->rdma.qp || id->state != SOFT_ID_REP_RECEIVED)
		return;
	error = soft_id_connect_qp(id);
	if (error) {
		event->rdma.event = RDMA_CM_EVENT_CONNECT_ERROR;
		event->rdma.status = -error;
		soft_id_fail_qp(id);
		soft_cm_reject(id, SOFT_REJ_CONSUMER_DEFINED, NULL, 0);
		return;
	}
	event->rdma.event = RDMA_CM_EVENT_ESTABLISHED;
	soft_cm_send_plain(id, SOFT_CM_RTU);
	id->state = SOFT_ID_ESTABLISHED;
}

/* What librdmacm does to the id when its user reads the event. */
static void apply(struct soft_cm_event *event)
{
	struct soft_id *id = soft_id(event->rdma.id);

	switch (event->rdma.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (soft_id_bind_device(id)) {
			event->rdma.event = RDMA_CM_EVENT_ADDR_ERROR;
			event->rdma.status = -ENOMEM;
			id->state = SOFT_ID_BOUND;
		}
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

int soft_get_cm_event(struct rdma_event_channel *rdma_channel, struct rdma_cm_event **out)
{
	struct soft_event_channel *channel = (struct soft_event_channel *)rdma_channel;
	struct soft_cm *cm = channel->cm;
	struct soft_event_node *node;
	struct soft_cm_event *event;

	/* Taken and applied under cm.lock, so that no one can destroy the id in between. */
	pthread_mutex_lock(&cm->lock);
	while (!(node = soft_event_queue_try_pop(&channel->queue))) {
		pthread_mutex_unlock(&cm->lock);
		if (soft_event_queue_wait(&channel->queue))
			return -1;
		pthread_mutex_lock(&cm->lock);
	}
	event = soft_container_of(node, struct soft_cm_event, node);
	unlink_unread(event);
	event->owner->events_reported++;
	apply(event);
	soft_cm_unlock(cm);
	*out = &event->rdma;
	return 0;
}

int soft_ack_cm_event(struct rdma_cm_event *rdma_event)
{
	struct soft_cm_event *event = (struct soft_cm_event *)rdma_event;
	struct soft_cm *cm = event->owner->cm;

	pthread_mutex_lock(&cm->lock);
	event->owner->events_acknowledged++;
	pthread_cond_broadcast(&cm->acknowledged);
	pthread_mutex_unlock(&cm->lock);
	free(event);
	return 0;
}
