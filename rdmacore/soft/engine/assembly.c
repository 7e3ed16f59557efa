#include "soft/engine/calls.h"

#include <stdlib.h>

#include "soft/engine/answer.h"
#include "soft/engine/segment.h"
#include "soft/objects/device.h"
#include "soft/objects/mw.h"
#include "soft/wire/datagram.h"

static void begin(struct soft_assembly *assembly, uint8_t kind)
{
	assembly->kind = kind;
	assembly->offset = 0;
}

void soft_assembly_abandon(struct soft_qp *qp)
{
	struct soft_assembly *assembly = &qp->segmentation->assembly;

	soft_lock_expect(&qp->responder.lock);
	/* A receive of its own queue is still there; one of a shared queue is kept for the next message. */
	if (assembly->kind == SOFT_SEND_FIRST && qp->srq)
		assembly->holds = true;
	assembly->kind = SOFT_NO_MESSAGE;
}

/* The message that has begun cannot be completed. */
static void refuse(struct soft_qp *qp, struct soft_packet *response, enum soft_syndrome syndrome,
		   enum ibv_wc_status status)
{
	struct soft_assembly *assembly = &qp->segmentation->assembly;

	soft_answer_refuse(qp, response, syndrome);
	if (qp->service == SOFT_RELIABLE_CONNECTION && assembly->kind == SOFT_SEND_FIRST) {
		soft_receive_complete(qp, &assembly->receive, status, NULL);
		assembly->kind = SOFT_NO_MESSAGE;
	}
	soft_assembly_abandon(qp);
}

/* Complete the receive of a message that came in parts. */
static void complete(struct soft_qp *qp, const struct soft_receive *receive,
		     const struct soft_packet *last, enum soft_operation operation, uint64_t length)
{
	struct soft_packet whole;

	whole.opcode = qp->service | (uint8_t)operation;
	whole.length = length;
	whole.header = 0;
	whole.source = last->source;
	whole.service_level = last->service_level;
	whole.immediate = last->immediate;
	whole.solicited = last->solicited;
	soft_receive_complete(qp, receive, IBV_WC_SUCCESS, &whole);
}

static void add_to_send(struct soft_qp *qp, const struct soft_packet *packet,
			struct soft_packet *response)
{
	struct soft_assembly *assembly = &qp->segmentation->assembly;
	uint8_t operation = packet->opcode & SOFT_OPERATION;
	struct soft_segment segments[SOFT_MAX_SGE];
	enum ibv_wc_status status;

	if (operation == SOFT_SEND_FIRST) {
		soft_answer_order(qp);
		if (soft_receive_stalls(qp, packet) || !soft_receive_take(qp, &assembly->receive)) {
			soft_answer_not_ready(qp, response);
			return;
		}
		begin(assembly, SOFT_SEND_FIRST);
	}
	status = assembly->offset + packet->length > SOFT_MAX_MESSAGE ? /* no message is longer: IBTA 9.7.4.1 */
			 IBV_WC_LOC_LEN_ERR :
			 soft_receive_reach(qp, &assembly->receive, assembly->offset, packet, segments);
	if (status != IBV_WC_SUCCESS) {
		enum soft_syndrome syndrome = status == IBV_WC_LOC_LEN_ERR ?
						      SOFT_NAK_INVALID_REQUEST :
						      SOFT_NAK_REMOTE_OPERATIONAL;

		/* The receive is at fault (IBTA 9.9.3, class E), so it completes with an error in all services. */
		soft_answer_refuse(qp, response, syndrome);
		qp->responder.failed = true;
		soft_receive_complete(qp, &assembly->receive, status, NULL);
		assembly->kind = SOFT_NO_MESSAGE;
		return;
	}
	soft_segments_copy(segments, packet->segments, packet->length);
	assembly->offset += packet->length;
	if (!soft_operation_is_last(operation))
		return;
	if (operation == SOFT_SEND_LAST_INVALIDATE && !soft_mw_invalidate(qp, packet->immediate)) {
		refuse(qp, response, SOFT_NAK_REMOTE_ACCESS, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	assembly->kind = SOFT_NO_MESSAGE;
	complete(qp, &assembly->receive, packet,
		 operation == SOFT_SEND_LAST_INVALIDATE ? SOFT_SEND_ONLY_INVALIDATE :
		 operation == SOFT_SEND_LAST_IMMEDIATE	? SOFT_SEND_ONLY_IMMEDIATE :
							  SOFT_SEND_ONLY,
		 assembly->offset);
}

static void add_to_write(struct soft_qp *qp, const struct soft_packet *packet,
			 struct soft_packet *response)
{
	struct soft_assembly *assembly = &qp->segmentation->assembly;
	uint8_t operation = packet->opcode & SOFT_OPERATION;
	bool last = soft_operation_is_last(operation), immediate = operation == SOFT_RDMA_WRITE_LAST_IMMEDIATE;
	struct soft_packet part;
	struct soft_receive receive;
	struct soft_segment segment;

	if (operation == SOFT_RDMA_WRITE_FIRST) {
		if (packet->message_length > SOFT_MAX_MESSAGE) { /* no message is longer: IBTA 9.7.4.1 */
			refuse(qp, response, SOFT_NAK_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR);
			return;
		}
		begin(assembly, SOFT_RDMA_WRITE_FIRST);
		assembly->address = packet->remote_address;
		assembly->rkey = packet->rkey;
		assembly->length = packet->message_length;
	}
	if (assembly->offset + packet->length > assembly->length ||
	    last != (assembly->offset + packet->length == assembly->length)) {
		refuse(qp, response, SOFT_NAK_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	part.rkey = assembly->rkey;
	if (operation == SOFT_RDMA_WRITE_FIRST) {
		/* The whole range is checked before the first byte is written. */
		part.remote_address = assembly->address;
		part.length = assembly->length;
		if (!soft_answer_target(qp, &part, IBV_ACCESS_REMOTE_WRITE, response, &segment)) {
			assembly->kind = SOFT_NO_MESSAGE;
			return;
		}
	}
	if (immediate && !soft_receive_take(qp, &receive)) {
		if (qp->service == SOFT_RELIABLE_CONNECTION)
			soft_answer_not_ready(qp, response);
		else
			soft_assembly_abandon(qp);
		return;
	}
	part.remote_address = assembly->address + assembly->offset;
	part.length = packet->length;
	if (!soft_answer_target(qp, &part, IBV_ACCESS_REMOTE_WRITE, response, &segment)) {
		if (immediate && qp->srq)
			soft_receive_complete(qp, &receive, IBV_WC_WR_FLUSH_ERR, NULL);
		assembly->kind = SOFT_NO_MESSAGE;
		return;
	}
	soft_answer_place(qp, &segment, packet);
	assembly->offset += packet->length;
	if (last)
		assembly->kind = SOFT_NO_MESSAGE;
	if (immediate) {
		soft_answer_order(qp);
		complete(qp, &receive, packet, SOFT_RDMA_WRITE_ONLY_IMMEDIATE, assembly->offset);
	}
}

/* All packets but the last are full (IBTA 9.7.4.1.7). */
static bool has_right_length(const struct soft_qp *qp, const struct soft_packet *packet)
{
	uint32_t mtu = qp->segmentation->mtu;

	if (!soft_operation_is_last(packet->opcode))
		return packet->length == mtu;
	return packet->length && packet->length <= mtu;
}

static void add(struct soft_qp *qp, const struct soft_packet *packet, uint8_t kind,
		struct soft_packet *response)
{
	struct soft_assembly *assembly = &qp->segmentation->assembly;
	bool first = (packet->opcode & SOFT_OPERATION) == kind;

	/* Without acknowledgements a first packet begins a new message, whatever precedes it (IBTA 9.8.2.2). */
	if (first && qp->service != SOFT_RELIABLE_CONNECTION)
		soft_assembly_abandon(qp);
	if (assembly->kind != (first ? SOFT_NO_MESSAGE : kind) || !has_right_length(qp, packet)) {
		refuse(qp, response, SOFT_NAK_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	if (kind == SOFT_SEND_FIRST)
		add_to_send(qp, packet, response);
	else
		add_to_write(qp, packet, response);
}

/* Whether a single packet is not longer than the MTU, and a WRITE is as long as its RETH says. */
static bool fits(const struct soft_qp *qp, const struct soft_packet *packet)
{
	switch ((enum soft_operation)(packet->opcode & SOFT_OPERATION)) {
	case SOFT_RDMA_READ_REQUEST:
	case SOFT_FLUSH:
		return packet->length <= SOFT_MAX_MESSAGE;
	case SOFT_RDMA_WRITE_ONLY:
	case SOFT_RDMA_WRITE_ONLY_IMMEDIATE:
		return packet->length <= qp->segmentation->mtu &&
		       packet->message_length == packet->length;
	default:
		return packet->length <= qp->segmentation->mtu;
	}
}

bool soft_assembly_is_request(struct soft_qp *qp, const struct soft_packet *packet,
			      struct soft_packet *response)
{
	soft_lock_expect(&qp->responder.lock);
	switch ((enum soft_operation)(packet->opcode & SOFT_OPERATION)) {
	case SOFT_SEND_FIRST:
	case SOFT_SEND_MIDDLE:
	case SOFT_SEND_LAST:
	case SOFT_SEND_LAST_IMMEDIATE:
	case SOFT_SEND_LAST_INVALIDATE:
		add(qp, packet, SOFT_SEND_FIRST, response);
		return false;
	case SOFT_RDMA_WRITE_FIRST:
	case SOFT_RDMA_WRITE_MIDDLE:
	case SOFT_RDMA_WRITE_LAST:
	case SOFT_RDMA_WRITE_LAST_IMMEDIATE:
		add(qp, packet, SOFT_RDMA_WRITE_FIRST, response);
		return false;
	default:
		break;
	}
	if (qp->service != SOFT_RELIABLE_CONNECTION)
		soft_assembly_abandon(qp);
	if (qp->segmentation->assembly.kind != SOFT_NO_MESSAGE || !fits(qp, packet)) {
		refuse(qp, response, SOFT_NAK_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR);
		return false;
	}
	return true;
}

static void begin_stream(struct soft_qp *qp, const struct soft_packet *packet, bool again)
{
	qp->segmentation->stream = (struct soft_read_stream){
		.active = true,
		.again = again,
		.first = true,
		.shared_queue = packet->shared_queue,
		.psn = packet->psn,
		.rkey = packet->rkey,
		.address = packet->remote_address,
		.left = packet->length,
	};
}

bool soft_assembly_answer(struct soft_qp *qp, const struct soft_packet *packet,
			  struct soft_packet *response)
{
	struct soft_segmentation *segmentation = qp->segmentation;

	soft_lock_expect(&qp->responder.lock);
	if (response->syndrome != SOFT_ACK) {
		/* The requester goes back to it, so the following packets are repeated without another NAK. */
		qp->responder.nak_sent = true;
	} else if (packet->opcode == SOFT_RDMA_READ_REQUEST) {
		begin_stream(qp, packet, false);
	} else if (response->opcode == SOFT_ACKNOWLEDGE) {
		segmentation->ack_pending |= packet->acknowledge;
		if (packet->acknowledge)
			soft_ack_delay_request(segmentation);
		return false;
	}
	/* Each response acknowledges all requests before it (IBTA 9.7.5.1.2). */
	soft_ack_delay_acknowledged(segmentation);
	return packet->opcode != SOFT_RDMA_READ_REQUEST || response->syndrome != SOFT_ACK;
}

bool soft_assembly_repeat(struct soft_qp *qp, const struct soft_packet *packet,
			  struct soft_packet *response)
{
	soft_lock_expect(&qp->responder.lock);
	switch ((enum soft_operation)(packet->opcode & SOFT_OPERATION)) {
	case SOFT_RDMA_READ_REQUEST:
		if (soft_psn_difference(packet->psn + soft_segment_count(qp, packet->length),
					qp->responder.psn) <= 0 &&
		    qp->attr.max_dest_rd_atomic)
			begin_stream(qp, packet, true);
		return false;
	case SOFT_COMPARE_SWAP:
	case SOFT_FETCH_ADD:
		response->msn = qp->responder.msn;
		return soft_atomic_replay(qp, packet, response);
	default:
		/* The peer did not get the acknowledgement in time. */
		soft_ack_delay_end(qp->segmentation);
		qp->segmentation->ack_pending = true;
		return false;
	}
}

bool soft_assembly_stream(struct soft_qp *qp, struct soft_packet *response)
{
	struct soft_read_stream *stream = &qp->segmentation->stream;
	uint32_t mtu = qp->segmentation->mtu;
	uint64_t length = stream->left < mtu ? stream->left : mtu;
	bool last = stream->left <= mtu;
	struct soft_packet part;

	soft_lock_expect(&qp->responder.lock);
	if (!stream->active || qp->responder.failed)
		return false;
	part.rkey = stream->rkey;
	part.remote_address = stream->address;
	part.length = length;
	soft_answer_begin(qp, response, stream->psn);
	if (stream->again && length &&
	    !soft_answer_reach(qp, &part, IBV_ACCESS_REMOTE_READ)) {
		stream->active = false;
		return false;
	}
	if (!soft_answer_target(qp, &part, IBV_ACCESS_REMOTE_READ, response,
				   &response->segments[0])) {
		stream->active = false;
		return true;
	}
	response->opcode = stream->first ? (last ? SOFT_RDMA_READ_RESPONSE_ONLY :
						   SOFT_RDMA_READ_RESPONSE_FIRST) :
					   (last ? SOFT_RDMA_READ_RESPONSE_LAST :
						   SOFT_RDMA_READ_RESPONSE_MIDDLE);
	response->length = length;
	response->num_segments = 1;
	stream->first = false;
	stream->active = !last;
	stream->psn = (stream->psn + 1) & SOFT_PSN_MASK;
	stream->address += length;
	stream->left -= length;
	return true;
}

bool soft_assembly_acknowledge(struct soft_qp *qp, struct soft_packet *response)
{
	struct soft_segmentation *segmentation = qp->segmentation;

	soft_lock_expect(&qp->responder.lock);
	if (!segmentation->ack_pending || qp->responder.failed || !soft_qp_receives(qp))
		return false;
	soft_ack_delay_acknowledged(segmentation);
	soft_answer_begin(qp, response, qp->responder.psn - 1);
	return true;
}

struct soft_segmentation *soft_segmentation_create(struct soft_link *link, size_t route)
{
	struct soft_segmentation *segmentation = calloc(1, sizeof(*segmentation) + route);

	if (!segmentation)
		return NULL;
	segmentation->link = link;
	segmentation->mtu = SOFT_MTU;
	segmentation->window = segmentation->window_limit = SOFT_WINDOW_MAX;
	segmentation->acknowledge_every = SOFT_ACKNOWLEDGE_EVERY;
	segmentation->read_limit = SOFT_READ_MAX;
	segmentation->assembly.kind = SOFT_NO_MESSAGE;
	soft_ack_delay_init(&segmentation->ack_delay);
	return segmentation;
}

void soft_segmentation_start(struct soft_qp *qp)
{
	const struct ibv_global_route *route = &qp->attr.ah_attr.grh;

	soft_lock_expect(&qp->requester.lock);
	soft_lock_expect(&qp->responder.lock);
	if (qp->service == SOFT_UNRELIABLE_DATAGRAM)
		return;
	qp->segmentation->mtu = 128u << qp->attr.path_mtu; /* enum ibv_mtu */
	soft_ip_make(qp->segmentation->header, route,
		     &soft_qp_device(qp)->gid_table.gids[route->sgid_index]);
}

void soft_segmentation_stop(struct soft_qp *qp)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	bool resumed = qp->target && soft_target_resume(qp);

	soft_lock_expect(&qp->requester.lock);
	soft_lock_expect(&qp->responder.lock);
	soft_assembly_abandon(qp);
	if (segmentation->assembly.holds && soft_qp_state(qp) == IBV_QPS_ERR)
		soft_receive_complete(qp, &segmentation->assembly.receive, IBV_WC_WR_FLUSH_ERR, NULL);
	segmentation->assembly.holds = false;
	if (resumed)
		soft_target_leave(qp);
	if (qp->target)
		soft_target_abandon(qp);
	segmentation->stream.active = false;
	segmentation->ack_pending = false;
	soft_ack_delay_init(&segmentation->ack_delay);
	segmentation->cursor = 0;
	segmentation->answered = 0;
	segmentation->window = segmentation->window_limit;
	segmentation->retrying = false;
	segmentation->credited = false;
	segmentation->timed = segmentation->prolonged = false;
}
