/* Multicast groups that ids joined (rdma_join_multicast(3)). */
#ifndef SOFT_JOIN_H
#define SOFT_JOIN_H

#include <rdma/rdma_cma.h>

struct soft_id;

int soft_join_multicast(struct rdma_cm_id *id, struct sockaddr *address, void *context);
int soft_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context);
int soft_leave_multicast(struct rdma_cm_id *id, struct sockaddr *address);

/* The id's user reads MULTICAST_JOIN: attach its queue pair, or turn the event; cm.lock is held. */
void soft_join_apply(struct soft_id *id, struct rdma_cm_event *event);
/* The id's queue pair goes: it leaves every group, while the id stays in them; cm.lock is held. */
void soft_joins_detach(struct soft_id *id);
/* Leave every group of id; cm.lock is held. */
void soft_joins_free(struct soft_id *id);

#endif
