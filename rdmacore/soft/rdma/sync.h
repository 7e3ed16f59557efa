/* Synchronous ids wait in each call for its event. */
#ifndef SOFT_RDMA_SYNC_H
#define SOFT_RDMA_SYNC_H

#include <rdma/rdma_cma.h>

/* At the end of a call that raises an event: a synchronous id waits for it (0, or -1 and errno). */
int soft_id_complete(struct rdma_cm_id *id);
/* Acknowledge the event that a synchronous id holds. */
void soft_id_drop_event(struct rdma_cm_id *id);
/* What a call that waited for event returns: 0, or -1 and errno. */
int soft_event_result(const struct rdma_cm_event *event);

#endif
