#include "soft/rdma/rdma.h"

#include <errno.h>
#include <stdlib.h>

#include "provider/newer.h"
#include "soft/cm/calls.h"
#include "soft/objects/device.h"
#include "soft/qp/verbs.h"

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

/* A REP has arrived: an id with a queue pair becomes established now (ucma_process_conn_resp). */
static void complete_connect(struct soft_cm_event *event)
{
	struct soft_id *id = soft_id(event->rdma.id);

	if (!id->rdma.qp)
		return;
	/* The server may have rejected after its REP, earlier or while cm.lock was released. */
	if (soft_id_prepare_qp(id) || soft_id_connect_qp(id) || id->state != SOFT_ID_REP_RECEIVED) {
		/* Nothing is sent now: the peer gets a message when the id is destroyed. */
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
 * The child of a synchronous listener is synchronous, with a channel of its own. Any other child is on the channel
 * that its listener has now (ucma_process_conn_req).
 */
static bool take_queried_fields(struct soft_cm_event *event)
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

/* librdmacm queries the result from the kernel, which fails if the device was removed. */
static void fail_query(struct soft_cm_event *event, enum rdma_cm_event_type failure)
{
	event->rdma.event = failure;
	event->rdma.status = -1;
}

/* Change the id as librdmacm does when the user reads the event (rdma_get_cm_event). */
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
	case RDMA_CM_EVENT_ESTABLISHED:
		if (id->rdma.qp)
			soft_qp_await_rtu(id->rdma.qp, false);
		break;
	case RDMA_CM_EVENT_REJECTED:
		soft_id_fail_qp(id);
		break;
	default:
		break;
	}
}

/* Wait for the channel's next event and take it; cm.lock is held unless NULL is returned. */
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
 * Events that rdma_get_cm_event of librdmacm drops. They are the end of a connection after CONNECT_ERROR, and the
 * request of a child that cannot get its channel, together with the child.
 */
static bool suppress_event(struct soft_cm_event *event)
{
	struct soft_id *id = soft_id(event->rdma.id);

	switch (event->rdma.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		/* librdmacm also drops a request of a removed device, because it cannot query the device. */
		if (id->state != SOFT_ID_REMOVED && take_queried_fields(event) && !soft_id_query(id)) {
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

/*
 * The end of a connection is reported after all earlier packets of the peer are received. Otherwise the last
 * acknowledgement might be missing, and the user would see its request flushed.
 */
static void catch_up(const struct soft_event_channel *channel, const struct soft_cm_event *event)
{
	struct soft_progress *progress = channel->cm->device->progress;

	if (progress && event->rdma.event == RDMA_CM_EVENT_DISCONNECTED)
		progress->catch_up(progress);
}

/* Taking and counting an event happens under one cm.lock, so that its id cannot be destroyed from then on. */
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
		if (!suppress_event(event))
			break;
		free(event);
		soft_cm_unlock(cm);
	}
	if (!event)
		return -1;
	event->owner->events_reported++;
	apply(event);
	soft_cm_unlock(cm);
	catch_up(channel, event);
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
	soft_mutex_lock(&cm->lock);
	event->owner->events_acknowledged++;
	/* Before the lock is released: the waiting thread then destroys the id. */
	pthread_cond_broadcast(&cm->acknowledged);
	soft_mutex_unlock(&cm->lock);
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
	if ((int)type != CORE_CM_EVENT_USER || !id->rdma.channel)
		error = EINVAL;
	else if (!soft_cm_report_user(id, status, argument))
		error = ENOMEM;
	return soft_cm_finish(id->cm, error);
}
