/*
 * Packets of other processes and hosts are subjected to the faults of this fabric when they arrive, because the
 * sender does not know these faults. So one end can disturb both directions of a connection, whatever the other end
 * is.
 */
#include "soft/udp/internal.h"

#include <string.h>

#include "soft/base/fabric.h"
#include "soft/link/packets.h"
#include "soft/objects/qp.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"

/* Offsets in the BTH, and in the headers of a management datagram behind it (IBTA 9.2, 13.4.2). */
#define DESTINATION 5
#define PSN 9
#define ATTRIBUTE (SOFT_WIRE_BTH + SOFT_WIRE_DETH + 16)

void soft_udp_name_ends(struct soft_udp *udp, const uint8_t *bytes, union ibv_gid *from, union ibv_gid *to)
{
	struct soft_qp *qp;

	if (!soft_gid_is_loopback(from))
		return;
	qp = soft_table_find(&udp->device->queue_pairs, soft_get24(bytes + DESTINATION), soft_qp_hold);
	if (!qp)
		return;
	soft_lock_take(&qp->responder.lock);
	if (qp->service != SOFT_UNRELIABLE_DATAGRAM) {
		*from = qp->attr.ah_attr.grh.dgid;
		*to = udp->device->gid_table.gids[qp->attr.ah_attr.grh.sgid_index];
	}
	soft_lock_release(&qp->responder.lock);
	soft_qp_release(qp);
}

struct soft_fault_result soft_udp_apply_faults(struct soft_udp *udp, const struct soft_arrival *arrival,
					       const uint8_t *bytes,
					 size_t length)
{
	struct soft_fault_subject what = {SOFT_FAULT_DATA, .inbound = true, .operation = bytes[0] & SOFT_OPERATION,
					  .psn = soft_get24(bytes + PSN)};
	union ibv_gid from = arrival->source, to = arrival->destination;
	struct soft_fault_result fault_result;

	if (soft_get24(bytes + DESTINATION) == SOFT_GSI_QUEUE_PAIR && length >= ATTRIBUTE + 2)
		what = (struct soft_fault_subject){SOFT_FAULT_CM, .inbound = true,
						     .attribute = soft_get16(bytes + ATTRIBUTE)};
	else
		soft_udp_name_ends(udp, bytes, &from, &to);
	fault_result = soft_faults_apply(&udp->fabric->faults, &from, &to, &what);
	/* A corrupt packet is dropped here: its ICRC, which is checked already, would not match. */
	if (fault_result.corrupt) {
		soft_count(udp->device, SOFT_COUNT_ICRC);
		fault_result.lose = true;
	}
	return fault_result;
}

uint64_t soft_udp_flow(const union ibv_gid *peer, const uint8_t *bytes, bool inbound)
{
	uint64_t halves[2], mixed;

	memcpy(halves, peer->raw, sizeof(halves));
	mixed = (halves[0] ^ halves[1] * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
	return (mixed >> 25 << 25) | (uint64_t)inbound << 24 | soft_get24(bytes + DESTINATION);
}

/* What a delayed packet needs when it is delivered. */
struct later {
	struct soft_udp *udp;
	void (*deliver)(struct soft_udp *udp, struct soft_arrival *arrival, uint8_t *bytes, size_t length);
	struct soft_arrival arrival;
};

static void resume_delivery(const struct soft_packets_sender *sender, uint8_t *bytes, size_t length)
{
	struct later later;

	memcpy(&later, sender->route, sizeof(later));
	later.deliver(later.udp, &later.arrival, bytes, length);
}

bool soft_udp_hold_back(struct soft_udp *udp, const struct soft_fault_result *fault_result,
			const struct soft_arrival *arrival,
			const uint8_t *bytes, size_t length,
			void (*deliver)(struct soft_udp *udp, struct soft_arrival *arrival, uint8_t *bytes, size_t length))
{
	struct soft_packets_sender sender = {.send = resume_delivery, .flow = soft_udp_flow(&arrival->source, bytes,
											    true)};
	struct later later = {udp, deliver, *arrival};

	_Static_assert(sizeof(later) <= sizeof(sender.route), "what a sender needs");
	if (!fault_result->rules && soft_packets_is_empty(udp->delay_queue))
		return false;
	later.arrival.receiver = NULL;
	memcpy(sender.route, &later, sizeof(later));
	soft_packets_send(udp->delay_queue, fault_result, &sender, bytes, length);
	return true;
}
