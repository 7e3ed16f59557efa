/*
 * Contexts: inline verbs call the functions of the context, which is replaced when it is first seen. ibv_open_device
 * returns contexts, and ids of rdma_cm and rdma_get_devices have those that librdmacm opened, or soft.
 */
#include "trace.h"

struct trace_context *trace_context_of(const struct ibv_context *context)
{
	return trace_map_find(&trace_contexts, context);
}

/* Replace a function, unless it is replaced already: soft changes some of them in a forked child. */
#define REPLACE(member, wrapper)                                                                   \
	do {                                                                                       \
		if (context->ops.member != (wrapper)) {                                            \
			was->ops.member = context->ops.member;                                     \
			context->ops.member = (wrapper);                                           \
		}                                                                                  \
	} while (0)

static void adopt(struct ibv_context *context)
{
	struct trace_context *was = trace_map_add(&trace_contexts, context, sizeof(*was));

	if (!was) {
		trace_unseen("posts and polls of a device, which was opened after too many others");
		return;
	}
	trace_map_publish(&trace_contexts, context, was);
	trace_replace(context, was);
	REPLACE(poll_cq, trace_poll_cq);
	REPLACE(req_notify_cq, trace_req_notify_cq);
	REPLACE(post_srq_recv, trace_post_srq_recv);
	REPLACE(post_recv, trace_post_recv);
	REPLACE(post_send, trace_post_send); /* the last: that it is there means that all are */
}

void trace_adopt_context(struct ibv_context *context)
{
	if (!context || !trace_on() || context->ops.post_send == trace_post_send)
		return;
	trace_map_lock();
	if (context->ops.post_send != trace_post_send)
		adopt(context);
	trace_map_unlock();
}

void trace_adopt_id(struct rdma_cm_id *id)
{
	if (id && id->verbs)
		trace_adopt_context(id->verbs);
}
