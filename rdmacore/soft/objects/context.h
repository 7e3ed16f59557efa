/* An open device: a whole verbs_context, so that the inline verbs of verbs.h work, and its async events. */
#ifndef SOFT_OBJECTS_CONTEXT_H
#define SOFT_OBJECTS_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "soft/base/event_queue.h"
#include "soft/base/lock.h"

/* Events of a context that are not about one of its objects. */
enum soft_context_event {
	SOFT_CONTEXT_FATAL,
	SOFT_CONTEXT_GID_CHANGE,
	SOFT_CONTEXT_PORT_ERROR,
	SOFT_CONTEXT_PORT_ACTIVE,
	SOFT_CONTEXT_EVENTS
};

/* An async event, a part of the object that it is about. */
struct soft_async_event {
	struct soft_event_node node;
	enum ibv_event_type type;
	_Atomic bool raised; /* by soft_async_raise_once, from either half of a queue pair */
	union {
		struct ibv_cq *cq;
		struct ibv_qp *qp;
		struct ibv_srq *srq;
		int port;
	} element;
};

struct soft_context {
	LIST_ENTRY(soft_context) entry; /* soft_device.contexts */
	_Atomic bool removed; /* its device was removed; a device that returns is a new one */
	struct soft_async_event events[SOFT_CONTEXT_EVENTS];
	struct soft_event_queue async;
	struct verbs_context verbs; /* ends with the ibv_context, which must be last */
};

static inline struct soft_context *soft_context(struct ibv_context *context)
{
	return soft_container_of(context, struct soft_context, verbs.context);
}

/*
 * Whether the device of the context was removed. Then commands fail with EIO, as on Linux, but objects can be
 * destroyed.
 */
static inline bool soft_context_is_removed(struct ibv_context *context)
{
	return atomic_load_explicit(&soft_context(context)->removed, memory_order_acquire);
}

/* Raise event on its context. */
void soft_async_raise(struct ibv_context *context, struct soft_async_event *event);
/* The same, unless it was raised before. */
void soft_async_raise_once(struct ibv_context *context, struct soft_async_event *event);
/* port: for events that are about a port. */
void soft_context_init_events(struct soft_context *context, int port);
int soft_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
void soft_ack_async_event(struct ibv_async_event *event);

#endif
