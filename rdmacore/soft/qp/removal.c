#include "soft/qp/verbs.h"

#include "soft/engine/calls.h"
#include "soft/objects/context.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"

void soft_device_leave(struct soft_device *device)
{
	struct soft_context *context;

	soft_mutex_lock(&device->lock);
	atomic_store_explicit(&device->away, true, memory_order_release);
	LIST_FOREACH(context, &device->contexts, entry)
		atomic_store_explicit(&context->removed, true, memory_order_release);
	soft_mutex_unlock(&device->lock);
}

/*
 * Linux destroys the queue pairs of a context that it disassociates, and their requests never complete. A queue pair
 * with a context that is not removed was created after the device returned.
 *
 * A queue pair in RESET may be destroyed already, with its queues and its context.
 */
static void stop(struct soft_qp *qp)
{
	soft_qp_lock(qp);
	if (soft_qp_state(qp) != IBV_QPS_RESET && soft_context_is_removed(qp->ibv.context))
		soft_qp_enter(qp, IBV_QPS_RESET);
	soft_qp_unlock(qp);
}

static void stop_queue_pairs(struct soft_device *device)
{
	uint32_t slot = 0;
	struct soft_qp *qp;

	while ((qp = soft_table_next(&device->queue_pairs, &slot, soft_qp_hold))) {
		stop(qp);
		soft_qp_release(qp);
		slot++;
	}
}

void soft_device_stop(struct soft_device *device)
{
	struct soft_context *context;

	stop_queue_pairs(device);
	soft_mutex_lock(&device->lock);
	LIST_FOREACH(context, &device->contexts, entry)
		if (atomic_load_explicit(&context->removed, memory_order_relaxed))
			soft_async_raise_once(&context->verbs.context, &context->events[SOFT_CONTEXT_FATAL]);
	soft_mutex_unlock(&device->lock);
}

void soft_device_return(struct soft_device *device)
{
	atomic_store_explicit(&device->away, false, memory_order_release);
}
