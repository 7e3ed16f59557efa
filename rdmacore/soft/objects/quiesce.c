#include "soft/objects/quiesce.h"

#include "soft/objects/pd.h"
#include "soft/objects/qp.h"

size_t soft_quiesce(struct soft_pd *pd)
{
	struct soft_pd *domain = pd->domain;
	size_t passed = 0;

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
