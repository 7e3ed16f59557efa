/* Calls with events as arguments. */
#include "trace.h"

/* The words of an event: host/trace/work.go (decodeEvent) reads them in this order. */
static void put_event(struct trace_call *call, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	const struct rdma_ud_param *ud = &event->param.ud;
	bool datagram = event->id && (event->id->ps == RDMA_PS_UDP || event->id->ps == RDMA_PS_IPOIB);

	trace_put(call, (uintptr_t)event->id);
	trace_put(call, (uintptr_t)event->listen_id);
	trace_put(call, event->event);
	trace_put(call, (uint64_t)(int64_t)event->status);
	trace_put(call, datagram);
	if (datagram) {
		trace_put_bytes(call, ud->private_data_len ? ud->private_data : NULL, ud->private_data_len);
		trace_put(call, ud->qp_num);
		trace_put(call, ud->qkey);
		return;
	}
	trace_put_bytes(call, conn->private_data_len ? conn->private_data : NULL, conn->private_data_len);
	trace_put(call, conn->responder_resources);
	trace_put(call, conn->initiator_depth);
	trace_put(call, conn->flow_control);
	trace_put(call, conn->retry_count);
	trace_put(call, conn->rnr_retry_count);
	trace_put(call, conn->qp_num);
}

TRACE_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	int (*next)(struct rdma_event_channel *channel, struct rdma_cm_event **event) = trace_next(TRACE_rdma_get_cm_event);
	struct trace_call call;
	int result;

	trace_begin(&call, TRACE_rdma_get_cm_event, TRACE_SITE);
	if (call.on) {
		trace_put(&call, (uintptr_t)channel);
		trace_enter(&call);
	}
	result = next(channel, event);
	if (!result) {
		trace_adopt_id((*event)->id);
		if (call.on)
			put_event(&call, *event);
	}
	trace_end(&call, result);
	return result;
}

TRACE_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	int (*next)(struct rdma_cm_event *event) = trace_next(TRACE_rdma_ack_cm_event);
	struct trace_call call;
	int result;

	trace_begin(&call, TRACE_rdma_ack_cm_event, TRACE_SITE);
	if (call.on) {
		trace_put(&call, event ? (uintptr_t)event->id : 0);
		trace_put(&call, event ? event->event : 0);
		trace_enter(&call);
	}
	result = next(event);
	trace_end(&call, result);
	return result;
}

/* The event, and what it is about: an object, or the number of a port. */
static void put_async(struct trace_call *call, const struct ibv_async_event *event)
{
	trace_put(call, event->event_type);
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
	case IBV_EVENT_WQ_FATAL:
		trace_put(call, (uintptr_t)event->element.qp);
		break;
	default:
		trace_put(call, (uint64_t)event->element.port_num);
	}
}

TRACE_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int (*next)(struct ibv_context *context, struct ibv_async_event *event) = trace_next(TRACE_ibv_get_async_event);
	struct trace_call call;
	int result;

	trace_begin(&call, TRACE_ibv_get_async_event, TRACE_SITE);
	if (call.on) {
		trace_put(&call, (uintptr_t)context);
		trace_enter(&call);
	}
	result = next(context, event);
	if (!result && call.on)
		put_async(&call, event);
	trace_end(&call, result);
	return result;
}

TRACE_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	void (*next)(struct ibv_async_event *event) = trace_next(TRACE_ibv_ack_async_event);
	struct trace_call call;

	trace_begin(&call, TRACE_ibv_ack_async_event, TRACE_SITE);
	if (call.on) {
		put_async(&call, event);
		trace_enter(&call);
	}
	next(event);
	trace_end(&call, 0);
}
