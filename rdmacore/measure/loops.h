/*
 * What runs on the thread of an end, until all is done.  0 or a negative errno with the error recorded.
 */
#ifndef MEASURE_LOOPS_H
#define MEASURE_LOOPS_H

#include "measure/worker.h"

int core_measure_bandwidth(struct core_measure_worker *worker);
int core_measure_latency_active(struct core_measure_worker *worker);
int core_measure_latency_passive(struct core_measure_worker *worker);
int core_measure_connect_active(struct core_measure_worker *worker);
int core_measure_connect_passive(struct core_measure_worker *worker);

#endif
