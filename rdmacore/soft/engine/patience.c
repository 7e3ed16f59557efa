/*
 * How long an acknowledgement waits (IBTA 9.7.5.1.2 lets a responder join them).
 *
 * It goes with the next answer that the program sends, at little cost.  Nothing would be cheaper, but whoever sends a
 * message, waits for it to complete and only then sends the next one would wait for ever.  So it is tried from time to time:
 * an answer goes without the acknowledgement.  When the next request comes nevertheless, the peer does not wait for it, and
 * one in every LATE goes with an answer from then on, until the peer is found waiting.
 *
 * Links call this that know when nothing has come for a while.  responder.lock is held.
 */
#include "soft/engine/calls.h"

#include "soft/engine/segment.h"

/* Requests that one acknowledgement is for, when the peer does not wait. */
#define LATE 16
/* Acknowledgements between two tries; each that fails doubles it. */
#define TRY_MIN 32
#define TRY_MAX 1024

void soft_patience_begin(struct soft_patience *patience)
{
	*patience = (struct soft_patience){.interval = TRY_MIN};
}

void soft_patience_request(struct soft_segmentation *segmentation)
{
	struct soft_patience *patience = &segmentation->patience;

	if (patience->requests < LATE)
		patience->requests++;
	if (!patience->tries || patience->requests < 2)
		return;
	patience->tries = false;
	patience->late = true;
	patience->interval = TRY_MIN;
}

void soft_patience_acknowledged(struct soft_segmentation *segmentation)
{
	segmentation->owes = false;
	segmentation->patience.requests = 0;
	segmentation->patience.tries = false;
}

void soft_patience_end(struct soft_segmentation *segmentation)
{
	struct soft_patience *patience = &segmentation->patience;

	if (patience->tries && patience->interval < TRY_MAX)
		patience->interval *= 2;
	patience->tries = patience->late = false;
}

bool soft_assembly_joins(struct soft_qp *qp)
{
	struct soft_patience *patience = &qp->segmentation->patience;

	soft_lock_expect(&qp->responder.lock);
	if (!qp->segmentation->owes || patience->tries)
		return false;
	if (patience->late)
		return patience->requests == LATE;
	if (++patience->joined < patience->interval)
		return true;
	patience->joined = 0;
	patience->tries = true;
	return false;
}

bool soft_assembly_waits(struct soft_qp *qp, bool in_vain)
{
	struct soft_segmentation *segmentation = qp->segmentation;

	soft_lock_expect(&qp->responder.lock);
	if (!segmentation->owes || !(segmentation->patience.late || segmentation->patience.tries))
		return false;
	if (in_vain)
		soft_patience_end(segmentation);
	return !in_vain;
}
