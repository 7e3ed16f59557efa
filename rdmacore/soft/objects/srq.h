/* Shared receive queues (IBTA 10.2.9): a message to any of its queue pairs takes a receive. */
#ifndef SOFT_OBJECTS_SRQ_H
#define SOFT_OBJECTS_SRQ_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "soft/objects/context.h"
#include "soft/objects/pd.h"
#include "soft/objects/receive_queue.h"

struct soft_cq;
struct soft_xrc_domain;
struct soft_xrcd;

struct soft_srq {
	struct ibv_srq ibv;
	uint32_t number;
	_Atomic unsigned int users; /* queue pairs */
	_Atomic unsigned int references; /* the owner, and targets that use it */
	uint32_t limit; /* 0 while not armed; under receive.lock */
	struct soft_async_event limit_event;
	struct soft_receive_queue receive;
	/* XRC: */
	struct soft_xrcd *xrcd;
	struct soft_xrc_domain *domain; /* only compared once the queue is destroyed; NULL: no XRC */
	struct soft_cq *cq; /* the completion queue of its receives */
	struct soft_pd_member member;
	struct soft_lock transfer; /* held while a request to the queue is executed */
	bool ended; /* destroyed; under transfer */
};

static inline struct soft_srq *soft_srq(struct ibv_srq *srq)
{
	return (struct soft_srq *)srq;
}

/* NULL and errno EINVAL (exceeds the device's limits), ENOMEM. attr is updated with what was granted. */
struct ibv_srq *soft_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
/* The same with a type; EOPNOTSUPP for types other than basic and XRC. */
struct ibv_srq *soft_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
/* IBV_SRQ_LIMIT arms the limit event, IBV_SRQ_MAX_WR resizes. 0, EINVAL or ENOMEM; all or nothing. */
int soft_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int soft_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int soft_get_srq_num(struct ibv_srq *srq, uint32_t *number);
/* EBUSY while queue pairs use it. */
int soft_destroy_srq(struct ibv_srq *srq);
int soft_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* The argument is a void pointer, for soft_table_find. */
void soft_srq_hold(void *srq);
/* The last reference frees the struct. */
void soft_srq_release(struct soft_srq *srq);

/* Take the oldest receive; false if there is none. The limit event is raised when fewer than limit are left. */
bool soft_srq_take(struct soft_srq *srq, struct soft_receive *receive);

#endif
