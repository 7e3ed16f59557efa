/* What becomes of the device under the ids, and what they hear of it. */
#ifndef SOFT_CM_REMOVAL_H
#define SOFT_CM_REMOVAL_H

#include "soft/cm/cm.h"

/* The device goes away, and its ids hear DEVICE_REMOVAL.  -EBUSY when it is away already. */
int soft_cm_remove_device(struct soft_cm *cm);
/* A new device of the same name and addresses; *told ids had heard.  -ENOENT when it is not away; -ENOMEM. */
int soft_cm_return_device(struct soft_cm *cm, uint32_t *told);
/*
 * The network interface has another hardware address, and ids hear ADDR_CHANGE, as after the failover of a
 * bond.  -EBUSY when it has already.
 */
int soft_cm_change_address(struct soft_cm *cm);
/* It has its own again, which those hear who came meanwhile; *told is how many heard of both.  -ENOENT. */
int soft_cm_restore_address(struct soft_cm *cm, uint32_t *told);

#endif
