#include "soft/rdma/rdma.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/cm/channel.h"
#include "soft/cm/cm.h"
#include "soft/cm/device.h"
#include "soft/cm/finish.h"
#include "soft/cm/id_free.h"
#include "soft/cm/join.h"
#include "soft/cm/path.h"
#include "soft/cm/report.h"
#include "soft/cm/send.h"

struct rdma_event_channel *soft_create_event_channel(void)
{
	struct soft_event_channel *channel = soft_event_channel_create(soft_cm_current());

	return channel ? &channel->rdma : NULL;
}

void soft_destroy_event_channel(struct rdma_event_channel *rdma_channel)
{
	struct soft_event_channel *channel = (struct soft_event_channel *)rdma_channel;

	if (!channel)
		return;
	soft_mutex_lock(&channel->cm->lock);
	soft_id_leave_channel(channel);
	soft_cm_unlock(channel->cm);
	soft_event_channel_free(channel);
}

/* REP has arrived: with a queue pair of its own the id becomes established now (ucma_process_conn_resp). */
static void complete_connect(struct soft_cm_event *event)
{
	struct soft_id *id = soft_id(event->rdma.id);

	if (!id->rdma.qp)
		return;
	/* The server may have withdrawn its REP, before this or meanwhile. */
	if (soft_id_prepare_qp(id) || soft_id_connect_qp(id) || id->state != SOFT_ID_REP_RECEIVED) {
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
	struct soft_event_channel *channel = (struct soft_event_channel *)event->owner->rdma.channel;

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
		} else if (soft_id_query(id)) {
			event->rdma.event = RDMA_CM_EVENT_ADDR_ERROR;
			event->rdma.status = -ENOMEM;
			id->state = SOFT_ID_BOUND;
		}
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (id->state == SOFT_ID_REMOVED)
			fail_query(event, RDMA_CM_EVENT_ROUTE_ERROR);
		else
			soft_id_show_path(id);
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
	struct soft_cm_event *event;

	soft_mutex_lock(&cm->lock);
	while (!(event = soft_cm_take_event(channel))) {
		soft_cm_unlock(cm);
		if (soft_event_queue_wait(&channel->queue))
			return NULL;
		soft_mutex_lock(&cm->lock);
	}
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
		if (id->state != SOFT_ID_REMOVED && adopt(event) && !soft_id_query(id)) {
			soft_id_show_path(id);
			return false;
		}
		soft_id_free(id);
		return true;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
		return id->connect_error;
	default:
		return false;
	}
}

/* Counted under the same cm.lock that it is taken under, so that nobody can destroy the id from then on. */
int soft_get_cm_event(struct rdma_event_channel *rdma_channel, struct rdma_cm_event **out)
{
	struct soft_event_channel *channel = (struct soft_event_channel *)rdma_channel;
	struct soft_cm_event *event;
	struct soft_cm *cm;

	if (!channel || !out) {
		errno = EINVAL;
		return -1;
	}
	cm = channel->cm;
	while ((event = take(channel))) {
		if (!swallow(event))
			break;
		free(event);
		soft_cm_unlock(cm);
	}
	if (!event)
		return -1;
	event->owner->events_reported++;
	apply(event);
	soft_cm_unlock(cm);
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
	soft_events_acknowledge(&cm->lock.native, &cm->acknowledged, &event->owner->events_acknowledged, 1);
	free(event);
	return 0;
}

int soft_write_cm_event(struct rdma_cm_id *rdma_id, enum rdma_cm_event_type type, int status,
			uint64_t argument)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	int error = 0;

	if (!id)
		return -1;
	if ((int)type != SOFT_CM_EVENT_USER || !id->rdma.channel)
		error = EINVAL;
	else if (!soft_cm_report_user(id, status, argument))
		error = ENOMEM;
	return soft_cm_finish(id->cm, error);
}
