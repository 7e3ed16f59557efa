/* Event channels and their events. */
#include <string.h>

#include "core/call.h"
#include "provider/newer.h"

int core_create_event_channel(struct core_provider *provider, struct rdma_event_channel **channel,
			      int *fd)
{
	struct rdma_event_channel *created;
	int result;

	CORE_NEEDS(provider->rdma_create_event_channel && provider->rdma_destroy_event_channel);
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

static void copy_datagram(struct core_event *to, const struct rdma_ud_param *from)
{
	to->datagram = 1;
	to->conn.qp_num = from->qp_num;
	to->qkey = from->qkey;
	to->ah_attr = from->ah_attr;
}

static void copy_connection(struct core_conn_param *to, const struct rdma_conn_param *from)
{
	to->responder_resources = from->responder_resources;
	to->initiator_depth = from->initiator_depth;
	to->flow_control = from->flow_control;
	to->retry_count = from->retry_count;
	to->rnr_retry_count = from->rnr_retry_count;
	to->srq = from->srq;
	to->qp_num = from->qp_num;
	copy_private_data(to, from->private_data, from->private_data_len);
}

static bool is_datagram(const struct rdma_cm_id *id)
{
	return id->ps == RDMA_PS_UDP || id->ps == RDMA_PS_IPOIB || id->qp_type == IBV_QPT_UD;
}

/*
 * Copy the parameters of an event. Datagram ids have rdma_ud_param, others rdma_conn_param. The private data of a
 * multicast event is the context given to the join.
 */
static void copy_param(struct core_event *to, const struct rdma_cm_event *from)
{
	switch ((int)from->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_DISCONNECTED:
		if (!is_datagram(from->id)) {
			copy_connection(&to->conn, &from->param.conn);
			break;
		}
		copy_datagram(to, &from->param.ud);
		copy_private_data(&to->conn, from->param.ud.private_data,
				  from->param.ud.private_data_len);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		copy_datagram(to, &from->param.ud);
		to->arg = (uintptr_t)from->param.ud.private_data;
		break;
	case CORE_CM_EVENT_USER:
		memcpy(&to->arg, &from->param, sizeof(to->arg));
		break;
	}
}

void core_copy_event(struct core_event *to, const struct rdma_cm_event *from)
{
	memset(to, 0, sizeof(*to));
	to->id = from->id;
	to->listen_id = from->listen_id;
	to->type = from->event;
	to->status = from->status;
	copy_param(to, from);
}

int core_read_event(struct core_provider *provider, struct rdma_event_channel *channel,
		    struct rdma_cm_event **event)
{
	CORE_NEEDS(provider->rdma_get_cm_event && provider->rdma_ack_cm_event);
	for (;;) {
		if (!provider->rdma_get_cm_event(channel, event))
			return 0;
		if (errno != EINTR)
			return core_errno();
	}
}

int core_get_event(struct core_provider *provider, struct rdma_event_channel *channel, bool hold,
		   struct core_event *event)
{
	struct rdma_cm_event *got;
	int result = core_read_event(provider, channel, &got);

	if (result)
		return result;
	core_copy_event(event, got);
	if (got->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		core_count(provider, CORE_ID, 1);
		/* The child of a synchronous listener has a channel of its own; F_SETFL cannot fail on it. */
		if (got->id->channel != channel)
			core_set_nonblocking(got->id->channel->fd);
	}
	if (hold) {
		event->held = got;
		return 0;
	}
	return core_ack_event(provider, got);
}

int core_ack_event(struct core_provider *provider, struct rdma_cm_event *held)
{
	CORE_NEEDS(provider->rdma_ack_cm_event);
	return core_rdma_result(provider->rdma_ack_cm_event(held));
}
