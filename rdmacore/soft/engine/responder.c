#include "soft/engine/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/page_guard.h"
#include "soft/engine/answer.h"
#include "soft/engine/segment.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/mw.h"

int soft_responder_init(struct soft_qp *qp)
{
	if (soft_receive_queue_init(&qp->receive, soft_pd(qp->ibv.pd), qp->cap.max_recv_wr,
				    qp->cap.max_recv_sge))
		return -ENOMEM;
	soft_lock_init(&qp->responder.lock, SOFT_ORDER_RESPONDER);
	return 0;
}

void soft_responder_reset(struct soft_qp *qp)
{
	soft_lock_expect(&qp->responder.lock);
	qp->responder.psn = 0;
	qp->responder.msn = 0;
	qp->responder.nak_sent = false;
	qp->responder.failed = false;
	qp->responder.awaits_rtu = false;
	free(qp->responder.results);
	qp->responder.results = NULL;
	qp->responder.result_count = 0;
	if (qp->ibv.recv_cq) /* neither end of an extended connection has one of its own */
		soft_cq_disown(soft_cq(qp->ibv.recv_cq), qp);
	soft_receive_queue_reset(&qp->receive);
}

int soft_responder_remember(struct soft_qp *qp, uint32_t atomics)
{
	struct soft_atomic_result *results = NULL;

	soft_lock_expect(&qp->responder.lock);
	if (atomics && !(results = calloc(atomics, sizeof(*results))))
		return -ENOMEM;
	free(qp->responder.results);
	qp->responder.results = results;
	qp->responder.result_count = (uint8_t)atomics;
	qp->responder.result_next = 0;
	return 0;
}

static void execute_send(struct soft_qp *qp, const struct soft_packet *packet,
			 struct soft_packet *response)
{
	struct soft_segment segments[SOFT_MAX_SGE];
	struct soft_receive receive;
	enum ibv_wc_status status;

	if (soft_receive_stalls(qp, packet) || !soft_receive_take(qp, &receive)) {
		soft_answer_not_ready(qp, response);
		return;
	}
	status = soft_receive_reach(qp, &receive, 0, packet, segments);
	if (status == IBV_WC_LOC_LEN_ERR) {
		soft_answer_refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
	} else if (status != IBV_WC_SUCCESS) {
		soft_answer_refuse(qp, response, SOFT_NAK_REMOTE_OPERATIONAL);
	} else if (packet->opcode == SOFT_SEND_ONLY_INVALIDATE &&
		   !soft_mw_invalidate(qp, packet->immediate)) {
		soft_segments_copy(segments, packet->segments, packet->length);
		soft_answer_refuse(qp, response, SOFT_NAK_REMOTE_ACCESS);
		status = IBV_WC_REM_INV_REQ_ERR;
	} else {
		soft_receive_deliver(qp, &receive, packet, segments);
		return;
	}
	qp->responder.failed = true;
	soft_receive_complete(qp, &receive, status, packet);
}

static void execute_write(struct soft_qp *qp, const struct soft_packet *packet,
			  struct soft_packet *response)
{
	struct soft_segment segment;

	if (soft_answer_target(qp, packet, IBV_ACCESS_REMOTE_WRITE, response, &segment))
		soft_answer_place(qp, &segment, packet);
}

static void execute_write_immediate(struct soft_qp *qp, const struct soft_packet *packet,
				    struct soft_packet *response)
{
	struct soft_receive receive;
	struct soft_segment segment;

	if (soft_receive_stalls(qp, packet) || !soft_receive_take(qp, &receive)) {
		soft_answer_not_ready(qp, response);
		return;
	}
	if (soft_answer_target(qp, packet, IBV_ACCESS_REMOTE_WRITE, response, &segment)) {
		soft_receive_deliver(qp, &receive, packet, &segment);
	} else if (qp->srq) {
		/* It was taken from the shared queue, so its memory is returned to the user here. */
		soft_receive_complete(qp, &receive, IBV_WC_WR_FLUSH_ERR, NULL);
	}
}

/* READs and atomics need responder resources; a queue pair may have none (IBTA 9.7.4.1.3). */
static bool responds(struct soft_qp *qp, struct soft_packet *response)
{
	if (qp->attr.max_dest_rd_atomic)
		return true;
	soft_answer_refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
	return false;
}

static void execute_atomic(struct soft_qp *qp, const struct soft_packet *packet,
			   struct soft_packet *response)
{
	struct soft_segment segment;

	if (!responds(qp, response))
		return;
	if (packet->remote_address % sizeof(uint64_t)) { /* IBTA 9.4.5 */
		soft_answer_refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
		return;
	}
	if (!soft_answer_target(qp, packet, IBV_ACCESS_REMOTE_ATOMIC, response, &segment))
		return;
	/* An aligned iova may refer to memory that is not aligned. */
	if ((uintptr_t)segment.address % sizeof(uint64_t))
		soft_answer_refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
	else
		soft_atomic_execute(qp, packet, segment.address, response);
}

/* An ATOMIC_WRITE or a FLUSH is answered by a READ response without payload (IBTA annex A19). */
static void answer_placed(struct soft_packet *response)
{
	response->opcode = SOFT_RDMA_READ_RESPONSE_ONLY;
	response->length = 0;
	response->num_segments = 0;
}

static void execute_atomic_write(struct soft_qp *qp, const struct soft_packet *packet,
				 struct soft_packet *response)
{
	struct soft_segment segment, value;
	uint64_t word;

	if (!responds(qp, response))
		return;
	if (packet->length != sizeof(word) || packet->remote_address % sizeof(word)) {
		soft_answer_refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
		return;
	}
	if (!soft_answer_target(qp, packet, IBV_ACCESS_REMOTE_WRITE, response, &segment))
		return;
	if ((uintptr_t)segment.address % sizeof(word)) { /* like other atomics */
		soft_answer_refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
		return;
	}
	value = (struct soft_segment){&word, sizeof(word)};
	soft_segments_copy(&value, packet->segments, sizeof(word));
	/* Release: a thread that sees this word sees all earlier writes (IBTA annex A19). */
	soft_page_guard_begin();
	__atomic_store_n((uint64_t *)segment.address, word, __ATOMIC_RELEASE);
	soft_page_guard_end();
	answer_placed(response);
}

/*
 * All earlier writes are visible from now on (IBTA annex A19). The memory is not persistent, so no region grants
 * that placement.
 */
static void execute_flush(struct soft_qp *qp, const struct soft_packet *packet,
			  struct soft_packet *response)
{
	bool global = packet->placement & CORE_FLUSH_GLOBAL;
	bool persistent = packet->placement & CORE_FLUSH_PERSISTENT;
	uint32_t access = (global ? CORE_ACCESS_FLUSH_GLOBAL : 0u) |
			  (persistent ? CORE_ACCESS_FLUSH_PERSISTENT : 0u);
	struct soft_segment segment;
	struct soft_packet whole;

	if (!responds(qp, response))
		return;
	if (!access || packet->placement & ~(CORE_FLUSH_GLOBAL | CORE_FLUSH_PERSISTENT) ||
	    packet->selectivity > CORE_FLUSH_MR ||
	    (qp->attr.qp_access_flags & access) != access) {
		soft_answer_refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
		return;
	}
	whole.rkey = packet->rkey;
	whole.remote_address = packet->remote_address;
	whole.length = packet->length;
	if (packet->selectivity == CORE_FLUSH_MR) {
		/* It names a region, so the key is checked even if the region is empty. */
		soft_mr_table_extent(&soft_qp_device(qp)->memory, packet->rkey, &whole.remote_address, &whole.length);
		if (!soft_answer_reach(qp, &whole, access)) {
			soft_answer_refuse(qp, response, SOFT_NAK_REMOTE_ACCESS);
			return;
		}
	} else if (!soft_answer_target(qp, &whole, access, response, &segment)) {
		return;
	}
	atomic_thread_fence(memory_order_seq_cst);
	answer_placed(response);
}

static void execute_read(struct soft_qp *qp, const struct soft_packet *packet,
			 struct soft_packet *response)
{
	if (!responds(qp, response) ||
	    !soft_answer_target(qp, packet, IBV_ACCESS_REMOTE_READ, response, &response->segments[0]))
		return;
	response->opcode = SOFT_RDMA_READ_RESPONSE_ONLY;
	response->length = packet->length;
	response->num_segments = 1;
}

static void execute(struct soft_qp *qp, const struct soft_packet *packet,
		    struct soft_packet *response)
{
	if ((packet->opcode & SOFT_OPERATION) != SOFT_RDMA_WRITE_ONLY)
		soft_answer_order(qp);
	switch ((enum soft_operation)(packet->opcode & SOFT_OPERATION)) {
	case SOFT_SEND_ONLY:
	case SOFT_SEND_ONLY_IMMEDIATE:
	case SOFT_SEND_ONLY_INVALIDATE:
		execute_send(qp, packet, response);
		break;
	case SOFT_RDMA_WRITE_ONLY:
		execute_write(qp, packet, response);
		break;
	case SOFT_RDMA_WRITE_ONLY_IMMEDIATE:
		execute_write_immediate(qp, packet, response);
		break;
	case SOFT_RDMA_READ_REQUEST:
		execute_read(qp, packet, response);
		break;
	case SOFT_COMPARE_SWAP:
	case SOFT_FETCH_ADD:
		execute_atomic(qp, packet, response);
		break;
	case SOFT_FLUSH:
		execute_flush(qp, packet, response);
		break;
	case SOFT_ATOMIC_WRITE:
		execute_atomic_write(qp, packet, response);
		break;
	default:
		soft_answer_refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
		break;
	}
}

/*
 * A duplicate: execute a READ again, and repeat the answer to an atomic. Other requests were executed already (IBTA
 * 9.7.5.1.4).
 */
static bool answer_again(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response)
{
	soft_answer_begin(qp, response, qp->responder.psn - 1);
	if (packet->opcode == SOFT_ATOMIC_WRITE || packet->opcode == SOFT_FLUSH) {
		/*
		 * Not executed again: another request may have written there since, and flushed memory stays flushed.
		 */
		response->psn = packet->psn;
		answer_placed(response);
		return true;
	}
	if (qp->segmentation)
		return soft_assembly_repeat(qp, packet, response);
	if (packet->opcode == SOFT_RDMA_READ_REQUEST) {
		response->psn = packet->psn;
		execute_read(qp, packet, response);
	} else if (packet->opcode == SOFT_COMPARE_SWAP || packet->opcode == SOFT_FETCH_ADD) {
		return soft_atomic_replay(qp, packet, response);
	}
	return true;
}

bool soft_responder_receive(struct soft_qp *qp, const struct soft_packet *packet,
			    struct soft_packet *response)
{
	struct soft_responder *responder = &qp->responder;
	int32_t ahead = soft_psn_difference(packet->psn, responder->psn);

	soft_lock_expect(&qp->responder.lock);
	if (!soft_qp_receives(qp) || responder->failed || (packet->opcode & SOFT_SERVICE) != qp->service)
		return false;
	/* Without acknowledgements a gap loses its message, and the next message begins (IBTA 9.8.2.2). */
	if (qp->service != SOFT_RELIABLE_CONNECTION) {
		if (qp->segmentation && ahead)
			soft_assembly_abandon(qp);
		ahead = 0;
	}
	if (ahead < 0) {
		soft_count(soft_qp_device(qp), SOFT_COUNT_DUPLICATE);
		return answer_again(qp, packet, response);
	}
	soft_answer_begin(qp, response, responder->psn);
	if (ahead > 0) {
		/* One NAK for each gap: IBTA 9.7.5.2.8 */
		response->syndrome = SOFT_NAK_SEQUENCE;
		soft_count(soft_qp_device(qp), SOFT_COUNT_OUT_OF_SEQUENCE);
		if (responder->nak_sent)
			return false;
		soft_count(soft_qp_device(qp), SOFT_COUNT_GAP);
		responder->nak_sent = true;
		return true;
	}
	/* The peer is in RTS, and its RTU is late or lost (IBTA 11.6.3.1, Communication Established). */
	if (soft_qp_state(qp) == IBV_QPS_RTR || responder->awaits_rtu) {
		responder->awaits_rtu = false;
		soft_qp_raise(qp, SOFT_QP_ESTABLISHED_EVENT, true);
	}
	if (!qp->segmentation || soft_assembly_is_request(qp, packet, response))
		execute(qp, packet, response);
	if (qp->service != SOFT_RELIABLE_CONNECTION) {
		/* A request that could not be executed is dropped. */
		responder->psn = (packet->psn + 1) & SOFT_PSN_MASK;
		return false;
	}
	if (response->syndrome == SOFT_ACK) {
		uint32_t packets = 1, messages = 1;

		if (qp->segmentation) {
			messages = soft_operation_is_last(packet->opcode);
			if (packet->opcode == SOFT_RDMA_READ_REQUEST)
				packets = soft_segment_count(qp, packet->length);
		}
		responder->psn = (responder->psn + packets) & SOFT_PSN_MASK;
		responder->msn = (responder->msn + messages) & SOFT_PSN_MASK;
		responder->nak_sent = false;
	}
	response->msn = responder->msn;
	return qp->segmentation ? soft_assembly_answer(qp, packet, response) : true;
}

bool soft_target_receive(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response)
{
	struct soft_responder *responder = &qp->responder;
	int32_t ahead = soft_psn_difference(packet->psn, responder->psn);

	soft_lock_expect(&qp->responder.lock);
	if (!soft_qp_receives(qp) || responder->failed)
		return false;
	/* Of a packet after a gap only the number is read. */
	if (soft_target_enter(qp, packet->shared_queue) || ahead > 0)
		return soft_responder_receive(qp, packet, response);
	if (ahead < 0) /* it was executed before, and its queue is destroyed */
		return false;
	soft_answer_begin(qp, response, responder->psn);
	soft_answer_refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
	return qp->segmentation ? soft_assembly_answer(qp, packet, response) : true;
}
