/* Protection domains: what memory a queue pair may touch (IBTA 10.2.3). */
#ifndef SOFT_PD_H
#define SOFT_PD_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

struct soft_qp;

struct soft_pd {
	struct ibv_pd ibv;
	_Atomic unsigned int users; /* memory regions, queues and queue pairs */
	pthread_mutex_t lock; /* guards the list */
	struct soft_pd_member *members;
};

/* What touches memory of a protection domain: a queue pair, once for each of its protection domains. */
struct soft_pd_member {
	struct soft_qp *qp;
	struct soft_pd_member *next, *previous; /* under pd.lock */
};

struct ibv_pd *soft_alloc_pd(struct ibv_context *context);
/* EBUSY while memory regions or queue pairs use it. */
int soft_dealloc_pd(struct ibv_pd *pd);

void soft_pd_add(struct soft_pd *pd, struct soft_pd_member *member, struct soft_qp *qp);
void soft_pd_remove(struct soft_pd *pd, struct soft_pd_member *member);

static inline struct soft_pd *soft_pd(struct ibv_pd *pd)
{
	return (struct soft_pd *)pd;
}

#endif
