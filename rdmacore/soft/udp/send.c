#include "soft/udp/internal.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/engine/segment.h"
#include "soft/link/packets.h"
#include "soft/objects/ah.h"
#include "soft/objects/qp.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103 /* linux/udp.h */
#endif

/* Packets of up to that length are written to the stack instead of a buffer. */
#define SHORT 512

int soft_udp_send_init(struct soft_udp *udp)
{
	/* Pages that no burst uses are not allocated by the kernel. */
	udp->buffers.bytes = malloc((size_t)SOFT_UDP_BUFFERS * SOFT_UDP_BYTES);
	if (!udp->buffers.bytes)
		return -ENOMEM;
	soft_lock_init(&udp->buffers.lock, SOFT_ORDER_BUFFERS);
	atomic_init(&udp->segments, SOFT_UDP_SEGMENTS);
	return 0;
}

void soft_udp_send_destroy(struct soft_udp *udp)
{
	free(udp->buffers.bytes);
}

bool soft_udp_route_from(struct soft_udp_socket *socket, const union ibv_gid *to, uint16_t port,
			 struct soft_udp_route *route)
{
	struct soft_endpoint destination = {soft_udp_address_of(to), port};

	*route = (struct soft_udp_route){.socket = socket};
	if (!socket)
		return false;
	route->peer = destination;
	soft_gid_to_sockaddr(&destination.address, port, &route->to.any);
	soft_icrc_headers_make(&route->headers, &socket->endpoint, &destination);
	return true;
}

int soft_udp_route(struct soft_udp *udp, const union ibv_gid *from, uint32_t number, const union ibv_gid *to,
		   uint32_t to_number, struct soft_udp_route *route)
{
	bool here = !soft_gid_is_multicast(to) && soft_device_owns(udp->device, to);
	union ibv_gid source = soft_udp_address_of(from);
	struct soft_udp_socket *socket = soft_udp_find(udp, &source, soft_udp_port_of(number));
	int error = 0;

	if (!socket)
		socket = soft_udp_open(udp, &source, soft_udp_port_of(number), &error);
	if (!soft_udp_route_from(socket, to, here ? soft_udp_port_of(to_number) : SOFT_WIRE_PORT, route))
		return error;
	return 0;
}

/* The index of a free buffer, or SOFT_UDP_BUFFERS when all are in use. */
static uint32_t take_buffer(struct soft_udp *udp)
{
	uint32_t free_ones, index = SOFT_UDP_BUFFERS;

	soft_lock_take(&udp->buffers.lock);
	free_ones = ~udp->buffers.used & ((1u << SOFT_UDP_BUFFERS) - 1);
	if (free_ones) {
		index = (uint32_t)__builtin_ctz(free_ones);
		udp->buffers.used |= 1u << index;
	}
	soft_lock_release(&udp->buffers.lock);
	return index;
}

static void give_back(struct soft_udp *udp, const struct soft_udp_burst *pending)
{
	size_t index;

	if (pending->room != SOFT_UDP_BYTES)
		return;
	index = (size_t)(pending->bytes - udp->buffers.bytes) / SOFT_UDP_BYTES;
	soft_lock_take(&udp->buffers.lock);
	udp->buffers.used &= ~(1u << index);
	soft_lock_release(&udp->buffers.lock);
}

/* Whether the packet can be another segment of the burst. */
static bool fits(struct soft_udp *udp, const struct soft_burst *burst, const struct soft_udp_route *route, size_t length)
{
	const struct soft_udp_burst *pending = burst->pending;

	return !pending->closed && length <= pending->segment && pending->used + length <= pending->room &&
	       burst->count < atomic_load_explicit(&udp->segments, memory_order_relaxed) &&
	       (route == pending->route ||
		(route->socket == pending->route->socket && route->traffic_class == pending->route->traffic_class &&
		 route->hop_limit == pending->route->hop_limit &&
		 !memcmp(&route->to, &pending->route->to, sizeof(route->to)))) &&
	       !soft_faults_active(&udp->fabric->faults);
}

static void begin_burst(struct soft_udp *udp, struct soft_burst *burst, const struct soft_udp_route *route, size_t length)
{
	struct soft_udp_burst *pending = (struct soft_udp_burst *)(void *)burst->own;
	uint32_t buffer = length > SHORT ? take_buffer(udp) : SOFT_UDP_BUFFERS;

	_Static_assert(sizeof(*pending) + SOFT_WIRE_OVERHEAD + SOFT_MTU <= sizeof(burst->own), "the longest packet");
	burst->pending = pending;
	pending->route = route;
	pending->used = 0;
	pending->segment = (uint32_t)length;
	pending->closed = false;
	if (buffer < SOFT_UDP_BUFFERS) {
		pending->room = SOFT_UDP_BYTES;
		pending->bytes = udp->buffers.bytes + (size_t)buffer * SOFT_UDP_BYTES;
	} else {
		pending->room = (uint32_t)(sizeof(burst->own) - sizeof(*pending));
		pending->bytes = burst->own + sizeof(*pending);
	}
}

/* The route of a connected queue pair, or in *own that of a datagram; NULL when there is none. */
static const struct soft_udp_route *find_route(struct soft_udp *udp, struct soft_qp *qp, const struct soft_packet *packet,
					       struct soft_udp_route *own)
{
	if (qp->service != SOFT_UNRELIABLE_DATAGRAM)
		return (const struct soft_udp_route *)(const void *)qp->segmentation->route;
	if (soft_udp_route(udp, &packet->ah->source, qp->ibv.qp_num, &packet->ah->attr.grh.dgid, packet->destination, own))
		return NULL;
	own->traffic_class = packet->ah->attr.grh.traffic_class;
	own->hop_limit = packet->ah->attr.grh.hop_limit;
	return own;
}

/*
 * Queue pairs of one block have one port, so a receiver cannot distinguish the peer from another queue pair of this
 * process. So requests to a queue pair that is not connected with this one are dropped here. Answers only go to
 * requests.
 */
static bool is_foreign(struct soft_qp *qp, const struct soft_udp_route *route, const struct soft_packet *packet)
{
	const struct soft_qp *peer;

	if (!route->is_own || soft_operation_is_answer(packet->opcode))
		return false;
	peer = soft_link_peer(qp);
	return peer && !soft_qp_accepts(peer, qp);
}

uint8_t *soft_udp_begin(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
			const struct soft_packet *packet, size_t length)
{
	struct soft_udp *udp = soft_udp_of(link);
	const struct soft_udp_route *route;
	struct soft_udp_route own;

	if (!length || length > SOFT_WIRE_OVERHEAD + SOFT_MTU)
		return NULL;
	route = find_route(udp, qp, packet, &own);
	if (!route || is_foreign(qp, route, packet))
		return NULL;
	if (burst->count && !fits(udp, burst, route, length))
		soft_udp_flush(link, burst);
	if (!burst->count) {
		begin_burst(udp, burst, route, length);
		if (route == &own) {
			burst->pending->own = own;
			burst->pending->route = &burst->pending->own;
		}
	}
	return burst->pending->bytes + burst->pending->used;
}

/* What a packet that is sent later needs of its route. */
struct later {
	struct soft_udp_socket *socket;
	union soft_udp_address to;
};

static void send_later(const struct soft_packets_sender *sender, uint8_t *bytes, size_t length)
{
	struct later later;
	struct iovec vector = {bytes, length};
	struct msghdr message = {.msg_name = &later.to, .msg_iov = &vector, .msg_iovlen = 1};

	memcpy(&later, sender->route, sizeof(later));
	message.msg_namelen = soft_udp_length(&later.to);
	if (soft_udp_sendmsg(later.socket->source.fd, &message) < 0)
		atomic_fetch_add_explicit(&later.socket->udp->counters.unsent, 1, memory_order_relaxed);
}

/* While faults are active, each packet is sent by itself, behind earlier packets of its flow that wait. */
static void send_with_faults(struct soft_udp *udp, const struct soft_udp_route *route,
			     const struct soft_fault_result *fault_result, const uint8_t *bytes, size_t length)
{
	struct soft_packets_sender sender = {.send = send_later, .flow = soft_udp_flow(&route->peer.address, bytes,
										       false)};
	struct later later = {route->socket, route->to};

	_Static_assert(sizeof(later) <= sizeof(sender.route), "what a sender needs");
	memcpy(sender.route, &later, sizeof(later));
	soft_packets_send(udp->delay_queue, fault_result, &sender, bytes, length);
}

/* Capture with the queue pair's own addresses: the socket has one for all of 127.0.0.0/8. */
static void record(struct soft_udp *udp, const struct soft_qp *qp, const struct soft_packet *packet,
		   const struct soft_udp_route *route, const uint8_t *bytes, size_t length,
			const struct soft_capture_outcome *outcome)
{
	struct soft_endpoint from = {*soft_link_source(qp, packet), route->socket->endpoint.port};
	struct soft_endpoint to = {*soft_link_destination(qp, packet), route->peer.port};

	soft_udp_record(udp, &from, &to,
			packet->ah && qp->service == SOFT_UNRELIABLE_DATAGRAM ? &packet->ah->attr.grh : &qp->attr.ah_attr.grh,
			bytes, length, false, outcome);
}

void soft_udp_send(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
		   const struct soft_packet *packet, uint8_t *bytes, size_t length)
{
	struct soft_udp_burst *pending = burst->pending;
	struct soft_udp *udp = soft_udp_of(link);
	bool faults = soft_faults_active(&udp->fabric->faults) && !burst->count;
	struct soft_capture_outcome outcome = {0};

	/* The segments of a burst are numbered from 0. */
	soft_icrc_encode(&pending->route->headers, (uint16_t)burst->count, packet, bytes, length);
	atomic_fetch_add_explicit(&udp->counters.sent, 1, memory_order_relaxed);
	if (faults) {
		struct soft_fault_subject what = soft_link_subject(qp, packet);

		outcome.fault_result = soft_faults_apply(&udp->fabric->faults, soft_link_source(qp, packet),
						soft_link_destination(qp, packet), &what);
	}
	if (udp->fabric->capture)
		record(udp, qp, packet, pending->route, bytes, length, &outcome);
	if (faults) {
		send_with_faults(udp, pending->route, &outcome.fault_result, bytes, length);
		give_back(udp, pending);
		burst->pending = NULL;
		return;
	}
	pending->used += (uint32_t)length;
	pending->closed = length < pending->segment;
	burst->count++;
}

static void *put_option(struct msghdr *message, int level, int type, const void *value, size_t length)
{
	struct cmsghdr *option =
		(struct cmsghdr *)(void *)((char *)message->msg_control + message->msg_controllen);

	option->cmsg_level = level;
	option->cmsg_type = type;
	option->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(option), value, length);
	message->msg_controllen += CMSG_SPACE(length);
	return option;
}

static void put_options(struct msghdr *message, const struct soft_udp_route *route)
{
	int traffic_class = route->traffic_class, hop_limit = route->hop_limit;
	bool ipv4 = route->to.any.sa_family == AF_INET;

	if (traffic_class)
		put_option(message, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TOS : IPV6_TCLASS, &traffic_class,
			   sizeof(traffic_class));
	if (hop_limit)
		put_option(message, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TTL : IPV6_HOPLIMIT, &hop_limit,
			   sizeof(hop_limit));
}

/* Send the first count packets; false when the kernel takes none. */
static bool transmit(const struct soft_udp_burst *pending, uint32_t count, size_t length)
{
	union {
		char bytes[3 * CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control;
	struct iovec vector = {pending->bytes, length};
	struct msghdr message = {
		.msg_name = (void *)(uintptr_t)&pending->route->to,
		.msg_namelen = soft_udp_length(&pending->route->to),
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = &control,
	};
	uint16_t segment = (uint16_t)pending->segment;

	/* Most packets are alone, and sendto(2) takes less time than sendmsg(2). */
	if (count == 1 && !pending->route->traffic_class && !pending->route->hop_limit)
		return soft_udp_sendto(pending->route->socket->source.fd, pending->bytes, length, message.msg_name,
				       message.msg_namelen) >= 0;
	if (count > 1)
		put_option(&message, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	if (pending->route->traffic_class || pending->route->hop_limit)
		put_options(&message, pending->route);
	if (!message.msg_controllen)
		message.msg_control = NULL;
	return soft_udp_sendmsg(pending->route->socket->source.fd, &message) >= 0;
}

void soft_udp_send_alone(struct soft_udp *udp, const struct soft_udp_route *route, uint8_t *bytes, size_t length)
{
	struct soft_udp_burst burst = {.route = route, .bytes = bytes, .segment = (uint32_t)length};

	atomic_fetch_add_explicit(&udp->counters.sent, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&udp->counters.calls_to_send, 1, memory_order_relaxed);
	if (!transmit(&burst, 1, burst.segment))
		atomic_fetch_add_explicit(&udp->counters.unsent, 1, memory_order_relaxed);
}

void soft_udp_flush(struct soft_link *link, struct soft_burst *burst)
{
	struct soft_udp *udp = soft_udp_of(link);
	struct soft_udp_burst *pending = burst->pending;
	uint32_t unsent = 0;

	if (!transmit(pending, burst->count, pending->used)) {
		/* The kernel has no room. The packets are lost, and repeated as after any loss. */
		unsent = burst->count;
		/* The kernel cannot cut segments on this interface. The first packet is valid as it is. */
		if (burst->count > 1 && (errno == EINVAL || errno == EIO || errno == EOPNOTSUPP) &&
		    transmit(pending, 1, pending->segment)) {
			atomic_store_explicit(&udp->segments, 1, memory_order_relaxed);
			unsent--;
		}
		atomic_fetch_add_explicit(&udp->counters.unsent, unsent, memory_order_relaxed);
	}
	atomic_fetch_add_explicit(&udp->counters.calls_to_send, 1, memory_order_relaxed);
	give_back(udp, pending);
	burst->pending = NULL;
	burst->count = 0;
}
