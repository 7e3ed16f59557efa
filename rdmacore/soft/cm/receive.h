/* One message arrives; cm.lock is held. */
#ifndef SOFT_CM_RECEIVE_H
#define SOFT_CM_RECEIVE_H

#include "soft/wire/mad.h"

struct soft_cm;

void soft_cm_receive(struct soft_cm *cm, const struct soft_cm_message *message);

#endif
