/* rdma_get_request(3): the next request of a synchronous listener. */
#include "soft/rdma/rdma.h"

#include <errno.h>

#include "soft/base/refusal.h"
#include "soft/cm/calls.h"

static int take_request(struct rdma_cm_id *listener, struct rdma_cm_event *event)
{
	const struct ibv_qp_init_attr *attr = soft_id(listener)->endpoint_attr;
	struct ibv_qp_init_attr copy;

	if (event->event == RDMA_CM_EVENT_REJECTED) {
		errno = ECONNREFUSED;
		return -1;
	}
	if (event->status)
		return soft_event_result(event);
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		errno = EINVAL;
		return -1;
	}
	if (!attr)
		return 0;
	copy = *attr;
	return soft_id_create_qp(event->id, listener->pd, &copy);
}

/*
 * Whether reading the channel ends: there is an event, a request may come, or the channel does not block (EAGAIN).
 * librdmacm reads without checking, and may wait forever.
 */
static bool wait_ends(struct soft_id *id)
{
	struct soft_event_channel *channel = (struct soft_event_channel *)id->rdma.channel;

	soft_mutex_expect(&id->cm->lock);
	return id->state == SOFT_ID_LISTEN || id->unread || !soft_event_queue_blocks(&channel->queue);
}

int soft_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **out)
{
	struct soft_id *id = soft_id_lock(listener);
	struct rdma_cm_event *event;
	bool synchronous, ends;
	int error;

	if (!id)
		return -1;
	synchronous = id->sync && id->rdma.channel && out;
	ends = synchronous && wait_ends(id);
	soft_mutex_unlock(&id->cm->lock);
	if (!synchronous) {
		errno = soft_refuse(EINVAL, "rdma_get_request needs a synchronous id");
		return -1;
	}
	if (!ends) {
		errno = soft_refuse(EINVAL, "the id does not listen; librdmacm would wait for ever");
		return -1;
	}
	soft_id_drop_event(listener);
	if (soft_get_cm_event(listener->channel, &event))
		return -1;
	if (!take_request(listener, event)) {
		/* The child keeps an event of the listener until it is accepted or destroyed. */
		*out = event->id;
		event->id->event = event;
		return 0;
	}
	error = errno;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		/* librdmacm leaks the child here, and its peer waits. */
		struct rdma_cm_id *child = event->id;

		soft_ack_cm_event(event);
		soft_destroy_id(child);
	} else {
		listener->event = event;
	}
	errno = error;
	return -1;
}
