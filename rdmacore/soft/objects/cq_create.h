/* The life of completion queues. */
#ifndef SOFT_OBJECTS_CQ_CREATE_H
#define SOFT_OBJECTS_CQ_CREATE_H

#include <infiniband/verbs.h>

struct soft_pd;

struct ibv_cq *soft_create_cq(struct ibv_context *context, int entries, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector);
/* The same in a parent domain, whose allocator its ring is from; pd may be NULL. */
struct ibv_cq *soft_create_cq_in(struct ibv_context *context, struct soft_pd *pd, int entries,
				 void *cq_context, struct ibv_comp_channel *channel, int comp_vector);
/* EBUSY while queue pairs use it or while completion events are not acknowledged. */
int soft_destroy_cq(struct ibv_cq *cq);
/* EINVAL when there are more completions than that in it; ENOMEM. */
int soft_resize_cq(struct ibv_cq *cq, int entries);

#endif
