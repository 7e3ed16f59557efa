/* Shared receive queues of ids (rdma_create_srq(3)). */
#ifndef SOFT_RDMA_SRQ_H
#define SOFT_RDMA_SRQ_H

#include <rdma/rdma_cma.h>

int soft_id_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int soft_id_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr);
void soft_id_destroy_srq(struct rdma_cm_id *id);

#endif
