#include "soft/objects/verbs.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/clock.h"
#include "soft/objects/cq.h"

/* End the wait. Returns whether the caller must raise the event. cq->lock is held. */
static bool flush(struct soft_cq *cq)
{
	bool notify = cq->moderation->waiting && cq->armed != SOFT_CQ_IDLE;

	soft_lock_expect(&cq->lock);
	cq->moderation->waiting = 0;
	if (notify)
		cq->armed = SOFT_CQ_IDLE;
	return notify;
}

static void expire(struct soft_timer *timer)
{
	struct soft_cq *cq = soft_container_of(timer, struct soft_cq_moderation, timer)->cq;
	bool notify;

	soft_lock_take(&cq->lock);
	notify = flush(cq);
	soft_lock_release(&cq->lock);
	if (notify)
		soft_cq_notify(cq);
}

/* Created once and kept, because producers use it from then on. */
static int add(struct soft_cq *cq)
{
	struct soft_cq_moderation *moderation;
	bool there;

	soft_lock_take(&cq->lock);
	there = cq->moderation;
	soft_lock_release(&cq->lock);
	if (there)
		return 0;
	moderation = calloc(1, sizeof(*moderation));
	if (!moderation)
		return ENOMEM;
	moderation->cq = cq;
	if (soft_timer_register(soft_cq_timers(cq), &moderation->timer, expire)) {
		free(moderation);
		return ENOMEM;
	}
	soft_lock_take(&cq->lock);
	if (!cq->moderation) {
		cq->moderation = moderation;
		moderation = NULL;
	}
	soft_lock_release(&cq->lock);
	if (moderation) { /* another thread created it */
		soft_timer_unregister(soft_cq_timers(cq), &moderation->timer);
		free(moderation);
	}
	return 0;
}

int soft_modify_cq(struct ibv_cq *ibv_cq, struct ibv_modify_cq_attr *attr)
{
	struct soft_cq *cq = soft_cq(ibv_cq);
	bool off = !attr->moderate.cq_count || !attr->moderate.cq_period, notify;
	int result;

	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return EOPNOTSUPP;
	if (!(attr->attr_mask & IBV_CQ_ATTR_MODERATE))
		return 0;
	result = add(cq);
	if (result)
		return result;
	soft_lock_take(&cq->lock);
	cq->moderation->count = off ? 0 : attr->moderate.cq_count;
	cq->moderation->period = attr->moderate.cq_period * SOFT_MICROSECOND;
	/* Completions that waited under the old limits are reported now. */
	soft_timer_cancel(soft_cq_timers(cq), &cq->moderation->timer);
	notify = flush(cq);
	soft_lock_release(&cq->lock);
	if (notify)
		soft_cq_notify(cq);
	return 0;
}

void soft_cq_end_moderation(struct soft_cq *cq)
{
	if (!cq->moderation)
		return;
	soft_timer_unregister(soft_cq_timers(cq), &cq->moderation->timer);
	free(cq->moderation);
	cq->moderation = NULL;
}
