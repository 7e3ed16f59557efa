/* Queue pairs are connected: their sockets, their routes, and how many packets may be on the way. */
#include "soft/udp/internal.h"

#include <errno.h>
#include <string.h>

#include "soft/base/refusal.h"
#include "soft/engine/segment.h"
#include "soft/objects/qp.h"

/*
 * What a packet costs in a socket's buffer, in bytes. Coalesced with others: its length and PACKET_COST. Alone, as
 * packets of rdma_rxe come: the power of two that holds ALONE_HEADERS and the length, and ALONE_COST (struct sk_buff
 * and its skb_shared_info). A quarter of the buffer is left for other senders.
 */
#define PACKET_COST 700
#define ALONE_HEADERS 420
#define ALONE_COST 256
/*
 * Parts of a window that request an acknowledgement each: one part is on its way while the others are sent, received
 * and acknowledged.
 */
#define PARTS 4

/* Receive headers at that socket, and at the one that gets packets of other hosts for the address. */
static void show_headers(struct soft_udp *udp, struct soft_udp_socket *socket)
{
	struct soft_udp_socket *roce = soft_udp_find(udp, &socket->endpoint.address, SOFT_WIRE_PORT);

	soft_udp_show_headers(socket);
	if (roce)
		soft_udp_show_headers(roce);
}

/* A queue pair for datagrams receives at each address of the device. */
static int open_for_datagrams(struct soft_udp *udp, uint32_t number)
{
	uint32_t count = soft_gid_count(&udp->device->gid_table);
	int error = 0;
	bool any = false;

	for (uint32_t index = 0; index < count; index++) {
		struct soft_udp_socket *socket =
			soft_udp_open(udp, &udp->device->gid_table.gids[index], soft_udp_port_of(number), &error);

		/* An address that the host does not have any more is skipped. */
		if (socket)
			show_headers(udp, socket);
		any |= socket != NULL;
	}
	return any ? 0 : error;
}

/* Check that a peer on another host can answer, and that packets of the path MTU reach it. */
static int check_far_route(struct soft_udp *udp, const struct soft_udp_route *route, const struct soft_path *path)
{
	enum ibv_mtu mtu;
	int error;

	if (soft_gid_is_this_host_only(&route->socket->endpoint.address))
		return soft_refuse(EINVAL, "a loopback address reaches no other host");
	if (!soft_udp_find(udp, &route->socket->endpoint.address, SOFT_WIRE_PORT))
		return soft_udp_refuse_port(&route->socket->endpoint.address);
	error = soft_udp_check_identifications(udp, &route->socket->endpoint.address);
	if (error)
		return error;
	if (soft_gid_route(&route->to.any, NULL, &mtu) && path->mtu > 128u << mtu)
		return soft_refuse(EINVAL, "a path MTU of %u bytes is more than the route takes, which is %u with the headers",
				   path->mtu, 128u << mtu);
	return 0;
}

static uint32_t clamp(uint32_t value, uint32_t least, uint32_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* An acknowledgement is requested once for a system call, or for several of them if the window holds more. */
static uint32_t acknowledge_every(uint32_t window, uint32_t mtu)
{
	uint32_t burst = SOFT_UDP_BYTES / (mtu + SOFT_WIRE_OVERHEAD), part = window / PARTS;

	if (burst > SOFT_UDP_SEGMENTS)
		burst = SOFT_UDP_SEGMENTS;
	return part > burst ? part - part % burst : clamp(part, 1, burst);
}

/* Limit the packets that are on their way. The peer's buffer is assumed to be as large as the local one. */
static void limit_packets(const struct soft_udp *udp, struct soft_segmentation *segmentation, uint32_t mtu)
{
	uint32_t bytes = (uint32_t)atomic_load_explicit(&udp->buffer_bytes, memory_order_relaxed) / 4 * 3, alone = 1;

	while (alone < mtu + ALONE_HEADERS)
		alone *= 2;
	segmentation->window_limit = clamp(bytes / (mtu + PACKET_COST), SOFT_WINDOW_MIN, SOFT_WINDOW_MAX);
	segmentation->read_limit = clamp(bytes / (alone + ALONE_COST), SOFT_WINDOW_MIN, SOFT_READ_MAX);
	segmentation->window = segmentation->window_limit;
	segmentation->acknowledge_every = acknowledge_every(segmentation->window_limit, mtu);
}

int soft_udp_connect(struct soft_link *link, struct soft_qp *qp, const struct soft_path *path)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	struct soft_udp *udp = soft_udp_of(link);
	struct soft_udp_route route;
	int error;

	if (!path->source)
		return open_for_datagrams(udp, qp->ibv.qp_num);
	error = soft_udp_route(udp, path->source, qp->ibv.qp_num, path->destination, path->number, &route);
	if (!error && !soft_device_owns(udp->device, path->destination))
		error = check_far_route(udp, &route, path);
	if (error)
		return error;
	route.is_own = soft_udp_has_block(udp, &route.peer);
	memcpy(segmentation->route, &route, sizeof(route));
	limit_packets(udp, segmentation, path->mtu);
	return 0;
}

/*
 * A peer on this host sends from the port of its block, which the kernel gives to no other process, so the port is
 * compared. The port of another host only spreads its flows (annex A17.9.2) and does not identify the sender.
 */
bool soft_udp_is_peer(const struct soft_qp *qp, const struct soft_arrival *arrival)
{
	const struct soft_udp_route *route = (const struct soft_udp_route *)(const void *)qp->segmentation->route;

	return route->socket && !memcmp(&route->peer.address, &arrival->source, sizeof(arrival->source)) &&
	       !memcmp(&route->socket->endpoint.address, &arrival->destination, sizeof(arrival->destination)) &&
	       (route->peer.port == SOFT_WIRE_PORT || route->peer.port == arrival->port);
}

int soft_udp_join_group(struct soft_link *link, const union ibv_gid *group)
{
	struct soft_udp_socket *socket;
	int error = 0;

	socket = soft_udp_open(soft_udp_of(link), group, SOFT_WIRE_PORT, &error);
	if (socket)
		soft_udp_show_headers(socket);
	return error;
}
