/* rdma_bind_addr(3), rdma_resolve_addr(3), rdma_resolve_route(3), rdma_listen(3). */
#ifndef SOFT_RDMA_RESOLVE_H
#define SOFT_RDMA_RESOLVE_H

#include "soft/cm/id.h"

int soft_bind_addr(struct rdma_cm_id *id, struct sockaddr *address);
int soft_resolve_addr(struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *destination,
		      int timeout_ms);
int soft_resolve_route(struct rdma_cm_id *id, int timeout_ms);
/* The answer to a query came, or its time is up; cm.lock is held. */
void soft_resolve_expired(struct soft_id *id);
int soft_listen(struct rdma_cm_id *id, int backlog);
__be16 soft_get_src_port(struct rdma_cm_id *id);
__be16 soft_get_dst_port(struct rdma_cm_id *id);
struct ibv_context **soft_get_devices(int *count);
void soft_free_devices(struct ibv_context **list);

#endif
