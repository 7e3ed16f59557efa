/*
 * Protection domains: what memory a queue pair may touch (IBTA 10.2.3), and parent domains, which stand
 * for one and have a thread domain and an allocator beside it (ibv_alloc_parent_domain(3)).
 */
#ifndef SOFT_OBJECTS_PD_H
#define SOFT_OBJECTS_PD_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "soft/base/mutex.h"

struct soft_qp;

struct soft_pd {
	struct ibv_pd ibv;
	struct soft_pd *domain; /* whose keys are good here: this, or what a parent domain stands for */
	struct ibv_parent_domain_init_attr parent; /* pd is NULL in what is no parent domain */
	_Atomic unsigned int users; /* memory regions, queues, queue pairs and parent domains */
	_Atomic unsigned int references; /* the owner, and short holds */
	struct soft_mutex lock; /* guards the list */
	struct soft_pd_member *members; /* of this domain and the parent domains that stand for it */
};

struct soft_td {
	struct ibv_td ibv;
	_Atomic unsigned int users; /* parent domains */
};

/* What touches memory of a protection domain: a queue pair, once for each of its protection domains. */
struct soft_pd_member {
	struct soft_qp *qp;
	struct soft_pd_member *next, *previous; /* under pd.lock */
};

struct ibv_pd *soft_alloc_pd(struct ibv_context *context);
/* EBUSY while it has users. */
int soft_dealloc_pd(struct ibv_pd *pd);

/* Its memory stays until the last has let go, whatever becomes of it. */
void soft_pd_hold(struct soft_pd *pd);
void soft_pd_release(struct soft_pd *pd);

/* A queue pair of pd begins and ends. */
void soft_pd_add(struct soft_pd *pd, struct soft_pd_member *member, struct soft_qp *qp);
void soft_pd_remove(struct soft_pd *pd, struct soft_pd_member *member);

static inline struct soft_pd *soft_pd(struct ibv_pd *pd)
{
	return (struct soft_pd *)pd;
}

/* What regions, windows and queue pairs must have in common. */
static inline struct soft_pd *soft_pd_domain(struct ibv_pd *pd)
{
	return soft_pd(pd)->domain;
}

/* --- parent_domain.c ------------------------------------------------------------------------------ */

/* A thread domain promises that one thread calls, which changes nothing here: soft's locks stay. */
struct ibv_td *soft_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
/* EBUSY while parent domains have it. */
int soft_dealloc_td(struct ibv_td *td);
struct ibv_pd *soft_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);

/* What an allocator is told that the memory is for.  The upper half is a driver's number, here 0. */
enum soft_resource { SOFT_SEND_QUEUE = 1, SOFT_RECEIVE_QUEUE, SOFT_COMPLETION_QUEUE };

/*
 * Memory for a queue, in whole cache lines, from pd's allocator if it has one; pd may be NULL.  No lock is held, for an
 * allocator is the program's code.  *source is what soft_parent_domain_free needs.
 */
void *soft_parent_domain_allocate(struct soft_pd *pd, size_t size, enum soft_resource resource,
				  struct soft_pd **source);
/* No lock is held, and source still exists where it is not NULL. */
void soft_parent_domain_free(struct soft_pd *source, void *memory, enum soft_resource resource);

#endif
