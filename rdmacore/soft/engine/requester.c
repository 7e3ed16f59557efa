#include "soft/engine/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/capture/capture.h"
#include "soft/engine/completion.h"
#include "soft/engine/segment.h"
#include "soft/objects/ah.h"
#include "soft/objects/device.h"
#include "soft/objects/mw.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"

#define RNR_RETRY_FOR_EVER 7 /* IBTA 9.7.5.2.8 */

/* Compiled twice: with segmentation NULL, so that the local link does not pay for it, and with the queue pair's. */
#define FOR_BOTH_LINKS static inline __attribute__((always_inline))
#define FOR_PARTS static __attribute__((noinline))

int soft_requester_init(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;
	/*
	 * At least one entry, which a BIND_MW uses for its binding; after the list, the value that an atomic compares
	 * with.
	 */
	size_t entries_at_most = qp->cap.max_send_sge ? qp->cap.max_send_sge : 1;
	size_t list = entries_at_most * sizeof(struct ibv_sge) + sizeof(uint64_t);
	size_t inlined = qp->cap.max_inline_data;
	size_t shared = qp->xrc == SOFT_INITIATOR ? sizeof(uint64_t) : 0; /* the number of a shared queue, at the end */
	size_t stride = sizeof(struct soft_send_wqe) + (list > inlined ? list : inlined) + shared;
	uint32_t entries = qp->cap.max_send_wr ? qp->cap.max_send_wr : 1; /* a power of two (soft_ring_slots) */

	requester->stride = (uint32_t)((stride + SOFT_CACHE_LINE - 1) & ~(SOFT_CACHE_LINE - 1ul));
	requester->size = qp->cap.max_send_wr;
	requester->shared = qp->xrc == SOFT_INITIATOR;
	requester->mask = entries - 1;
	requester->ring = soft_parent_domain_allocate(soft_pd(qp->ibv.pd),
						      (size_t)entries * requester->stride,
						      SOFT_SEND_QUEUE, &requester->ring_source);
	if (!requester->ring)
		return -ENOMEM;
	soft_lock_init(&requester->lock, SOFT_ORDER_REQUESTER);
	return 0;
}

/* The request has ended: release its address handle. */
static inline void release(const struct soft_qp *qp, struct soft_send_wqe *wqe)
{
	if (qp->service == SOFT_UNRELIABLE_DATAGRAM)
		soft_ah_release(wqe->ah);
}

void soft_requester_reset(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;

	soft_lock_expect(&qp->requester.lock);
	while (requester->completed != requester->posted)
		release(qp, soft_send_wqe(requester, requester->completed++));
	atomic_fetch_add_explicit(&requester->resets, 1, memory_order_relaxed);
	requester->psn = 0;
	requester->posted = 0;
	requester->transmitted = 0;
	requester->completed = 0;
	requester->wait = SOFT_WAIT_NONE;
	requester->wait_delay = 0;
	requester->responding = 0;
	requester->resend_until = 0;
	requester->mw_op_base = requester->mw_op_seq;
	requester->drain_event = false;
	requester->deferred = false;
	soft_capture_flow_reset(requester->flow);
}

/* The later of two indexes of the ring. */
static uint32_t later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0 ? a : b;
}

/* In SQD, if all sent requests are answered, raise SQ_DRAINED (IBTA 10.3.1.5). */
static void check_drained(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;

	if (!requester->drain_event || requester->completed != requester->drain_until)
		return;
	requester->drain_event = false;
	soft_async_raise(qp->ibv.context, &qp->events[SOFT_QP_DRAINED_EVENT]);
}

/* Complete the oldest request. */
static inline void complete(struct soft_qp *qp, enum ibv_wc_status status)
{
	struct soft_requester *requester = &qp->requester;
	struct soft_send_wqe *wqe = soft_send_wqe(requester, requester->completed);

	if (status != IBV_WC_SUCCESS || qp->signal_all || wqe->flags & IBV_SEND_SIGNALED)
		soft_completion_push(qp, wqe->wr_id, wqe->opcode, wqe->length, status);
	release(qp, wqe);
	if (wqe->traits & SOFT_RESPONDS && requester->completed != requester->transmitted)
		requester->responding--;
	requester->completed++;
}

/*
 * The oldest request failed, so the queue pair fails; in a service without acknowledgements only its send queue (IBTA
 * 10.3.1.6, 10.3.1.7).
 */
static void fail(struct soft_qp *qp, enum ibv_wc_status status)
{
	complete(qp, status);
	if (soft_qp_state(qp) == IBV_QPS_ERR) /* the completion queue had no room */
		return;
	if (qp->service == SOFT_RELIABLE_CONNECTION) {
		atomic_store_explicit(&qp->state, IBV_QPS_ERR, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(&qp->state, IBV_QPS_SQE, memory_order_relaxed);
	soft_requester_flush(qp);
}

/*
 * Whether a request must wait: for answers to others (fence, max_rd_atomic), or because it is executed without a
 * packet. begun: a part of it was sent.
 */
static bool must_wait(struct soft_qp *qp, const struct soft_send_wqe *wqe, bool begun)
{
	uint32_t responding = qp->requester.responding;

	return wqe->traits & SOFT_LOCAL || (!begun && wqe->flags & IBV_SEND_FENCE && responding) ||
	       (wqe->traits & SOFT_RESPONDS && responding && responding >= qp->attr.max_rd_atomic);
}

FOR_BOTH_LINKS bool next(struct soft_qp *qp, struct soft_segmentation *segmentation,
			 struct soft_packet *packet)
{
	struct soft_requester *requester = &qp->requester;
	enum ibv_qp_state state = soft_qp_state(qp);
	/* A part of the message before transmitted was sent; the rest is next. */
	bool begun = segmentation && segmentation->cursor;
	uint32_t index = requester->transmitted - begun;
	struct soft_send_wqe *wqe;
	enum ibv_wc_status status;

	if (index == requester->posted || requester->wait > SOFT_WAIT_ACK)
		return false;
	if (state != IBV_QPS_RTS && (state != IBV_QPS_SQD || index == requester->drain_until))
		return false;
	wqe = soft_send_wqe(requester, index);
	if ((wqe->traits || wqe->flags & IBV_SEND_FENCE) && must_wait(qp, wqe, begun))
		return false;
	if (segmentation && !(soft_segment_may_send(qp, wqe) && (begun || soft_credits_allow(qp, index))))
		return false;
	status = soft_request_build(qp, wqe, packet);
	if (status != IBV_WC_SUCCESS) {
		/* Completions are in order, so it fails after all earlier ones are answered. */
		if (requester->completed == index)
			fail(qp, status);
		return false;
	}
	if (segmentation)
		soft_segment_cut(qp, wqe, packet);
	requester->transmitted = index + 1;
	if (wqe->traits & SOFT_RESPONDS)
		requester->responding++;
	if (requester->wait == SOFT_WAIT_NONE && qp->service == SOFT_RELIABLE_CONNECTION) {
		requester->wait = SOFT_WAIT_ACK;
		requester->wait_delay = requester->ack_timeout;
	}
	return true;
}

FOR_PARTS bool next_part(struct soft_qp *qp, struct soft_packet *packet)
{
	return next(qp, qp->segmentation, packet);
}

bool soft_requester_next(struct soft_qp *qp, struct soft_packet *packet)
{
	soft_lock_expect(&qp->requester.lock);
	return qp->segmentation ? next_part(qp, packet) : next(qp, NULL, packet);
}

void soft_requester_sent(struct soft_qp *qp)
{
	soft_lock_expect(&qp->requester.lock);
	if (qp->segmentation && qp->segmentation->cursor)
		return;
	while (qp->requester.completed != qp->requester.transmitted)
		complete(qp, IBV_WC_SUCCESS);
	check_drained(qp);
}

bool soft_requester_begin_local(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;
	struct soft_send_wqe *wqe = soft_send_wqe(requester, requester->completed);

	soft_lock_expect(&qp->requester.lock);
	/* In order: all earlier requests are answered. */
	if (requester->completed == requester->posted ||
	    requester->completed != requester->transmitted || requester->wait != SOFT_WAIT_NONE ||
	    soft_qp_state(qp) != IBV_QPS_RTS ||
	    !(wqe->traits & SOFT_LOCAL))
		return false;
	if (!soft_mw_disable(qp, wqe)) {
		fail(qp, IBV_WC_MW_BIND_ERR);
		return false;
	}
	requester->wait = SOFT_WAIT_LOCAL;
	requester->mw_op_seq++;
	return true;
}

bool soft_requester_end_local(struct soft_qp *qp, uint32_t seq)
{
	struct soft_requester *requester = &qp->requester;
	struct soft_send_wqe *wqe = soft_send_wqe(requester, requester->completed);
	enum soft_mw_result result = SOFT_MW_BOUND;

	soft_lock_expect(&qp->requester.lock);
	/* It was flushed or reset meanwhile, and another thread has begun the present one. */
	if (requester->wait != SOFT_WAIT_LOCAL || requester->mw_op_seq != seq)
		return false;
	if (wqe->opcode == IBV_WR_BIND_MW)
		result = soft_mw_enable(qp, wqe);
	if (result == SOFT_MW_TAKEN && soft_mw_disable(qp, wqe))
		return true;
	requester->wait = SOFT_WAIT_NONE;
	if (result != SOFT_MW_BOUND) {
		fail(qp, IBV_WC_MW_BIND_ERR);
		return false;
	}
	complete(qp, IBV_WC_SUCCESS);
	requester->transmitted = requester->completed;
	check_drained(qp);
	return false;
}

void soft_requester_drain(struct soft_qp *qp, bool event)
{
	struct soft_requester *requester = &qp->requester;

	soft_lock_expect(&qp->requester.lock);
	/* A BIND_MW or LOCAL_INV that has begun completes, too. */
	requester->drain_until = later(requester->transmitted + (requester->wait == SOFT_WAIT_LOCAL),
				       requester->resend_until);
	requester->drain_event = event;
	check_drained(qp);
}

/* Requests were answered: reset the retries, and restart the timer for the oldest one that is left. */
FOR_BOTH_LINKS void progress(struct soft_qp *qp, struct soft_segmentation *segmentation)
{
	struct soft_requester *requester = &qp->requester;

	requester->retries_left = requester->retries;
	requester->rnr_retries_left = requester->rnr_retries;
	requester->wait_delay = requester->ack_timeout; /* IBTA 9.9.2.1.1 */
	if (requester->completed == requester->transmitted) {
		requester->wait = SOFT_WAIT_NONE;
		requester->wait_delay = 0;
	}
	if (segmentation)
		soft_segment_progress(qp);
	check_drained(qp);
}

/*
 * All packets before psn are acknowledged. False if that includes a READ or an atomic without a response, which was
 * lost and must be requested again (IBTA 9.7.5.1.1).
 */
FOR_BOTH_LINKS bool complete_until(struct soft_qp *qp, struct soft_segmentation *segmentation, uint32_t psn)
{
	struct soft_requester *requester = &qp->requester;
	uint32_t before = requester->completed;
	bool whole = true, part = false;

	while (requester->completed != requester->transmitted) {
		struct soft_send_wqe *wqe = soft_send_wqe(requester, requester->completed);
		int32_t packets = soft_psn_difference(psn, wqe->psn);

		if (packets <= 0)
			break;
		whole = !(wqe->traits & SOFT_RESPONDS);
		if (segmentation && !soft_segment_is_answered(qp, wqe, (uint32_t)packets, &whole, &part))
			break;
		if (!whole)
			break;
		complete(qp, IBV_WC_SUCCESS);
	}
	if (requester->completed != before || part)
		progress(qp, segmentation);
	return whole;
}

/* Send all requests again, from the oldest unanswered one on. */
static void go_back(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;

	requester->resend_until = later(requester->transmitted, requester->resend_until);
	requester->transmitted = requester->completed;
	requester->responding = 0;
	requester->wait = SOFT_WAIT_NONE;
	requester->wait_delay = 0;
	if (qp->segmentation)
		qp->segmentation->cursor = 0;
}

static void receiver_not_ready(struct soft_qp *qp, uint8_t timer)
{
	struct soft_requester *requester = &qp->requester;

	if (requester->rnr_retries_left == 0) {
		soft_count(soft_qp_device(qp), SOFT_COUNT_RNR_RETRY_EXCEEDED);
		fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	soft_count(soft_qp_device(qp), SOFT_COUNT_RNR_RECEIVED);
	if (requester->rnr_retries_left != RNR_RETRY_FOR_EVER)
		requester->rnr_retries_left--;
	go_back(qp);
	requester->wait = SOFT_WAIT_RNR;
	requester->wait_delay = soft_rnr_timer(timer);
}

static void retry(struct soft_qp *qp)
{
	if (qp->requester.retries_left == 0) {
		soft_count(soft_qp_device(qp), SOFT_COUNT_RETRY_EXCEEDED);
		fail(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	soft_count(soft_qp_device(qp), SOFT_COUNT_RETRY);
	qp->requester.retries_left--;
	go_back(qp);
}

/* A packet was lost, as a NAK or a gap in the responses shows. */
static void lost(struct soft_qp *qp)
{
	/* Answers to packets sent before the last retry report the same loss again. */
	if (!qp->segmentation || soft_segment_retry(qp))
		retry(qp);
}

static void negative_acknowledge(struct soft_qp *qp, uint8_t syndrome)
{
	switch (syndrome) {
	case SOFT_NAK_SEQUENCE:
		soft_count(soft_qp_device(qp), SOFT_COUNT_SEQUENCE_NAK);
		lost(qp);
		break;
	case SOFT_NAK_INVALID_REQUEST:
		fail(qp, IBV_WC_REM_INV_REQ_ERR);
		break;
	case SOFT_NAK_REMOTE_ACCESS:
		fail(qp, IBV_WC_REM_ACCESS_ERR);
		break;
	case SOFT_NAK_REMOTE_OPERATIONAL:
		fail(qp, IBV_WC_REM_OP_ERR);
		break;
	default:
		fail(qp, IBV_WC_BAD_RESP_ERR);
		break;
	}
}

/* A packet of a READ response has arrived. */
static void part_arrives(struct soft_qp *qp, const struct soft_packet *packet)
{
	struct soft_requester *requester = &qp->requester;

	switch (soft_segment_read(qp, soft_send_wqe(requester, requester->completed), packet)) {
	case SOFT_SEGMENT_OLD:
		break;
	case SOFT_SEGMENT_GAP:
		lost(qp);
		break;
	case SOFT_SEGMENT_BAD:
		fail(qp, IBV_WC_BAD_RESP_ERR);
		break;
	case SOFT_SEGMENT_UNREACHABLE:
		fail(qp, IBV_WC_LOC_PROT_ERR);
		break;
	case SOFT_SEGMENT_WHOLE:
		qp->segmentation->answered = 0;
		complete(qp, IBV_WC_SUCCESS);
		progress(qp, qp->segmentation);
		break;
	case SOFT_SEGMENT_PART:
		progress(qp, qp->segmentation);
		break;
	}
}

/* The response to a READ or an atomic has arrived in one packet. */
static void response_arrives(struct soft_qp *qp, const struct soft_packet *packet)
{
	struct soft_requester *requester = &qp->requester;
	struct soft_send_wqe *wqe = soft_send_wqe(requester, requester->completed);
	uint8_t traits = wqe->traits;
	bool atomic = packet->opcode == SOFT_ATOMIC_ACKNOWLEDGE;
	struct soft_segment value = {(void *)(uintptr_t)&packet->operand, sizeof(packet->operand)};
	struct soft_packet own;

	own.num_segments = 0;
	if (wqe->psn != packet->psn) /* its request is complete already */
		return;
	if (traits & SOFT_NO_RESPONSE_DATA && !atomic && !packet->length) {
		complete(qp, IBV_WC_SUCCESS);
		progress(qp, qp->segmentation);
		return;
	}
	if (!(traits & SOFT_RESPONDS) || !(traits & SOFT_ATOMIC) != !atomic ||
	    (!atomic && packet->length != wqe->length)) {
		fail(qp, IBV_WC_BAD_RESP_ERR);
		return;
	}
	if (!soft_request_translate(qp, wqe, IBV_ACCESS_LOCAL_WRITE, &own)) {
		fail(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	soft_segments_copy(own.segments, atomic ? &value : packet->segments, wqe->length);
	complete(qp, IBV_WC_SUCCESS);
	progress(qp, qp->segmentation);
}

FOR_BOTH_LINKS void receive(struct soft_qp *qp, struct soft_segmentation *segmentation,
			    const struct soft_packet *packet)
{
	struct soft_requester *requester = &qp->requester;
	bool positive = packet->opcode == SOFT_ACKNOWLEDGE && soft_syndrome_is_ack(packet->syndrome);

	if (segmentation && soft_segment_is_stray(qp, packet))
		return;
	if (segmentation && positive)
		soft_credits_learn(qp, packet);
	/* Each response acknowledges all requests before it (IBTA 9.7.5.1.2). */
	if (!complete_until(qp, segmentation,
			    positive ? (packet->psn + 1) & SOFT_PSN_MASK : packet->psn)) {
		lost(qp);
		return;
	}
	if (positive || requester->completed == requester->transmitted)
		return;
	if (segmentation && soft_operation_is_read_response(packet->opcode))
		part_arrives(qp, packet);
	else if (packet->opcode == SOFT_RDMA_READ_RESPONSE_ONLY || packet->opcode == SOFT_ATOMIC_ACKNOWLEDGE)
		response_arrives(qp, packet);
	else if (segmentation && soft_segment_is_stale(qp, packet))
		return;
	else if ((packet->syndrome & SOFT_SYNDROME_KIND) == SOFT_RNR_NAK)
		receiver_not_ready(qp, packet->syndrome & SOFT_RNR_TIMER_MASK);
	else
		negative_acknowledge(qp, packet->syndrome);
}

FOR_PARTS void receive_part(struct soft_qp *qp, const struct soft_packet *packet)
{
	receive(qp, qp->segmentation, packet);
}

void soft_requester_receive(struct soft_qp *qp, const struct soft_packet *packet)
{
	soft_lock_expect(&qp->requester.lock);
	if (qp->segmentation)
		receive_part(qp, packet);
	else
		receive(qp, NULL, packet);
}

void soft_requester_expire(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;

	soft_lock_expect(&qp->requester.lock);
	if (soft_qp_state(qp) != IBV_QPS_RTS && soft_qp_state(qp) != IBV_QPS_SQD)
		return;
	if (requester->wait == SOFT_WAIT_RNR) {
		go_back(qp);
	} else if (requester->wait == SOFT_WAIT_ACK && requester->completed != requester->transmitted) {
		soft_count(soft_qp_device(qp), SOFT_COUNT_ACK_TIMEOUT);
		if (qp->segmentation)
			soft_segment_retry(qp);
		retry(qp);
	}
}

void soft_requester_flush(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;

	soft_lock_expect(&qp->requester.lock);
	while (requester->completed != requester->posted)
		complete(qp, IBV_WC_WR_FLUSH_ERR);
	requester->transmitted = requester->posted;
	if (qp->segmentation)
		qp->segmentation->cursor = qp->segmentation->answered = 0;
	requester->responding = 0;
	requester->drain_event = false;
	requester->wait = SOFT_WAIT_NONE;
	requester->wait_delay = 0;
}
