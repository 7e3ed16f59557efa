/* rdma_join_multicast(3) and rdma_leave_multicast(3) */
#ifndef SOFT_RDMA_MULTICAST_H
#define SOFT_RDMA_MULTICAST_H

#include <rdma/rdma_cma.h>

int soft_join_multicast(struct rdma_cm_id *id, struct sockaddr *address, void *context);
int soft_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context);
int soft_leave_multicast(struct rdma_cm_id *id, struct sockaddr *address);

#endif
