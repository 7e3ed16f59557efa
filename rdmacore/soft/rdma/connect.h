/* rdma_connect(3), rdma_accept(3), rdma_establish(3) */
#ifndef SOFT_RDMA_CONNECT_H
#define SOFT_RDMA_CONNECT_H

#include <rdma/rdma_cma.h>

int soft_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int soft_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int soft_establish(struct rdma_cm_id *id);

#endif
