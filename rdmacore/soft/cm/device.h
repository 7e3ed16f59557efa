/* The device under the ids. */
#ifndef SOFT_CM_DEVICE_H
#define SOFT_CM_DEVICE_H

#include "soft/cm/id.h"

struct soft_cm;

/* The device as librdmacm has it open; one that was removed stays, for the ids that are bound to it. */
struct soft_cm_device {
	struct soft_cm_device *earlier;
	struct ibv_context *context;
	struct ibv_pd *default_pd; /* while ids are bound to it */
	unsigned int default_pd_users;
};

/* The device as it is now becomes cm->opened.  -ENOMEM, or why a descriptor could not be had. */
int soft_cm_open_device(struct soft_cm *cm);
void soft_cm_close_devices(struct soft_cm *cm);
/*
 * What librdmacm asks the kernel for when the user binds or reads an event (ucma_query_addr, ucma_query_gid): the
 * addresses, and of an id on the device its verbs, port_num and the default PD.  cm.lock is held.  -ENOMEM, -ENODEV.
 */
int soft_id_query(struct soft_id *id);
void soft_id_unbind_device(struct soft_id *id);

#endif
