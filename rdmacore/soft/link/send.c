#include "soft/link/calls.h"

#include "soft/engine/calls.h"
#include "soft/engine/segment.h"
#include "soft/objects/ah.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/wire/packet.h"

const union ibv_gid *soft_link_source(const struct soft_qp *qp, const struct soft_packet *packet)
{
	if (qp->service == SOFT_UNRELIABLE_DATAGRAM)
		return &packet->ah->source;
	return &soft_qp_device(qp)->gid_table.gids[qp->attr.ah_attr.grh.sgid_index];
}

const union ibv_gid *soft_link_destination(const struct soft_qp *qp, const struct soft_packet *packet)
{
	return qp->service == SOFT_UNRELIABLE_DATAGRAM ? &packet->ah->attr.grh.dgid : &qp->attr.ah_attr.grh.dgid;
}

struct soft_fault_subject soft_link_subject(const struct soft_qp *qp, const struct soft_packet *packet)
{
	bool acknowledges = packet->opcode == SOFT_ACKNOWLEDGE && qp->service == SOFT_RELIABLE_CONNECTION;

	return (struct soft_fault_subject){
		.traffic = SOFT_FAULT_DATA,
		/* Both ends of a connection have the timeout of its path. */
		.ack_timeout = acknowledges ? soft_ack_timeout(qp->attr.timeout) : 0,
		.operation = packet->opcode & SOFT_OPERATION,
		.psn = packet->psn,
		.repeated = qp->service == SOFT_RELIABLE_CONNECTION,
		.message = soft_operation_is_answer(packet->opcode) ? packet->msn : soft_requester_message(&qp->requester),
	};
}

static void send_packet(struct soft_qp *qp, struct soft_burst *burst, struct soft_packet *packet)
{
	struct soft_link *link = qp->segmentation->link;
	uint8_t *bytes;
	size_t length;

	packet->xrc = qp->xrc != SOFT_NO_XRC;
	length = soft_wire_length(packet);
	if (qp->service != SOFT_UNRELIABLE_DATAGRAM)
		packet->destination = qp->attr.dest_qp_num;
	bytes = link->begin(link, burst, qp, packet, length);
	if (!bytes)
		return;
	soft_count(soft_qp_device(qp), SOFT_COUNT_SENT);
	link->send(link, burst, qp, packet, bytes, length);
}

void soft_link_flush(struct soft_qp *qp, struct soft_burst *burst)
{
	struct soft_link *link = qp->segmentation->link;

	if (burst->count)
		link->flush(link, burst);
}

void soft_link_answer(struct soft_qp *qp, struct soft_burst *burst, struct soft_packet *packet)
{
	soft_lock_expect(&qp->responder.lock);
	packet->solicited = false;
	packet->acknowledge = false;
	packet->migrated = true;
	packet->congestion = 0;
	packet->partition = SOFT_WIRE_PARTITION;
	packet->header = 0;
	soft_credits_add(qp, packet);
	send_packet(qp, burst, packet);
}

static void acknowledge(struct soft_qp *qp, struct soft_burst *burst)
{
	struct soft_packet response;

	soft_lock_expect(&qp->responder.lock);
	if (soft_assembly_acknowledge(qp, &response))
		soft_link_answer(qp, burst, &response);
}

bool soft_link_send(struct soft_qp *qp)
{
	struct soft_packet packet;
	struct soft_burst burst;
	bool again = false;

	soft_lock_expect(&qp->requester.lock);
	soft_burst_begin(&burst);
	while (!again && soft_requester_next(qp, &packet)) {
		send_packet(qp, &burst, &packet);
		if (qp->service != SOFT_RELIABLE_CONNECTION)
			soft_requester_sent(qp);
		again = soft_lock_is_wanted(&qp->requester.lock);
	}
	if (burst.count) {
		/* After the request: the reply to it acknowledges it at little cost. */
		if (qp->segmentation->link->piggybacks_acks && qp->service == SOFT_RELIABLE_CONNECTION) {
			soft_lock_take(&qp->responder.lock); /* it follows requester.lock in the order */
			if (soft_ack_is_piggybacked(qp))
				acknowledge(qp, &burst);
			soft_lock_release(&qp->responder.lock);
		}
		soft_link_flush(qp, &burst);
	}
	return again;
}

void soft_link_acknowledge(struct soft_qp *qp)
{
	struct soft_burst burst;

	soft_burst_begin(&burst);
	soft_lock_take(&qp->responder.lock);
	qp->segmentation->ack_queued = false;
	acknowledge(qp, &burst);
	soft_lock_release(&qp->responder.lock);
	soft_link_flush(qp, &burst);
}

bool soft_link_acknowledge_answered(struct soft_qp *qp, bool idle)
{
	struct soft_burst burst;
	bool waits;

	soft_burst_begin(&burst);
	soft_lock_take(&qp->responder.lock);
	waits = soft_ack_waits(qp, idle);
	qp->segmentation->ack_queued = waits;
	if (!waits)
		acknowledge(qp, &burst);
	soft_lock_release(&qp->responder.lock);
	soft_link_flush(qp, &burst);
	return !waits;
}
