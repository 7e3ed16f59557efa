/* The path between the ends of a connection: its record, and the timeouts that depend on it. */
#include "soft/cm/calls.h"

#include <endian.h>

#include "soft/objects/device.h"
#include "soft/wire/datagram.h"

#define RATE_2_5_GBPS 2 /* enum ibv_rate; follows from the port's width and speed */

/* The ACK timeout of the path: a round trip and the delay of the peer's device (cm_ack_timeout of Linux). */
static uint8_t path_timeout(uint8_t ack_timeout)
{
	unsigned int timeout = ack_timeout;

	if (timeout >= SOFT_ACK_DELAY)
		timeout += SOFT_ACK_DELAY + 1 >= timeout;
	else
		timeout = SOFT_ACK_DELAY + (timeout + 1 >= SOFT_ACK_DELAY);
	return timeout > 31 ? 31 : (uint8_t)timeout;
}

void soft_id_set_gids(struct soft_id *id)
{
	struct rdma_addr *addr = &id->addr;

	soft_mutex_expect(&id->cm->lock);
	soft_address_to_gid(&addr->src_addr, &addr->addr.ibaddr.sgid);
	if (soft_address_is_known(&addr->dst_addr))
		soft_address_to_gid(&addr->dst_addr, &addr->addr.ibaddr.dgid);
	addr->addr.ibaddr.pkey = htobe16(SOFT_WIRE_PARTITION);
}

/* The path MTU to the peer. Within the host it is the largest. */
static enum ibv_mtu path_mtu(const struct soft_id *id)
{
	enum ibv_mtu mtu;

	if (id->between_hosts && soft_gid_route(&id->addr.dst_addr, NULL, &mtu))
		return mtu;
	return IBV_MTU_4096;
}

static void fill_record(struct soft_id *id, uint8_t lifetime)
{
	const struct rdma_ib_addr *ends = &id->addr.addr.ibaddr;

	id->path = (struct ibv_sa_path_rec){
		.sgid = ends->sgid,
		.dgid = ends->dgid,
		.hop_limit = SOFT_HOP_LIMIT,
		.traffic_class = id->type_of_service,
		.reversible = 1,
		.numb_path = 1,
		.pkey = ends->pkey,
		.mtu_selector = 2, /* exactly */
		.mtu = path_mtu(id),
		.rate_selector = 2,
		.rate = RATE_2_5_GBPS,
		.packet_life_time_selector = 2,
		.packet_life_time = lifetime,
	};
}

void soft_id_set_path_of_lifetime(struct soft_id *id, uint8_t lifetime)
{
	soft_mutex_expect(&id->cm->lock);
	id->path_timeout = path_timeout((uint8_t)(lifetime + 1));
	id->response_timeout = 2 * soft_cm_time(lifetime) + soft_cm_time(SOFT_CM_RESPONSE_CODE);
	fill_record(id, lifetime);
}

void soft_id_set_path(struct soft_id *id)
{
	uint8_t lifetime = SOFT_CM_ACK_TIMEOUT - 1;

	soft_mutex_expect(&id->cm->lock);
	/*
	 * An ACK timeout that was set before the route determines the packet lifetime (cma_resolve_iboe_route of
	 * Linux).
	 */
	if (id->ack_timeout_set)
		lifetime = id->ack_timeout ? (uint8_t)(id->ack_timeout - 1) : 0;
	soft_id_set_path_of_lifetime(id, lifetime);
}

void soft_id_set_path_of_request(struct soft_id *id, const struct soft_cm_message *request)
{
	soft_mutex_expect(&id->cm->lock);
	soft_id_set_gids(id);
	fill_record(id, id->path_timeout ? (uint8_t)(id->path_timeout - 1) : 0);
	/* Both ends use the path that the request proposes (IBTA 12.7.18). SIDR requests propose none. */
	if (request->path.mtu >= IBV_MTU_256 && request->path.mtu < id->path.mtu)
		id->path.mtu = request->path.mtu;
}

void soft_id_show_path(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	id->rdma.route.path_rec = &id->path;
	id->rdma.route.num_paths = 1;
}

void soft_id_ah_attr(const struct soft_id *id, struct ibv_ah_attr *attr)
{
	const struct rdma_addr *addr = &id->addr;
	union ibv_gid source;

	soft_mutex_expect(&id->cm->lock);
	*attr = (struct ibv_ah_attr){.is_global = 1, .port_num = SOFT_PORT};
	attr->grh.hop_limit = SOFT_HOP_LIMIT;
	attr->grh.traffic_class = id->type_of_service;
	soft_address_to_gid(&addr->src_addr, &source);
	attr->grh.sgid_index = soft_gid_add(&id->cm->device->gid_table, &source);
	soft_address_to_gid(&addr->dst_addr, &attr->grh.dgid);
}
