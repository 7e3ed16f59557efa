#include "soft/objects/qp.h"

#include <stdlib.h>

#include "soft/objects/pd.h"

void soft_qp_hold(void *qp)
{
	atomic_fetch_add_explicit(&((struct soft_qp *)qp)->references, 1, memory_order_relaxed);
}

void soft_qp_free_queues(struct soft_qp *qp)
{
	soft_receive_queue_destroy(&qp->receive);
	free(qp->responder.results);
	qp->responder.results = NULL;
	soft_parent_domain_free(qp->requester.ring_source, qp->requester.ring, SOFT_SEND_QUEUE);
	qp->requester.ring_source = NULL;
	qp->requester.ring = NULL;
}

void soft_qp_release(struct soft_qp *qp)
{
	if (atomic_fetch_sub_explicit(&qp->references, 1, memory_order_acq_rel) != 1)
		return;
	soft_qp_free_queues(qp);
	soft_events_destroy(&qp->ibv.mutex, &qp->ibv.cond);
	free(qp->segmentation);
	free(qp->requester.flow);
	free(qp->target);
	free(qp);
}

void soft_qp_raise(struct soft_qp *qp, enum soft_qp_event event, bool once)
{
	struct soft_qp *handle = qp->target ? qp->target->handles : qp;

	soft_lock_expect(&qp->responder.lock);
	for (; handle; handle = handle->next_handle) {
		if (once)
			soft_async_raise_once(handle->ibv.context, &handle->events[event]);
		else
			soft_async_raise(handle->ibv.context, &handle->events[event]);
	}
}

void soft_qp_forget_events(struct soft_qp *qp)
{
	struct soft_qp *handle = qp->target ? qp->target->handles : qp;

	for (; handle; handle = handle->next_handle)
		for (int event = 0; event < SOFT_QP_EVENTS; event++)
			atomic_store(&handle->events[event].raised, false);
}

size_t soft_quiesce(struct soft_pd *pd)
{
	struct soft_pd *domain = pd->domain;
	size_t passed = 0;

	soft_order_expect_none();
	soft_mutex_lock(&domain->lock);
	for (struct soft_pd_member *member = domain->members; member; member = member->next) {
		soft_lock_take_turn(member->first);
		soft_lock_release(member->first);
		if (member->second) {
			soft_lock_take_turn(member->second);
			soft_lock_release(member->second);
		}
		passed++;
	}
	soft_mutex_unlock(&domain->lock);
	return passed;
}
