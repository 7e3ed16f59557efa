/* rdma_get_request(3) */
#ifndef SOFT_RDMA_GET_REQUEST_H
#define SOFT_RDMA_GET_REQUEST_H

#include <rdma/rdma_cma.h>

int soft_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **id);

#endif
