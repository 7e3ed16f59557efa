#include "soft/rdma/rdma.h"

#include <errno.h>

#include "soft/base/fabric.h"
#include "soft/base/lock.h"
#include "soft/cm/calls.h"

/* The last repeat of the request was not answered. */
static void give_up(struct soft_id *id)
{
	switch (id->state) {
	case SOFT_ID_REQ_SENT:
	case SOFT_ID_REP_SENT:
	case SOFT_ID_SIDR_SENT:
		soft_cm_close(id);
		soft_cm_report(id, id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
		break;
	case SOFT_ID_DREQ_SENT:
		soft_cm_enter_timewait(id);
		soft_cm_report_disconnected(id, -ETIMEDOUT);
		break;
	default:
		break;
	}
}

static void resend(struct soft_id *id)
{
	if (id->retries_left-- == 0) {
		give_up(id);
		return;
	}
	soft_cm_repeat_request(id);
}

void soft_cm_expire(struct soft_timer *timer)
{
	struct soft_id *id = soft_container_of(timer, struct soft_id, timer);
	struct soft_cm *cm = id->cm;

	soft_mutex_lock(&cm->lock);
	/* The timer may have been armed again after it expired and before cm.lock was taken. */
	if (!soft_timer_is_armed(&cm->fabric->timers, timer)) {
		switch (id->state) {
		case SOFT_ID_ADDR_QUERY:
		case SOFT_ID_ROUTE_QUERY:
			soft_resolve_expired(id);
			break;
		case SOFT_ID_TIMEWAIT:
			soft_cm_close(id);
			/* Not after a rejected request, which was no connection (cma_ib_handler). */
			if (id->disconnected)
				soft_cm_report(id, id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL);
			break;
		case SOFT_ID_REQ_SENT:
		case SOFT_ID_REP_SENT:
		case SOFT_ID_DREQ_SENT:
		case SOFT_ID_SIDR_SENT:
			resend(id);
			break;
		default:
			break;
		}
	}
	soft_cm_unlock(cm);
}

void soft_cm_expire_held(struct soft_timer *timer)
{
	struct soft_cm *cm = soft_container_of(timer, struct soft_cm, held_timer);

	soft_mutex_lock(&cm->lock);
	soft_cm_release_held(cm);
	soft_cm_unlock(cm);
}
