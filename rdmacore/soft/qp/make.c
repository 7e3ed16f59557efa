/* How queue pairs of users, and those behind handles, begin and end. */
#include "soft/qp/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/fabric.h"
#include "soft/engine/calls.h"
#include "soft/link/calls.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"

void soft_qp_init_events(struct soft_qp *qp)
{
	qp->events[SOFT_QP_ACCESS_EVENT].type = IBV_EVENT_QP_ACCESS_ERR;
	qp->events[SOFT_QP_REQUEST_EVENT].type = IBV_EVENT_QP_REQ_ERR;
	qp->events[SOFT_QP_LAST_WQE_EVENT].type = IBV_EVENT_QP_LAST_WQE_REACHED;
	qp->events[SOFT_QP_DRAINED_EVENT].type = IBV_EVENT_SQ_DRAINED;
	qp->events[SOFT_QP_FATAL_EVENT].type = IBV_EVENT_QP_FATAL;
	qp->events[SOFT_QP_ESTABLISHED_EVENT].type = IBV_EVENT_COMM_EST;
	for (int event = 0; event < SOFT_QP_EVENTS; event++)
		qp->events[event].element.qp = &qp->ibv;
}

struct soft_qp *soft_qp_make(const struct soft_qp *like)
{
	struct soft_device *device = like->device;
	struct soft_qp *qp = aligned_alloc(SOFT_CACHE_LINE, sizeof(*qp));
	int error = ENOMEM;

	if (!qp)
		return NULL;
	*qp = *like;
	atomic_init(&qp->references, 1);
	atomic_init(&qp->state, IBV_QPS_RESET);
	qp->ibv.state = IBV_QPS_RESET;
	qp->accepted_qpn = SOFT_NO_QPN;
	qp->mcast_loopback = true;
	soft_events_init(&qp->ibv.mutex, &qp->ibv.cond);
	soft_qp_init_events(qp);
	soft_legal_draws_init(&qp->legal.draws, &device->fabric->legal);
	qp->legal.stalled = SOFT_NO_PSN;
	qp->legal.credits = device->link && soft_legal_choose(&qp->legal.draws, CORE_LEGAL_ACK_CREDITS);
	if (device->link && !(qp->segmentation = soft_segmentation_create(device->link, device->link->route_size)))
		goto release_qp;
	qp->direct = qp->service == SOFT_RELIABLE_CONNECTION && qp->xrc == SOFT_NO_XRC && !qp->segmentation &&
		     !device->legal;
	if (soft_requester_init(qp) || soft_responder_init(qp))
		goto release_qp;
	if (soft_timer_register(&device->fabric->timers, &qp->timer, soft_transmit_expire))
		goto release_qp;
	error = -soft_table_insert(&device->queue_pairs, qp, &qp->ibv.qp_num);
	if (error)
		goto unregister_timer;
	qp->ibv.handle = qp->ibv.qp_num;
	return qp;

unregister_timer:
	soft_timer_unregister(&device->fabric->timers, &qp->timer);
release_qp:
	qp->target = NULL; /* set by the caller for a target */
	soft_qp_release(qp);
	errno = error;
	return NULL;
}

/* ibv_destroy_qp(3) waits until each event that was taken is acknowledged. */
int soft_qp_wait_acknowledged(struct soft_qp *qp)
{
	struct soft_event_queue *async = &soft_context(qp->ibv.context)->async;
	uint32_t taken = 0;

	for (int event = 0; event < SOFT_QP_EVENTS; event++)
		taken += soft_event_queue_remove(async, &qp->events[event].node);
	return soft_events_end(&qp->ibv.mutex, &qp->ibv.cond, &soft_qp_device(qp)->fabric->wall,
			       &qp->ibv.events_completed, taken);
}
