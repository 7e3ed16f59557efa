/* rdma_set_local_ece(3) and rdma_get_remote_ece(3) */
#ifndef SOFT_RDMA_ECE_H
#define SOFT_RDMA_ECE_H

#include <rdma/rdma_cma.h>

int soft_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);
int soft_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

#endif
