/* Workers with nothing to do. */
#ifndef MEASURE_IDLE_H
#define MEASURE_IDLE_H

#include <sched.h>

#include "measure/completion.h"

/* Polls in vain before the processor is offered to others: some tens of microseconds. */
#define CORE_MEASURE_SPINS 4096

/* Sleep until a completion event or a stop; 0 or a negative errno. */
int core_measure_sleep(struct core_measure_worker *worker);

/*
 * After a poll in vain.  Spins, since the answer is usually on its way; when it is long in coming, it
 * may wait for this very processor.  spins counts from 0.
 */
static inline int core_measure_idle(struct core_measure_worker *worker, unsigned int *spins)
{
	if (core_measure_stopped(worker))
		return core_measure_fail(worker, -ECANCELED, CORE_MEASURE_NO_ERROR);
	if (worker->events && !worker->pacing)
		return core_measure_sleep(worker);
	if (++*spins >= CORE_MEASURE_SPINS)
		sched_yield();
	return 0;
}

#endif
