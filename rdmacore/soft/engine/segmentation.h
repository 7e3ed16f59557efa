/* The life of what a queue pair needs on a link with an MTU (soft/engine/segment.h). */
#ifndef SOFT_ENGINE_SEGMENTATION_H
#define SOFT_ENGINE_SEGMENTATION_H

struct soft_link;
struct soft_qp;
struct soft_segmentation;

/* NULL when there is no memory. */
struct soft_segmentation *soft_segmentation_create(struct soft_link *link);
/* The path is known: from INIT to RTR.  Both locks are held. */
void soft_segmentation_start(struct soft_qp *qp);
/* Its queue pair goes to ERR or RESET.  Both locks are held. */
void soft_segmentation_stop(struct soft_qp *qp);

#endif
