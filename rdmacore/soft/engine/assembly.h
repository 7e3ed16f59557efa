/* The responder's half of messages on a link with an MTU (soft/engine/segment.h); responder.lock is held. */
#ifndef SOFT_ENGINE_ASSEMBLY_H
#define SOFT_ENGINE_ASSEMBLY_H

#include <stdbool.h>

struct soft_packet;
struct soft_qp;
struct soft_link;
struct soft_segmentation;

/*
 * Whether the packet is a request by itself, which is executed as on the local link.  If not, it was dealt
 * with here: it is a part of one, or refused, with the reason in response.
 */
bool soft_assembly_is_request(struct soft_qp *qp, const struct soft_packet *packet,
			      struct soft_packet *response);
/* Forget the message that was begun. */
void soft_assembly_abandon(struct soft_qp *qp);
/*
 * The request was executed or refused: decide on the answer.  True when response goes back now; else it may
 * be owed, or a stream of several.
 */
bool soft_assembly_answer(struct soft_qp *qp, const struct soft_packet *packet,
			  struct soft_packet *response);
/* A request that was executed before.  True when response goes back now. */
bool soft_assembly_repeat(struct soft_qp *qp, const struct soft_packet *packet,
			  struct soft_packet *response);

/*
 * The next packet of the answer to a READ.  A link takes all of them before it gives the
 * responder another request.
 */
bool soft_assembly_stream(struct soft_qp *qp, struct soft_packet *response);
/* The ACK that is owed.  False when there is none. */
bool soft_assembly_acknowledge(struct soft_qp *qp, struct soft_packet *response);

/* The life of what a queue pair needs on a link with an MTU (soft/engine/segment.h). */

/* NULL when there is no memory. */
struct soft_segmentation *soft_segmentation_create(struct soft_link *link);
/* The path is known: from INIT to RTR.  Both locks are held. */
void soft_segmentation_start(struct soft_qp *qp);
/* Its queue pair goes to ERR or RESET.  Both locks are held. */
void soft_segmentation_stop(struct soft_qp *qp);

#endif
