#include "soft/engine/answer.h"

void soft_answer_refuse(struct soft_qp *qp, struct soft_packet *response, enum soft_syndrome syndrome)
{
	enum soft_qp_event event =
		syndrome == SOFT_NAK_REMOTE_ACCESS ? SOFT_QP_ACCESS_EVENT : SOFT_QP_REQUEST_EVENT;

	soft_lock_expect(&qp->responder.lock);
	response->syndrome = (uint8_t)syndrome;
	if (qp->service != SOFT_RELIABLE_CONNECTION)
		return;
	qp->responder.failed = true;
	if (syndrome != SOFT_NAK_REMOTE_OPERATIONAL)
		soft_qp_raise(qp, event, false);
}
