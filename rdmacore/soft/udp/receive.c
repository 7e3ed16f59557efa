/* Packets of the kernel: what a system call brings, who it is from, and what is pending for it. */
#include "soft/udp/internal.h"

#include <netinet/udp.h>
#include <string.h>
#include <sys/ioctl.h>

#include "soft/base/fabric.h"
#include "soft/objects/qp.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"

#ifndef UDP_GRO
#define UDP_GRO 104 /* linux/udp.h */
#endif

/* Receives between two looks in vain from which on packets had better come together. */
#define GRO_RUN 8
/* Packets that come alone before all are to. */
#define GRO_SINGLES 200
/* Packets alone that one pair outweighs. */
#define GRO_PAIR 10
/* Identifications of a host that counts them follow each other so closely. */
#define NEAR 4096
/* And nanoseconds between two that it may have sent to others meanwhile. */
#define SENDING 1000

/* What control messages say. */
static void read_options(struct msghdr *message, struct soft_udp_rx_batch *rx)
{
	for (struct cmsghdr *option = CMSG_FIRSTHDR(message); option; option = CMSG_NXTHDR(message, option)) {
		int value = 0;
		size_t length = option->cmsg_len - CMSG_LEN(0);

		memcpy(&value, CMSG_DATA(option), length < sizeof(value) ? length : sizeof(value));
		if (option->cmsg_level == IPPROTO_UDP && option->cmsg_type == UDP_GRO)
			rx->segment = (size_t)value;
		else if ((option->cmsg_level == IPPROTO_IP && option->cmsg_type == IP_TTL) ||
			 (option->cmsg_level == IPPROTO_IPV6 && option->cmsg_type == IPV6_HOPLIMIT))
			rx->hops = (uint8_t)value;
		else if ((option->cmsg_level == IPPROTO_IP && option->cmsg_type == IP_TOS) ||
			 (option->cmsg_level == IPPROTO_IPV6 && option->cmsg_type == IPV6_TCLASS))
			rx->traffic_class = (uint8_t)value;
	}
}

static void read_source(const union soft_udp_address *address, struct soft_endpoint *source)
{
	(void)soft_gid_from_sockaddr(&source->address, &address->any);
	source->port = ntohs(address->any.sa_family == AF_INET ? address->ipv4.sin_port : address->ipv6.sin6_port);
}

/*
 * Whether that sender may have sent that identification, which was found from the ICRC alone: a damaged packet has any.
 * Sockets such as ours have those of segments; rdma_rxe counts.
 */
static bool is_plausible(struct soft_udp *udp, const struct soft_endpoint *source, uint16_t identification)
{
	struct soft_udp_peer *peer;
	uint64_t now, sent;
	uint32_t hash = 0;
	bool near;

	if (identification < SOFT_UDP_SEGMENTS)
		return true;
	for (size_t byte = 0; byte < sizeof(source->address.raw); byte++)
		hash = hash * 31 + source->address.raw[byte];
	peer = &udp->peers[hash % SOFT_UDP_PEERS];
	/* One that jumps is lost, and what follows it is not.  A host counts what it sends to all processes here. */
	now = soft_fabric_wall_now(udp->fabric);
	sent = (now - peer->since) / SENDING;
	near = !peer->known || memcmp(&peer->address, &source->address, sizeof(peer->address)) != 0 ||
	       (uint16_t)(identification - peer->identification + NEAR) < 2 * NEAR + sent;
	*peer = (struct soft_udp_peer){true, identification, now, source->address};
	return near;
}

/* The IP header as it was, but for what nobody can know. */
static void make_header(const struct soft_udp_rx_batch *rx, uint16_t identification, size_t length,
			uint8_t header[SOFT_GRH])
{
	struct ibv_global_route route = {.dgid = rx->destination.address, .hop_limit = rx->hops,
					 .traffic_class = rx->traffic_class};

	soft_ip_make(header, &route, &rx->source.address);
	if (soft_ip_offset(header))
		soft_put16(header + soft_ip_offset(header) + 4, identification);
	soft_ip_finish(header, (uint32_t)(SOFT_UDP_HEADER + length));
}

struct batch {
	struct soft_udp *udp;
	const struct soft_udp_rx_batch *rx;
	const struct soft_icrc_headers *headers;
	struct soft_arrival arrival;
};

/* Into the file of what is captured, with the addresses that the receiver's connection has. */
static void record(struct soft_udp *udp, const struct soft_udp_rx_batch *rx, const uint8_t *bytes, size_t length,
		   const struct soft_capture_outcome *outcome)
{
	struct soft_endpoint from = rx->source, to = rx->destination;
	struct ibv_global_route route = {.hop_limit = rx->hops, .traffic_class = rx->traffic_class};

	soft_udp_name_ends(udp, bytes, &from.address, &to.address);
	soft_udp_record(udp, &from, &to, &route, bytes, length, true, outcome);
}

bool soft_udp_queue_ack(struct soft_link *link, struct soft_qp *qp)
{
	struct soft_udp *udp = soft_udp_of(link);

	soft_lock_expect(&udp->receiving);
	if (udp->ack_queue_count == SOFT_UDP_ACK_QUEUE)
		return false;
	soft_qp_hold(qp);
	udp->ack_queue[udp->ack_queue_count++] = qp;
	return true;
}

static void release_receiver(struct soft_udp *udp)
{
	if (udp->receiver)
		soft_qp_release(udp->receiver);
	udp->receiver = NULL;
}

void soft_udp_acknowledge(struct soft_udp *udp)
{
	soft_lock_expect(&udp->receiving);
	release_receiver(udp);
	for (uint32_t index = 0; index < udp->ack_queue_count; index++) {
		soft_link_acknowledge(udp->ack_queue[index]);
		soft_qp_release(udp->ack_queue[index]);
	}
	udp->ack_queue_count = udp->acks_delayed = 0;
}

void soft_udp_drop_acks(struct soft_udp *udp)
{
	for (uint32_t index = 0; index < udp->ack_queue_count; index++)
		soft_qp_release(udp->ack_queue[index]);
	udp->ack_queue_count = udp->acks_delayed = 0;
	release_receiver(udp);
}

/* Its time has come: see soft_udp_hold_back. */
static void deliver_later(struct soft_udp *udp, struct soft_arrival *arrival, uint8_t *bytes, size_t length)
{
	soft_lock_take(&udp->receiving);
	if (!soft_link_deliver(udp->device, arrival, bytes, length))
		soft_udp_drop(udp, arrival->fault, &arrival->source);
	soft_link_deliver_end(arrival);
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

/* A packet from elsewhere is recorded, and meets faults: whether it arrives later, or not at all. */
static bool is_held_up(const struct batch *batch, const uint8_t *bytes, size_t length)
{
	const struct soft_udp_rx_batch *rx = batch->rx;
	struct soft_udp *udp = batch->udp;
	bool faults = soft_faults_active(&udp->fabric->faults);
	struct soft_capture_outcome outcome = {0};

	if (faults)
		outcome.fault_result = soft_udp_apply_faults(udp, &batch->arrival, bytes, length);
	if (udp->fabric->capture)
		record(udp, rx, bytes, length, &outcome);
	return faults && soft_udp_hold_back(udp, &outcome.fault_result, &batch->arrival, bytes, length, deliver_later);
}

/*
 * To the port of a block send processes of this host only, each from those of its own blocks: from any other port anybody might.
 * All of 127.0.0.0/8 is the first address of it.
 */
static bool is_foreign(struct soft_udp *udp, const struct soft_udp_rx_batch *rx)
{
	union ibv_gid own = soft_udp_address_of(&rx->source.address);

	return soft_udp_is_block(rx->destination.port) &&
	       (!soft_udp_is_block(rx->source.port) || !soft_device_owns(udp->device, &own) ||
		memcmp(&own, &rx->source.address, sizeof(own)) != 0);
}

/* In a packet, which is that long at least with its ICRC. */
#define DESTINATION 5
#define DATAGRAM_SOURCE (SOFT_WIRE_BTH + 5)

/*
 * What comes to the port of a block says who sent it by its port: a datagram's source is of that block, and messages of the
 * connection manager take another way between processes.
 */
static bool is_forged(const struct soft_udp_rx_batch *rx, const uint8_t *bytes, size_t length)
{
	if (!soft_udp_is_block(rx->destination.port) || (bytes[0] & SOFT_SERVICE) != SOFT_UNRELIABLE_DATAGRAM)
		return false;
	return length < SOFT_WIRE_BTH + SOFT_WIRE_DETH + SOFT_WIRE_ICRC || soft_get24(bytes + DESTINATION) == SOFT_GSI_QUEUE_PAIR ||
	       soft_udp_port_of(soft_get24(bytes + DATAGRAM_SOURCE)) != rx->source.port;
}

/* One packet of it.  guess: its identification. */
static bool take_in(struct batch *batch, uint16_t guess, uint8_t *bytes, size_t length)
{
	const struct soft_udp_rx_batch *rx = batch->rx;
	struct soft_udp *udp = batch->udp;
	uint16_t identification;

	batch->arrival.fault = SOFT_NOTICE_STRANGER;
	if (udp->pair.is_foreign)
		return false;
	batch->arrival.fault = SOFT_NOTICE_MALFORMED;
	if (length < SOFT_WIRE_BTH + SOFT_WIRE_ICRC)
		return false;
	if (!soft_icrc_identify(batch->headers, guess, bytes, length - SOFT_WIRE_ICRC, &identification) ||
	    (identification != guess && !is_plausible(udp, &rx->source, identification))) {
		soft_count(udp->device, SOFT_COUNT_ICRC);
		batch->arrival.fault = SOFT_NOTICE_ICRC;
		return false;
	}
	if (is_forged(rx, bytes, length)) {
		batch->arrival.fault = SOFT_NOTICE_STRANGER;
		return false;
	}
	if ((bytes[0] & SOFT_SERVICE) == SOFT_UNRELIABLE_DATAGRAM)
		make_header(rx, identification, length, batch->arrival.header);
	if ((udp->fabric->capture || soft_faults_active(&udp->fabric->faults)) &&
	    !soft_udp_find(udp, &rx->source.address, rx->source.port) && is_held_up(batch, bytes, length))
		return true;
	return soft_link_deliver(udp->device, &batch->arrival, bytes, length);
}

static bool is_same(const struct soft_endpoint *a, const struct soft_endpoint *b)
{
	return a->port == b->port && !memcmp(&a->address, &b->address, sizeof(a->address));
}

static const struct soft_icrc_headers *headers_of(struct soft_udp *udp, const struct soft_udp_rx_batch *rx)
{
	struct soft_udp_pair *pair = &udp->pair;

	if (!is_same(&pair->source, &rx->source) || !is_same(&pair->destination, &rx->destination)) {
		pair->source = rx->source;
		pair->destination = rx->destination;
		soft_icrc_headers_make(&pair->headers, &pair->source, &pair->destination);
		pair->is_foreign = is_foreign(udp, rx);
	}
	return &pair->headers;
}

/* Who destroys a queue pair leaves it in RESET, and its number may be another's. */
static void begin_arrival(struct batch *batch)
{
	struct soft_udp *udp = batch->udp;

	batch->arrival.source = batch->rx->source.address;
	batch->arrival.destination = batch->rx->destination.address;
	batch->arrival.port = batch->rx->source.port;
	batch->arrival.sender = SOFT_NO_QPN;
	batch->arrival.receiver = udp->receiver;
	udp->receiver = NULL;
	if (batch->arrival.receiver && soft_qp_state(batch->arrival.receiver) == IBV_QPS_RESET)
		soft_link_deliver_end(&batch->arrival);
}

/* Under udp->receiving. */
static void add(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

void soft_udp_take(struct soft_udp *udp, const struct soft_udp_rx_batch *rx, uint8_t *bytes, size_t length)
{
	struct batch batch;
	uint16_t index = rx->first;

	soft_lock_expect(&udp->receiving);
	batch.udp = udp;
	batch.rx = rx;
	batch.headers = headers_of(udp, rx);
	begin_arrival(&batch);
	for (size_t offset = 0; offset < length; offset += rx->segment, index++) {
		size_t left = length - offset;

		if (!take_in(&batch, index, bytes + offset, left < rx->segment ? left : rx->segment))
			soft_udp_drop(udp, batch.arrival.fault, &rx->source.address);
	}
	if (soft_udp_poller_is_idle(udp))
		udp->receiver = batch.arrival.receiver;
	else
		soft_link_deliver_end(&batch.arrival);
	add(&udp->counters.received, (uint16_t)(index - rx->first));
}

void soft_udp_take_shared(struct soft_udp *udp, struct soft_udp_rx_batch *rx, uint8_t *bytes, size_t length)
{
	while (length) {
		bool passed;
		size_t run = soft_udp_pass_on(udp, rx, bytes, length, &passed);

		if (!passed)
			soft_udp_take(udp, rx, bytes, run);
		rx->first = (uint16_t)(rx->first + (run + rx->segment - 1) / rx->segment);
		bytes += run;
		length -= run;
	}
}

/*
 * What the kernel has put together it tells in a control message, and a call that can bring one takes a tenth of the time
 * that a short message needs in all.  So where packets come one by one for long it is to put none together, and the call
 * is a shorter one; until so many come without a look in vain between them that they had better come together, or for some
 * time pairs do: an answer and the acknowledgement behind it.  Apart, the acknowledgement comes too late to go with the
 * next answer, and each of them costs a call of its own.
 *
 * Of what was put together before, the kernel would tell nothing any more: so it stops when nothing waits.
 */
static void note_arrival(struct soft_udp_socket *socket, size_t packets)
{
	if (++socket->gro_run >= GRO_RUN || packets > 2) {
		socket->gro_singles = 0;
		if (!socket->gro)
			socket->gro = soft_udp_set_gro(socket, true);
	} else if (socket->gro && packets == 2) {
		socket->gro_singles -= socket->gro_singles < GRO_PAIR ? socket->gro_singles : GRO_PAIR;
	} else if (socket->gro) {
		socket->gro_singles++;
	}
}

/* Where packets come apart, and nothing waits: so many came right behind one another. */
static void note_gro_run(struct soft_udp_socket *socket, uint32_t packets)
{
	if (packets == 1)
		socket->gro_singles += socket->gro_singles < GRO_SINGLES;
	else if (packets)
		socket->gro_singles -= socket->gro_singles < GRO_PAIR ? socket->gro_singles : GRO_PAIR;
	if (!socket->gro_singles)
		socket->gro = soft_udp_set_gro(socket, true);
}

static void note_nothing(struct soft_udp_socket *socket)
{
	uint32_t gro_run = socket->gro_run;
	int waiting = 0;

	socket->gro_run = 0;
	if (!socket->gro) {
		note_gro_run(socket, gro_run);
		return;
	}
	if (socket->gro_singles < GRO_SINGLES)
		return;
	socket->gro_singles = GRO_SINGLES;
	socket->gro = !soft_udp_set_gro(socket, false);
	/* Something may have come in between, and together. */
	if (!socket->gro && !ioctl(socket->source.fd, FIONREAD, &waiting) && waiting) {
		socket->gro = soft_udp_set_gro(socket, true);
		socket->gro_singles = 0;
	}
}

/* What one system call gives and how long it is; negative when there is nothing. */
static ssize_t take(struct soft_udp *udp, struct soft_udp_socket *socket, struct soft_udp_rx_batch *rx)
{
	union {
		char bytes[3 * CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control;
	union soft_udp_address from;
	struct iovec vector = {udp->arrived, SOFT_UDP_ARRIVED};
	struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &vector, .msg_iovlen = 1,
				 .msg_control = &control, .msg_controllen = sizeof(control)};
	socklen_t size = sizeof(from);
	bool alone = !socket->gro && !atomic_load_explicit(&socket->shows_headers, memory_order_relaxed);
	ssize_t length = alone ? soft_udp_recvfrom(socket->source.fd, udp->arrived, SOFT_UDP_ARRIVED, &from.any, &size) :
				 soft_udp_recvmsg(socket->source.fd, &message);

	if (length < 0)
		return length;
	rx->destination = socket->endpoint;
	rx->segment = (size_t)length;
	rx->first = 0;
	rx->hops = SOFT_HOP_LIMIT;
	rx->traffic_class = 0;
	if (!alone)
		read_options(&message, rx);
	read_source(&from, &rx->source);
	return length;
}

bool soft_udp_receive(struct soft_udp *udp, struct soft_udp_socket *socket)
{
	struct soft_udp_rx_batch rx;
	ssize_t length = take(udp, socket, &rx);

	soft_lock_expect(&udp->receiving);
	if (length < 0) {
		note_nothing(socket);
		return false;
	}
	add(&udp->counters.calls_to_receive, 1);
	note_arrival(socket, rx.segment ? ((size_t)length + rx.segment - 1) / rx.segment : 0);
	if (!rx.segment) /* an empty datagram */
		soft_udp_drop(udp, SOFT_NOTICE_MALFORMED, &rx.source.address);
	else if (socket->is_shared && length == SOFT_UDP_PROBE && soft_udp_watch_answer(udp, socket, &rx, udp->arrived))
		;
	else if (socket->is_shared)
		soft_udp_take_shared(udp, &rx, udp->arrived, (size_t)length);
	else
		soft_udp_take(udp, &rx, udp->arrived, (size_t)length);
	return true;
}
