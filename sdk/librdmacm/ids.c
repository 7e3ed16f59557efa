/* Ids: their life, addresses, options, and what a synchronous one waits for. */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static struct id *ids;

static struct id *of(struct rdma_cm_id *id) { return CONTAINER(id, struct id, base); }

struct id *id_of(rdmarun_handle handle)
{
	struct id *id = ids;

	while (id && id->handle != handle)
		id = id->next;
	return id;
}

struct id *new_id(rdmarun_handle handle, struct rdma_event_channel *channel, void *context, enum rdma_port_space ps)
{
	struct id *id = calloc(1, sizeof(*id));

	if (!id) {
		errno = ENOMEM;
		return NULL;
	}
	id->handle = handle;
	id->base.channel = channel;
	id->base.context = context;
	id->base.ps = ps;
	id->base.qp_type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
	id->next = ids;
	ids = id;
	return id;
}

static void free_id(struct id *id)
{
	struct id **at = &ids;

	while (*at != id)
		at = &(*at)->next;
	*at = id->next;
	free(id->last);
	free(id);
}

/* Where an id has no address there is no device yet; the address of any device will not do. */
static bool names_device(const struct sockaddr *address)
{
	static const uint8_t zeros[16];

	if (address->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr != INADDR_ANY;
	return address->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, zeros, sizeof(zeros)) != 0;
}

void update_id(struct id *id)
{
	struct rdmarun_address address = {0};
	struct rdma_addr *addresses = &id->base.route.addr;

	if (rdmarun_local_address(id->handle, &address) >= 0)
		address_from_host(&addresses->src_addr, &address);
	if (rdmarun_peer_address(id->handle, &address) >= 0)
		address_from_host(&addresses->dst_addr, &address);
	if (id->base.verbs || !names_device(&addresses->src_addr))
		return;
	id->base.verbs = device_context();
	id->base.port_num = 1;
	if (!id->base.pd)
		id->base.pd = default_pd();
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	int32_t handle = rdmarun_create_id(channel_handle(channel), ps);
	struct id *made;

	if (cm_result(handle))
		return -1;
	made = new_id((rdmarun_handle)handle, channel, context, ps);
	if (!made) {
		rdmarun_destroy_id((rdmarun_handle)handle);
		return -1;
	}
	*id = &made->base;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	int32_t result = id->qp ? rdmarun_destroy_ep(of(id)->handle) : rdmarun_destroy_id(of(id)->handle);

	if (cm_result(result))
		return -1;
	forget_qp(of(id));
	free_id(of(id));
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	rdmarun_destroy_ep(of(id)->handle);
	forget_qp(of(id));
	if (id->srq)
		rdma_destroy_srq(id);
	free_id(of(id));
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct rdmarun_addr_info info = {
		.struct_size = sizeof(info), .flags = res->ai_flags & RAI_PASSIVE, .port_space = (uint32_t)res->ai_port_space};
	struct rdmarun_qp_init_attr host;
	struct id *made;
	int32_t handle;

	address_to_host(&info.source, res->ai_src_addr);
	address_to_host(&info.destination, res->ai_dst_addr);
	if (attr) {
		if (!pd)
			pd = default_pd();
		if (!pd)
			return -1;
		attr->qp_type = res->ai_qp_type ? (enum ibv_qp_type)res->ai_qp_type : attr->qp_type;
		qp_attr_to_host(&host, attr);
	}
	handle = rdmarun_create_ep(0, &info, attr ? pd->handle : 0, attr ? &host : NULL);
	if (cm_result(handle))
		return -1;
	made = new_id((rdmarun_handle)handle, NULL, NULL, (enum rdma_port_space)res->ai_port_space);
	if (!made) {
		rdmarun_destroy_ep((rdmarun_handle)handle);
		return -1;
	}
	made->base.pd = pd;
	if (res->ai_qp_type)
		made->base.qp_type = (enum ibv_qp_type)res->ai_qp_type;
	update_id(made);
	if (attr && !(res->ai_flags & RAI_PASSIVE) && adopt_qp(made, attr)) {
		rdma_destroy_ep(&made->base);
		return -1;
	}
	*id = &made->base;
	return 0;
}

/* ---- the end of a synchronous call ---- */

struct end {
	struct id *id;
	bool looked;
	int32_t result;
};

static bool has_ended(void *object)
{
	struct end *end = object;
	struct rdmarun_poll_entry entry = {.handle = end->id->handle, .events = RDMARUN_POLL_IN};

	/* That nothing has come and that the end was ETIMEDOUT look alike: after the first time only what came is looked at. */
	if (end->looked && rdmarun_poll_set(&entry, 1, 0) <= 0)
		return false;
	end->result = rdmarun_complete(end->id->handle, 0);
	if (end->looked)
		return true;
	end->looked = true;
	return end->result != -RDMARUN_ETIMEDOUT;
}

static void keep_event(struct id *id, struct id *listener)
{
	struct event *event = calloc(1, sizeof(*event));

	if (!event)
		return;
	event->host.struct_size = sizeof(event->host);
	if (rdmarun_ep_event(id->handle, &event->host) < 0) {
		free(event);
		return;
	}
	fill_event(event, listener);
	free(id->last);
	id->last = event;
	id->base.event = &event->base;
}

int end_of_call(struct id *id, int32_t result)
{
	if (result >= 0 && !id->base.channel) {
		struct end end = {.id = id};
		int ended = wait_for_handle(has_ended, &end, id->handle, RDMARUN_POLL_IN, -1);

		if (ended) {
			errno = ended;
			return -1;
		}
		keep_event(id, NULL);
		result = end.result;
	}
	update_id(id);
	return cm_result(result);
}

static bool has_request(void *object)
{
	struct end *end = object;

	end->result = rdmarun_get_request(end->id->handle, 0);
	return end->result != -RDMARUN_ETIMEDOUT;
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct end end = {.id = of(listen)};
	int ended = wait_for_handle(has_request, &end, of(listen)->handle, RDMARUN_POLL_IN, -1);
	struct id *made;

	if (ended) {
		errno = ended;
		return -1;
	}
	if (cm_result(end.result))
		return -1;
	made = new_id((rdmarun_handle)end.result, NULL, listen->context, listen->ps);
	if (!made) {
		rdmarun_destroy_ep((rdmarun_handle)end.result);
		return -1;
	}
	made->base.qp_type = listen->qp_type;
	made->base.pd = listen->pd;
	update_id(made);
	if (rdmarun_ep_qp(made->handle) >= 0 && adopt_qp(made, NULL)) {
		rdma_destroy_ep(&made->base);
		return -1;
	}
	keep_event(made, of(listen));
	*id = &made->base;
	return 0;
}

/* ---- addresses and options ---- */

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	struct rdmarun_address host;
	int32_t result;

	address_to_host(&host, address);
	result = rdmarun_bind_addr(of(id)->handle, &host);
	update_id(of(id));
	return cm_result(result);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *destination, int timeout_ms)
{
	struct rdmarun_address from, to;

	address_to_host(&from, source);
	address_to_host(&to, destination);
	return end_of_call(of(id), rdmarun_resolve_addr(of(id)->handle, from.family ? &from : NULL, &to, (uint32_t)timeout_ms));
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	return end_of_call(of(id), rdmarun_resolve_route(of(id)->handle, (uint32_t)timeout_ms));
}

int rdma_set_option(struct rdma_cm_id *id, int level, int option, void *value, size_t length)
{
	return cm_result(rdmarun_set_option(of(id)->handle, (uint32_t)level, (uint32_t)option, value, length));
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	int32_t result = rdmarun_migrate_id(of(id)->handle, channel_handle(channel));

	if (result >= 0)
		id->channel = channel;
	return cm_result(result);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id) { return htons((uint16_t)rdmarun_src_port(of(id)->handle)); }

__be16 rdma_get_dst_port(struct rdma_cm_id *id) { return htons((uint16_t)rdmarun_dst_port(of(id)->handle)); }
