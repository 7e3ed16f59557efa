/* rdma_create_ep(3) */
#ifndef SOFT_RDMA_ENDPOINT_H
#define SOFT_RDMA_ENDPOINT_H

#include <rdma/rdma_cma.h>

int soft_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *info, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr);
void soft_destroy_ep(struct rdma_cm_id *id);

#endif
