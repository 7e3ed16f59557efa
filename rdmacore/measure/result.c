/* Results of a measurement. */
#include <string.h>

#include "measure/worker.h"

static int rank(const struct core_measure_error *error)
{
	if (!error->result)
		return 0;
	if (error->result == -ECANCELED)
		return 1;
	return error->stage == CORE_MEASURE_COMPLETION && error->wc_status == IBV_WC_WR_FLUSH_ERR ? 2 : 3;
}

int core_measure_join(struct core_measure *measure)
{
	const struct core_measure_error *worst = NULL;

	for (uint32_t index = 0; index < measure->count; index++) {
		struct core_measure_worker *worker = measure->workers[index];
		const struct core_measure_error *error = &worker->result.error;

		if (worker->threaded)
			pthread_join(worker->thread, NULL);
		worker->threaded = false;
		if (!worst || rank(error) > rank(worst) ||
		    (rank(error) == rank(worst) && error->time_ns < worst->time_ns))
			worst = error;
	}
	return worst->result;
}

void core_measure_used(struct core_measure *measure, struct core_measure_spec *spec)
{
	*spec = measure->spec;
	/* Defaults that follow from the queues. */
	for (uint32_t index = 0; index < measure->count; index++) {
		const struct core_measure_worker *worker = measure->workers[index];

		if (spec->kind == CORE_MEASURE_BANDWIDTH && worker->transmits && !spec->depth)
			spec->depth = worker->depth;
		if (worker->receive_depth && !spec->receive_depth)
			spec->receive_depth = worker->receive_depth;
	}
}

void core_measure_get(struct core_measure *measure, uint32_t end, struct core_measure_result *result)
{
	*result = measure->workers[end]->result;
}

const struct core_histogram *core_measure_histogram(struct core_measure *measure, uint32_t end,
						    uint32_t step)
{
	struct core_measure_worker *worker = measure->workers[end];

	return step < worker->histograms ? &worker->histogram[step] : NULL;
}

const struct core_measure_sample *core_measure_samples(struct core_measure *measure, uint32_t end,
						       uint32_t *count)
{
	*count = measure->workers[end]->sampler.used;
	return measure->workers[end]->sampler.samples;
}

/* Read the progress of a running measurement. */

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
