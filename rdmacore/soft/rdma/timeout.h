/* What timers of connection management call, with no lock held. */
#ifndef SOFT_RDMA_TIMEOUT_H
#define SOFT_RDMA_TIMEOUT_H

#include "soft/base/timer.h"

/* An id's time is up. */
void soft_cm_expire(struct soft_timer *timer);
/* Messages that faults hold back are due (soft_cm.held_timer). */
void soft_cm_wire_expire(struct soft_timer *timer);

#endif
