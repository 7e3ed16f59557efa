/* Multicast groups that ids joined; cm.lock is held. */
#ifndef SOFT_CM_JOIN_H
#define SOFT_CM_JOIN_H

#include "soft/cm/id.h"

/* 0 or a positive errno; MULTICAST_JOIN follows. */
int soft_join_add(struct soft_id *id, const struct sockaddr *address, bool send_only, void *context);
int soft_join_remove(struct soft_id *id, const struct sockaddr *address);
/* The id's user reads MULTICAST_JOIN: attach its queue pair, or turn the event. */
void soft_join_apply(struct soft_id *id, struct rdma_cm_event *event);
/* The id's queue pair goes: it leaves every group, while the id stays in them. */
void soft_joins_detach(struct soft_id *id);
/* Leave every group of id. */
void soft_joins_free(struct soft_id *id);

#endif
