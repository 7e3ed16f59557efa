#include "soft/qp/verbs.h"

#include <errno.h>
#include <string.h>

#include "soft/engine/calls.h"
#include "soft/link/calls.h"
#include "soft/objects/ah.h"
#include "soft/objects/mw.h"
#include "soft/objects/qp.h"
#include "soft/qp/internal.h"
#include "soft/qp/send_queue.h"

/* Get the length of the request; false if the queue pair does not allow its opcode, list or flags. */
static bool acceptable(const struct soft_qp *qp, const struct ibv_send_wr *wr, uint64_t *length)
{
	const struct soft_request_kind *kind = soft_request_kind((uint32_t)wr->opcode);

	*length = 0;
	if (!kind || !(kind->services & qp->service_bit))
		return false;
	/* Checked even if the list is not used, as in rdma_rxe (validate_send_wr). */
	if (wr->num_sge < 0 || !soft_send_entries_fit(qp, (size_t)wr->num_sge))
		return false;
	if (kind->traits & SOFT_LOCAL) /* their list is not used */
		return !(wr->send_flags & IBV_SEND_INLINE);
	if (!soft_send_list_length(wr->sg_list, (size_t)wr->num_sge, length))
		return false;
	if (qp->service == SOFT_UNRELIABLE_DATAGRAM && !wr->wr.ud.ah)
		return false;
	if (!((wr->send_flags & IBV_SEND_INLINE) | kind->traits))
		return true;
	if (kind->traits & SOFT_FLUSHES || !soft_send_length_fits(kind->traits, *length))
		return false;
	return !(wr->send_flags & IBV_SEND_INLINE) ||
	       (soft_send_may_be_inline(kind->traits) && *length <= qp->cap.max_inline_data);
}

/* Inline data is copied now, so the user may reuse its memory at once. */
static void copy_inline(struct soft_send_wqe *wqe, const struct ibv_send_wr *wr)
{
	char *data = soft_request_inline(wqe);

	wqe->num_sge = 0;
	for (int index = 0; index < wr->num_sge; index++) {
		memcpy(data, (const void *)(uintptr_t)wr->sg_list[index].addr,
		       wr->sg_list[index].length);
		data += wr->sg_list[index].length;
	}
}

/* Fill in the fields that depend on the opcode. False if the queue pair does not allow it. */
static bool fill_operation(struct soft_qp *qp, const struct ibv_send_wr *wr, struct soft_send_wqe *wqe)
{
	if (qp->service == SOFT_UNRELIABLE_DATAGRAM) {
		wqe->ah = soft_ah(wr->wr.ud.ah);
		wqe->remote_qp_num = wr->wr.ud.remote_qpn;
		wqe->queue_key = wr->wr.ud.remote_qkey;
		soft_ah_hold(wqe->ah);
		return true;
	}
	if (wqe->traits & SOFT_SHARED)
		*soft_request_shared_queue(&qp->requester, wqe) = wr->qp_type.xrc.remote_srqn & SOFT_NUMBER_MASK;
	switch (wr->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		wqe->remote_address = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->operand = wr->wr.atomic.swap;
		*soft_request_compare(wqe) = wr->wr.atomic.compare_add;
		return true;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote_address = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->operand = wr->wr.atomic.compare_add;
		*soft_request_compare(wqe) = 0;
		return true;
	case IBV_WR_LOCAL_INV:
		wqe->rkey = wr->invalidate_rkey;
		return true;
	case IBV_WR_BIND_MW:
		return soft_mw_post(qp, wr, wqe);
	default: /* RDMA_READ, ATOMIC_WRITE; of an initiator also SEND and RDMA_WRITE */
		wqe->remote_address = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return true;
	}
}

/* before: requester.completed before the first request of the list. What has completed since still takes room. */
static int append_send(struct soft_qp *qp, const struct ibv_send_wr *wr, uint32_t before)
{
	struct soft_requester *requester = &qp->requester;
	struct soft_send_wqe *wqe;
	uint64_t length;

	if (!acceptable(qp, wr, &length))
		return EINVAL;
	if (requester->posted - before == requester->size)
		return ENOMEM;
	wqe = soft_send_begin(requester, requester->posted, wr->wr_id, wr->opcode, wr->send_flags);
	wqe->length = (uint32_t)length;
	wqe->immediate = wr->imm_data;
	if (wr->send_flags & IBV_SEND_INLINE && length) {
		copy_inline(wqe, wr);
	} else if (wqe->traits & SOFT_LOCAL) {
		wqe->num_sge = 0;
	} else {
		wqe->num_sge = (uint8_t)wr->num_sge;
		for (int index = 0; index < wr->num_sge; index++)
			wqe->sge[index] = wr->sg_list[index];
	}
	if (!wqe->traits && qp->service != SOFT_UNRELIABLE_DATAGRAM) {
		wqe->remote_address = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	} else if (!fill_operation(qp, wr, wqe)) {
		return EINVAL;
	}
	soft_send_post(qp, wqe);
	return 0;
}

void soft_post_commit(struct soft_qp *qp)
{
	soft_lock_expect(&qp->requester.lock);
	if (soft_qp_state(qp) == IBV_QPS_SQE)
		soft_requester_flush(qp);
	soft_transmit(qp);
}

/* Posting by a list ends. Builders continue behind its requests. */
static inline void leave_builder(struct soft_qp *qp)
{
	if (qp->has_builder) {
		qp->builder.end = qp->requester.posted;
		soft_lock_release(&qp->builder.lock);
	}
}

/* Post the rest of a list, which may be empty. Called with the locks of posting held; releases them. */
static int post(struct soft_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad, uint32_t before)
{
	int result = soft_send_error(qp);

	while (wr && !result) {
		result = append_send(qp, wr, before);
		if (!result)
			wr = wr->next;
	}
	if (result)
		*bad = wr;
	leave_builder(qp);
	/* Accepted requests are sent even if a later one was rejected. */
	soft_post_commit(qp);
	return result;
}

int soft_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct soft_qp *qp = soft_qp(ibv_qp);
	uint32_t before;

	if (qp->has_builder)
		soft_lock_take(&qp->builder.lock);
	soft_lock_take(&qp->requester.lock);
	before = qp->requester.completed;
	if (!qp->direct || !soft_link_pass(qp, &wr))
		return post(qp, wr, bad, before);
	leave_builder(qp);
	soft_lock_release(&qp->requester.lock);
	return 0;
}

int soft_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct soft_qp *qp = soft_qp(ibv_qp);
	enum ibv_qp_state state;
	int result = qp->srq ? EINVAL : 0; /* receives go to the shared queue */

	soft_lock_take(&qp->receive.lock);
	/* Under the lock that the flush takes, too: either the flush sees the new receive, or this sees ERR. */
	state = soft_qp_state(qp);
	if (state == IBV_QPS_RESET)
		result = soft_context_is_removed(ibv_qp->context) ? EIO : EINVAL;
	while (wr && !result) {
		result = soft_receive_queue_append(&qp->receive, wr);
		if (!result)
			wr = wr->next;
	}
	if (state == IBV_QPS_ERR) /* when the flushed receive is polled, another thread may destroy the queue pair */
		soft_qp_hold(qp);
	soft_lock_release(&qp->receive.lock);
	if (result)
		*bad = wr;
	if (state == IBV_QPS_ERR) {
		soft_qp_enter_error(qp);
		soft_qp_release(qp);
	}
	return result;
}

int soft_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info},
	};
	struct ibv_send_wr *bad;
	int result;

	if (mw->type != IBV_MW_TYPE_1)
		return EINVAL;
	result = soft_post_send(qp, &wr, &bad);
	if (!result)
		mw->rkey = wr.bind_mw.rkey;
	return result;
}
