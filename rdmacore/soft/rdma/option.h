/* rdma_set_option(3) */
#ifndef SOFT_RDMA_OPTION_H
#define SOFT_RDMA_OPTION_H

#include <rdma/rdma_cma.h>
#include <stddef.h>

int soft_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t length);

#endif
