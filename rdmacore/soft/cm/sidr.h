/* Resolution of datagram services (IBTA 12.11): what is sent for it and what arrives; cm.lock is held. */
#ifndef SOFT_CM_SIDR_H
#define SOFT_CM_SIDR_H

#include "soft/cm/id.h"

/* Send the SIDR REQ that stands in id->request. */
void soft_sidr_request(struct soft_id *id);
/* 0 or a positive errno. */
int soft_sidr_reply(struct soft_id *id, enum soft_sidr_status status,
		    const struct rdma_conn_param *param);

void soft_sidr_receive_request(struct soft_cm *cm, const struct soft_cm_message *message);
void soft_sidr_receive_reply(struct soft_id *id, const struct soft_cm_message *message);

#endif
