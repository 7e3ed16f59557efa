#include "soft/objects/context.h"

void soft_async_raise(struct ibv_context *context, struct soft_async_event *event)
{
	soft_event_queue_push(&soft_context(context)->async, &event->node);
}

void soft_async_raise_once(struct ibv_context *context, struct soft_async_event *event)
{
	if (!atomic_exchange(&event->raised, true))
		soft_async_raise(context, event);
}

void soft_context_init_events(struct soft_context *context, int port)
{
	static const enum ibv_event_type types[SOFT_CONTEXT_EVENTS] = {
		[SOFT_CONTEXT_FATAL] = IBV_EVENT_DEVICE_FATAL,
		[SOFT_CONTEXT_GID_CHANGE] = IBV_EVENT_GID_CHANGE,
		[SOFT_CONTEXT_PORT_ERROR] = IBV_EVENT_PORT_ERR,
		[SOFT_CONTEXT_PORT_ACTIVE] = IBV_EVENT_PORT_ACTIVE,
	};

	for (int event = 0; event < SOFT_CONTEXT_EVENTS; event++) {
		context->events[event].type = types[event];
		context->events[event].element.port = port;
	}
}

int soft_get_async_event(struct ibv_context *context, struct ibv_async_event *out)
{
	struct soft_event_node *node = soft_event_queue_pop(&soft_context(context)->async);
	struct soft_async_event *event;

	if (!node)
		return -1;
	event = soft_container_of(node, struct soft_async_event, node);
	out->event_type = event->type;
	switch (event->type) {
	case IBV_EVENT_CQ_ERR:
		out->element.cq = event->element.cq;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		out->element.srq = event->element.srq;
		break;
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		out->element.port_num = event->element.port;
		break;
	default:
		out->element.qp = event->element.qp;
		break;
	}
	return 0;
}

void soft_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		soft_events_acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed, 1);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		soft_events_acknowledge(&srq->mutex, &srq->cond, &srq->events_completed, 1);
		break;
	case IBV_EVENT_DEVICE_FATAL: /* not about an object that could be destroyed */
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		break;
	default:
		soft_events_acknowledge(&qp->mutex, &qp->cond, &qp->events_completed, 1);
		break;
	}
}
