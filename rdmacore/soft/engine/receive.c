#include "soft/engine/calls.h"

#include "soft/base/bounds.h"
#include "soft/engine/segment.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/mr_table.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"
#include "soft/objects/srq.h"
#include "soft/wire/packet.h"

#define SHORT 1024 /* bytes that are copied while the completion queue is locked */

/* The receive of a shared queue that an abandoned message left; false when there is none. */
static bool take_held(struct soft_qp *qp, struct soft_receive *receive)
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

bool soft_receive_stalls(struct soft_qp *qp, const struct soft_packet *packet)
{
	struct soft_qp_legal *legal;

	soft_lock_expect(&qp->responder.lock);
	if (!soft_qp_device(qp)->legal)
		return false;
	legal = &qp->legal;
	if (!legal->peer_retries || legal->stalled == packet->psn || qp->service != SOFT_RELIABLE_CONNECTION ||
	    !soft_legal_choose(&legal->draws, CORE_LEGAL_RNR))
		return false;
	legal->stalled = packet->psn;
	return true;
}

bool soft_receive_take(struct soft_qp *qp, struct soft_receive *receive)
{
	struct soft_receive_queue *queue = &qp->receive;
	struct soft_recv_wqe *wqe;

	soft_lock_expect(&qp->responder.lock);
	if (qp->srq)
		return (qp->segmentation && take_held(qp, receive)) ||
		       soft_srq_take(qp->srq, receive);
	if (queue->consumed == queue->posted_seen) {
		queue->posted_seen = atomic_load_explicit(&queue->posted, memory_order_acquire);
		if (queue->consumed == queue->posted_seen)
			return false;
	}
	/* It stays in the ring until its completion is polled. */
	wqe = soft_recv_wqe(queue, queue->consumed);
	receive->wr_id = wqe->wr_id;
	receive->num_sge = wqe->num_sge;
	receive->sge = wqe->sge;
	/* Another processor wrote the next receive: prefetch it, so that the next message does not wait. */
	if (queue->consumed + 1 != queue->posted_seen)
		__builtin_prefetch(soft_recv_wqe(queue, queue->consumed + 1));
	return true;
}

static void fill(struct soft_cqe *entry, struct soft_qp *qp, const struct soft_receive *receive,
		 enum ibv_wc_status status, const struct soft_packet *packet)
{
	struct ibv_wc *wc = &entry->wc;

	/*
	 * With a shared queue its own queue is empty, so making room has no effect. A target may be destroyed before
	 * the poll.
	 */
	entry->receiver = qp->target ? NULL : qp;
	*wc = (struct ibv_wc){
		.wr_id = receive->wr_id,
		.status = status,
		.opcode = IBV_WC_RECV,
		.qp_num = qp->ibv.qp_num,
	};
	if (!packet)
		return;
	wc->byte_len = (uint32_t)(packet->length + packet->header);
	wc->src_qp = packet->source;
	wc->sl = packet->service_level;
	if (packet->header)
		wc->wc_flags |= IBV_WC_GRH;
	if ((packet->opcode & SOFT_OPERATION) == SOFT_RDMA_WRITE_ONLY_IMMEDIATE)
		wc->opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	if (soft_operation_has_immediate(packet->opcode)) {
		wc->wc_flags |= IBV_WC_WITH_IMM;
		wc->imm_data = packet->immediate;
	} else if ((packet->opcode & SOFT_OPERATION) == SOFT_SEND_ONLY_INVALIDATE) {
		wc->wc_flags |= IBV_WC_WITH_INV;
		wc->invalidated_rkey = packet->immediate;
	}
}

/* Complete in the entry that soft_cq_begin returned. */
static inline void complete(struct soft_qp *qp, const struct soft_receive *receive, enum ibv_wc_status status,
			    const struct soft_packet *packet, struct soft_cq *cq, struct soft_cqe *entry)
{
	if (!qp->srq)
		qp->receive.consumed++;
	if (entry) {
		fill(entry, qp, receive, status, packet);
		soft_cq_end(cq, entry, status != IBV_WC_SUCCESS || (packet && packet->solicited));
	} else if (packet) {
		/* A queue pair that loses a completion must fail (IBTA 10.10.2.2). */
		qp->responder.failed = true;
		soft_qp_raise(qp, SOFT_QP_FATAL_EVENT, true);
	}
}

void soft_receive_complete(struct soft_qp *qp, const struct soft_receive *receive,
			   enum ibv_wc_status status, const struct soft_packet *packet)
{
	struct soft_cq *cq = soft_cq(qp->ibv.recv_cq);

	soft_lock_expect(&qp->responder.lock);
	complete(qp, receive, status, packet, cq, soft_cq_begin(cq));
}

void soft_receive_deliver(struct soft_qp *qp, const struct soft_receive *receive,
			  const struct soft_packet *packet, const struct soft_segment *to)
{
	uint64_t length = packet->length + packet->header;
	struct soft_cq *cq = soft_cq(qp->ibv.recv_cq);
	struct soft_cqe *entry;

	soft_lock_expect(&qp->responder.lock);
	if (length > SHORT) {
		soft_segments_copy(to, packet->segments, length);
		soft_receive_complete(qp, receive, IBV_WC_SUCCESS, packet);
		return;
	}
	/*
	 * Taking a lock waits for all earlier stores (soft/base/lock.h). With the lock taken first, payload and completion
	 * reach the polling processor together, not one after the other.
	 */
	entry = soft_cq_begin(cq);
	soft_segments_copy(to, packet->segments, length);
	complete(qp, receive, IBV_WC_SUCCESS, packet, cq, entry);
}

enum ibv_wc_status soft_receive_reach(struct soft_qp *qp, const struct soft_receive *receive,
				      uint64_t offset, const struct soft_packet *packet,
				      struct soft_segment *segments)
{
	struct soft_mr_table *memory = &soft_qp_device(qp)->memory;
	/* Receives of a shared queue belong to its protection domain (IBTA 10.2.9.3). */
	struct soft_pd *pd = soft_pd_domain(qp->srq ? qp->srq->ibv.pd : qp->ibv.pd);
	uint64_t left = packet->length + packet->header;
	uint32_t count = 0;

	soft_lock_expect(&qp->responder.lock);
	for (uint32_t index = 0; index < receive->num_sge && left; index++) {
		const struct ibv_sge *sge = &receive->sge[index];
		uint64_t length = sge->length;
		void *address;

		if (length <= offset) {
			offset -= length;
			continue;
		}
		length -= offset;
		if (length > left)
			length = left;
		address = soft_mr_table_translate(memory, pd, sge->lkey, sge->addr + offset, length,
					    IBV_ACCESS_LOCAL_WRITE | SOFT_ACCESS_LOCAL, 0);
		offset = 0;
		if (!address)
			return IBV_WC_LOC_PROT_ERR;
		segments[count++] = (struct soft_segment){address, length};
		left -= length;
	}
	if (left)
		return IBV_WC_LOC_LEN_ERR;
	return IBV_WC_SUCCESS;
}

void soft_receive_flush(struct soft_qp *qp)
{
	struct soft_receive receive;

	soft_lock_expect(&qp->responder.lock);
	if (qp->srq) {
		soft_async_raise_once(qp->ibv.context, &qp->events[SOFT_QP_LAST_WQE_EVENT]);
		return;
	}
	soft_lock_take(&qp->receive.lock);
	while (soft_receive_take(qp, &receive))
		soft_receive_complete(qp, &receive, IBV_WC_WR_FLUSH_ERR, NULL);
	soft_lock_release(&qp->receive.lock);
}

void soft_datagram_receive(struct soft_qp *qp, const struct soft_packet *packet)
{
	struct soft_segment segments[SOFT_MAX_SGE];
	struct soft_receive receive;
	enum ibv_wc_status status;

	soft_lock_expect(&qp->responder.lock);
	if (!soft_qp_receives(qp) || qp->responder.failed ||
	    (packet->opcode & SOFT_SERVICE) != qp->service)
		return;
	if (packet->queue_key != qp->attr.qkey) {
		/* Dropped and counted for the subnet manager (IBTA 10.2.5). */
		atomic_fetch_add(&soft_qp_device(qp)->queue_key_violations, 1);
		return;
	}
	if (!soft_receive_take(qp, &receive))
		return;
	status = soft_receive_reach(qp, &receive, 0, packet, segments);
	if (status == IBV_WC_SUCCESS) {
		soft_receive_deliver(qp, &receive, packet, segments);
	} else {
		qp->responder.failed = true; /* the receive is at fault: IBTA 9.9.3, class E */
		soft_receive_complete(qp, &receive, status, packet);
	}
}
