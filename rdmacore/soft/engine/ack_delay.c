/*
 * How long an acknowledgement waits (IBTA 9.7.5.1.2 lets a responder coalesce them).
 *
 * It is sent with the program's next answer, which costs little. Not sending it would cost nothing. But a peer that
 * sends a message, waits for its completion and only then sends the next one would wait forever. So from time to
 * time one answer is sent without the acknowledgement. If the next request comes nevertheless, the peer does not
 * wait for acknowledgements. From then on one in NEEDLESS_EVERY is sent, with an answer, until the peer waits.
 *
 * Called by links that know when nothing has come for a while. responder.lock is held.
 */
#include "soft/engine/calls.h"

#include "soft/engine/segment.h"

/*
 * Requests that one acknowledgement covers if the peer does not wait: one eighth of the default window of 128
 * packets.
 */
#define NEEDLESS_EVERY 16
/* Acknowledgements between two tries. Each try that fails doubles the number. */
#define PROBE_MIN 32
#define PROBE_MAX 1024

void soft_ack_delay_init(struct soft_ack_delay *ack_delay)
{
	*ack_delay = (struct soft_ack_delay){.interval = PROBE_MIN};
}

void soft_ack_delay_request(struct soft_segmentation *segmentation)
{
	struct soft_ack_delay *ack_delay = &segmentation->ack_delay;

	if (ack_delay->requests < NEEDLESS_EVERY)
		ack_delay->requests++;
	if (!ack_delay->probing || ack_delay->requests < 2)
		return;
	ack_delay->probing = false;
	ack_delay->needless = true;
	ack_delay->interval = PROBE_MIN;
}

void soft_ack_delay_acknowledged(struct soft_segmentation *segmentation)
{
	segmentation->ack_pending = false;
	segmentation->ack_delay.requests = 0;
	segmentation->ack_delay.probing = false;
}

void soft_ack_delay_end(struct soft_segmentation *segmentation)
{
	struct soft_ack_delay *ack_delay = &segmentation->ack_delay;

	if (ack_delay->probing && ack_delay->interval < PROBE_MAX)
		ack_delay->interval *= 2;
	ack_delay->probing = ack_delay->needless = false;
}

bool soft_ack_is_piggybacked(struct soft_qp *qp)
{
	struct soft_ack_delay *ack_delay = &qp->segmentation->ack_delay;

	soft_lock_expect(&qp->responder.lock);
	if (!qp->segmentation->ack_pending || ack_delay->probing)
		return false;
	if (ack_delay->needless)
		return ack_delay->requests == NEEDLESS_EVERY;
	if (++ack_delay->piggybacked < ack_delay->interval)
		return true;
	ack_delay->piggybacked = 0;
	ack_delay->probing = true;
	return false;
}

bool soft_ack_waits(struct soft_qp *qp, bool idle)
{
	struct soft_segmentation *segmentation = qp->segmentation;

	soft_lock_expect(&qp->responder.lock);
	if (!segmentation->ack_pending || !(segmentation->ack_delay.needless || segmentation->ack_delay.probing))
		return false;
	if (idle)
		soft_ack_delay_end(segmentation);
	return !idle;
}
