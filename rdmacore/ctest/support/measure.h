/* Executes measurements; errors end the test. */
#ifndef CTEST_SUPPORT_MEASURE_H
#define CTEST_SUPPORT_MEASURE_H

#include "measure/measure.h"

/* core_measure_create; the spec needs no struct_size. */
struct core_measure *measure_created(const struct core_measure_spec *given,
				     const struct core_measure_end *ends, uint32_t count);
/* Wait for the end of one that was started, a minute at most. What core_measure_join returns. */
int measure_finished(struct core_measure *measure);
/* Create, prepare, start, wait: it must succeed. */
struct core_measure *measure_run(const struct core_measure_spec *spec,
				 const struct core_measure_end *ends, uint32_t count);

#endif
