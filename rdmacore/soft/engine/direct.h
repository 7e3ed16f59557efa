/*
 * A request that is executed from the list of ibv_post_send(3), without the send queue and without a packet. That is
 * possible on the local link if nothing is outstanding, and if it cannot fail: so everything is checked before
 * anything changes. All other requests take the send queue, which also finds out what is wrong with them.
 *
 * The functions are inline, because calls would be a fifth of the instructions of a message.
 */
#ifndef SOFT_ENGINE_DIRECT_H
#define SOFT_ENGINE_DIRECT_H

#include "soft/base/bounds.h"
#include "soft/engine/calls.h"
#include "soft/engine/completion.h"
#include "soft/objects/device.h"
#include "soft/objects/mr_table.h"
#include "soft/objects/qp.h"
#include "soft/wire/packet.h"

/* Whether the request is of a kind that may be executed at once: a WRITE or SEND with one entry. */
static inline bool soft_direct_is_simple(const struct ibv_send_wr *wr)
{
	return (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_SEND) && wr->num_sge == 1;
}

/* Whether the requester has nothing else to do, in RTS. requester.lock is held. */
static inline bool soft_direct_is_idle(const struct soft_qp *qp)
{
	const struct soft_requester *requester = &qp->requester;

	soft_lock_expect(&requester->lock);
	return requester->posted == requester->completed && requester->wait == SOFT_WAIT_NONE && requester->size &&
	       soft_qp_state(qp) == IBV_QPS_RTS;
}

/* Whether the peer's responder expects the next request of qp. requester.lock and the peer's responder.lock are held. */
static inline bool soft_direct_is_ready(const struct soft_qp *qp, const struct soft_qp *peer)
{
	const struct soft_responder *responder = &peer->responder;
	enum ibv_qp_state state = soft_qp_state(peer);

	soft_lock_expect(&qp->requester.lock);
	soft_lock_expect(&responder->lock);
	/* In RTR the first message raises COMM_EST. */
	return state > IBV_QPS_RTR && state < IBV_QPS_ERR && peer->direct && soft_qp_accepts(peer, qp) &&
	       !responder->failed && !responder->awaits_rtu && responder->psn == qp->requester.psn;
}

/* The memory of the request's only entry; NULL if it is not available, or empty. */
static inline void *soft_direct_source(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;

	if (!qp->cap.max_send_sge || !sge->length || sge->length > SOFT_MAX_MESSAGE)
		return NULL;
	if (wr->send_flags & IBV_SEND_INLINE)
		return sge->length <= qp->cap.max_inline_data ? (void *)(uintptr_t)sge->addr : NULL;
	return soft_mr_table_translate(&soft_qp_device(qp)->memory, soft_pd_domain(qp->ibv.pd), sge->lkey, sge->addr,
				       sge->length, SOFT_ACCESS_LOCAL, 0);
}

static inline bool soft_direct_write(struct soft_qp *peer, const struct ibv_send_wr *wr, const void *source,
				     uint32_t length)
{
	void *target;

	if (!(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
		return false;
	target = soft_mr_table_translate(&soft_qp_device(peer)->memory, soft_pd_domain(peer->ibv.pd), wr->wr.rdma.rkey,
					 wr->wr.rdma.remote_addr, length, IBV_ACCESS_REMOTE_WRITE, peer->ibv.qp_num);
	if (!target)
		return false;
	soft_memory_copy(target, source, length);
	return true;
}

static __attribute__((noinline)) bool soft_direct_send(const struct soft_qp *qp, struct soft_qp *peer, const struct ibv_send_wr *wr,
				void *source, uint32_t length)
{
	struct soft_segment target = {.length = length};
	struct soft_receive receive;
	struct soft_packet packet;

	/* A receive that is taken from a shared queue is gone. One of the queue pair's own is taken by its completion. */
	if (peer->srq || !soft_receive_take(peer, &receive) || !receive.num_sge ||
	    receive.sge->length < length)
		return false;
	target.address = soft_mr_table_translate(&soft_qp_device(peer)->memory, soft_pd_domain(peer->ibv.pd),
						 receive.sge->lkey, receive.sge->addr, length,
						 IBV_ACCESS_LOCAL_WRITE | SOFT_ACCESS_LOCAL, 0);
	if (!target.address)
		return false;
	packet.opcode = SOFT_RELIABLE_CONNECTION | SOFT_SEND_ONLY;
	packet.source = qp->ibv.qp_num;
	packet.service_level = qp->requester.service_level;
	packet.solicited = wr->send_flags & IBV_SEND_SOLICITED;
	packet.header = 0;
	packet.length = length;
	packet.segments[0] = (struct soft_segment){source, length};
	soft_receive_deliver(peer, &receive, &packet, &target);
	return true;
}

/*
 * Execute a simple request, and complete it. False if that is not possible; then nothing has changed.
 * Afterwards the peer has failed if its completion queue overran, and qp is in ERR if its own did. The same locks are
 * held.
 */
static inline bool soft_direct_execute(struct soft_qp *qp, struct soft_qp *peer, const struct ibv_send_wr *wr)
{
	struct soft_requester *requester = &qp->requester;
	struct soft_responder *responder = &peer->responder;
	void *source;

	soft_lock_expect(&requester->lock);
	soft_lock_expect(&responder->lock);
	source = soft_direct_source(qp, wr);
	if (!source || !(wr->opcode == IBV_WR_SEND ? soft_direct_send(qp, peer, wr, source, wr->sg_list->length) :
						     soft_direct_write(peer, wr, source, wr->sg_list->length)))
		return false;
	responder->psn = (responder->psn + 1) & SOFT_PSN_MASK;
	responder->msn = (responder->msn + 1) & SOFT_PSN_MASK;
	responder->nak_sent = false;
	requester->psn = (requester->psn + 1) & SOFT_PSN_MASK;
	requester->completed = requester->transmitted = ++requester->posted;
	if (qp->signal_all || wr->send_flags & IBV_SEND_SIGNALED)
		soft_completion_push(qp, wr->wr_id, (uint32_t)wr->opcode, wr->sg_list->length, IBV_WC_SUCCESS);
	return true;
}

#endif
