/* The owner of an object; NULL for a NULL object, which the provider rejects itself. */
#include "preload.h"

#include "soft/cm/calls.h"

const void *preload_owner_of_device(const struct ibv_device *device)
{
	return device;
}

const void *preload_owner_of_context(const struct ibv_context *context)
{
	return context ? context->device : NULL;
}

/* All other objects of libibverbs contain their context. */
#define OWNER_BY_CONTEXT(function, type)                                                           \
	const void *function(const struct type *object)                                            \
	{                                                                                          \
		return object ? preload_owner_of_context(object->context) : NULL;                  \
	}

OWNER_BY_CONTEXT(preload_owner_of_pd, ibv_pd)
OWNER_BY_CONTEXT(preload_owner_of_mr, ibv_mr)
OWNER_BY_CONTEXT(preload_owner_of_ah, ibv_ah)
OWNER_BY_CONTEXT(preload_owner_of_comp_channel, ibv_comp_channel)
OWNER_BY_CONTEXT(preload_owner_of_cq, ibv_cq)
OWNER_BY_CONTEXT(preload_owner_of_qp, ibv_qp)
OWNER_BY_CONTEXT(preload_owner_of_srq, ibv_srq)

const void *preload_owner_of_channel(const struct rdma_event_channel *channel)
{
	return channel ? ((const struct soft_event_channel *)channel)->cm : NULL;
}

const void *preload_owner_of_id(const struct rdma_cm_id *id)
{
	return id ? ((const struct soft_id *)id)->cm : NULL;
}

const void *preload_owner_of_event(const struct rdma_cm_event *event)
{
	return event ? ((const struct soft_cm_event *)event)->owner->cm : NULL;
}
