/*
 * Atomics (IBTA 9.7.3.3) are executed by the processor's atomic instructions. So they are atomic for other queue
 * pairs, other devices and the target's threads.
 */
#include "soft/engine/calls.h"

#include "soft/base/page_guard.h"
#include "soft/objects/qp.h"

void soft_atomic_execute(struct soft_qp *qp, const struct soft_packet *packet, void *target,
			 struct soft_packet *response)
{
	struct soft_responder *responder = &qp->responder;
	struct soft_atomic_result *result = &responder->results[responder->result_next];
	uint64_t *word = target;
	uint64_t before;

	soft_lock_expect(&qp->responder.lock);
	soft_page_guard_begin();
	if (packet->opcode == SOFT_FETCH_ADD) {
		before = __atomic_fetch_add(word, packet->operand, __ATOMIC_SEQ_CST);
	} else {
		before = packet->compare;
		/* If the comparison fails, before becomes the present value. */
		__atomic_compare_exchange_n(word, &before, packet->operand, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	}
	soft_page_guard_end();
	*result = (struct soft_atomic_result){packet->psn, true, before};
	responder->result_next = (responder->result_next + 1) % responder->result_count;
	response->opcode = SOFT_ATOMIC_ACKNOWLEDGE;
	response->operand = before;
	response->length = sizeof(before);
}

bool soft_atomic_replay(const struct soft_qp *qp, const struct soft_packet *packet,
			struct soft_packet *response)
{
	const struct soft_responder *responder = &qp->responder;

	soft_lock_expect(&qp->responder.lock);
	for (uint32_t index = 0; index < responder->result_count; index++) {
		const struct soft_atomic_result *result = &responder->results[index];

		if (!result->valid || result->psn != packet->psn)
			continue;
		response->opcode = SOFT_ATOMIC_ACKNOWLEDGE;
		response->psn = packet->psn;
		response->operand = result->value;
		response->length = sizeof(result->value);
		return true;
	}
	return false;
}
