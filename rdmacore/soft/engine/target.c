/*
 * While the target of an extended reliable connection executes a request, it uses the shared queue of the request and
 * the objects of that queue. responder.lock is held.
 */
#include "soft/engine/calls.h"

#include "soft/engine/segment.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/srq.h"

/* srq is a reference, which is released if the queue was destroyed meanwhile: then false. */
static bool enter(struct soft_qp *qp, struct soft_srq *srq)
{
	soft_lock_take_turn(&srq->transfer);
	if (srq->ended) {
		soft_lock_release(&srq->transfer);
		soft_srq_release(srq);
		return false;
	}
	qp->target->entered = srq;
	qp->srq = srq;
	qp->ibv.pd = srq->ibv.pd;
	qp->ibv.recv_cq = &srq->cq->ibv;
	return true;
}

bool soft_target_enter(struct soft_qp *qp, uint32_t number)
{
	const struct soft_xrc_target *target = qp->target;
	struct soft_srq *srq = soft_table_find(&soft_qp_device(qp)->shared_queues, number, soft_srq_hold);

	soft_lock_expect(&qp->responder.lock);
	if (!srq)
		return false;
	/* All packets of a message name the same queue. */
	if (srq->domain != target->domain || (target->source && target->source != srq)) {
		soft_srq_release(srq);
		return false;
	}
	return enter(qp, srq);
}

bool soft_target_resume(struct soft_qp *qp)
{
	struct soft_srq *srq = qp->target->source;

	soft_lock_expect(&qp->responder.lock);
	if (!srq)
		return false;
	soft_srq_hold(srq);
	return enter(qp, srq);
}

/* Keep the queue while a message for it has arrived in part. */
static void keep(struct soft_qp *qp, struct soft_srq *srq)
{
	struct soft_xrc_target *target = qp->target;
	bool begun = qp->segmentation && qp->segmentation->assembly.kind != SOFT_NO_MESSAGE;

	if (begun && !target->source) {
		soft_srq_hold(srq);
		target->source = srq;
	} else if (!begun && target->source) {
		soft_srq_release(target->source);
		target->source = NULL;
	}
}

void soft_target_leave(struct soft_qp *qp)
{
	struct soft_srq *srq = qp->target->entered;

	soft_lock_expect(&qp->responder.lock);
	if (!srq)
		return;
	keep(qp, srq);
	qp->target->entered = NULL;
	qp->srq = NULL;
	qp->ibv.pd = NULL;
	qp->ibv.recv_cq = NULL;
	soft_lock_release(&srq->transfer);
	soft_srq_release(srq);
}

void soft_target_abandon(struct soft_qp *qp)
{
	struct soft_xrc_target *target = qp->target;

	soft_lock_expect(&qp->responder.lock);
	if (target->source)
		soft_srq_release(target->source);
	target->source = NULL;
}
