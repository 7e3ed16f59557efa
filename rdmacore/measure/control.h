/* Receives, and the control messages between two ends (measure/wire.h). */
#ifndef MEASURE_CONTROL_H
#define MEASURE_CONTROL_H

#include "measure/worker.h"

/* Post the receives of the beginning. */
int core_measure_first_receives(struct core_measure_worker *worker);
/* Post again what was consumed, and grant credit for it.  Cheap when there is nothing to do. */
int core_measure_replenish(struct core_measure_worker *worker);
/* Tell the peer of that many receives (SEND bandwidth). */
int core_measure_grant(struct core_measure_worker *worker, uint32_t count);
/* Tell the peer that the last message has gone, when one of its own does not say so. */
int core_measure_send_last(struct core_measure_worker *worker);
/* End with control messages, so that nothing is left in any queue. */
int core_measure_settle(struct core_measure_worker *worker);

#endif
