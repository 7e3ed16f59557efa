/*
 * Synchronous ids, which have a channel of their own and wait in each call for its event, and the way
 * between the two kinds (rdma_migrate_id(3), rdma_get_request(3)).
 *
 * Whether such a wait blocks is decided by O_NONBLOCK on the channel's descriptor at the time of the call:
 * with it a call whose command was given out returns -1 and EAGAIN, and its event comes later.
 */
#include "soft_cm.h"

#include <errno.h>

#include "soft_refusal.h"

void soft_id_drop_event(struct rdma_cm_id *id)
{
	if (!id || !id->event)
		return;
	soft_ack_cm_event(id->event);
	id->event = NULL;
}

/* Whether anything may still be heard of the id; else a wait for it would not end. */
static bool expects_event(struct rdma_cm_id *rdma_id)
{
	struct soft_id *id = soft_id_lock_any(rdma_id);
	bool expects;

	if (!id)
		return false;
	switch (id->state) {
	case SOFT_ID_IDLE:
	case SOFT_ID_BOUND:
	case SOFT_ID_ADDR_RESOLVED:
	case SOFT_ID_ROUTE_RESOLVED:
	case SOFT_ID_REQ_RECEIVED:
	case SOFT_ID_DREQ_RECEIVED:
	case SOFT_ID_SIDR_RECEIVED:
	case SOFT_ID_RESOLVED_UD:
	case SOFT_ID_CLOSED:
	case SOFT_ID_REMOVED:
	case SOFT_ID_DESTROYED:
		expects = id->unread != NULL;
		break;
	default:
		expects = true;
		break;
	}
	pthread_mutex_unlock(&id->cm->lock);
	return expects;
}

/* The exact rules of librdmacm: a status of 0 is success whatever the event is. */
static int event_result(const struct rdma_cm_event *event)
{
	if (event->status == 0)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		errno = ECONNREFUSED;
	else
		errno = event->status < 0 ? -event->status : event->status;
	return -1;
}

int soft_id_complete(struct rdma_cm_id *id)
{
	if (!soft_id(id)->sync)
		return 0;
	soft_id_drop_event(id);
	if (!expects_event(id)) {
		errno = soft_refuse(ENOTCONN, "no event can come any more; librdmacm would wait for ever");
		return -1;
	}
	if (soft_get_cm_event(id->channel, &id->event))
		return -1;
	return event_result(id->event);
}

static int take_request(struct rdma_cm_id *listener, struct rdma_cm_event *event)
{
	const struct ibv_qp_init_attr *attr = soft_id(listener)->endpoint_attr;
	struct ibv_qp_init_attr copy;

	if (event->status || event->event == RDMA_CM_EVENT_REJECTED)
		return event_result(event);
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		errno = EINVAL;
		return -1;
	}
	if (!attr)
		return 0;
	copy = *attr;
	return soft_id_create_qp(event->id, listener->pd, &copy);
}

int soft_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **out)
{
	struct soft_id *id = soft_id_lock(listener);
	struct rdma_cm_event *event;
	bool listens;
	int error;

	if (!id)
		return -1;
	listens = id->sync && id->state == SOFT_ID_LISTEN && out;
	pthread_mutex_unlock(&id->cm->lock);
	if (!listens) {
		errno = soft_refuse(EINVAL, "rdma_get_request needs a synchronous id that listens");
		return -1;
	}
	soft_id_drop_event(listener);
	if (soft_get_cm_event(listener->channel, &event))
		return -1;
	if (!take_request(listener, event)) {
		/* Until it is accepted or destroyed, the child holds an event of the listener. */
		*out = event->id;
		event->id->event = event;
		return 0;
	}
	error = errno;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		/* librdmacm leaks the child here; its peer would wait. */
		struct rdma_cm_id *child = event->id;

		soft_ack_cm_event(event);
		soft_destroy_id(child);
	} else {
		listener->event = event;
	}
	errno = error;
	return -1;
}

int soft_migrate_id(struct rdma_cm_id *rdma_id, struct rdma_event_channel *rdma_channel)
{
	struct soft_event_channel *to = (struct soft_event_channel *)rdma_channel;
	struct soft_event_channel *own = NULL;
	struct soft_id *id = soft_id_lock(rdma_id);
	struct soft_cm *cm;
	int error = 0;

	if (!id)
		return -1;
	cm = id->cm;
	if ((id->sync && !to) || !id->rdma.channel || (to && to->cm != cm))
		error = EINVAL;
	else if (!to && !(to = soft_event_channel_create(cm)))
		error = ENOMEM;
	if (error)
		return soft_cm_finish(cm, error);
	soft_cm_move_unread(id, to);
	if (id->sync)
		own = (struct soft_event_channel *)id->rdma.channel;
	soft_id_set_channel(id, to);
	id->sync = !rdma_channel;
	if (own) {
		pthread_mutex_unlock(&cm->lock);
		soft_id_drop_event(rdma_id);
		soft_destroy_event_channel(&own->rdma);
		pthread_mutex_lock(&cm->lock);
	}
	return soft_cm_finish(cm, soft_id_wait_acknowledged(id));
}
