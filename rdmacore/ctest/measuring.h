/* A measurement that a test makes and waits for. */
#ifndef CTEST_MEASURING_H
#define CTEST_MEASURING_H

#include "../core_measure.h"

/* Fails the test if it is refused. */
struct core_measure *created(const struct core_measure_spec *given, const struct core_measure_end *ends,
			     uint32_t count);
/* Waits for the end; returns what core_measure_join does. */
int finished(struct core_measure *measure);
/* Makes one, lets it run and waits for its end, which must be a success. */
struct core_measure *run(const struct core_measure_spec *spec, const struct core_measure_end *ends,
			 uint32_t count);

#endif
