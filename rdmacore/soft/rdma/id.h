/* rdma_create_id(3) and rdma_destroy_id(3). */
#ifndef SOFT_RDMA_ID_H
#define SOFT_RDMA_ID_H

#include "soft/cm/id.h"

int soft_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space port_space);
int soft_destroy_id(struct rdma_cm_id *id);
/* Wait, within bounds, until every event of id was acknowledged: 0 or EBUSY.  cm.lock is held. */
int soft_id_wait_acknowledged(struct soft_id *id);

#endif
