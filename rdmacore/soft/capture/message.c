#include <stdlib.h>
#include <string.h>

#include "soft/capture/capture.h"
#include "soft/wire/datagram.h"
#include "soft/wire/mad.h"
#include "soft/wire/packet.h"

#define LONGEST (SOFT_GRH + SOFT_UDP_HEADER + SOFT_WIRE_OVERHEAD + SOFT_MTU)
/* The source port of a queue pair, as on links with datagrams (annex A17.9.2). */
#define SOURCE_PORT(number) ((uint16_t)(0xc000 | ((number) & 0x3fff)))

/* A request as the local link counts it, and what precedes it on a wire. */
struct sent {
	uint32_t psn;
	uint32_t extra; /* packets of all requests before it, minus one for each */
	uint32_t packets;
};

#define NOTHING UINT32_MAX /* PSNs have 24 bits */

struct soft_capture_flow {
	uint32_t mask;
	uint32_t next; /* the number of the next new request; NOTHING: there was none yet */
	uint32_t extra; /* of the next new request */
	struct sent sent[]; /* by the lower bits of psn; at least all unanswered requests */
};

struct soft_capture_flow *soft_capture_flow_create(uint32_t requests)
{
	struct soft_capture_flow *flow = malloc(sizeof(*flow) + requests * sizeof(flow->sent[0]));

	if (!flow)
		return NULL;
	flow->mask = requests - 1;
	soft_capture_flow_reset(flow);
	return flow;
}

void soft_capture_flow_reset(struct soft_capture_flow *flow)
{
	if (!flow)
		return;
	flow->next = NOTHING;
	flow->extra = 0;
	for (uint32_t slot = 0; slot <= flow->mask; slot++)
		flow->sent[slot].psn = NOTHING;
}

/* The mapping of that number. A request that is sent again has the same as before. */
static struct sent find_sent(const struct soft_capture_flow *flow, uint32_t psn)
{
	if (flow && flow->sent[psn & flow->mask].psn == psn)
		return flow->sent[psn & flow->mask];
	return (struct sent){.psn = psn, .extra = flow ? flow->extra : 0, .packets = 1};
}

static void add_sent(struct soft_capture_flow *flow, uint32_t psn, uint32_t packets)
{
	if (!flow || (flow->next != NOTHING && soft_psn_difference(psn, flow->next) < 0))
		return;
	flow->sent[psn & flow->mask] = (struct sent){psn, flow->extra, packets};
	flow->extra += packets - 1;
	flow->next = (psn + 1) & SOFT_PSN_MASK;
}

/* Capture a packet with a payload of at most an MTU. */
static void send_packet(struct soft_capture *capture, const struct soft_capture_path *path, struct soft_packet *packet,
			const struct soft_capture_outcome *outcome)
{
	size_t length = soft_wire_length(packet), offset, total;
	uint8_t header[SOFT_GRH], datagram[LONGEST], *slot;

	if (!length || length > SOFT_WIRE_OVERHEAD + SOFT_MTU)
		return;
	if (path->route) {
		soft_ip_make(header, path->route, path->from);
		soft_ip_finish(header, (uint32_t)(SOFT_UDP_HEADER + length));
	} else {
		memcpy(header, packet->grh, SOFT_GRH);
	}
	offset = soft_ip_offset(header);
	total = SOFT_GRH - offset + SOFT_UDP_HEADER + length;
	memcpy(datagram, header + offset, SOFT_GRH - offset);
	slot = datagram + SOFT_GRH - offset;
	soft_udp_make(slot, SOURCE_PORT(path->source), length);
	slot += SOFT_UDP_HEADER;
	slot += soft_wire_encode(packet, slot);
	soft_icrc_put(slot, soft_icrc(datagram, total - SOFT_WIRE_ICRC));
	soft_capture_datagram(capture, datagram, total, path->inbound ? path->to : path->from, path->inbound, outcome);
}

/* Set the fields that the local link does not use. */
static void complete(struct soft_packet *packet, const struct soft_capture_path *path)
{
	packet->congestion = 0;
	packet->partition = SOFT_WIRE_PARTITION;
	packet->migrated = true;
	packet->xrc = path->xrc;
	packet->destination = path->destination;
	packet->source = path->source;
	packet->message_length = (uint32_t)packet->length;
}

static uint32_t packets_of(const struct soft_capture_path *path, uint64_t length)
{
	return length > path->mtu ? (uint32_t)((length + path->mtu - 1) / path->mtu) : 1;
}

/* Capture a payload as packets of an MTU. The last packet has the flags of whole. */
static void send_parts(struct soft_capture *capture, const struct soft_capture_path *path, const struct soft_packet *whole,
		       const struct soft_capture_outcome *outcome)
{
	uint32_t count = packets_of(path, whole->length);
	struct soft_packet part = *whole;

	for (uint32_t slot = 0; slot < count; slot++) {
		bool last = slot + 1 == count;

		part.opcode = soft_operation_part(whole->opcode, slot == 0, last);
		part.psn = (whole->psn + slot) & SOFT_PSN_MASK;
		part.solicited = whole->solicited && last;
		part.acknowledge = whole->acknowledge && last;
		part.length = last ? whole->length - (uint64_t)slot * path->mtu : path->mtu;
		send_packet(capture, path, &part, outcome);
		if (!last)
			soft_packet_skip(&part, path->mtu);
	}
}

/* Whether the length of the request is that of its own payload. */
static bool has_payload(const struct soft_packet *packet)
{
	uint8_t operation = packet->opcode & SOFT_OPERATION;

	return operation <= SOFT_RDMA_WRITE_ONLY_IMMEDIATE || operation == SOFT_SEND_ONLY_INVALIDATE ||
	       operation == SOFT_ATOMIC_WRITE;
}

void soft_capture_request(struct soft_capture *capture, struct soft_capture_flow *flow, const struct soft_capture_path *path,
			  const struct soft_packet *packet, const struct soft_capture_outcome *outcome)
{
	bool payload = has_payload(packet), answered = payload || packet->opcode == SOFT_RDMA_READ_REQUEST;
	struct soft_packet whole = *packet;

	complete(&whole, path);
	whole.acknowledge = (packet->opcode & SOFT_SERVICE) == SOFT_RELIABLE_CONNECTION;
	add_sent(flow, packet->psn, answered ? packets_of(path, packet->length) : 1);
	whole.psn = (packet->psn + find_sent(flow, packet->psn).extra) & SOFT_PSN_MASK;
	if (payload)
		send_parts(capture, path, &whole, outcome);
	else
		send_packet(capture, path, &whole, outcome);
}

void soft_capture_answer(struct soft_capture *capture, const struct soft_capture_flow *flow,
			 const struct soft_capture_path *path, const struct soft_packet *packet,
			 const struct soft_capture_outcome *outcome)
{
	struct sent sent = find_sent(flow, packet->psn);
	struct soft_packet whole = *packet;

	complete(&whole, path);
	whole.header = 0;
	whole.solicited = whole.acknowledge = false;
	whole.psn = (packet->psn + sent.extra) & SOFT_PSN_MASK;
	/* An ACK has the number of the last packet of its message; a NAK or RNR NAK has that of the first one. */
	if (packet->opcode == SOFT_ACKNOWLEDGE && soft_syndrome_is_ack(packet->syndrome))
		whole.psn = (whole.psn + sent.packets - 1) & SOFT_PSN_MASK;
	send_parts(capture, path, &whole, outcome);
}

/*
 * An answer has the transaction of its request (IBTA 13.4.6.4). Messages within a process have none, so the
 * communication id of the requesting end is used.
 */
static uint64_t transaction_of(const struct soft_cm_message *message)
{
	uint32_t answers = UINT32_C(1) << SOFT_CM_REP | UINT32_C(1) << SOFT_CM_MRA | UINT32_C(1) << SOFT_CM_REJ |
			   UINT32_C(1) << SOFT_CM_DREP | UINT32_C(1) << SOFT_CM_SIDR_REP;

	if (message->transaction)
		return message->transaction;
	return answers >> message->attribute & 1 && message->remote ? message->remote : message->local;
}

void soft_capture_management(struct soft_capture *capture, const union ibv_gid *from, const union ibv_gid *to,
			     const struct soft_cm_message *message, bool inbound,
				const struct soft_capture_outcome *outcome)
{
	struct ibv_global_route route = {.dgid = *to};
	struct soft_capture_path path = {
		.from = from,
		.to = to,
		.route = &route,
		.source = SOFT_GSI_QUEUE_PAIR,
		.destination = SOFT_GSI_QUEUE_PAIR,
		.mtu = SOFT_MTU,
		.inbound = inbound,
	};
	struct soft_cm_message copy = *message;
	uint8_t mad[SOFT_MAD];
	struct soft_packet packet = {
		.opcode = (uint8_t)SOFT_UNRELIABLE_DATAGRAM | (uint8_t)SOFT_SEND_ONLY,
		.length = sizeof(mad),
		.queue_key = SOFT_GSI_QUEUE_KEY,
		.num_segments = 1,
		.segments = {{mad, sizeof(mad)}},
	};

	copy.transaction = transaction_of(message);
	soft_mad_encode(&copy, mad);
	complete(&packet, &path);
	send_packet(capture, &path, &packet, outcome);
}
