/*
 * Protection domains: the memory that a queue pair may access (IBTA 10.2.3). Also parent domains
 * (ibv_alloc_parent_domain(3)). Each refers to a protection domain and adds a thread domain and an allocator.
 */
#ifndef SOFT_OBJECTS_PD_H
#define SOFT_OBJECTS_PD_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "soft/base/mutex.h"

struct soft_lock;

struct soft_pd {
	struct ibv_pd ibv;
	struct soft_pd *domain; /* itself, or the domain of a parent domain: keys are checked against it */
	struct ibv_parent_domain_init_attr parent; /* parent.pd is NULL unless this is a parent domain */
	_Atomic unsigned int users; /* memory regions, queues, queue pairs and parent domains */
	_Atomic unsigned int references; /* the owner, and temporary ones */
	struct soft_mutex lock; /* guards the list */
	struct soft_pd_member *members; /* of this domain and its parent domains */
};

struct soft_td {
	struct ibv_td ibv;
	_Atomic unsigned int users; /* parent domains */
};

/*
 * A queue pair in the list of each of its protection domains: its own, and that of its shared receive queue. Or an XRC
 * shared queue: its requests use this domain.
 */
struct soft_pd_member {
	struct soft_lock *first, *second; /* held while memory of the domain is used; second may be NULL */
	struct soft_pd_member *next, *previous; /* under pd.lock */
};

struct ibv_pd *soft_alloc_pd(struct ibv_context *context);
/* EBUSY while it has users. */
int soft_dealloc_pd(struct ibv_pd *pd);

/* The struct is freed with the last reference, which may be after ibv_dealloc_pd. */
void soft_pd_hold(struct soft_pd *pd);
void soft_pd_release(struct soft_pd *pd);

/* Add and remove a user of its memory. */
void soft_pd_add(struct soft_pd *pd, struct soft_pd_member *member, struct soft_lock *first, struct soft_lock *second);
void soft_pd_remove(struct soft_pd *pd, struct soft_pd_member *member);

static inline struct soft_pd *soft_pd(struct ibv_pd *pd)
{
	return (struct soft_pd *)pd;
}

/* The domain that regions, windows and queue pairs that work together share. */
static inline struct soft_pd *soft_pd_domain(struct ibv_pd *pd)
{
	return soft_pd(pd)->domain;
}

/* --- parent_domain.c ------------------------------------------------------------------------------ */

/* A thread domain promises that one thread calls. It has no effect: soft's locks stay. */
struct ibv_td *soft_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
/* EBUSY while parent domains have it. */
int soft_dealloc_td(struct ibv_td *td);
struct ibv_pd *soft_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);

/* The purpose of the memory, passed to an allocator. The upper half is a driver number, here 0. */
enum soft_resource { SOFT_SEND_QUEUE = 1, SOFT_RECEIVE_QUEUE, SOFT_COMPLETION_QUEUE };

/*
 * Memory for a queue, in whole cache lines, from pd's allocator if it has one; pd may be NULL. No lock is held,
 * because an allocator is the program's code. *source is what soft_parent_domain_free needs.
 */
void *soft_parent_domain_allocate(struct soft_pd *pd, size_t size, enum soft_resource resource,
				  struct soft_pd **source);
/* No lock is held. source still exists unless it is NULL. */
void soft_parent_domain_free(struct soft_pd *source, void *memory, enum soft_resource resource);

#endif
