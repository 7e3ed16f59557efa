/* Errors of workers: recorded once, and the end of the measurement. */
#ifndef MEASURE_FAIL_H
#define MEASURE_FAIL_H

#include "measure/worker.h"

/* Make an eventfd readable. */
void core_measure_raise(int fd);
/* Record the first error and stop the measurement.  Returns result. */
int core_measure_fail(struct core_measure_worker *worker, int result, enum core_measure_stage stage);
int core_measure_fail_with(struct core_measure_worker *worker, const struct core_measure_error *error);
/* The same with -EBADMSG, of a message that is not what it should be. */
int core_measure_fail_message(struct core_measure_worker *worker, enum core_measure_stage stage,
			      uint64_t message, uint64_t detail);

#endif
