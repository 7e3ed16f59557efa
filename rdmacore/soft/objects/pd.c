#include "soft/objects/pd.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/objects/context.h"

struct ibv_pd *soft_alloc_pd(struct ibv_context *context)
{
	struct soft_pd *pd;

	if (soft_context_is_removed(context)) {
		errno = EIO;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->ibv.context = context;
	pd->domain = pd;
	atomic_init(&pd->references, 1);
	soft_mutex_init(&pd->lock, SOFT_ORDER_PD);
	return &pd->ibv;
}

int soft_dealloc_pd(struct ibv_pd *ibv_pd)
{
	struct soft_pd *pd = soft_pd(ibv_pd);

	if (atomic_load(&pd->users))
		return EBUSY;
	if (pd->parent.pd)
		atomic_fetch_sub(&soft_pd(pd->parent.pd)->users, 1);
	if (pd->parent.td)
		atomic_fetch_sub(&((struct soft_td *)pd->parent.td)->users, 1);
	soft_pd_release(pd);
	return 0;
}

void soft_pd_hold(struct soft_pd *pd)
{
	atomic_fetch_add_explicit(&pd->references, 1, memory_order_relaxed);
}

void soft_pd_release(struct soft_pd *pd)
{
	if (atomic_fetch_sub_explicit(&pd->references, 1, memory_order_acq_rel) != 1)
		return;
	soft_mutex_destroy(&pd->lock);
	free(pd);
}

void soft_pd_add(struct soft_pd *pd, struct soft_pd_member *member, struct soft_lock *first, struct soft_lock *second)
{
	struct soft_pd *domain = pd->domain;

	member->first = first;
	member->second = second;
	atomic_fetch_add(&pd->users, 1);
	soft_mutex_lock(&domain->lock);
	member->previous = NULL;
	member->next = domain->members;
	if (domain->members)
		domain->members->previous = member;
	domain->members = member;
	soft_mutex_unlock(&domain->lock);
}

void soft_pd_remove(struct soft_pd *pd, struct soft_pd_member *member)
{
	struct soft_pd *domain = pd->domain;

	soft_mutex_lock(&domain->lock);
	if (member->previous)
		member->previous->next = member->next;
	else
		domain->members = member->next;
	if (member->next)
		member->next->previous = member->previous;
	soft_mutex_unlock(&domain->lock);
	atomic_fetch_sub(&pd->users, 1);
}
