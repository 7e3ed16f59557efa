#include "soft_quiesce.h"

#include "soft_pd.h"
#include "soft_qp.h"

void soft_quiesce(struct soft_pd *pd)
{
	pthread_mutex_lock(&pd->lock);
	for (struct soft_pd_member *member = pd->members; member; member = member->next) {
		soft_lock_take(&member->qp->requester.lock);
		soft_lock_release(&member->qp->requester.lock);
		soft_lock_take(&member->qp->responder.lock);
		soft_lock_release(&member->qp->responder.lock);
	}
	pthread_mutex_unlock(&pd->lock);
}
