/* The completion of a send request, in the completion queue of its queue pair. */
#ifndef SOFT_ENGINE_COMPLETION_H
#define SOFT_ENGINE_COMPLETION_H

#include "soft/objects/cq.h"
#include "soft/objects/qp.h"

/* opcode: enum ibv_wr_opcode. Without room in the queue, qp is in ERR afterwards. requester.lock is held. */
static inline void soft_completion_push(struct soft_qp *qp, uint64_t wr_id, uint32_t opcode, uint32_t length,
					enum ibv_wc_status status)
{
	struct soft_cq *cq = soft_cq(qp->ibv.send_cq);
	struct soft_cqe *entry = soft_cq_begin(cq);

	if (entry) {
		entry->wc = (struct ibv_wc){
			.wr_id = wr_id,
			.status = status,
			.opcode = (enum ibv_wc_opcode)soft_request_kinds[opcode].completion,
			.byte_len = length,
			.qp_num = qp->ibv.qp_num,
		};
		soft_cq_end(cq, entry, status != IBV_WC_SUCCESS);
	} else if (status != IBV_WC_WR_FLUSH_ERR) {
		/* A queue pair that loses a completion must fail (IBTA 10.10.2.2). */
		atomic_store_explicit(&qp->state, IBV_QPS_ERR, memory_order_relaxed);
		soft_async_raise_once(qp->ibv.context, &qp->events[SOFT_QP_FATAL_EVENT]);
	}
}

#endif
