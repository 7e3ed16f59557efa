/*
 * The checks that both ways of posting share: ibv_post_send(3) passes a whole request (post.c), and the builders of
 * ibv_wr_post(3) pass it field by field (build.c). requester.lock is held, or for a queue pair with builders
 * builder.lock: posting to such a queue pair takes both.
 */
#ifndef SOFT_QP_SEND_QUEUE_H
#define SOFT_QP_SEND_QUEUE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/base/bounds.h"
#include "soft/engine/segment.h"
#include "soft/objects/qp.h"
#include "soft/objects/request.h"
#include "soft/wire/packet.h"

/* Why the queue pair accepts no requests now: 0; EINVAL; EIO if its device was removed, which reset it. */
static inline int soft_send_error(const struct soft_qp *qp)
{
	if (soft_qp_state(qp) >= IBV_QPS_RTS)
		return 0;
	return soft_context_is_removed(qp->ibv.context) ? EIO : EINVAL;
}

static inline bool soft_send_queue_is_full(const struct soft_requester *requester)
{
	return requester->posted - requester->completed == requester->size;
}

/* Whether a list may have that many entries. */
static inline bool soft_send_entries_fit(const struct soft_qp *qp, size_t count)
{
	return count <= qp->cap.max_send_sge;
}

/* Get the length of a list; false if a message cannot be that long. */
static inline bool soft_send_list_length(const struct ibv_sge *list, size_t count, uint64_t *length)
{
	*length = 0;
	for (size_t entry = 0; entry < count; entry++)
		*length += list[entry].length;
	return *length <= SOFT_MAX_MESSAGE;
}

/* Whether a request of that kind may have inline data. */
static inline bool soft_send_may_be_inline(uint8_t traits)
{
	return !(traits & (SOFT_LOCAL | SOFT_FLUSHES)) &&
		(traits & (SOFT_RESPONDS | SOFT_NO_RESPONSE_DATA)) != SOFT_RESPONDS;
}

/* Whether a request of that kind may have that many bytes of data: an atomic has 8, a FLUSH none. */
static inline bool soft_send_length_fits(uint8_t traits, uint64_t length)
{
	return !(traits & (SOFT_ATOMIC | SOFT_NO_RESPONSE_DATA)) || length == (traits & SOFT_FLUSHES ? 0 :
									       sizeof(uint64_t));
}

/* A free slot of the queue, with the fields that each request has. */
static inline struct soft_send_wqe *soft_send_begin(struct soft_requester *requester, uint32_t index, uint64_t wr_id,
						    uint32_t opcode, unsigned int flags)
{
	struct soft_send_wqe *wqe = soft_send_wqe(requester, index);

	wqe->wr_id = wr_id;
	wqe->opcode = (uint8_t)opcode;
	wqe->flags = (uint8_t)flags;
	wqe->traits = soft_request_kinds[opcode].traits | (uint8_t)(requester->shared * SOFT_SHARED);
	return wqe;
}

/*
 * Post the request in the next slot. Its length determines how many PSNs it uses; a request without a packet uses
 * none.
 */
static inline void soft_send_post(struct soft_qp *qp, struct soft_send_wqe *wqe)
{
	soft_lock_expect(&qp->requester.lock);
	wqe->psn = qp->requester.psn;
	if (!(wqe->traits & SOFT_LOCAL))
		qp->requester.psn = (wqe->psn + soft_segment_count(qp, wqe->length)) & SOFT_PSN_MASK;
	qp->requester.posted++;
}

#endif
