/* Event channels and the events that come out of them. */
#include <string.h>

#include "core_count.h"
#include "core_fd.h"

int core_create_event_channel(struct core_provider *provider, struct rdma_event_channel **channel,
			      int *fd)
{
	struct rdma_event_channel *created;
	int result;

	if (!provider->rdma_create_event_channel || !provider->rdma_destroy_event_channel)
		return -ENOSYS;
	core_select(provider);
	created = provider->rdma_create_event_channel();
	if (!created)
		return core_errno();
	result = core_set_nonblocking(created->fd);
	if (result)
		goto destroy_channel;
	core_count(provider, CORE_EVENT_CHANNEL, 1);
	*channel = created;
	*fd = created->fd;
	return 0;

destroy_channel:
	provider->rdma_destroy_event_channel(created);
	return result;
}

int core_destroy_event_channel(struct core_provider *provider, struct rdma_event_channel *channel)
{
	provider->rdma_destroy_event_channel(channel);
	core_count(provider, CORE_EVENT_CHANNEL, -1);
	return 0;
}

static void copy_private_data(struct core_conn_param *param, const void *data, uint8_t length)
{
	if (!data)
		return;
	memcpy(param->private_data, data, length);
	param->private_data_len = length;
}

/*
 * The parameters that came with an event.  rdma_ud_param of a datagram id and rdma_conn_param agree in
 * their private data only.  The private data of a multicast event is the caller's context, not data.
 */
static void copy_param(struct core_event *to, const struct rdma_cm_event *from)
{
	struct core_conn_param *param = &to->conn;

	switch (from->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_DISCONNECTED:
		break;
	default:
		return;
	}
	if (from->id->ps == RDMA_PS_UDP || from->id->ps == RDMA_PS_IPOIB) {
		param->qp_num = from->param.ud.qp_num;
		copy_private_data(param, from->param.ud.private_data,
				  from->param.ud.private_data_len);
		return;
	}
	param->responder_resources = from->param.conn.responder_resources;
	param->initiator_depth = from->param.conn.initiator_depth;
	param->flow_control = from->param.conn.flow_control;
	param->retry_count = from->param.conn.retry_count;
	param->rnr_retry_count = from->param.conn.rnr_retry_count;
	param->srq = from->param.conn.srq;
	param->qp_num = from->param.conn.qp_num;
	copy_private_data(param, from->param.conn.private_data,
			  from->param.conn.private_data_len);
}

int core_get_event(struct core_provider *provider, struct rdma_event_channel *channel,
		   struct core_event *event)
{
	struct rdma_cm_event *got;

	if (!provider->rdma_get_cm_event || !provider->rdma_ack_cm_event)
		return -ENOSYS;
	for (;;) {
		if (!provider->rdma_get_cm_event(channel, &got))
			break;
		if (errno != EINTR)
			return core_errno();
	}
	memset(event, 0, sizeof(*event));
	event->id = got->id;
	event->listen_id = got->listen_id;
	event->type = got->event;
	event->status = got->status;
	copy_param(event, got);
	if (got->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		core_count(provider, CORE_ID, 1);
	return core_rdma_result(provider->rdma_ack_cm_event(got));
}
