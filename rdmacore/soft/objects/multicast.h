/*
 * Multicast groups of a device: which datagram queue pairs receive packets to a group's GID.
 *
 * The array of members is never changed, only replaced, so that a sender reads it without a lock.
 */
#ifndef SOFT_OBJECTS_MULTICAST_H
#define SOFT_OBJECTS_MULTICAST_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "soft/base/mutex.h"

#define SOFT_MAX_MULTICAST_GROUPS 8192 /* like rdma_rxe (RXE_MAX_MCAST_GRP) */
#define SOFT_MAX_MULTICAST_MEMBERS 4096 /* of one group */

struct soft_qp;
struct soft_multicast_group;

struct soft_multicast_members {
	_Atomic unsigned int references; /* the group, and senders */
	uint32_t count;
	struct soft_qp *queue_pairs[]; /* references */
};

struct soft_multicast {
	struct soft_mutex lock;
	struct soft_multicast_group *groups;
	uint32_t count;
};

void soft_multicast_init(struct soft_multicast *multicast);
/* No queue pair is attached. */
void soft_multicast_destroy(struct soft_multicast *multicast);

/* The members of gid's group now, which the caller releases; NULL if there are none. */
struct soft_multicast_members *soft_multicast_find(struct soft_multicast *multicast,
						   const union ibv_gid *gid);
void soft_multicast_release(struct soft_multicast_members *members);

/* 0, also if it is attached already; ENOMEM. */
int soft_multicast_attach(struct soft_multicast *multicast, const union ibv_gid *gid, struct soft_qp *qp);
/* EINVAL if it is not attached; ENOMEM. */
int soft_multicast_detach(struct soft_multicast *multicast, const union ibv_gid *gid, struct soft_qp *qp);

#endif
