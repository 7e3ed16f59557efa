/*
 * ibv_create_qp_ex(3) and the builders of ibv_wr_post(3). Requests are written to free slots of the send queue field
 * by field, between wr_start, which takes builder.lock, and wr_complete or wr_abort, which release it.
 *
 * The first error is stored: wr_complete returns it and sends nothing.
 */
#include "soft/qp/verbs.h"

#include <errno.h>
#include <string.h>

#include "soft/base/refusal.h"
#include "soft/objects/ah.h"
#include "soft/objects/device.h"
#include "soft/objects/mw.h"
#include "soft/objects/qp.h"
#include "soft/qp/internal.h"
#include "soft/qp/send_queue.h"

static struct soft_qp *qp_of(struct ibv_qp_ex *extended)
{
	return (struct soft_qp *)extended;
}

static void fail(struct soft_qp *qp, int error)
{
	if (!qp->builder.error)
		qp->builder.error = error;
	qp->builder.wqe = NULL;
}

/* The current request is complete: check what could not be checked before. */
static void finish(struct soft_qp *qp)
{
	struct soft_send_wqe *wqe = qp->builder.wqe;

	if (!wqe)
		return;
	qp->builder.wqe = NULL;
	if ((qp->service == SOFT_UNRELIABLE_DATAGRAM && !wqe->ah) || !soft_send_length_fits(wqe->traits, wqe->length) ||
	    (wqe->traits & SOFT_SHARED && !(wqe->traits & SOFT_LOCAL) &&
	     *soft_request_shared_queue(&qp->requester, wqe) == SOFT_NO_QPN))
		fail(qp, EINVAL);
	if (wqe->traits & SOFT_ATOMIC) {
		wqe->operand = qp->builder.operand;
		*soft_request_compare(wqe) = qp->builder.compare;
	}
}

/* The current request, if it has data to set; new data replaces earlier data. Otherwise NULL. */
static struct soft_send_wqe *data_of(struct soft_qp *qp)
{
	struct soft_send_wqe *wqe = qp->builder.wqe;

	if (wqe && wqe->traits & SOFT_LOCAL) {
		fail(qp, EINVAL);
		return NULL;
	}
	return wqe;
}

static bool was_reset(const struct soft_qp *qp)
{
	return atomic_load_explicit(&qp->requester.resets, memory_order_relaxed) != qp->builder.resets;
}

/* Whether the batch has used all free slots. Completed requests are counted only when that matters. */
static bool is_full(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;

	if (qp->builder.end - qp->builder.completed < requester->size)
		return false;
	soft_lock_take(&requester->lock);
	if (!was_reset(qp))
		qp->builder.completed = requester->completed;
	soft_lock_release(&requester->lock);
	return qp->builder.end - qp->builder.completed >= requester->size;
}

/* Begin a request; NULL if that is not possible. */
static struct soft_send_wqe *begin(struct ibv_qp_ex *extended, enum ibv_wr_opcode opcode, uint64_t flag)
{
	struct soft_qp *qp = qp_of(extended);
	struct soft_requester *requester = &qp->requester;
	struct soft_send_wqe *wqe;

	finish(qp);
	if (!(qp->builder.operations & flag) || extended->wr_flags & IBV_SEND_INLINE)
		fail(qp, EINVAL);
	else if (is_full(qp))
		fail(qp, ENOMEM);
	if (qp->builder.error)
		return NULL;
	wqe = soft_send_begin(requester, qp->builder.end++, extended->wr_id, opcode, extended->wr_flags);
	wqe->length = 0;
	wqe->num_sge = 0;
	wqe->immediate = 0;
	if (qp->service == SOFT_UNRELIABLE_DATAGRAM)
		wqe->ah = NULL;
	if (wqe->traits & SOFT_SHARED)
		*soft_request_shared_queue(requester, wqe) = SOFT_NO_QPN;
	qp->builder.wqe = wqe;
	return wqe;
}

static void begin_rdma(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint64_t flag, uint32_t rkey,
		       uint64_t address, __be32 immediate)
{
	struct soft_send_wqe *wqe = begin(qp, opcode, flag);

	if (!wqe)
		return;
	wqe->remote_address = address;
	wqe->rkey = rkey;
	wqe->immediate = immediate;
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address)
{
	begin_rdma(qp, IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE, rkey, address, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address, __be32 immediate)
{
	begin_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, rkey, address,
		   immediate);
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address)
{
	begin_rdma(qp, IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ, rkey, address, 0);
}

static void begin_send(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint64_t flag, uint32_t immediate)
{
	struct soft_send_wqe *wqe = begin(qp, opcode, flag);

	if (wqe)
		wqe->immediate = immediate;
}

static void wr_send(struct ibv_qp_ex *qp)
{
	begin_send(qp, IBV_WR_SEND, IBV_QP_EX_WITH_SEND, 0);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 immediate)
{
	begin_send(qp, IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM, immediate);
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t key)
{
	begin_send(qp, IBV_WR_SEND_WITH_INV, IBV_QP_EX_WITH_SEND_WITH_INV, key);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address, uint64_t compare,
			      uint64_t swap)
{
	begin_rdma(qp, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, rkey, address, 0);
	qp_of(qp)->builder.operand = swap;
	qp_of(qp)->builder.compare = compare;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address, uint64_t add)
{
	begin_rdma(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, rkey, address,
		   0);
	qp_of(qp)->builder.operand = add;
	qp_of(qp)->builder.compare = 0;
}

/* The value is copied now, like inline data. */
static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address, const void *value)
{
	struct soft_send_wqe *wqe;

	begin_rdma(qp, IBV_WR_ATOMIC_WRITE, IBV_QP_EX_WITH_ATOMIC_WRITE, rkey, address, 0);
	wqe = qp_of(qp)->builder.wqe;
	if (!wqe)
		return;
	wqe->flags |= IBV_SEND_INLINE;
	wqe->length = sizeof(uint64_t);
	memcpy(soft_request_inline(wqe), value, sizeof(uint64_t));
}

/* The responder decides which placements it grants. Only values that a packet cannot contain are rejected here. */
static void wr_flush(struct ibv_qp_ex *extended, uint32_t rkey, uint64_t address, size_t length,
		     uint8_t type, uint8_t level)
{
	struct soft_qp *qp = qp_of(extended);
	struct soft_send_wqe *wqe;

	begin_rdma(extended, (enum ibv_wr_opcode)CORE_WR_FLUSH, CORE_QP_EX_WITH_FLUSH, rkey, address, 0);
	wqe = qp->builder.wqe;
	if (!wqe)
		return;
	wqe->flush.length = (uint32_t)length;
	wqe->flush.placement = type;
	wqe->flush.selectivity = level;
	if (length > SOFT_MAX_MESSAGE || !type ||
	    type & ~(CORE_FLUSH_GLOBAL | CORE_FLUSH_PERSISTENT) || level > CORE_FLUSH_MR)
		fail(qp, EINVAL);
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t key)
{
	begin_rdma(qp, IBV_WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV, key, 0, 0);
}

static void wr_bind_mw(struct ibv_qp_ex *extended, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct soft_qp *qp = qp_of(extended);
	struct soft_send_wqe *wqe = begin(extended, IBV_WR_BIND_MW, IBV_QP_EX_WITH_BIND_MW);
	struct ibv_send_wr wr = {.bind_mw = {.mw = mw, .rkey = rkey, .bind_info = *info}};

	if (wqe && !soft_mw_post(qp, &wr, wqe))
		fail(qp, EINVAL);
}

static void wr_set_ud_addr(struct ibv_qp_ex *extended, struct ibv_ah *ah, uint32_t remote_qp_num,
			   uint32_t remote_queue_key)
{
	struct soft_qp *qp = qp_of(extended);
	struct soft_send_wqe *wqe = qp->builder.wqe;

	if (!wqe)
		return;
	if (qp->service != SOFT_UNRELIABLE_DATAGRAM || !ah || wqe->ah) {
		fail(qp, EINVAL);
		return;
	}
	wqe->ah = soft_ah(ah);
	soft_ah_hold(wqe->ah);
	wqe->remote_qp_num = remote_qp_num;
	wqe->queue_key = remote_queue_key;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *extended, uint32_t number)
{
	struct soft_qp *qp = qp_of(extended);
	struct soft_send_wqe *wqe = qp->builder.wqe;

	if (wqe && !(wqe->traits & SOFT_SHARED))
		fail(qp, EINVAL);
	else if (wqe)
		*soft_request_shared_queue(&qp->requester, wqe) = number & SOFT_NUMBER_MASK;
}

static void wr_set_sge_list(struct ibv_qp_ex *extended, size_t count, const struct ibv_sge *list)
{
	struct soft_qp *qp = qp_of(extended);
	struct soft_send_wqe *wqe = data_of(qp);
	uint64_t length;

	if (!wqe)
		return;
	if (!soft_send_entries_fit(qp, count) || !soft_send_list_length(list, count, &length)) {
		fail(qp, EINVAL);
		return;
	}
	wqe->flags &= (uint8_t)~IBV_SEND_INLINE;
	wqe->num_sge = (uint8_t)count;
	wqe->length = (uint32_t)length;
	memcpy(wqe->sge, list, count * sizeof(*list));
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t address, uint32_t length)
{
	struct ibv_sge sge = {address, length, lkey};

	wr_set_sge_list(qp, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *extended, size_t count,
				    const struct ibv_data_buf *buffers)
{
	struct soft_qp *qp = qp_of(extended);
	struct soft_send_wqe *wqe = data_of(qp);
	size_t length = 0;
	char *data;

	if (!wqe)
		return;
	/* An ATOMIC_WRITE has its value already. */
	if (!soft_send_may_be_inline(wqe->traits) || wqe->traits & SOFT_NO_RESPONSE_DATA) {
		fail(qp, EINVAL);
		return;
	}
	/* One by one, because the sum may overflow a size_t. */
	for (size_t buffer = 0; buffer < count; buffer++) {
		if (buffers[buffer].length > qp->cap.max_inline_data - length) {
			fail(qp, EINVAL);
			return;
		}
		length += buffers[buffer].length;
	}
	data = soft_request_inline(wqe);
	wqe->flags |= IBV_SEND_INLINE;
	wqe->num_sge = 0;
	wqe->length = (uint32_t)length;
	for (size_t buffer = 0; buffer < count; buffer++) {
		memcpy(data, buffers[buffer].addr, buffers[buffer].length);
		data += buffers[buffer].length;
	}
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *address, size_t length)
{
	struct ibv_data_buf buffer = {address, length};

	wr_set_inline_data_list(qp, 1, &buffer);
}

static void wr_start(struct ibv_qp_ex *extended)
{
	struct soft_qp *qp = qp_of(extended);
	struct soft_requester *requester = &qp->requester;

	soft_lock_take(&qp->builder.lock);
	if (was_reset(qp)) {
		soft_lock_take(&requester->lock);
		qp->builder.end = requester->posted;
		qp->builder.completed = requester->completed;
		qp->builder.resets = atomic_load_explicit(&requester->resets, memory_order_relaxed);
		soft_lock_release(&requester->lock);
	}
	qp->builder.begin = qp->builder.end;
	qp->builder.wqe = NULL;
	qp->builder.error = soft_send_error(qp);
}

/* Drop the batch. */
static void undo(struct soft_qp *qp)
{
	for (; qp->builder.end != qp->builder.begin; qp->builder.end--) {
		struct soft_send_wqe *wqe = soft_send_wqe(&qp->requester, qp->builder.end - 1);

		if (qp->service == SOFT_UNRELIABLE_DATAGRAM && wqe->ah)
			soft_ah_release(wqe->ah);
	}
}

/* Why the batch cannot be posted, or 0. The queue pair may have been reset since wr_start. */
static int batch_error(const struct soft_qp *qp)
{
	if (qp->builder.error)
		return qp->builder.error;
	return was_reset(qp) ? EINVAL : soft_send_error(qp);
}

static int wr_complete(struct ibv_qp_ex *extended)
{
	struct soft_qp *qp = qp_of(extended);
	int error;

	finish(qp);
	soft_lock_take(&qp->requester.lock);
	error = batch_error(qp);
	if (error)
		undo(qp);
	for (uint32_t index = qp->builder.begin; index != qp->builder.end; index++)
		soft_send_post(qp, soft_send_wqe(&qp->requester, index));
	/* Before sending: once the completions are polled, another thread may destroy the queue pair. */
	soft_lock_release(&qp->builder.lock);
	soft_post_commit(qp);
	return error;
}

static void wr_abort(struct ibv_qp_ex *extended)
{
	struct soft_qp *qp = qp_of(extended);

	undo(qp);
	soft_lock_release(&qp->builder.lock);
}

/* The builders that a queue pair of that type can have. */
static uint64_t operations_of(enum ibv_qp_type type)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV,
	};
	uint64_t operations = 0;

	if (soft_request_kind(IBV_WR_ATOMIC_WRITE)->services & soft_request_service(type))
		operations |= IBV_QP_EX_WITH_ATOMIC_WRITE;
	if (soft_request_kind(CORE_WR_FLUSH)->services & soft_request_service(type))
		operations |= CORE_QP_EX_WITH_FLUSH;
	/* The other flags have the numbers of the opcodes. */
	for (size_t row = 0; row < sizeof(opcodes) / sizeof(opcodes[0]); row++)
		if (soft_request_kind(opcodes[row])->services & soft_request_service(type))
			operations |= UINT64_C(1) << opcodes[row];
	return operations;
}

static void set_builders(struct ibv_qp_ex *qp)
{
	qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	qp->wr_atomic_write = wr_atomic_write;
	qp->wr_bind_mw = wr_bind_mw;
	qp->wr_local_inv = wr_local_inv;
	qp->wr_rdma_read = wr_rdma_read;
	qp->wr_rdma_write = wr_rdma_write;
	qp->wr_rdma_write_imm = wr_rdma_write_imm;
	qp->wr_send = wr_send;
	qp->wr_send_imm = wr_send_imm;
	qp->wr_send_inv = wr_send_inv;
	qp->wr_set_ud_addr = wr_set_ud_addr;
	qp->wr_set_xrc_srqn = wr_set_xrc_srqn;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
}

struct ibv_qp *soft_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	/* Both structs begin with the same fields (ibv_create_qp_ex(3)). */
	struct ibv_qp_init_attr *plain = (struct ibv_qp_init_attr *)(void *)attr;
	uint64_t operations = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;
	uint32_t flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
	struct ibv_qp *qp;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return soft_create_target(context, attr);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
					  IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) ||
	    flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) {
		errno = soft_refuse(EOPNOTSUPP, "of the extended attributes soft has send operations, and of the flags "
						"BLOCK_SELF_MCAST_LB");
		return NULL;
	}
	if (operations & ~operations_of(attr->qp_type)) {
		errno = soft_refuse(EOPNOTSUPP, "that type of queue pair has not all of those send operations: UC has SEND, "
						"WRITE and windows, UD has SEND, and none has TSO");
		return NULL;
	}
	qp = soft_create_qp(attr->pd, plain);
	if (!qp)
		return NULL;
	soft_qp(qp)->mcast_loopback = !flags;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		soft_lock_init(&soft_qp(qp)->builder.lock, SOFT_ORDER_BUILDING);
		soft_qp(qp)->builder.operations = operations;
		soft_qp(qp)->has_builder = true;
		set_builders(&soft_qp(qp)->extended);
		soft_qp(qp)->newer.wr_flush = wr_flush;
	}
	return qp;
}

struct ibv_qp_ex *soft_qp_to_qp_ex(struct ibv_qp *qp)
{
	return soft_qp(qp)->has_builder ? &soft_qp(qp)->extended : NULL;
}
