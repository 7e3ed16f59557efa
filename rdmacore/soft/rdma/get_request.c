/* What a synchronous listener is asked (rdma_get_request(3)). */
#include "soft/rdma/rdma.h"

#include <errno.h>

#include "soft/base/refusal.h"
#include "soft/cm/cm.h"
#include "soft/cm/id.h"

static int take_request(struct rdma_cm_id *listener, struct rdma_cm_event *event)
{
	const struct ibv_qp_init_attr *attr = soft_id(listener)->endpoint_attr;
	struct ibv_qp_init_attr copy;

	if (event->status || event->event == RDMA_CM_EVENT_REJECTED)
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

int soft_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **out)
{
	struct soft_id *id = soft_id_lock(listener);
	struct rdma_cm_event *event;
	bool listens;
	int error;

	if (!id)
		return -1;
	listens = id->sync && id->state == SOFT_ID_LISTEN && out;
	soft_mutex_unlock(&id->cm->lock);
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
