#include "soft/link/calls.h"

#include <string.h>

#include "soft/engine/calls.h"
#include "soft/engine/segment.h"
#include "soft/objects/ah.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/wire/datagram.h"
#include "soft/wire/packet.h"

/* Routers spread flows by the source port: each queue pair has one of the dynamic ports (annex A17.9.2). */
#define SOURCE_PORT 0xc000

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
		from = &soft_qp_device(qp)->gid_table.gids[route->sgid_index];
		to = &route->dgid;
	}
	offset = soft_ip_offset(header);
	total = SOFT_GRH - offset + SOFT_UDP_HEADER + length;
	datagram = link->begin(link, total);
	if (!datagram)
		return;
	memcpy(datagram, header + offset, SOFT_GRH - offset);
	place = datagram + SOFT_GRH - offset;
	soft_udp_make(place, (uint16_t)(SOURCE_PORT | (qp->ibv.qp_num & 0x3fff)), length);
	place += SOFT_UDP_HEADER;
	place += soft_wire_encode(packet, place);
	soft_icrc_put(place, link->icrc ? soft_icrc(datagram, total - SOFT_WIRE_ICRC) : 0);
	soft_count(soft_qp_device(qp), SOFT_COUNT_SENT);
	link->send(link, datagram, total, from, to);
}

void soft_link_answer(struct soft_qp *qp, struct soft_packet *packet)
{
	soft_lock_expect(&qp->responder.lock);
	packet->solicited = false;
	packet->acknowledge = false;
	packet->migrated = true;
	packet->congestion = 0;
	packet->partition = SOFT_WIRE_PARTITION;
	packet->header = 0;
	send_packet(qp, packet);
}

bool soft_link_send(struct soft_qp *qp)
{
	struct soft_packet packet;
	bool again = false;

	soft_lock_expect(&qp->requester.lock);
	while (!again && soft_requester_next(qp, &packet)) {
		send_packet(qp, &packet);
		if (qp->service != SOFT_RELIABLE_CONNECTION)
			soft_requester_sent(qp);
		again = soft_lock_is_wanted(&qp->requester.lock);
	}
	return again;
}

void soft_link_acknowledge(struct soft_qp *qp)
{
	struct soft_packet response;

	soft_order_expect_none();
	soft_lock_take(&qp->responder.lock);
	if (soft_assembly_acknowledge(qp, &response))
		soft_link_answer(qp, &response);
	soft_lock_release(&qp->responder.lock);
}
