/*
 * Synchronous ids have a channel of their own, and each call waits for its event.
 *
 * With O_NONBLOCK on the channel's descriptor they do not wait: the call returns -1 and EAGAIN, and its event comes
 * later.
 */
#include "soft/rdma/rdma.h"

#include <errno.h>

#include "soft/base/refusal.h"

void soft_id_drop_event(struct rdma_cm_id *id)
{
	if (!id || !id->event)
		return;
	soft_ack_cm_event(id->event);
	id->event = NULL;
}

/* Whether an event of the id may still come; otherwise a wait would not end. */
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
	soft_mutex_unlock(&id->cm->lock);
	return expects;
}

/* Like librdmacm: a status of 0 is success, whatever the event is. */
int soft_event_result(const struct rdma_cm_event *event)
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
	return soft_event_result(id->event);
}
