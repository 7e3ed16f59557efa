#include "soft_qp.h"

#include <errno.h>
#include <stdlib.h>

#include "soft_cq.h"
#include "soft_pd.h"

#define RNR_RETRY_FOR_EVER 7 /* IBTA 9.7.5.2.8 */

int soft_requester_init(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;
	size_t list = qp->cap.max_send_sge * sizeof(struct ibv_sge);
	size_t inlined = sizeof(struct ibv_sge) + qp->cap.max_inline_data;
	size_t stride = sizeof(struct soft_send_wqe) + (list > inlined ? list : inlined);
	uint32_t entries = 1;

	while (entries < qp->cap.max_send_wr)
		entries *= 2;
	requester->stride = (uint32_t)((stride + SOFT_CACHE_LINE - 1) & ~(SOFT_CACHE_LINE - 1ul));
	requester->size = qp->cap.max_send_wr;
	requester->mask = entries - 1;
	requester->ring = aligned_alloc(SOFT_CACHE_LINE, (size_t)entries * requester->stride);
	if (!requester->ring)
		return -ENOMEM;
	soft_lock_init(&requester->lock);
	return 0;
}

void soft_requester_destroy(struct soft_qp *qp)
{
	pthread_mutex_destroy(&qp->requester.lock);
	free(qp->requester.ring);
}

void soft_requester_reset(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;

	requester->posted = 0;
	requester->transmitted = 0;
	requester->completed = 0;
	requester->wait = SOFT_WAIT_NONE;
	requester->wait_delay = 0;
}

static enum ibv_wc_opcode completion_opcode(uint8_t opcode)
{
	switch ((enum ibv_wr_opcode)opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	default:
		return IBV_WC_SEND;
	}
}

/* The oldest request is over. */
static void complete(struct soft_qp *qp, enum ibv_wc_status status)
{
	struct soft_requester *requester = &qp->requester;
	struct soft_send_wqe *wqe = soft_send_wqe(requester, requester->completed);

	if (status != IBV_WC_SUCCESS || qp->signal_all || wqe->flags & IBV_SEND_SIGNALED) {
		struct ibv_wc wc = {
			.wr_id = wqe->wr_id,
			.status = status,
			.opcode = completion_opcode(wqe->opcode),
			.byte_len = (uint32_t)wqe->length,
			.qp_num = qp->ibv.qp_num,
		};

		soft_cq_push(soft_cq(qp->ibv.send_cq), &wc, status != IBV_WC_SUCCESS);
	}
	requester->completed++;
}

/* The oldest request failed, and with it the queue pair (IBTA 10.3.1.7: RC has no SQE state). */
static void fail(struct soft_qp *qp, enum ibv_wc_status status)
{
	complete(qp, status);
	atomic_store_explicit(&qp->state, IBV_QPS_ERR, memory_order_relaxed);
}

/* Resolve the request's own memory.  False: some key, range or right is wrong. */
static bool translate(struct soft_qp *qp, const struct soft_send_wqe *wqe, uint32_t access,
		      struct soft_packet *packet)
{
	struct soft_mr_table *memory = &soft_qp_device(qp)->memory;
	struct soft_pd *pd = soft_pd(qp->ibv.pd);
	uint32_t count = 0;

	for (uint32_t index = 0; index < wqe->num_sge; index++) {
		const struct ibv_sge *sge = &wqe->sge[index];
		void *address = (void *)(uintptr_t)sge->addr;

		/* A zero-length entry refers to no memory, so its key is not looked at. */
		if (!sge->length)
			continue;
		if (!(wqe->flags & IBV_SEND_INLINE))
			address = soft_mr_translate(memory, pd, sge->lkey, sge->addr, sge->length,
						    access);
		if (!address)
			return false;
		packet->segments[count++] = (struct soft_segment){address, sge->length};
	}
	packet->num_segments = count;
	return true;
}

/* Headers of the request; IBV_WC_SUCCESS, or why it cannot be sent. */
static enum ibv_wc_status build(struct soft_qp *qp, const struct soft_send_wqe *wqe,
				struct soft_packet *packet)
{
	uint32_t access = 0;

	packet->destination = qp->attr.dest_qp_num;
	packet->source = qp->ibv.qp_num;
	packet->header = 0;
	packet->service_level = qp->attr.ah_attr.sl;
	packet->psn = wqe->psn;
	packet->length = wqe->length;
	packet->solicited = wqe->flags & IBV_SEND_SOLICITED;
	packet->immediate = wqe->immediate;
	packet->remote_address = wqe->remote_address;
	packet->rkey = wqe->rkey;
	switch ((enum ibv_wr_opcode)wqe->opcode) {
	case IBV_WR_SEND:
		packet->opcode = SOFT_SEND_ONLY;
		break;
	case IBV_WR_SEND_WITH_IMM:
		packet->opcode = SOFT_SEND_ONLY_IMMEDIATE;
		break;
	case IBV_WR_RDMA_WRITE:
		packet->opcode = SOFT_RDMA_WRITE_ONLY;
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		packet->opcode = SOFT_RDMA_WRITE_ONLY_IMMEDIATE;
		break;
	case IBV_WR_RDMA_READ:
		/* No READ may ever be outstanding: IBTA 10.8.2, initiator depth 0. */
		if (!qp->attr.max_rd_atomic)
			return IBV_WC_LOC_QP_OP_ERR;
		packet->opcode = SOFT_RDMA_READ_REQUEST;
		access = IBV_ACCESS_LOCAL_WRITE;
		break;
	default:
		return IBV_WC_LOC_QP_OP_ERR;
	}
	return translate(qp, wqe, access, packet) ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

bool soft_requester_next(struct soft_qp *qp, struct soft_packet *packet)
{
	struct soft_requester *requester = &qp->requester;
	enum ibv_wc_status status;

	if (requester->transmitted == requester->posted || requester->wait == SOFT_WAIT_RNR ||
	    soft_qp_state(qp) != IBV_QPS_RTS)
		return false;
	status = build(qp, soft_send_wqe(requester, requester->transmitted), packet);
	if (status != IBV_WC_SUCCESS) {
		/* Completions come in order: it fails once all before it are answered. */
		if (requester->completed == requester->transmitted)
			fail(qp, status);
		return false;
	}
	requester->transmitted++;
	if (requester->wait == SOFT_WAIT_NONE) {
		requester->wait = SOFT_WAIT_ACK;
		requester->wait_delay = soft_ack_timeout(qp->attr.timeout);
	}
	return true;
}

static void complete_until(struct soft_qp *qp, uint32_t psn)
{
	struct soft_requester *requester = &qp->requester;
	uint32_t before = requester->completed;

	while (requester->completed != requester->transmitted &&
	       soft_psn_difference(soft_send_wqe(requester, requester->completed)->psn, psn) < 0)
		complete(qp, IBV_WC_SUCCESS);
	if (requester->completed != before) {
		requester->retries_left = qp->attr.retry_cnt;
		requester->rnr_retries_left = qp->attr.rnr_retry;
		/* The timer is that of the oldest request (IBTA 9.9.2.1.1): it begins again. */
		requester->wait_delay = soft_ack_timeout(qp->attr.timeout);
	}
	if (requester->completed == requester->transmitted) {
		requester->wait = SOFT_WAIT_NONE;
		requester->wait_delay = 0;
	}
}

/* Send everything from the oldest unanswered request again. */
static void go_back(struct soft_qp *qp)
{
	qp->requester.transmitted = qp->requester.completed;
	qp->requester.wait = SOFT_WAIT_NONE;
	qp->requester.wait_delay = 0;
}

static void receiver_not_ready(struct soft_qp *qp, uint8_t timer)
{
	struct soft_requester *requester = &qp->requester;

	if (requester->rnr_retries_left == 0) {
		fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (requester->rnr_retries_left != RNR_RETRY_FOR_EVER)
		requester->rnr_retries_left--;
	go_back(qp);
	requester->wait = SOFT_WAIT_RNR;
	requester->wait_delay = soft_rnr_timer(timer);
}

static void retry(struct soft_qp *qp)
{
	if (qp->requester.retries_left == 0) {
		fail(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	qp->requester.retries_left--;
	go_back(qp);
}

static void negative_acknowledge(struct soft_qp *qp, uint8_t syndrome)
{
	switch (syndrome) {
	case SOFT_NAK_SEQUENCE:
		retry(qp);
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

static void read_response(struct soft_qp *qp, const struct soft_packet *packet)
{
	struct soft_requester *requester = &qp->requester;
	struct soft_send_wqe *wqe = soft_send_wqe(requester, requester->completed);
	struct soft_packet own;

	if (wqe->opcode != IBV_WR_RDMA_READ || packet->length != wqe->length) {
		fail(qp, IBV_WC_BAD_RESP_ERR);
		return;
	}
	if (!translate(qp, wqe, IBV_ACCESS_LOCAL_WRITE, &own)) {
		fail(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	soft_segments_copy(own.segments, packet->segments, packet->length);
	complete_until(qp, (packet->psn + 1) & SOFT_PSN_MASK);
}

void soft_requester_receive(struct soft_qp *qp, const struct soft_packet *packet)
{
	struct soft_requester *requester = &qp->requester;
	bool positive = packet->opcode == SOFT_ACKNOWLEDGE && packet->syndrome == SOFT_ACK;

	/* Every response acknowledges what came before it (IBTA 9.7.5.1.2). */
	complete_until(qp, positive ? (packet->psn + 1) & SOFT_PSN_MASK : packet->psn);
	if (positive || requester->completed == requester->transmitted)
		return;
	if (packet->opcode == SOFT_RDMA_READ_RESPONSE_ONLY)
		read_response(qp, packet);
	else if ((packet->syndrome & SOFT_SYNDROME_KIND) == SOFT_RNR_NAK)
		receiver_not_ready(qp, packet->syndrome & SOFT_RNR_TIMER_MASK);
	else
		negative_acknowledge(qp, packet->syndrome);
}

void soft_requester_expire(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;

	if (soft_qp_state(qp) != IBV_QPS_RTS)
		return;
	if (requester->wait == SOFT_WAIT_RNR)
		go_back(qp);
	else if (requester->wait == SOFT_WAIT_ACK && requester->completed != requester->transmitted)
		retry(qp);
}

void soft_requester_flush(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;

	while (requester->completed != requester->posted)
		complete(qp, IBV_WC_WR_FLUSH_ERR);
	requester->transmitted = requester->posted;
	requester->wait = SOFT_WAIT_NONE;
	requester->wait_delay = 0;
}
