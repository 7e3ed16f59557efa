#include "soft_pd.h"

#include <errno.h>
#include <stdlib.h>

#include "soft_qp.h"

struct ibv_pd *soft_alloc_pd(struct ibv_context *context)
{
	struct soft_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->ibv.context = context;
	pthread_mutex_init(&pd->lock, NULL);
	return &pd->ibv;
}

int soft_dealloc_pd(struct ibv_pd *ibv_pd)
{
	struct soft_pd *pd = soft_pd(ibv_pd);

	if (atomic_load(&pd->users))
		return EBUSY;
	pthread_mutex_destroy(&pd->lock);
	free(pd);
	return 0;
}

void soft_pd_add(struct soft_pd *pd, struct soft_qp *qp)
{
	atomic_fetch_add(&pd->users, 1);
	pthread_mutex_lock(&pd->lock);
	qp->pd_previous = NULL;
	qp->pd_next = pd->queue_pairs;
	if (pd->queue_pairs)
		pd->queue_pairs->pd_previous = qp;
	pd->queue_pairs = qp;
	pthread_mutex_unlock(&pd->lock);
}

void soft_pd_remove(struct soft_pd *pd, struct soft_qp *qp)
{
	pthread_mutex_lock(&pd->lock);
	if (qp->pd_previous)
		qp->pd_previous->pd_next = qp->pd_next;
	else
		pd->queue_pairs = qp->pd_next;
	if (qp->pd_next)
		qp->pd_next->pd_previous = qp->pd_previous;
	pthread_mutex_unlock(&pd->lock);
	atomic_fetch_sub(&pd->users, 1);
}

void soft_pd_quiesce(struct soft_pd *pd)
{
	pthread_mutex_lock(&pd->lock);
	for (struct soft_qp *qp = pd->queue_pairs; qp; qp = qp->pd_next) {
		pthread_mutex_lock(&qp->requester.lock);
		pthread_mutex_unlock(&qp->requester.lock);
		pthread_mutex_lock(&qp->responder.lock);
		pthread_mutex_unlock(&qp->responder.lock);
	}
	pthread_mutex_unlock(&pd->lock);
}
