/*
 * What responder.c and assembly.c share: how a response begins, how a request is rejected, and access to the memory
 * that a request names. responder.lock is held.
 */
#ifndef SOFT_ENGINE_ANSWER_H
#define SOFT_ENGINE_ANSWER_H

#include "soft/engine/calls.h"
#include "soft/objects/device.h"
#include "soft/objects/late_writes.h"
#include "soft/objects/mr_table.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"
#include "soft/wire/packet.h"

/* An ACK of psn, which the caller may change to another response. */
static inline void soft_answer_begin(struct soft_qp *qp, struct soft_packet *response, uint32_t psn)
{
	response->opcode = SOFT_ACKNOWLEDGE;
	response->syndrome = SOFT_ACK;
	response->psn = psn & SOFT_PSN_MASK;
	response->msn = qp->responder.msn;
	response->length = 0;
	response->num_segments = 0;
}

/* The request has no receive, and must be repeated later: RNR NAK (IBTA 9.7.5.2.8). */
static inline void soft_answer_not_ready(struct soft_qp *qp, struct soft_packet *response)
{
	soft_count(soft_qp_device(qp), SOFT_COUNT_RNR_SENT);
	response->syndrome = SOFT_RNR_NAK | (qp->attr.min_rnr_timer & SOFT_RNR_TIMER_MASK);
}

/*
 * Reject the request: send a NAK, and have the queue pair go to ERR (IBTA 9.9.3). In a service without
 * acknowledgements it is dropped, and nothing else happens (class D errors).
 */
void soft_answer_refuse(struct soft_qp *qp, struct soft_packet *response, enum soft_syndrome syndrome);

/* A request that comes after all earlier WRITEs (IBTA 9.5): they are visible from now on. */
static inline void soft_answer_order(struct soft_qp *qp)
{
	if (soft_qp_device(qp)->late_writes)
		soft_late_writes_flush(soft_qp_device(qp)->late_writes);
}

/* Write the payload of a WRITE that needs no receive. */
static inline void soft_answer_place(struct soft_qp *qp, const struct soft_segment *to, const struct soft_packet *packet)
{
	if (soft_qp_device(qp)->late_writes)
		soft_late_writes_place(soft_qp_device(qp)->late_writes, to, packet);
	else
		soft_segments_copy(to, packet->segments, packet->length);
}

/* The memory that a one-sided request names; NULL if its key does not allow it. */
static inline void *soft_answer_reach(struct soft_qp *qp, const struct soft_packet *packet, uint32_t access)
{
	return soft_mr_table_translate(&soft_qp_device(qp)->memory, soft_pd_domain(qp->ibv.pd), packet->rkey,
				 packet->remote_address, packet->length, access, qp->ibv.qp_num);
}

/* The same in *segment. False if the queue pair or the key does not allow it; then response is a NAK. */
static inline bool soft_answer_target(struct soft_qp *qp, const struct soft_packet *packet, uint32_t access,
				      struct soft_packet *response, struct soft_segment *segment)
{
	if (!(qp->attr.qp_access_flags & access)) {
		soft_answer_refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
		return false;
	}
	*segment = (struct soft_segment){NULL, packet->length};
	if (!packet->length) /* IBTA 9.7.5.2.6: the key of an empty request is not checked */
		return true;
	segment->address = soft_answer_reach(qp, packet, access);
	if (!segment->address)
		soft_answer_refuse(qp, response, SOFT_NAK_REMOTE_ACCESS);
	return segment->address;
}

#endif
