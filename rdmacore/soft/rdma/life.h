/* The life of a communication manager. */
#ifndef SOFT_RDMA_LIFE_H
#define SOFT_RDMA_LIFE_H

#include "soft/cm/cm.h"

/* -ENOMEM, or why a descriptor could not be had. */
int soft_cm_create(struct soft_fabric *fabric, struct soft_device *device, struct soft_cm **cm);
/* Every id is gone. */
void soft_cm_destroy(struct soft_cm *cm);

#endif
