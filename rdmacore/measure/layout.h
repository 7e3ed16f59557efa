/* The layout of one end in its queues and its memory. */
#ifndef MEASURE_LAYOUT_H
#define MEASURE_LAYOUT_H

#include "measure/worker.h"

/* What of the spec concerns this worker, checked against its queue pair and memory. */
int core_measure_layout(struct core_measure_worker *worker, struct core_measure_refusal *refusal);

#endif
