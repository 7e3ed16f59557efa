/*
 * The receiving end of an extended reliable connection. It is a queue pair that belongs to no user. Users have
 * handles: one is created with it, others are opened. Each handle has a context, events and a domain handle of its
 * own.
 */
#include "soft/qp/verbs.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/fabric.h"
#include "soft/base/refusal.h"
#include "soft/engine/calls.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/objects/xrc.h"
#include "soft/qp/internal.h"

#define CREATE_ATTRIBUTES (uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD)
#define OPEN_ATTRIBUTES                                                                            \
	(uint32_t)(IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE)

/*
 * A struct ibv_qp that represents the target, and little else. It stays in RESET, so nothing can be posted to it;
 * state and attributes are those of the target.
 */
static struct soft_qp *make_handle(struct ibv_context *context, struct soft_xrcd *xrcd, struct ibv_pd *pd, void *qp_context)
{
	struct soft_qp *handle = aligned_alloc(SOFT_CACHE_LINE, sizeof(*handle));

	if (!handle)
		return NULL;
	*handle = (struct soft_qp){
		.ibv = {.context = context, .qp_context = qp_context, .pd = pd, .qp_type = IBV_QPT_XRC_RECV},
		.references = 1,
		.state = IBV_QPS_RESET,
		.device = soft_device(context->device),
		.xrc = SOFT_TARGET,
		.xrcd = xrcd,
	};
	soft_lock_init(&handle->requester.lock, SOFT_ORDER_REQUESTER);
	soft_lock_init(&handle->responder.lock, SOFT_ORDER_RESPONDER);
	soft_lock_init(&handle->receive.lock, SOFT_ORDER_RECEIVE_QUEUE);
	soft_events_init(&handle->ibv.mutex, &handle->ibv.cond);
	soft_qp_init_events(handle);
	return handle;
}

/* Add the handle to the target, with the reference of the caller. False if the target has ended. */
static bool link_handle(struct soft_qp *handle, struct soft_qp *target_qp)
{
	bool alive;

	soft_qp_lock(target_qp);
	alive = !target_qp->target->ended;
	if (alive) {
		handle->next_handle = target_qp->target->handles;
		target_qp->target->handles = handle;
		target_qp->ibv.context = handle->ibv.context; /* a context that is open */
		handle->ibv.state = soft_qp_state(target_qp);
	}
	soft_qp_unlock(target_qp);
	handle->ibv.qp_num = handle->ibv.handle = target_qp->ibv.qp_num;
	handle->target_qp = target_qp;
	return alive;
}

static void unlink_handle(struct soft_qp *handle)
{
	struct soft_qp *target_qp = handle->target_qp, **link = &target_qp->target->handles;

	soft_qp_lock(target_qp);
	while (*link != handle)
		link = &(*link)->next_handle;
	*link = handle->next_handle;
	handle->next_handle = NULL;
	if (target_qp->target->handles)
		target_qp->ibv.context = target_qp->target->handles->ibv.context;
	soft_qp_unlock(target_qp);
}

/* Whether no handle is left, and no other call has returned true for it. */
static bool is_last(struct soft_qp *target_qp)
{
	bool last;

	soft_qp_lock(target_qp);
	last = !target_qp->target->handles && !target_qp->target->ended;
	target_qp->target->ended |= last;
	soft_qp_unlock(target_qp);
	return last;
}

static void destroy_target(struct soft_qp *target_qp)
{
	struct soft_device *device = soft_qp_device(target_qp);

	soft_qp_reset(target_qp);
	soft_table_remove(&device->queue_pairs, target_qp->ibv.qp_num);
	soft_timer_unregister(&device->fabric->timers, &target_qp->timer);
	soft_qp_release(target_qp);
}

static struct soft_qp *make_target(struct ibv_context *context, const struct soft_xrcd *xrcd)
{
	struct soft_xrc_target *target = calloc(1, sizeof(*target));
	struct soft_qp *target_qp;

	if (!target)
		return NULL;
	target->domain = xrcd->domain;
	target_qp = soft_qp_make(&(struct soft_qp){
		.ibv = {.context = context, .qp_type = IBV_QPT_XRC_RECV},
		.device = soft_device(context->device),
		.service = SOFT_RELIABLE_CONNECTION,
		.xrc = SOFT_TARGET,
		.target = target,
	});
	if (!target_qp)
		free(target); /* does not change errno */
	return target_qp;
}

struct ibv_qp *soft_create_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct soft_qp *handle, *target_qp;
	int error;

	errno = soft_context_is_removed(context) ? EIO :
		!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd || attr->xrcd->context != context ?
			soft_refuse(EINVAL, "a queue pair of type XRC_RECV needs an XRC domain of its context") :
		attr->comp_mask & ~CREATE_ATTRIBUTES ? EOPNOTSUPP : 0;
	if (errno)
		return NULL;
	/* The domain is only stored for the user (rdma_create_qp(3) reads it here). */
	handle = make_handle(context, soft_xrcd(attr->xrcd), attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL,
			     attr->qp_context);
	if (!handle)
		return NULL;
	target_qp = make_target(context, handle->xrcd);
	if (!target_qp)
		goto free_handle;
	link_handle(handle, target_qp);
	atomic_fetch_add(&handle->xrcd->users, 1);
	attr->cap = (struct ibv_qp_cap){0}; /* a target has no queue of its own */
	return &handle->ibv;

free_handle:
	error = errno;
	soft_qp_release(handle);
	errno = error;
	return NULL;
}

struct ibv_qp *soft_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	void *qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL;
	struct soft_qp *handle, *target_qp;
	bool linked;

	errno = soft_context_is_removed(context) ? EIO :
		(attr->comp_mask & ~(uint32_t)IBV_QP_OPEN_ATTR_CONTEXT) != OPEN_ATTRIBUTES || !attr->xrcd ||
				attr->xrcd->context != context || attr->qp_type != IBV_QPT_XRC_RECV ? EINVAL : 0;
	if (errno)
		return NULL;
	handle = make_handle(context, soft_xrcd(attr->xrcd), NULL, qp_context);
	if (!handle)
		return NULL;
	target_qp = soft_table_find(&handle->device->queue_pairs, attr->qp_num, soft_qp_hold);
	linked = target_qp && target_qp->target && target_qp->target->domain == handle->xrcd->domain &&
		link_handle(handle, target_qp);
	if (target_qp)
		soft_qp_release(target_qp); /* handles keep the target without a reference */
	if (linked) {
		atomic_fetch_add(&handle->xrcd->users, 1);
		return &handle->ibv;
	}
	soft_qp_release(handle);
	errno = EINVAL;
	return NULL;
}

int soft_close_target(struct soft_qp *handle)
{
	struct soft_qp *target_qp = handle->target_qp;
	int result;

	unlink_handle(handle);
	result = soft_qp_wait_acknowledged(handle);
	if (result) {
		link_handle(handle, target_qp);
		return result;
	}
	if (is_last(target_qp))
		destroy_target(target_qp);
	atomic_fetch_sub(&handle->xrcd->users, 1);
	soft_qp_release(handle);
	return 0;
}
