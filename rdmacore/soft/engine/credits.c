/*
 * Credits for receives in acknowledgements (IBTA 9.7.7.2), by legal choice (CORE_LEGAL_ACK_CREDITS). A responder says how
 * many receives it has. Its requester sends one message beyond them at most, until that one is acknowledged.
 */
#include "soft/engine/calls.h"

#include "soft/engine/segment.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/wire/packet.h"

#define NO_CREDITS SOFT_ACK /* the code that says nothing of them */
#define CREDITS_MASK 0x1fu

/* IBTA table 46: the credits of a code. */
static uint32_t credits_of(uint32_t code)
{
	if (code < 4)
		return code;
	return (code & 1 ? 3u : 2u) << (code / 2 - 1);
}

void soft_credits_add(struct soft_qp *qp, struct soft_packet *response)
{
	uint32_t receives, code = 0;

	soft_lock_expect(&qp->responder.lock);
	if (!qp->legal.credits || response->syndrome != SOFT_ACK || qp->srq || qp->xrc != SOFT_NO_XRC)
		return;
	receives = atomic_load_explicit(&qp->receive.posted, memory_order_acquire) - qp->receive.consumed;
	while (code + 1 < NO_CREDITS && credits_of(code + 1) <= receives)
		code++;
	response->syndrome = (uint8_t)code;
}

void soft_credits_learn(struct soft_qp *qp, const struct soft_packet *ack)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	struct soft_legal *legal = soft_qp_device(qp)->legal;
	uint32_t code = ack->syndrome & CREDITS_MASK, limit = ack->msn + credits_of(code);

	soft_lock_expect(&qp->requester.lock);
	if (!legal || !soft_legal_has(legal, UINT32_C(1) << CORE_LEGAL_ACK_CREDITS) || code == NO_CREDITS)
		return;
	/* One that was sent earlier says less. */
	if (!segmentation->credited || soft_psn_difference(limit, segmentation->credit_limit) > 0)
		segmentation->credit_limit = limit & SOFT_PSN_MASK;
	segmentation->credited = true;
}

static bool takes_receive(const struct soft_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM || wqe->opcode == IBV_WR_SEND_WITH_INV ||
	       wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool soft_credits_allow(struct soft_qp *qp, uint32_t index)
{
	struct soft_requester *requester = &qp->requester;
	uint32_t message = index + 1 - (requester->mw_op_seq - requester->mw_op_base);

	soft_lock_expect(&requester->lock);
	if (!qp->segmentation->credited || index == requester->completed ||
	    !takes_receive(soft_send_wqe(requester, index)))
		return true;
	return soft_psn_difference(message, qp->segmentation->credit_limit + 1) <= 0;
}
