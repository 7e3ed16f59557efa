/* The end of every operation on ids: what they sent meanwhile is delivered. */
#ifndef SOFT_CM_FINISH_H
#define SOFT_CM_FINISH_H

#include "soft/cm/cm.h"

/* Deliver what is queued; cm.lock is held. */
void soft_cm_flush(struct soft_cm *cm);
/* Deliver what is queued, then release cm.lock. */
void soft_cm_unlock(struct soft_cm *cm);
/* The same at the end of an operation: its errno value becomes librdmacm's 0, or -1 and errno. */
int soft_cm_finish(struct soft_cm *cm, int error);

#endif
