#include "soft/engine/calls.h"

#include "soft/base/bounds.h"
#include "soft/objects/ah.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/objects/request.h"
#include "soft/wire/packet.h"

static inline bool translate(struct soft_qp *qp, struct soft_send_wqe *wqe, uint32_t access,
			    struct soft_packet *packet)
{
	struct soft_mr_table *memory = &soft_qp_device(qp)->memory;
	struct soft_pd *pd = soft_pd_domain(qp->ibv.pd);
	uint32_t count = packet->num_segments;

	if (wqe->flags & IBV_SEND_INLINE && wqe->length)
		packet->segments[count++] = (struct soft_segment){soft_request_inline(wqe), wqe->length};
	for (uint32_t index = 0; index < wqe->num_sge; index++) {
		const struct ibv_sge *sge = &wqe->sge[index];
		void *address;

		/* An entry of length zero refers to no memory, so its key is not checked. */
		if (!sge->length)
			continue;
		address = soft_mr_table_translate(memory, pd, sge->lkey, sge->addr, sge->length,
						  access | SOFT_ACCESS_LOCAL, 0);
		if (!address)
			return false;
		packet->segments[count++] = (struct soft_segment){address, sge->length};
	}
	packet->num_segments = count;
	return true;
}

/* The destination of a datagram, and the GRH before its payload. */
static enum ibv_wc_status address_datagram(struct soft_qp *qp, const struct soft_send_wqe *wqe,
					   struct soft_packet *packet)
{
	const struct soft_ah *ah = wqe->ah;

	if (wqe->length > 128u << soft_qp_device(qp)->mtu) /* enum ibv_mtu */
		return IBV_WC_LOC_LEN_ERR;
	if (ah->ibv.pd != qp->ibv.pd) /* IBTA 10.2.2.2 */
		return IBV_WC_LOC_QP_OP_ERR;
	packet->destination = wqe->remote_qp_num;
	/* The highest bit selects the queue pair's own key (IBTA 10.2.5). */
	packet->queue_key = wqe->queue_key >> 31 ? qp->attr.qkey : wqe->queue_key;
	packet->service_level = ah->attr.sl;
	packet->ah = ah;
	packet->header = SOFT_GRH;
	packet->num_segments = 1;
	packet->segments[0] = (struct soft_segment){packet->grh, SOFT_GRH};
	soft_ah_header(ah, wqe->length, wqe->opcode == IBV_WR_SEND_WITH_IMM, packet->grh);
	return IBV_WC_SUCCESS;
}

enum ibv_wc_status soft_request_build(struct soft_qp *qp, struct soft_send_wqe *wqe,
				      struct soft_packet *packet)
{
	const struct soft_request_kind *kind = &soft_request_kinds[wqe->opcode];
	uint32_t access = 0;

	soft_lock_expect(&qp->requester.lock);
	packet->opcode = qp->service | kind->operation;
	packet->source = qp->ibv.qp_num;
	packet->psn = wqe->psn;
	packet->length = wqe->length;
	packet->solicited = wqe->flags & IBV_SEND_SOLICITED;
	packet->immediate = wqe->immediate;
	packet->num_segments = 0;
	if (qp->service == SOFT_UNRELIABLE_DATAGRAM) {
		enum ibv_wc_status status = address_datagram(qp, wqe, packet);

		if (status != IBV_WC_SUCCESS)
			return status;
	} else {
		packet->service_level = qp->requester.service_level;
		packet->header = 0;
		packet->remote_address = wqe->remote_address;
		packet->rkey = wqe->rkey;
	}
	if (wqe->traits & SOFT_SHARED)
		packet->shared_queue = *soft_request_shared_queue(&qp->requester, wqe);
	if (wqe->traits & SOFT_RESPONDS) {
		/* None may be outstanding: IBTA 10.8.2, initiator depth 0. */
		if (!qp->attr.max_rd_atomic)
			return IBV_WC_LOC_QP_OP_ERR;
		if (wqe->traits & SOFT_ATOMIC) {
			packet->operand = wqe->operand;
			packet->compare = *soft_request_compare(wqe);
		}
		if (wqe->traits & SOFT_FLUSHES) {
			packet->length = wqe->flush.length;
			packet->placement = wqe->flush.placement;
			packet->selectivity = wqe->flush.selectivity;
		}
		if (!(wqe->traits & SOFT_NO_RESPONSE_DATA))
			access = IBV_ACCESS_LOCAL_WRITE;
	}
	return translate(qp, wqe, access, packet) ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

bool soft_request_translate(struct soft_qp *qp, struct soft_send_wqe *wqe, uint32_t access,
			    struct soft_packet *packet)
{
	soft_lock_expect(&qp->requester.lock);
	return translate(qp, wqe, access, packet);
}
