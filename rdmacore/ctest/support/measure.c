#include "ctest/support/measure.h"

#include <poll.h>

#include "ctest/support/check.h"

#define TIMEOUT_MS 60000

struct core_measure *measure_created(const struct core_measure_spec *given,
				     const struct core_measure_end *ends, uint32_t count)
{
	struct core_measure_spec spec = *given;
	struct core_measure_refusal refusal;
	struct core_measure *measure;
	int result;

	spec.struct_size = sizeof(spec);
	result = core_measure_create(&spec, ends, count, &measure, &refusal);
	if (result)
		fprintf(stderr, "%d: %s: %s\n", result, refusal.knob, refusal.why);
	CHECK(!result);
	return measure;
}

int measure_finished(struct core_measure *measure)
{
	struct pollfd done = {.fd = core_measure_fd(measure), .events = POLLIN};

	CHECK(poll(&done, 1, TIMEOUT_MS) == 1);
	CHECK(core_measure_finished(measure));
	return core_measure_join(measure);
}

static void measure_errors(struct core_measure *measure, uint32_t count)
{
	struct core_measure_result result;

	for (uint32_t end = 0; end < count; end++) {
		core_measure_get(measure, end, &result);
		fprintf(stderr, "end %u: result %d stage %u status %u message %llu detail %llu step %u event %d\n",
			end, result.error.result, result.error.stage, result.error.wc_status,
			(unsigned long long)result.error.message, (unsigned long long)result.error.detail,
			result.error.step, result.error.event);
	}
}

struct core_measure *measure_run(const struct core_measure_spec *spec, const struct core_measure_end *ends,
				uint32_t count)
{
	struct core_measure *measure = measure_created(spec, ends, count);
	int result = core_measure_prepare(measure);

	if (!result)
		result = core_measure_start(measure);
	if (!result)
		result = measure_finished(measure);
	if (result)
		measure_errors(measure, count);
	CHECK(!result);
	return measure;
}
