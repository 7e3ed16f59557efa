/* Event channels, and the events that are read from them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static uint32_t channel_entries(void *object, short events, struct rdmarun_poll_entry *entries, uint32_t room)
{
	const struct channel *channel = object;

	if (!room || !(events & POLLIN))
		return 0;
	*entries = (struct rdmarun_poll_entry){.handle = channel->handle, .events = RDMARUN_POLL_IN};
	return 1;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	struct descriptor descriptor = {.object = channel, .entries = channel_entries};
	int32_t handle = rdmarun_create_event_channel();

	if (cm_result(handle) || !channel) {
		free(channel);
		return NULL;
	}
	channel->handle = (rdmarun_handle)handle;
	channel->base.fd = new_descriptor(&descriptor);
	if (channel->base.fd < 0) {
		rdmarun_destroy_event_channel(channel->handle);
		free(channel);
		return NULL;
	}
	return &channel->base;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	rdmarun_destroy_event_channel(channel_handle(channel));
	free_descriptor(channel->fd);
	free(CONTAINER(channel, struct channel, base));
}

rdmarun_handle channel_handle(struct rdma_event_channel *channel)
{
	return channel ? CONTAINER(channel, struct channel, base)->handle : 0;
}

static void fill_connected(struct rdma_conn_param *to, const struct rdmarun_conn_param *from)
{
	to->private_data = from->private_data_len ? from->private_data : NULL;
	to->private_data_len = from->private_data_len;
	to->responder_resources = from->responder_resources;
	to->initiator_depth = from->initiator_depth;
	to->flow_control = from->flow_control;
	to->retry_count = from->retry_count;
	to->rnr_retry_count = from->rnr_retry_count;
	to->srq = from->srq;
	to->qp_num = from->qp_num;
}

static void fill_datagram(struct rdma_ud_param *to, const struct rdmarun_cm_event *from)
{
	to->private_data = from->param.private_data_len ? from->param.private_data : NULL;
	to->private_data_len = from->param.private_data_len;
	to->qp_num = from->param.qp_num;
	to->qkey = from->qkey;
	ah_attr_from_host(&to->ah_attr, &from->ah);
}

void fill_event(struct event *event, struct id *listener)
{
	const struct rdmarun_cm_event *host = &event->host;
	struct id *id = id_of(host->ep);

	if (!listener && host->listener)
		listener = id_of(host->listener);
	if (!id && listener) {
		id = new_id(host->ep, listener->base.channel, listener->base.context, listener->base.ps);
		if (id)
			id->base.qp_type = listener->base.qp_type;
	}
	event->base.id = id ? &id->base : NULL;
	event->base.listen_id = listener ? &listener->base : NULL;
	event->base.event = (enum rdma_cm_event_type)host->event;
	event->base.status = host->status > 0 ? host->status : host->status < 0 ? -errno_of(host->status) : 0;
	if (!id)
		return;
	update_id(id);
	if (id->base.ps == RDMA_PS_UDP || id->base.ps == RDMA_PS_IPOIB)
		fill_datagram(&event->base.param.ud, host);
	else
		fill_connected(&event->base.param.conn, &host->param);
	if (host->event == RDMARUN_EVENT_MULTICAST_JOIN || host->event == RDMARUN_EVENT_MULTICAST_ERROR)
		event->base.param.ud.private_data = (const void *)(uintptr_t)host->arg; /* the join's context */
}

struct next_event {
	struct channel *channel;
	struct event *event;
	int32_t result;
};

static bool take_event(void *object)
{
	struct next_event *next = object;

	next->result = rdmarun_wait_event(next->channel->handle, 0, &next->event->host, 0);
	return next->result != -RDMARUN_ETIMEDOUT;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **got)
{
	struct next_event next = {.channel = CONTAINER(channel, struct channel, base)};
	struct descriptor *descriptor = descriptor_of(channel->fd);
	bool nonblock = descriptor && descriptor->nonblock;
	int ended;

	next.event = calloc(1, sizeof(*next.event));
	if (!next.event) {
		errno = ENOMEM;
		return -1;
	}
	next.event->host.struct_size = sizeof(next.event->host);
	ended = wait_for_handle(take_event, &next, next.channel->handle, RDMARUN_POLL_IN, nonblock ? 0 : -1);
	if (ended || cm_result(next.result)) {
		if (ended)
			errno = nonblock ? EAGAIN : ended;
		free(next.event);
		return -1;
	}
	fill_event(next.event, NULL);
	*got = &next.event->base;
	return 0;
}

/* The host was notified when the event was read. */
int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	free(CONTAINER(event, struct event, base));
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	return event < sizeof(names) / sizeof(names[0]) ? names[event] : "UNKNOWN EVENT";
}
