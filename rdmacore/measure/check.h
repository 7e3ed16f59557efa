/* Specs and ends before anything is made. */
#ifndef MEASURE_CHECK_H
#define MEASURE_CHECK_H

#include "measure/measure.h"

int core_measure_check_ends(const struct core_measure_spec *spec,
			    const struct core_measure_end *ends, uint32_t count,
			    struct core_measure_refusal *refusal);
/* Fill in a refusal; returns result. */
int core_measure_refuse(struct core_measure_refusal *refusal, int result, const char *knob,
			const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
