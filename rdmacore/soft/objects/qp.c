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
	free(qp->flow);
	free(qp);
}

size_t soft_quiesce(struct soft_pd *pd)
{
	struct soft_pd *domain = pd->domain;
	size_t passed = 0;

	soft_order_expect_none();
	soft_mutex_lock(&domain->lock);
	for (struct soft_pd_member *member = domain->members; member; member = member->next) {
		soft_lock_take_turn(&member->qp->requester.lock);
		soft_lock_release(&member->qp->requester.lock);
		soft_lock_take_turn(&member->qp->responder.lock);
		soft_lock_release(&member->qp->responder.lock);
		passed++;
	}
	soft_mutex_unlock(&domain->lock);
	return passed;
}
