#include "soft_link.h"

#include <string.h>

#include "soft_ah.h"
#include "soft_icrc.h"
#include "soft_ip.h"
#include "soft_qp.h"
#include "soft_segment.h"
#include "soft_wire.h"

/* Where routers spread flows by it: one of the dynamic ports for each queue pair (annex A17.9.2). */
#define SOURCE_PORT 0xc000

static void put16(uint8_t *place, uint32_t value)
{
	place[0] = (uint8_t)(value >> 8);
	place[1] = (uint8_t)value;
}

static uint32_t get16(const uint8_t *place)
{
	return (uint32_t)place[0] << 8 | place[1];
}

static void send_packet(struct soft_qp *qp, struct soft_packet *packet)
{
	struct soft_link *link = qp->segmentation->link;
	const struct ibv_global_route *route = &qp->attr.ah_attr.grh;
	const union ibv_gid *from, *to;
	size_t length = soft_wire_length(packet), total, offset;
	uint8_t header[SOFT_GRH], *datagram, *place;

	if (qp->service == SOFT_UNRELIABLE_DATAGRAM) {
		memcpy(header, packet->grh, SOFT_GRH);
		from = &packet->ah->source;
		to = &packet->ah->attr.grh.dgid;
	} else {
		packet->destination = qp->attr.dest_qp_num;
		memcpy(header, qp->segmentation->header, SOFT_GRH);
		soft_ip_finish(header, (uint32_t)(SOFT_UDP_HEADER + length));
		from = &soft_qp_device(qp)->gids[route->sgid_index];
		to = &route->dgid;
	}
	offset = soft_ip_offset(header);
	total = SOFT_GRH - offset + SOFT_UDP_HEADER + length;
	datagram = link->begin(link, total);
	if (!datagram)
		return;
	memcpy(datagram, header + offset, SOFT_GRH - offset);
	place = datagram + SOFT_GRH - offset;
	put16(place, SOURCE_PORT | (qp->ibv.qp_num & 0x3fff));
	put16(place + 2, SOFT_WIRE_PORT);
	put16(place + 4, (uint32_t)(SOFT_UDP_HEADER + length));
	put16(place + 6, 0); /* the ICRC is there for that */
	place += SOFT_UDP_HEADER;
	place += soft_wire_encode(packet, place);
	soft_icrc_put(place, link->icrc ? soft_icrc(datagram, total - SOFT_WIRE_ICRC) : 0);
	link->send(link, datagram, total, from, to);
}

/* What the responder says; the fields that are the same in all of it. */
static void send_answer(struct soft_qp *qp, struct soft_packet *packet)
{
	packet->solicited = false;
	packet->acknowledge = false;
	packet->migrated = true;
	packet->congestion = 0;
	packet->partition = SOFT_WIRE_PARTITION;
	packet->header = 0;
	send_packet(qp, packet);
}

void soft_link_send(struct soft_qp *qp)
{
	struct soft_packet packet;

	while (soft_requester_next(qp, &packet)) {
		send_packet(qp, &packet);
		if (qp->service != SOFT_RELIABLE_CONNECTION)
			soft_requester_sent(qp);
	}
}

void soft_link_acknowledge(struct soft_qp *qp)
{
	struct soft_packet response;

	soft_lock_take(&qp->responder.lock);
	if (soft_responder_acknowledge(qp, &response))
		send_answer(qp, &response);
	soft_lock_release(&qp->responder.lock);
}

/* Connected queue pairs listen to their peer only (IBTA 9.6.1.5).  One of the locks is held. */
static bool is_peer(const struct soft_qp *qp, const union ibv_gid *source)
{
	return memcmp(&qp->attr.ah_attr.grh.dgid, source, sizeof(*source)) == 0;
}

/* A request, for the responder. */
static void receive_request(struct soft_qp *qp, const union ibv_gid *source,
			    const struct soft_packet *packet)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	struct soft_packet response;
	bool failed, owes;

	soft_lock_take(&qp->responder.lock);
	if (is_peer(qp, source) && soft_responder_receive(qp, packet, &response))
		send_answer(qp, &response);
	while (soft_responder_stream(qp, &response))
		send_answer(qp, &response);
	failed = qp->responder.failed;
	owes = segmentation->owes && !segmentation->owing;
	segmentation->owing |= owes;
	soft_lock_release(&qp->responder.lock);
	if (failed)
		soft_qp_settle(qp);
	if (owes && !segmentation->link->owe(segmentation->link, qp))
		soft_link_acknowledge(qp);
}

/* An answer, for the requester. */
static void receive_answer(struct soft_qp *qp, const union ibv_gid *source,
			   const struct soft_packet *packet)
{
	enum ibv_qp_state state;

	soft_lock_take(&qp->requester.lock);
	state = soft_qp_state(qp);
	if ((state == IBV_QPS_RTS || state == IBV_QPS_SQD) && is_peer(qp, source))
		soft_requester_receive(qp, packet);
	soft_link_transmit(qp);
}

static void receive_datagram(struct soft_qp *qp, const struct soft_packet *packet)
{
	bool failed;

	soft_lock_take(&qp->responder.lock);
	soft_datagram_receive(qp, packet);
	failed = qp->responder.failed;
	soft_lock_release(&qp->responder.lock);
	if (failed)
		soft_qp_settle(qp);
}

static void receive_multicast(struct soft_device *device, const union ibv_gid *group,
			      const union ibv_gid *source, const struct soft_packet *packet)
{
	struct soft_multicast_members *members = soft_multicast_find(&device->multicast, group);

	for (uint32_t member = 0; members && member < members->count; member++) {
		struct soft_qp *qp = members->queue_pairs[member];
		bool own = qp->ibv.qp_num == packet->source && soft_device_owns(device, source);

		if (!own || qp->hears_itself)
			receive_datagram(qp, packet);
	}
	soft_multicast_release(members);
}

static bool is_answer(uint8_t opcode)
{
	return opcode >= SOFT_RDMA_READ_RESPONSE_FIRST && opcode <= SOFT_ATOMIC_ACKNOWLEDGE;
}

/* The payload of a datagram goes behind its GRH. */
static void add_header(struct soft_packet *packet, const uint8_t header[SOFT_GRH])
{
	memcpy(packet->grh, header, SOFT_GRH);
	packet->header = SOFT_GRH;
	packet->segments[1] = packet->segments[0];
	packet->segments[0] = (struct soft_segment){packet->grh, SOFT_GRH};
	packet->num_segments = 2;
}

bool soft_link_receive(struct soft_device *device, bool icrc, uint8_t *datagram, size_t length)
{
	uint8_t header[SOFT_GRH];
	union ibv_gid source, destination;
	size_t udp = soft_ip_parse(datagram, length, header, &source, &destination);
	size_t begin = udp + SOFT_UDP_HEADER;
	struct soft_packet packet;
	struct soft_qp *qp;
	bool taken;

	if (!udp || get16(datagram + udp + 2) != SOFT_WIRE_PORT ||
	    length < begin + SOFT_WIRE_BTH + SOFT_WIRE_ICRC)
		return false;
	if (icrc && soft_icrc(datagram, length - SOFT_WIRE_ICRC) !=
			    soft_icrc_get(datagram + length - SOFT_WIRE_ICRC))
		return false;
	/* Full and limited members of the default partition (IBTA 10.9.3). */
	if (!soft_wire_decode(datagram + begin, length - begin, &packet) ||
	    (packet.partition & 0x7fff) != (SOFT_WIRE_PARTITION & 0x7fff))
		return false;
	if ((packet.opcode & SOFT_SERVICE) == SOFT_UNRELIABLE_DATAGRAM)
		add_header(&packet, header);
	if (packet.header && soft_gid_is_multicast(&destination)) {
		receive_multicast(device, &destination, &source, &packet);
		return true;
	}
	qp = soft_table_find(&device->queue_pairs, packet.destination, soft_qp_hold);
	if (!qp)
		return false;
	taken = qp->segmentation && (packet.opcode & SOFT_SERVICE) == qp->service;
	if (taken) {
		if (packet.header)
			receive_datagram(qp, &packet);
		else if (is_answer(packet.opcode))
			receive_answer(qp, &source, &packet);
		else
			receive_request(qp, &source, &packet);
	}
	soft_qp_release(qp);
	return taken;
}
