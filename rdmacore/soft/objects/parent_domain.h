/* Parent domains, thread domains and their allocators (ibv_alloc_parent_domain(3), ibv_alloc_td(3)). */
#ifndef SOFT_OBJECTS_PARENT_DOMAIN_H
#define SOFT_OBJECTS_PARENT_DOMAIN_H

#include <infiniband/verbs.h>
#include <stddef.h>

struct soft_pd;

/* What an allocator is told that the memory is for; the upper half, a driver's number, is that of none. */
enum soft_resource { SOFT_SEND_QUEUE = 1, SOFT_RECEIVE_QUEUE, SOFT_COMPLETION_QUEUE };

/* A thread domain promises one thread and changes nothing: soft's locks stay. */
struct ibv_td *soft_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
/* EBUSY while parent domains have it. */
int soft_dealloc_td(struct ibv_td *td);
struct ibv_pd *soft_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr);

/*
 * Memory for a queue, of cache lines, from the allocator of pd where it has one; pd may be NULL.  Called
 * with no lock held: an allocator is the program's.  *source is for soft_parent_domain_free.
 */
void *soft_parent_domain_allocate(struct soft_pd *pd, size_t size, enum soft_resource resource,
				  struct soft_pd **source);
/* source, where it is not NULL, is still there, and no lock is held. */
void soft_parent_domain_free(struct soft_pd *source, void *memory, enum soft_resource resource);

#endif
