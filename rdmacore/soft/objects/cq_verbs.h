/* The verbs of completion queues, each as its man page has it. */
#ifndef SOFT_OBJECTS_CQ_VERBS_H
#define SOFT_OBJECTS_CQ_VERBS_H

#include <infiniband/verbs.h>

struct soft_cq;
struct soft_pd;

/* Queues are made, resized and freed. */

struct ibv_cq *soft_create_cq(struct ibv_context *context, int entries, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector);
/* The same in a parent domain, whose allocator its ring is from; pd may be NULL. */
struct ibv_cq *soft_create_cq_in(struct ibv_context *context, struct soft_pd *pd, int entries,
				 void *cq_context, struct ibv_comp_channel *channel, int comp_vector);
/* EBUSY while queue pairs use it or while completion events are not acknowledged. */
int soft_destroy_cq(struct ibv_cq *cq);
/* EINVAL when there are more completions than that in it; ENOMEM. */
int soft_resize_cq(struct ibv_cq *cq, int entries);

/* ibv_create_cq_ex(3): completions that are read field by field where they stand. */

/* EOPNOTSUPP for fields that are not standard. */
struct ibv_cq_ex *soft_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);

/* ibv_modify_cq(3): one event for several completions, or for those of a while. */

/* EOPNOTSUPP for attributes that there are not; ENOMEM.  A count or a period of 0: an event at once, as before. */
int soft_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
/* The queue ends, and nothing waits any more. */
void soft_cq_end_moderation(struct soft_cq *cq);

#endif
