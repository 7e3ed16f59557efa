/* A look at a measurement that runs. */
#include <string.h>

#include "measure/worker.h"

void core_measure_peek(struct core_measure *measure, uint32_t end, struct core_measure_result *result)
{
	struct core_measure_worker *worker = measure->workers[end];
	uint64_t now;

	memset(result, 0, sizeof(*result));
	result->begin_ns = atomic_load_explicit(&worker->live.begin_ns, memory_order_acquire);
	if (!result->begin_ns)
		return;
	now = atomic_load_explicit(&worker->live.now_ns, memory_order_relaxed);
	result->elapsed_ns = now > result->begin_ns ? now - result->begin_ns : 0;
	result->messages = atomic_load_explicit(&worker->live.messages, memory_order_acquire);
	result->bytes = result->messages * worker->size;
}
