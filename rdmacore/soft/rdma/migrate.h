/* rdma_migrate_id(3) */
#ifndef SOFT_RDMA_MIGRATE_H
#define SOFT_RDMA_MIGRATE_H

#include <rdma/rdma_cma.h>

int soft_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);

#endif
