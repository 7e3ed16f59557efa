#include "soft/udp/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft/base/fabric.h"
#include "soft/base/refusal.h"
#include "soft/engine/segment.h"
#include "soft/link/packets.h"
#include "soft/udp/internal.h"
#include "soft/objects/qp.h"

/*
 * A packet in a socket's buffer costs its length and about that much where it was put together with others; one that came
 * alone, as those of rdma_rxe do, a power of two.  A quarter of the buffer is for others.
 */
#define PACKET_COST 700
#define ALONE_HEADERS 420
#define ALONE_COST 256
/* Of a window, each with an acknowledgement: while one part is on its way the others are sent, taken and answered. */
#define PARTS 4
/* What a socket may keep for us at most; the kernel grants less (net.core.rmem_max). */
#define BUFFER_BYTES (4 << 20)
/* Packets that may wait while there are faults. */
#define STAGED 1024

/* A block is ours when its port of 127.0.0.1 is.  0 or a positive errno. */
static int bind_block(struct soft_udp *udp, uint32_t *block)
{
	uint64_t random = soft_fabric_random(udp->fabric);
	uint32_t step = (uint32_t)(random >> 32) | 1; /* odd: all of them in turn */
	int error = EAGAIN;

	for (uint32_t tries = 0; tries < SOFT_UDP_BLOCKS; tries++) {
		*block = ((uint32_t)random + tries * step) % SOFT_UDP_BLOCKS;
		if (soft_udp_bind_block(udp, (uint16_t)(SOFT_UDP_PORTS + *block), &error))
			error = soft_udp_share_block(udp, *block);
		if (error != EADDRINUSE)
			return error;
	}
	return soft_udp_refuse_blocks();
}

/* A block whose numbers the claimer has not had: one that is ours already, or another. */
static int next_block(struct soft_table_block_source *block_source, uint32_t *number)
{
	struct soft_udp_block_source *mine = soft_container_of(block_source, struct soft_udp_block_source,
							       block_source);
	struct soft_udp *udp = mine->udp;
	struct soft_udp_block *block = udp->blocks;
	int error = 0;

	soft_mutex_lock(&udp->lock);
	while (block < udp->blocks + udp->block_count && block->used[mine->numbers])
		block++;
	if (block == udp->blocks + udp->block_count) {
		soft_mutex_unlock(&udp->lock);
		error = bind_block(udp, number);
		soft_mutex_lock(&udp->lock);
		/* There are no more blocks than sockets. */
		if (!error) {
			block = udp->blocks + udp->block_count++;
			*block = (struct soft_udp_block){.number = *number};
		}
	}
	if (!error) {
		*number = block->number;
		block->used[mine->numbers] = true;
	}
	soft_mutex_unlock(&udp->lock);
	return -error;
}

static void init_block_source(struct soft_udp *udp, enum soft_udp_numbers numbers)
{
	udp->block_sources[numbers] = (struct soft_udp_block_source){{next_block}, udp, numbers};
}

/* What comes there, and from other hosts for that address, is told with its headers. */
static void show_headers(struct soft_udp *udp, struct soft_udp_socket *socket)
{
	struct soft_udp_socket *roce = soft_udp_find(udp, &socket->endpoint.address, SOFT_WIRE_PORT);

	soft_udp_show_headers(socket);
	if (roce)
		soft_udp_show_headers(roce);
}

/* One that was made for datagrams gets them at each address of the device. */
static int open_for_datagrams(struct soft_udp *udp, uint32_t number)
{
	uint32_t count = soft_gid_count(&udp->device->gid_table);
	int error = 0;
	bool any = false;

	for (uint32_t index = 0; index < count; index++) {
		struct soft_udp_socket *socket =
			soft_udp_open(udp, &udp->device->gid_table.gids[index], soft_udp_port_of(number), &error);

		/* An address that the host does not have, or no more, brings nothing. */
		if (socket)
			show_headers(udp, socket);
		any |= socket != NULL;
	}
	return any ? 0 : error;
}

/* What a peer on another host needs: that it can answer, and that packets of the path MTU get there. */
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

/* As many packets as go with one call, or some times that many, of which there are several in a window. */
static uint32_t acknowledge_every(uint32_t window, uint32_t mtu)
{
	uint32_t burst = SOFT_UDP_BYTES / (mtu + SOFT_WIRE_OVERHEAD), part = window / PARTS;

	if (burst > SOFT_UDP_SEGMENTS)
		burst = SOFT_UDP_SEGMENTS;
	return part > burst ? part - part % burst : clamp(part, 1, burst);
}

/* What may be on its way to the peer, whose buffer is taken to be as large as ours, and to us. */
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

static bool has_block(struct soft_udp *udp, const struct soft_endpoint *endpoint)
{
	bool found = false;

	soft_mutex_lock(&udp->lock);
	for (uint32_t index = 0; index < udp->block_count; index++)
		found |= endpoint->port == SOFT_UDP_PORTS + udp->blocks[index].number;
	soft_mutex_unlock(&udp->lock);
	return found;
}

static int connect_queue_pair(struct soft_link *link, struct soft_qp *qp, const struct soft_path *path)
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
	route.is_own = has_block(udp, &route.peer);
	memcpy(segmentation->route, &route, sizeof(route));
	limit_packets(udp, segmentation, path->mtu);
	return 0;
}

/*
 * A peer on this host has the port of its block, which the kernel gives to no other process; so the port is compared.  That of
 * another host is what spreads its flows (annex A17.9.2), and says nothing of who sent the packet.
 */
static bool is_peer(const struct soft_qp *qp, const struct soft_arrival *arrival)
{
	const struct soft_udp_route *route = (const struct soft_udp_route *)(const void *)qp->segmentation->route;

	return route->socket && !memcmp(&route->peer.address, &arrival->source, sizeof(arrival->source)) &&
	       !memcmp(&route->socket->endpoint.address, &arrival->destination, sizeof(arrival->destination)) &&
	       (route->peer.port == SOFT_WIRE_PORT || route->peer.port == arrival->port);
}

static int join_group(struct soft_link *link, const union ibv_gid *group)
{
	struct soft_udp_socket *socket;
	int error = 0;

	socket = soft_udp_open(soft_udp_of(link), group, SOFT_WIRE_PORT, &error);
	if (socket)
		soft_udp_show_headers(socket);
	return error;
}

int soft_udp_create(struct soft_fabric *fabric, struct soft_device *device, bool share, struct soft_udp **out)
{
	struct soft_packets_options stage = {.seed = soft_fabric_random(fabric), .datagrams = STAGED};
	struct soft_udp *udp = calloc(1, sizeof(*udp));
	int result = -ENOMEM;

	if (!udp)
		return result;
	udp->fabric = fabric;
	udp->device = device;
	udp->buffer_wanted = BUFFER_BYTES;
	udp->link = (struct soft_link){
		.icrc = true,
		.piggybacks_acks = true,
		.lax_timeouts = true,
		.route_size = sizeof(struct soft_udp_route),
		.connect = connect_queue_pair,
		.join = join_group,
		.is_peer = is_peer,
		.begin = soft_udp_begin,
		.send = soft_udp_send,
		.flush = soft_udp_flush,
		.queue_ack = soft_udp_queue_ack,
		.answer_later = soft_udp_answer_later,
		.request_later = soft_udp_request_later,
	};
	init_block_source(udp, SOFT_UDP_QUEUE_PAIRS);
	init_block_source(udp, SOFT_UDP_COMMUNICATION);
	udp->ready = soft_udp_ready;
	udp->open_management = soft_udp_open_management;
	udp->ask_identifications = soft_udp_ask_identifications;
	soft_mutex_init(&udp->lock, SOFT_ORDER_UDP);
	result = soft_udp_send_init(udp);
	if (result)
		goto free_udp;
	result = soft_packets_create(fabric, &stage, &udp->delay_queue);
	if (result)
		goto destroy_send;
	result = soft_udp_progress_init(udp);
	if (result)
		goto destroy_stage;
	result = share ? soft_udp_share_create(udp) : 0;
	if (result)
		goto destroy_progress;
	device->link = &udp->link;
	soft_udp_management_init(udp);
	device->progress = &udp->progress;
	soft_table_use_blocks(&device->queue_pairs, &udp->block_sources[SOFT_UDP_QUEUE_PAIRS].block_source);
	*out = udp;
	return 0;

destroy_progress:
	soft_udp_progress_stop(udp);
	soft_udp_progress_destroy(udp);
destroy_stage:
	soft_packets_destroy(udp->delay_queue);
destroy_send:
	soft_udp_send_destroy(udp);
free_udp:
	soft_mutex_destroy(&udp->lock);
	free(udp);
	return result;
}

/*
 * In this order: what opens sockets, what receives from them, the stage that received packets wait on, and the timers that any of
 * those arm.
 */
void soft_udp_destroy(struct soft_udp *udp)
{
	uint32_t count;

	udp->device->link = NULL;
	udp->device->management.block_source = NULL;
	udp->device->management.open = NULL;
	if (udp->device->management.send) /* else soft_cm_stop_mad_tx did it, with the lock of those who read it */
		udp->device->management.send = NULL;
	udp->device->progress = NULL;
	soft_udp_share_end_watch(udp);
	count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);
	for (uint32_t index = 0; index < count; index++)
		soft_poller_remove(&udp->fabric->poller, &udp->sockets[index]->source);
	soft_udp_progress_stop(udp);
	soft_udp_share_stop(udp);
	soft_packets_destroy(udp->delay_queue);
	soft_udp_progress_destroy(udp);
	for (uint32_t index = 0; index < count; index++) {
		close(udp->sockets[index]->source.fd);
		free(udp->sockets[index]);
	}
	soft_udp_share_destroy(udp);
	soft_udp_send_destroy(udp);
	soft_mutex_destroy(&udp->lock);
	free(udp);
}

struct soft_udp_counters soft_udp_count(const struct soft_udp *udp)
{
	return (struct soft_udp_counters){
		.sent = atomic_load(&udp->counters.sent),
		.received = atomic_load(&udp->counters.received),
		.calls_to_send = atomic_load(&udp->counters.calls_to_send),
		.calls_to_receive = atomic_load(&udp->counters.calls_to_receive),
		.unsent = atomic_load(&udp->counters.unsent),
		.dropped = atomic_load(&udp->counters.dropped),
		.passed = atomic_load(&udp->counters.passed),
		.not_passed = atomic_load(&udp->counters.not_passed),
	};
}
