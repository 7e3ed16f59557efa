#include "soft/engine/calls.h"

#include "soft/base/fabric.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"

void soft_qp_forget_peer(struct soft_qp *qp)
{
	soft_lock_expect(&qp->requester.lock);
	if (qp->peer)
		soft_qp_release(qp->peer);
	qp->peer = NULL;
}

void soft_qp_lock(struct soft_qp *qp)
{
	soft_lock_take_turn(&qp->requester.lock);
	soft_lock_take_turn(&qp->responder.lock);
}

void soft_qp_unlock(struct soft_qp *qp)
{
	soft_lock_release(&qp->responder.lock);
	soft_lock_release(&qp->requester.lock);
}

void soft_qp_enter(struct soft_qp *qp, enum ibv_qp_state state)
{
	soft_lock_expect(&qp->requester.lock);
	soft_lock_expect(&qp->responder.lock);
	atomic_store_explicit(&qp->state, state, memory_order_relaxed);
	qp->ibv.state = state;
	if (state == IBV_QPS_ERR || state == IBV_QPS_RESET)
		soft_timer_cancel(&soft_qp_device(qp)->fabric->timers, &qp->timer);
	if (qp->segmentation && state == IBV_QPS_RTR)
		soft_segmentation_start(qp);
	else if (qp->segmentation && (state == IBV_QPS_ERR || state == IBV_QPS_RESET))
		soft_segmentation_stop(qp);
	if (state == IBV_QPS_SQD) {
		soft_requester_drain(qp, qp->attr.en_sqd_async_notify);
	} else if (state == IBV_QPS_ERR) {
		qp->responder.failed = false;
		soft_requester_flush(qp);
		soft_receive_flush(qp);
	} else if (state == IBV_QPS_RESET) {
		soft_requester_reset(qp);
		soft_responder_reset(qp);
		soft_qp_forget_peer(qp);
		qp->attr = (struct ibv_qp_attr){0};
		qp->accepted_qpn = SOFT_NO_QPN;
		soft_qp_forget_events(qp);
	}
}

void soft_qp_enter_error(struct soft_qp *qp)
{
	soft_qp_lock(qp);
	if (qp->responder.failed || soft_qp_state(qp) == IBV_QPS_ERR)
		soft_qp_enter(qp, IBV_QPS_ERR);
	soft_qp_unlock(qp);
}

void soft_qp_reset(struct soft_qp *qp)
{
	soft_qp_lock(qp);
	if (soft_qp_state(qp) != IBV_QPS_RESET)
		soft_qp_enter(qp, IBV_QPS_RESET);
	soft_qp_unlock(qp);
}
