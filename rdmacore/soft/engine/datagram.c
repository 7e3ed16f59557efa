/* The receiving side of the unreliable datagram service (IBTA 9.8.3): one packet, one receive, no answer. */
#include "soft/engine/datagram.h"

#include "soft/base/bounds.h"
#include "soft/engine/receive.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"

void soft_datagram_receive(struct soft_qp *qp, const struct soft_packet *packet)
{
	struct soft_segment segments[SOFT_MAX_SGE];
	struct soft_receive receive;
	enum ibv_wc_status status;

	if (!soft_qp_receives(qp) || qp->responder.failed ||
	    (packet->opcode & SOFT_SERVICE) != qp->service)
		return;
	if (packet->queue_key != qp->attr.qkey) {
		/* Dropped and counted; only a subnet manager would be told (IBTA 10.2.5). */
		atomic_fetch_add(&soft_qp_device(qp)->queue_key_violations, 1);
		return;
	}
	if (!soft_receive_take(qp, &receive))
		return;
	status = soft_receive_reach(qp, &receive, 0, packet, segments);
	if (status == IBV_WC_SUCCESS) {
		soft_receive_deliver(qp, &receive, packet, segments);
	} else {
		qp->responder.failed = true; /* the receive is at fault: IBTA 9.9.3, class E */
		soft_receive_complete(qp, &receive, status, packet);
	}
}
