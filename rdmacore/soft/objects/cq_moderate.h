/* ibv_modify_cq(3): one event for several completions, or for those of a while. */
#ifndef SOFT_OBJECTS_CQ_MODERATE_H
#define SOFT_OBJECTS_CQ_MODERATE_H

#include <infiniband/verbs.h>

struct soft_cq;

/* EOPNOTSUPP for attributes that there are not; ENOMEM.  A count or a period of 0: an event at once, as before. */
int soft_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
/* The queue ends, and nothing waits any more. */
void soft_cq_end_moderation(struct soft_cq *cq);

#endif
