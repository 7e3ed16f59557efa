#include "soft/link/calls.h"

#include <string.h>

#include "soft/engine/calls.h"
#include "soft/engine/segment.h"
#include "soft/objects/device.h"
#include "soft/objects/multicast.h"
#include "soft/objects/qp.h"
#include "soft/wire/datagram.h"
#include "soft/wire/mad.h"

static bool is_same(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/*
 * A connected queue pair accepts only packets of its peer, for its own address (IBTA 9.6.1.5). One of the locks is
 * held.
 */
static bool is_peer(const struct soft_qp *qp, const struct soft_arrival *arrival)
{
	const struct ibv_global_route *route = &qp->attr.ah_attr.grh;
	const struct soft_link *link = qp->segmentation->link;

	if (link->is_peer)
		return link->is_peer(qp, arrival);
	return is_same(&route->dgid, &arrival->source) &&
	       is_same(&soft_qp_device(qp)->gid_table.gids[route->sgid_index], &arrival->destination) &&
	       (arrival->sender == SOFT_NO_QPN || arrival->sender == qp->attr.dest_qp_num);
}

/* Send as much of a READ response as is allowed now. True: it continues later. responder.lock is held. */
static bool answer_read(struct soft_qp *qp, struct soft_burst *burst)
{
	struct soft_link *link = qp->segmentation->link;
	struct soft_packet response;

	while ((!link->answer_later || link->read_room) && soft_assembly_stream(qp, &response)) {
		soft_link_answer(qp, burst, &response);
		if (link->answer_later)
			link->read_room--;
	}
	return qp->segmentation->stream.active && !qp->responder.failed;
}

/* End a request. True: a READ response continues. responder.lock is held, and released. */
static bool end_request(struct soft_qp *qp, struct soft_burst *burst)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	bool goes_on = answer_read(qp, burst), failed, ack_pending;

	soft_link_flush(qp, burst);
	if (qp->xrc)
		soft_target_leave(qp);
	failed = qp->responder.failed;
	ack_pending = segmentation->ack_pending && !segmentation->ack_queued;
	segmentation->ack_queued |= ack_pending;
	soft_lock_release(&qp->responder.lock);
	if (failed)
		soft_qp_enter_error(qp);
	if (ack_pending && !segmentation->link->queue_ack(segmentation->link, qp))
		soft_link_acknowledge(qp);
	return goes_on;
}

bool soft_link_answer_read(struct soft_qp *qp)
{
	struct soft_read_stream *stream = &qp->segmentation->stream;
	struct soft_burst burst;

	soft_burst_begin(&burst);
	soft_lock_take(&qp->responder.lock);
	/* The shared queue of a target may be destroyed meanwhile, and its domain with it. */
	if (qp->xrc && stream->active && !soft_target_enter(qp, stream->shared_queue))
		stream->active = false;
	return end_request(qp, &burst);
}

/* False: its sender is not the peer. */
static bool receive_request(struct soft_qp *qp, const struct soft_arrival *arrival,
			    const struct soft_packet *packet, const uint8_t *bytes, size_t length)
{
	struct soft_link *link = qp->segmentation->link;
	struct soft_packet response;
	struct soft_burst burst;
	bool own;

	soft_burst_begin(&burst);
	soft_lock_take(&qp->responder.lock);
	own = is_peer(qp, arrival);
	if (qp->segmentation->stream.active) {
		soft_lock_release(&qp->responder.lock);
		if (own)
			link->request_later(link, qp, arrival, bytes, length);
		return own;
	}
	if (own && (qp->xrc ? soft_target_receive(qp, packet, &response) :
			      soft_responder_receive(qp, packet, &response)))
		soft_link_answer(qp, &burst, &response);
	if (end_request(qp, &burst))
		link->answer_later(link, qp);
	return own;
}

static bool receive_answer(struct soft_qp *qp, const struct soft_arrival *arrival,
			   const struct soft_packet *packet)
{
	enum ibv_qp_state state;
	bool own;

	soft_lock_take(&qp->requester.lock);
	state = soft_qp_state(qp);
	own = is_peer(qp, arrival);
	if ((state == IBV_QPS_RTS || state == IBV_QPS_SQD) && own)
		soft_requester_receive(qp, packet);
	soft_transmit(qp);
	return own;
}

static void receive_datagram(struct soft_qp *qp, const struct soft_packet *packet)
{
	bool failed;

	soft_lock_take(&qp->responder.lock);
	soft_datagram_receive(qp, packet);
	failed = qp->responder.failed;
	soft_lock_release(&qp->responder.lock);
	if (failed)
		soft_qp_enter_error(qp);
}

static void receive_multicast(struct soft_device *device, const union ibv_gid *group,
			      const union ibv_gid *source, const struct soft_packet *packet)
{
	struct soft_multicast_members *members = soft_multicast_find(&device->multicast, group);

	for (uint32_t member = 0; members && member < members->count; member++) {
		struct soft_qp *qp = members->queue_pairs[member];
		bool own = qp->ibv.qp_num == packet->source && soft_device_owns(device, source);

		if (!own || qp->mcast_loopback)
			receive_datagram(qp, packet);
	}
	soft_multicast_release(members);
}

/* One end of an extended connection accepts only requests, the other only answers. */
static bool is_for(const struct soft_qp *qp, const struct soft_packet *packet)
{
	enum soft_xrc end = !packet->xrc ? SOFT_NO_XRC :
			    soft_operation_is_answer(packet->opcode) ? SOFT_INITIATOR : SOFT_TARGET;

	return qp->segmentation && (packet->opcode & SOFT_SERVICE) == qp->service && qp->xrc == end;
}

/* In the receiver's memory the GRH of a datagram precedes its payload. */
static void add_header(const struct soft_device *device, struct soft_packet *packet, const uint8_t header[SOFT_GRH])
{
	if (device->network_in_service_level)
		packet->service_level = soft_ip_offset(header) ? SOFT_NETWORK_IPV4 : SOFT_NETWORK_IPV6;
	memcpy(packet->grh, header, SOFT_GRH);
	packet->header = SOFT_GRH;
	packet->segments[1] = packet->segments[0];
	packet->segments[0] = (struct soft_segment){packet->grh, SOFT_GRH};
	packet->num_segments = 2;
}

/* The queue pair with that number. One that was destroyed since the last packet is in RESET and accepts none. */
static struct soft_qp *find_receiver(struct soft_device *device, struct soft_arrival *arrival, uint32_t number)
{
	if (arrival->receiver && arrival->receiver->ibv.qp_num == number)
		return arrival->receiver;
	soft_link_deliver_end(arrival);
	arrival->receiver = soft_table_find(&device->queue_pairs, number, soft_qp_hold);
	return arrival->receiver;
}

void soft_link_deliver_end(struct soft_arrival *arrival)
{
	if (arrival->receiver)
		soft_qp_release(arrival->receiver);
	arrival->receiver = NULL;
}

static bool receive_management(struct soft_device *device, const struct soft_arrival *arrival,
			       const struct soft_packet *packet)
{
	struct soft_management *management = &device->management;

	if (!management->receive || packet->opcode != (SOFT_UNRELIABLE_DATAGRAM | SOFT_SEND_ONLY) ||
	    packet->queue_key != SOFT_GSI_QUEUE_KEY || packet->length != SOFT_MAD)
		return false;
	management->receive(management, &arrival->source, &arrival->destination, packet->segments[0].address);
	return true;
}

static bool drop(struct soft_arrival *arrival, enum soft_notice fault)
{
	arrival->fault = fault;
	return false;
}

/* Deliver to the half that the packet is for. False: its sender is not the peer. */
static bool receive(struct soft_qp *qp, const struct soft_arrival *arrival, const struct soft_packet *packet,
		    const uint8_t *bytes, size_t length)
{
	if (packet->header) {
		receive_datagram(qp, packet);
		return true;
	}
	if (soft_operation_is_answer(packet->opcode))
		return receive_answer(qp, arrival, packet);
	return receive_request(qp, arrival, packet, bytes, length);
}

bool soft_link_deliver(struct soft_device *device, struct soft_arrival *arrival, uint8_t *bytes, size_t length)
{
	struct soft_packet packet;
	struct soft_qp *qp;

	soft_order_expect_none();
	soft_count(device, SOFT_COUNT_RECEIVED);
	/* Full and limited members of the default partition (IBTA 10.9.3). */
	if (!soft_wire_decode(bytes, length, &packet) ||
	    (packet.partition & 0x7fff) != (SOFT_WIRE_PARTITION & 0x7fff))
		return drop(arrival, SOFT_NOTICE_MALFORMED);
	if (packet.destination == SOFT_GSI_QUEUE_PAIR)
		return receive_management(device, arrival, &packet) || drop(arrival, SOFT_NOTICE_MANAGEMENT);
	if ((packet.opcode & SOFT_SERVICE) == SOFT_UNRELIABLE_DATAGRAM)
		add_header(device, &packet, arrival->header);
	if (packet.header && soft_gid_is_multicast(&arrival->destination)) {
		receive_multicast(device, &arrival->destination, &arrival->source, &packet);
		return true;
	}
	qp = find_receiver(device, arrival, packet.destination);
	if (!qp || !is_for(qp, &packet))
		return drop(arrival, SOFT_NOTICE_NO_RECEIVER);
	return receive(qp, arrival, &packet, bytes, length) || drop(arrival, SOFT_NOTICE_FOREIGN);
}

bool soft_link_receive(struct soft_device *device, bool icrc, uint32_t sender, uint8_t *datagram, size_t length)
{
	struct soft_arrival arrival = {.sender = sender};
	size_t udp = soft_ip_parse(datagram, length, arrival.header, &arrival.source, &arrival.destination);
	size_t begin = udp + SOFT_UDP_HEADER;
	bool taken;

	if (!udp || soft_udp_port(datagram + udp) != SOFT_WIRE_PORT ||
	    length < begin + SOFT_WIRE_BTH + SOFT_WIRE_ICRC)
		return false;
	if (icrc && soft_icrc(datagram, length - SOFT_WIRE_ICRC) !=
			    soft_icrc_get(datagram + length - SOFT_WIRE_ICRC)) {
		soft_count(device, SOFT_COUNT_ICRC);
		return false;
	}
	taken = soft_link_deliver(device, &arrival, datagram + begin, length - begin);
	soft_link_deliver_end(&arrival);
	return taken;
}
