#include "soft_qp.h"

#include <errno.h>
#include <stdlib.h>

#include "soft_cq.h"
#include "soft_pd.h"

int soft_responder_init(struct soft_qp *qp)
{
	if (soft_receive_queue_init(&qp->receive, qp->cap.max_recv_wr, qp->cap.max_recv_sge))
		return -ENOMEM;
	soft_lock_init(&qp->responder.lock);
	return 0;
}

void soft_responder_destroy(struct soft_qp *qp)
{
	pthread_mutex_destroy(&qp->responder.lock);
	soft_receive_queue_destroy(&qp->receive);
}

void soft_responder_reset(struct soft_qp *qp)
{
	qp->responder.msn = 0;
	qp->responder.nak_sent = false;
	qp->responder.failed = false;
	soft_receive_queue_reset(&qp->receive);
}

/* Refuse the request for good: NAK it, and have the queue pair go to ERR (IBTA 9.9.3). */
static void refuse(struct soft_qp *qp, struct soft_packet *response, enum soft_syndrome syndrome)
{
	enum soft_qp_event event =
		syndrome == SOFT_NAK_REMOTE_ACCESS ? SOFT_QP_ACCESS_EVENT : SOFT_QP_REQUEST_EVENT;

	response->syndrome = (uint8_t)syndrome;
	qp->responder.failed = true;
	if (syndrome != SOFT_NAK_REMOTE_OPERATIONAL)
		soft_async_raise(qp->ibv.context, &qp->events[event]);
}

static void execute_send(struct soft_qp *qp, const struct soft_packet *packet,
			 struct soft_packet *response)
{
	struct soft_receive receive;
	enum ibv_wc_status status;

	if (!soft_receive_take(qp, &receive)) {
		response->syndrome = SOFT_RNR_NAK | (qp->attr.min_rnr_timer & SOFT_RNR_TIMER_MASK);
		return;
	}
	status = soft_receive_scatter(qp, &receive, packet);
	if (status == IBV_WC_LOC_LEN_ERR)
		refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
	else if (status != IBV_WC_SUCCESS)
		refuse(qp, response, SOFT_NAK_REMOTE_OPERATIONAL);
	soft_receive_complete(qp, &receive, status, packet);
}

/*
 * The memory of ours that a one-sided request names, in *segment.  False when the queue pair or the
 * key does not allow it, with the NAK in response.
 */
static bool target(struct soft_qp *qp, const struct soft_packet *packet, uint32_t access,
		   struct soft_packet *response, struct soft_segment *segment)
{
	if (!(qp->attr.qp_access_flags & access)) {
		refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
		return false;
	}
	*segment = (struct soft_segment){NULL, packet->length};
	if (!packet->length) /* IBTA 9.7.5.2.6: the key of an empty request is not checked */
		return true;
	segment->address = soft_mr_translate(&soft_qp_device(qp)->memory, soft_pd(qp->ibv.pd),
					     packet->rkey, packet->remote_address, packet->length,
					     access);
	if (!segment->address)
		refuse(qp, response, SOFT_NAK_REMOTE_ACCESS);
	return segment->address;
}

static void execute_write(struct soft_qp *qp, const struct soft_packet *packet,
			  struct soft_packet *response)
{
	bool immediate = packet->opcode == SOFT_RDMA_WRITE_ONLY_IMMEDIATE;
	struct soft_receive receive;
	struct soft_segment segment;

	if (immediate && !soft_receive_take(qp, &receive)) {
		response->syndrome = SOFT_RNR_NAK | (qp->attr.min_rnr_timer & SOFT_RNR_TIMER_MASK);
		return;
	}
	if (!target(qp, packet, IBV_ACCESS_REMOTE_WRITE, response, &segment)) {
		/* What came from a shared queue is no longer there for others: it ends here. */
		if (immediate && qp->srq)
			soft_receive_complete(qp, &receive, IBV_WC_WR_FLUSH_ERR, NULL);
		return;
	}
	soft_segments_copy(&segment, packet->segments, packet->length);
	if (immediate)
		soft_receive_complete(qp, &receive, IBV_WC_SUCCESS, packet);
}

static void execute_read(struct soft_qp *qp, const struct soft_packet *packet,
			 struct soft_packet *response)
{
	if (!target(qp, packet, IBV_ACCESS_REMOTE_READ, response, &response->segments[0]))
		return;
	response->opcode = SOFT_RDMA_READ_RESPONSE_ONLY;
	response->length = packet->length;
	response->num_segments = 1;
}

static void execute(struct soft_qp *qp, const struct soft_packet *packet,
		    struct soft_packet *response)
{
	switch ((enum soft_operation)packet->opcode) {
	case SOFT_SEND_ONLY:
	case SOFT_SEND_ONLY_IMMEDIATE:
		execute_send(qp, packet, response);
		break;
	case SOFT_RDMA_WRITE_ONLY:
	case SOFT_RDMA_WRITE_ONLY_IMMEDIATE:
		execute_write(qp, packet, response);
		break;
	case SOFT_RDMA_READ_REQUEST:
		execute_read(qp, packet, response);
		break;
	default:
		refuse(qp, response, SOFT_NAK_INVALID_REQUEST);
		break;
	}
}

bool soft_responder_receive(struct soft_qp *qp, const struct soft_packet *packet,
			    struct soft_packet *response)
{
	struct soft_responder *responder = &qp->responder;
	int32_t ahead = soft_psn_difference(packet->psn, responder->psn);
	enum ibv_qp_state state = soft_qp_state(qp);

	if ((state != IBV_QPS_RTR && state != IBV_QPS_RTS) || responder->failed)
		return false;
	response->opcode = SOFT_ACKNOWLEDGE;
	response->syndrome = SOFT_ACK;
	response->destination = qp->attr.dest_qp_num;
	response->psn = packet->psn;
	response->length = 0;
	response->num_segments = 0;
	if (ahead > 0) {
		/* One NAK a gap: IBTA 9.7.5.2.8 */
		response->syndrome = SOFT_NAK_SEQUENCE;
		response->psn = responder->psn;
		if (responder->nak_sent)
			return false;
		responder->nak_sent = true;
		return true;
	}
	if (ahead < 0) {
		/* A duplicate: READ again, anything else was done already (IBTA 9.7.5.1.4). */
		response->psn = (responder->psn - 1) & SOFT_PSN_MASK;
		if (packet->opcode == SOFT_RDMA_READ_REQUEST) {
			response->psn = packet->psn;
			execute_read(qp, packet, response);
		}
		response->msn = responder->msn;
		return true;
	}
	execute(qp, packet, response);
	if (response->syndrome == SOFT_ACK) {
		responder->psn = (responder->psn + 1) & SOFT_PSN_MASK;
		responder->msn = (responder->msn + 1) & SOFT_PSN_MASK;
		responder->nak_sent = false;
	}
	response->msn = responder->msn;
	return true;
}
