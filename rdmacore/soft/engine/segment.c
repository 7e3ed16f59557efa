#include "soft/engine/segment.h"

#include "soft/engine/calls.h"
#include "soft/wire/datagram.h"

/* The packet of its message that is sent next. */
static uint32_t packet_index(const struct soft_qp *qp)
{
	const struct soft_segmentation *segmentation = qp->segmentation;

	if (segmentation->cursor)
		return segmentation->cursor;
	return qp->requester.transmitted == qp->requester.completed ? segmentation->answered : 0;
}

/* The number of unanswered packets before that one. */
static uint32_t unanswered(struct soft_qp *qp, uint32_t psn)
{
	const struct soft_send_wqe *oldest = soft_send_wqe(&qp->requester, qp->requester.completed);

	return (psn - oldest->psn - qp->segmentation->answered) & SOFT_PSN_MASK;
}

static bool is_read(uint8_t traits)
{
	return traits & SOFT_RESPONDS && !(traits & (SOFT_ATOMIC | SOFT_NO_RESPONSE_DATA));
}

/*
 * A READ of many packets is requested in parts. A responder sends a whole response at once, and Linux's receives
 * nothing meanwhile. Packets for which the receiver has no room are lost, and lost again after a retry. For the
 * responder each part is a READ, with the sequence numbers that it has in the whole. A packet is always in the same
 * part. So a repeated request is within one that was sent before (IBTA 9.7.5.1.4).
 */
static uint32_t read_part(const struct soft_segmentation *segmentation)
{
	return segmentation->read_limit / 2;
}

/* The end of the part that contains that packet, in a READ of count packets. */
static uint32_t read_part_end(const struct soft_segmentation *segmentation, uint32_t index, uint32_t count)
{
	uint32_t part = read_part(segmentation), left = part - index % part;

	return count - index < left ? count : index + left;
}

bool soft_segment_may_send(struct soft_qp *qp, const struct soft_send_wqe *wqe)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	uint32_t index, waiting, count;

	soft_lock_expect(&qp->requester.lock);
	if (qp->service != SOFT_RELIABLE_CONNECTION)
		return true;
	index = packet_index(qp);
	waiting = unanswered(qp, wqe->psn + index);
	if (!waiting || !is_read(wqe->traits))
		return waiting < segmentation->window;
	/* After a loss, request one part after the other until the window has its size again. */
	if (segmentation->window < segmentation->window_limit)
		return false;
	count = soft_segment_count(qp, wqe->length);
	return waiting + read_part_end(segmentation, index, count) - index <= segmentation->read_limit;
}

static void cut_payload(struct soft_qp *qp, const struct soft_send_wqe *wqe, uint32_t index,
			uint32_t count, struct soft_packet *packet)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	uint64_t offset = (uint64_t)index * segmentation->mtu;
	bool first = index == 0, last = index + 1 == count;
	/*
	 * A larger window contains a packet that requests an acknowledgement. If the last packet requested one each
	 * time, few packets would be sent together.
	 */
	bool stops = segmentation->window < segmentation->acknowledge_every &&
		     unanswered(qp, packet->psn) + 1 >= segmentation->window;

	packet->message_length = wqe->length;
	packet->acknowledge = qp->service == SOFT_RELIABLE_CONNECTION &&
			      (last || stops || (index + 1) % segmentation->acknowledge_every == 0);
	segmentation->cursor = last ? 0 : index + 1;
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
	uint32_t count = soft_segment_count(qp, wqe->length), index = packet_index(qp), after;

	soft_lock_expect(&qp->requester.lock);
	packet->migrated = true;
	packet->congestion = 0;
	packet->partition = SOFT_WIRE_PARTITION;
	packet->psn = (wqe->psn + index) & SOFT_PSN_MASK;
	after = packet->psn + 1;
	if (traits & SOFT_RESPONDS) {
		packet->acknowledge = true;
		if (is_read(traits)) {
			/* Request only what has not arrived. */
			uint64_t offset = (uint64_t)index * segmentation->mtu;
			uint32_t end = read_part_end(segmentation, index, count);

			packet->remote_address += offset;
			packet->length = (end == count ? wqe->length : (uint64_t)end * segmentation->mtu) - offset;
			segmentation->cursor = end == count ? 0 : end;
			after = wqe->psn + end;
		}
		packet->message_length = (uint32_t)packet->length;
	} else {
		cut_payload(qp, wqe, index, count, packet);
	}
	if (soft_psn_difference(after, segmentation->next_unsent_psn) > 0 ||
	    qp->service != SOFT_RELIABLE_CONNECTION)
		segmentation->next_unsent_psn = after & SOFT_PSN_MASK;
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
	/* The requester went back, and an answer to earlier packets arrives only now. */
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
	return soft_psn_difference(packet->psn, qp->segmentation->next_unsent_psn) >= 0;
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
	/* The response to an ATOMIC_WRITE has no data. */
	uint64_t left = wqe->traits & SOFT_NO_RESPONSE_DATA ? 0 : wqe->length - offset;
	uint64_t length = left < segmentation->mtu ? left : segmentation->mtu;
	int32_t ahead = soft_psn_difference(packet->psn, wqe->psn + segmentation->answered);
	uint8_t traits = wqe->traits;
	bool ends;
	/* A responder may begin a repeated response with any form (rdma_rxe does not begin with FIRST). */
	bool last = packet->opcode == SOFT_RDMA_READ_RESPONSE_LAST ||
		    packet->opcode == SOFT_RDMA_READ_RESPONSE_ONLY;
	struct soft_packet own;

	soft_lock_expect(&qp->requester.lock);
	if (ahead)
		return ahead < 0 ? SOFT_SEGMENT_OLD : SOFT_SEGMENT_GAP;
	ends = left == length || (segmentation->answered + 1) % read_part(segmentation) == 0;
	if (!(traits & SOFT_RESPONDS) || traits & SOFT_ATOMIC || packet->length != length || last != ends)
		return SOFT_SEGMENT_BAD;
	own.num_segments = 0;
	if (length && !soft_request_translate(qp, wqe, IBV_ACCESS_LOCAL_WRITE, &own))
		return SOFT_SEGMENT_UNREACHABLE;
	soft_packet_skip(&own, offset);
	soft_segments_copy(own.segments, packet->segments, length);
	if (left == length)
		return SOFT_SEGMENT_WHOLE;
	segmentation->answered++;
	/* The requester went back, and a response to an earlier request arrives only now. */
	if (segmentation->cursor && segmentation->cursor < segmentation->answered &&
	    qp->requester.completed + 1 == qp->requester.transmitted)
		segmentation->cursor = segmentation->answered;
	if (last && qp->requester.responding)
		qp->requester.responding--; /* one request is answered completely */
	return SOFT_SEGMENT_PART;
}
