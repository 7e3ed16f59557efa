#include "soft/engine/segment.h"

#include "soft/engine/calls.h"
#include "soft/wire/datagram.h"

/* Which packet of its message is sent next. */
static uint32_t place_in_message(const struct soft_qp *qp)
{
	const struct soft_segmentation *segmentation = qp->segmentation;

	if (segmentation->cursor)
		return segmentation->cursor;
	return qp->requester.transmitted == qp->requester.completed ? segmentation->answered : 0;
}

/* How many packets before that one are not answered. */
static uint32_t unanswered(struct soft_qp *qp, uint32_t psn)
{
	const struct soft_send_wqe *oldest = soft_send_wqe(&qp->requester, qp->requester.completed);

	return (psn - oldest->psn - qp->segmentation->answered) & SOFT_PSN_MASK;
}

bool soft_segment_may_send(struct soft_qp *qp, const struct soft_send_wqe *wqe)
{
	soft_lock_expect(&qp->requester.lock);
	return qp->service != SOFT_RELIABLE_CONNECTION ||
	       unanswered(qp, wqe->psn + place_in_message(qp)) < qp->segmentation->window;
}

static void cut_payload(struct soft_qp *qp, const struct soft_send_wqe *wqe, uint32_t place,
			uint32_t count, struct soft_packet *packet)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	uint64_t offset = (uint64_t)place * segmentation->mtu;
	bool first = place == 0, last = place + 1 == count;

	packet->message_length = wqe->length;
	packet->acknowledge = qp->service == SOFT_RELIABLE_CONNECTION &&
			      (last || (place + 1) % SOFT_ACKNOWLEDGE_EVERY == 0 ||
			       unanswered(qp, packet->psn) + 1 >= segmentation->window);
	segmentation->cursor = last ? 0 : place + 1;
	if (first && last)
		return;
	packet->opcode = soft_operation_part(packet->opcode, first, last);
	packet->solicited &= last;
	soft_packet_skip(packet, offset);
	packet->length = last ? wqe->length - offset : segmentation->mtu;
}

void soft_segment_cut(struct soft_qp *qp, const struct soft_send_wqe *wqe, struct soft_packet *packet)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	uint8_t traits = wqe->traits;
	uint32_t count = soft_segment_count(qp, wqe->length), place = place_in_message(qp), after;

	soft_lock_expect(&qp->requester.lock);
	packet->migrated = true;
	packet->congestion = 0;
	packet->partition = SOFT_WIRE_PARTITION;
	packet->psn = (wqe->psn + place) & SOFT_PSN_MASK;
	after = packet->psn + 1;
	if (traits & SOFT_RESPONDS) {
		packet->acknowledge = true;
		if (!(traits & SOFT_ATOMIC)) {
			/* A READ asks for what has not come yet. */
			packet->remote_address += (uint64_t)place * segmentation->mtu;
			packet->length -= (uint64_t)place * segmentation->mtu;
			packet->message_length = (uint32_t)packet->length;
			after = wqe->psn + count;
		}
	} else {
		cut_payload(qp, wqe, place, count, packet);
	}
	if (soft_psn_difference(after, segmentation->frontier) > 0 ||
	    qp->service != SOFT_RELIABLE_CONNECTION)
		segmentation->frontier = after & SOFT_PSN_MASK;
}

bool soft_segment_is_answered(struct soft_qp *qp, const struct soft_send_wqe *wqe, uint32_t packets,
			      bool *whole, bool *part)
{
	struct soft_segmentation *segmentation = qp->segmentation;

	soft_lock_expect(&qp->requester.lock);
	if (wqe->traits & SOFT_RESPONDS) {
		*whole = packets <= segmentation->answered;
		return false;
	}
	if (packets >= soft_segment_count(qp, wqe->length)) {
		segmentation->answered = 0;
		return true;
	}
	*part = packets > segmentation->answered;
	if (!*part)
		return false;
	segmentation->answered = packets;
	/* The requester went back, and an answer to what it sent before that comes only now. */
	if (segmentation->cursor && segmentation->cursor < packets &&
	    qp->requester.completed + 1 == qp->requester.transmitted)
		segmentation->cursor = packets;
	return false;
}

void soft_segment_progress(struct soft_qp *qp)
{
	struct soft_segmentation *segmentation = qp->segmentation;

	soft_lock_expect(&qp->requester.lock);
	segmentation->retrying = false;
	if (segmentation->window < segmentation->window_limit)
		segmentation->window++;
	if (qp->requester.completed == qp->requester.transmitted)
		segmentation->cursor = 0;
}

bool soft_segment_retry(struct soft_qp *qp)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	bool first = !segmentation->retrying;

	soft_lock_expect(&qp->requester.lock);
	segmentation->retrying = true;
	if (first && segmentation->window / 2 >= SOFT_WINDOW_MIN)
		segmentation->window /= 2;
	return first;
}

bool soft_segment_is_stray(const struct soft_qp *qp, const struct soft_packet *packet)
{
	soft_lock_expect(&qp->requester.lock);
	return soft_psn_difference(packet->psn, qp->segmentation->frontier) >= 0;
}

bool soft_segment_is_stale(struct soft_qp *qp, const struct soft_packet *packet)
{
	soft_lock_expect(&qp->requester.lock);
	return unanswered(qp, packet->psn) != 0;
}

enum soft_segment_result soft_segment_read(struct soft_qp *qp, struct soft_send_wqe *wqe,
					   const struct soft_packet *packet)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	uint64_t offset = (uint64_t)segmentation->answered * segmentation->mtu;
	/* An ATOMIC_WRITE brings nothing back. */
	uint64_t left = wqe->traits & SOFT_PLACES ? 0 : wqe->length - offset;
	uint64_t length = left < segmentation->mtu ? left : segmentation->mtu;
	int32_t ahead = soft_psn_difference(packet->psn, wqe->psn + segmentation->answered);
	uint8_t traits = wqe->traits;
	/* A responder that is asked again may begin with any form (rdma_rxe does not begin with FIRST). */
	bool last = packet->opcode == SOFT_RDMA_READ_RESPONSE_LAST ||
		    packet->opcode == SOFT_RDMA_READ_RESPONSE_ONLY;
	struct soft_packet own;

	soft_lock_expect(&qp->requester.lock);
	if (ahead)
		return ahead < 0 ? SOFT_SEGMENT_OLD : SOFT_SEGMENT_GAP;
	if (!(traits & SOFT_RESPONDS) || traits & SOFT_ATOMIC || packet->length != length ||
	    last != (left == length))
		return SOFT_SEGMENT_BAD;
	own.num_segments = 0;
	if (length && !soft_request_translate(qp, wqe, IBV_ACCESS_LOCAL_WRITE, &own))
		return SOFT_SEGMENT_UNREACHABLE;
	soft_packet_skip(&own, offset);
	soft_segments_copy(own.segments, packet->segments, length);
	if (last)
		return SOFT_SEGMENT_WHOLE;
	segmentation->answered++;
	return SOFT_SEGMENT_PART;
}

bool soft_segment_take_held(struct soft_qp *qp, struct soft_receive *receive)
{
	struct soft_assembly *assembly = &qp->segmentation->assembly;
	bool held = assembly->holds;

	soft_lock_expect(&qp->responder.lock);
	if (held && receive != &assembly->receive) {
		*receive = assembly->receive;
		receive->sge = receive->copy;
	}
	assembly->holds = false;
	return held;
}
