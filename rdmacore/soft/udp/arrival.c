/* Received packets are checked, captured, subjected to faults, and delivered to their queue pairs. */
#include "soft/udp/internal.h"

#include <string.h>

#include "soft/base/fabric.h"
#include "soft/objects/qp.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"

/*
 * How far the identification of a host that counts them may be from its last one. The host counts packets to all
 * destinations, and some are lost.
 */
#define NEAR 4096
/* The window grows by one for each such time in nanoseconds: a host sends at most a packet a microsecond to others. */
#define SENDING 1000

/*
 * Whether the sender may have sent that identification. It was computed from the ICRC alone, and a damaged packet
 * yields any value. Soft's sockets number segments from 0; rdma_rxe counts.
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
	/*
	 * A packet with a jump of the identification is lost; those after it are accepted. A host counts what it sends to
	 * all processes here.
	 */
	now = soft_fabric_wall_now(udp->fabric);
	sent = (now - peer->since) / SENDING;
	near = !peer->known || memcmp(&peer->address, &source->address, sizeof(peer->address)) != 0 ||
	       (uint16_t)(identification - peer->identification + NEAR) < 2 * NEAR + sent;
	*peer = (struct soft_udp_peer){true, identification, now, source->address};
	return near;
}

/* Rebuild the IP header of a received packet. Fields that a socket does not show are zero. */
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

/* Write to the capture, with the addresses that the receiver's connection has. */
static void record(struct soft_udp *udp, const struct soft_udp_rx_batch *rx, const uint8_t *bytes, size_t length,
		   const struct soft_capture_outcome *outcome)
{
	struct soft_endpoint from = rx->source, to = rx->destination;
	struct ibv_global_route route = {.hop_limit = rx->hops, .traffic_class = rx->traffic_class};

	soft_udp_name_ends(udp, bytes, &from.address, &to.address);
	soft_udp_record(udp, &from, &to, &route, bytes, length, true, outcome);
}

/* The delay of a packet ends (soft_udp_hold_back). */
static void deliver_later(struct soft_udp *udp, struct soft_arrival *arrival, uint8_t *bytes, size_t length)
{
	soft_lock_take(&udp->receiving);
	if (!soft_link_deliver(udp->device, arrival, bytes, length))
		soft_udp_drop(udp, arrival->fault, &arrival->source);
	soft_link_deliver_end(arrival);
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

/* Capture a packet of another process or host, and apply faults. True: it is delivered later, or never. */
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
 * Only processes of this host send to the port of a block, each from the ports of its own blocks. Any user may send
 * from other ports. All of 127.0.0.0/8 is sent as 127.0.0.1.
 */
static bool is_foreign(struct soft_udp *udp, const struct soft_udp_rx_batch *rx)
{
	union ibv_gid own = soft_udp_address_of(&rx->source.address);

	return soft_udp_is_block(rx->destination.port) &&
	       (!soft_udp_is_block(rx->source.port) || !soft_device_owns(udp->device, &own) ||
		memcmp(&own, &rx->source.address, sizeof(own)) != 0);
}

/* Offsets in a packet. */
#define DESTINATION 5
#define DATAGRAM_SOURCE (SOFT_WIRE_BTH + 5)

/*
 * A packet to the port of a block comes from the port of the sender's block. So the source of a datagram must be of
 * that block. Messages between the connection managers of processes do not use these ports.
 */
static bool is_forged(const struct soft_udp_rx_batch *rx, const uint8_t *bytes, size_t length)
{
	if (!soft_udp_is_block(rx->destination.port) || (bytes[0] & SOFT_SERVICE) != SOFT_UNRELIABLE_DATAGRAM)
		return false;
	return length < SOFT_WIRE_BTH + SOFT_WIRE_DETH + SOFT_WIRE_ICRC || soft_get24(bytes + DESTINATION) == SOFT_GSI_QUEUE_PAIR ||
	       soft_udp_port_of(soft_get24(bytes + DATAGRAM_SOURCE)) != rx->source.port;
}

/* Check and deliver one packet. guess: its expected identification. */
static bool take_in(struct batch *batch, uint16_t guess, uint8_t *bytes, size_t length)
{
	const struct soft_udp_rx_batch *rx = batch->rx;
	struct soft_udp *udp = batch->udp;
	uint16_t identification;

	batch->arrival.fault = SOFT_NOTICE_FOREIGN;
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
		batch->arrival.fault = SOFT_NOTICE_FOREIGN;
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

/*
 * The receiver of the last packet is tried first. A destroyed queue pair is in RESET, and another one may have its
 * number.
 */
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
	soft_udp_add(&udp->counters.received, (uint16_t)(index - rx->first));
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
