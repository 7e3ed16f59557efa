/*
 * Protection domains: what memory a queue pair may touch (IBTA 10.2.3), and parent domains, which stand
 * for one and have a thread domain and an allocator beside it (ibv_alloc_parent_domain(3)).
 */
#ifndef SOFT_PD_H
#define SOFT_PD_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

struct soft_qp;

struct soft_pd {
	struct ibv_pd ibv;
	struct soft_pd *domain; /* whose keys are good here: this, or what a parent domain stands for */
	struct ibv_parent_domain_init_attr parent; /* pd is NULL in what is no parent domain */
	_Atomic unsigned int users; /* memory regions, queues, queue pairs and parent domains */
	pthread_mutex_t lock; /* guards the list */
	struct soft_pd_member *members; /* of this domain and the parent domains that stand for it */
};

struct soft_td {
	struct ibv_td ibv;
	_Atomic unsigned int users; /* parent domains */
};

/* What an allocator is told that the memory is for; the upper half, a driver's number, is that of none. */
enum soft_resource { SOFT_SEND_QUEUE = 1, SOFT_RECEIVE_QUEUE, SOFT_COMPLETION_QUEUE };

/* What touches memory of a protection domain: a queue pair, once for each of its protection domains. */
struct soft_pd_member {
	struct soft_qp *qp;
	struct soft_pd_member *next, *previous; /* under pd.lock */
};

struct ibv_pd *soft_alloc_pd(struct ibv_context *context);
/* EBUSY while it has users. */
int soft_dealloc_pd(struct ibv_pd *pd);

/* soft_parent_domain.c.  A thread domain promises one thread and changes nothing: soft's locks stay. */
struct ibv_td *soft_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
/* EBUSY while parent domains have it. */
int soft_dealloc_td(struct ibv_td *td);
struct ibv_pd *soft_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr);

/*
 * Memory for a queue, of cache lines, from the allocator of pd where it has one; pd may be NULL.  Called
 * with no lock held: an allocator is the program's.  *source is for soft_pd_free.
 */
void *soft_pd_allocate(struct soft_pd *pd, size_t size, enum soft_resource resource,
		       struct soft_pd **source);
/* source, where it is not NULL, is still there, and no lock is held. */
void soft_pd_free(struct soft_pd *source, void *memory, enum soft_resource resource);

void soft_pd_add(struct soft_pd *pd, struct soft_pd_member *member, struct soft_qp *qp);
void soft_pd_remove(struct soft_pd *pd, struct soft_pd_member *member);

/* Return when every data transfer that was under way in a queue pair of pd has ended (see soft_mr.h). */
void soft_pd_quiesce(struct soft_pd *pd);

static inline struct soft_pd *soft_pd(struct ibv_pd *pd)
{
	return (struct soft_pd *)pd;
}

/* What regions, windows and queue pairs must have in common. */
static inline struct soft_pd *soft_pd_domain(struct ibv_pd *pd)
{
	return soft_pd(pd)->domain;
}

#endif
