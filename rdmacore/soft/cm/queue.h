/* Messages on their way; cm.lock is held. */
#ifndef SOFT_CM_QUEUE_H
#define SOFT_CM_QUEUE_H

#include "soft/cm/message.h"

struct soft_cm;

/* Queue a copy for delivery at the next soft_cm_unlock; without memory it is lost, as on a wire. */
void soft_cm_deliver(struct soft_cm *cm, const struct soft_cm_message *message);
/* The next one, which the caller frees; NULL when there is none. */
struct soft_cm_message *soft_cm_take_message(struct soft_cm *cm);

#endif
