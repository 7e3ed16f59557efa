/* Resolution of datagram services, what arrives for it; cm.lock is held. */
#ifndef SOFT_CM_SIDR_RECEIVE_H
#define SOFT_CM_SIDR_RECEIVE_H

#include "soft/cm/id.h"

void soft_sidr_receive_request(struct soft_cm *cm, const struct soft_cm_message *message);
void soft_sidr_receive_reply(struct soft_id *id, const struct soft_cm_message *message);

#endif
