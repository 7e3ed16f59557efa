/* Creating, preparing and freeing a measurement. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "measure/connects.h"
#include "measure/worker.h"

static void free_worker(struct core_measure_worker *worker)
{
	if (!worker)
		return;
	core_measure_connects_free(worker);
	for (uint32_t step = 0; step < worker->histograms; step++)
		core_histogram_free(&worker->histogram[step]);
	free(worker->sampler.samples);
	free(worker->sends);
	free(worker->send_sges);
	free(worker->recvs);
	free(worker->recv_sges);
	free(worker);
}

/* A page fault takes longer than some measured steps. But with many digits, most pages are never used. */
#define TOUCHED_BEFORE (UINT64_C(1) << 20)

static void touch(struct core_histogram *histogram)
{
	uint64_t bytes = histogram->length * sizeof(*histogram->counts);

	if (bytes <= TOUCHED_BEFORE)
		memset(histogram->counts, 0, bytes);
}

static int init_histograms(struct core_measure_worker *worker)
{
	const struct core_measure_spec *spec = &worker->measure->spec;
	uint32_t wanted = spec->kind == CORE_MEASURE_CONNECT ? CORE_MEASURE_STEPS : 1;

	if (worker->end.role != CORE_MEASURE_ACTIVE || spec->kind == CORE_MEASURE_BANDWIDTH)
		return 0;
	while (worker->histograms < wanted) {
		int result = core_histogram_init(&worker->histogram[worker->histograms],
						 spec->histogram_highest_ns, spec->histogram_digits);

		if (result)
			return result;
		touch(&worker->histogram[worker->histograms]);
		worker->histograms++;
	}
	return 0;
}

/* By kind and role. */
static core_measure_loop *const loops[][CORE_MEASURE_PASSIVE + 1] = {
	[CORE_MEASURE_LATENCY] = {[CORE_MEASURE_ACTIVE] = core_measure_latency_active,
				  [CORE_MEASURE_PASSIVE] = core_measure_latency_passive},
	[CORE_MEASURE_BANDWIDTH] = {[CORE_MEASURE_ACTIVE] = core_measure_bandwidth,
				    [CORE_MEASURE_PASSIVE] = core_measure_bandwidth},
	[CORE_MEASURE_CONNECT] = {[CORE_MEASURE_ACTIVE] = core_measure_connect_active,
				  [CORE_MEASURE_PASSIVE] = core_measure_connect_passive},
};

/* NULL for an end that is only memory, which the peer reads or writes. */
static core_measure_loop *loop_of(const struct core_measure_worker *worker)
{
	uint32_t kind = worker->measure->spec.kind;

	if (kind != CORE_MEASURE_CONNECT && !worker->transmits && !worker->controls)
		return NULL;
	return loops[kind][worker->end.role];
}

static int create_worker(struct core_measure *measure, const struct core_measure_end *end,
			 struct core_measure_refusal *refusal)
{
	struct core_measure_worker *worker = aligned_alloc(CORE_MEASURE_CACHE_LINE, sizeof(*worker));
	int result;

	if (!worker)
		return core_measure_refuse(refusal, -ENOMEM, "", "no memory for an end");
	memset(worker, 0, sizeof(*worker));
	worker->measure = measure;
	worker->end = *end;
	measure->workers[measure->count++] = worker;
	result = core_measure_layout(worker, refusal);
	if (result)
		return result;
	worker->run = loop_of(worker);
	result = init_histograms(worker);
	if (!result)
		result = core_measure_sampler_init(&worker->sampler, &measure->spec);
	if (!result && measure->spec.kind != CORE_MEASURE_CONNECT)
		result = core_measure_requests_init(worker);
	return result ? core_measure_refuse(refusal, result, "", "no memory for an end") : 0;
}

int core_measure_create(const struct core_measure_spec *given, const struct core_measure_end *ends,
			uint32_t count, struct core_measure **created,
			struct core_measure_refusal *refusal)
{
	struct core_measure *measure = calloc(1, sizeof(*measure));
	int result;

	memset(refusal, 0, sizeof(*refusal));
	if (!measure)
		return core_measure_refuse(refusal, -ENOMEM, "", "no memory for a measurement");
	measure->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	measure->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (measure->done_fd < 0 || measure->wake_fd < 0)
		result = core_measure_refuse(refusal, -errno, "", "eventfd: too many open files?");
	else
		result = core_measure_check_spec(given, &measure->spec, refusal);
	if (!result)
		result = core_measure_check_ends(&measure->spec, ends, count, refusal);
	for (uint32_t index = 0; !result && index < count; index++)
		result = create_worker(measure, &ends[index], refusal);
	if (result) {
		core_measure_free(measure);
		return result;
	}
	*created = measure;
	return 0;
}

/* --- prepare ------------------------------------------------------------------------------------------ */

static void fill_slots(struct core_measure_worker *worker)
{
	for (uint64_t slot = 0; slot < worker->send_slots; slot++)
		core_measure_fill((void *)(uintptr_t)(worker->send_base + slot * worker->stride),
				  worker->size, slot);
}

static int prepare_worker(struct core_measure_worker *worker)
{
	bool one_sided = worker->operation != IBV_WR_SEND;

	if (worker->measure->spec.kind == CORE_MEASURE_CONNECT)
		return core_measure_connects_prepare(worker);
	/* Write each page once before the measurement: pages that were never written are all the same zero page. */
	if (worker->transmits || core_measure_fetches(worker))
		fill_slots(worker);
	if (worker->receives || worker->transmits)
		if (!one_sided || worker->verify || worker->measure->spec.kind == CORE_MEASURE_LATENCY ||
		    core_measure_fetches(worker))
			memset((void *)(uintptr_t)worker->receive_base, 0,
			       worker->receive_slots * worker->stride);
	return core_measure_first_receives(worker);
}

int core_measure_prepare(struct core_measure *measure)
{
	/* The passive end first: the active one may ask for its port. */
	for (int role = CORE_MEASURE_PASSIVE; role >= CORE_MEASURE_ACTIVE; role--)
		for (uint32_t index = 0; index < measure->count; index++) {
			struct core_measure_worker *worker = measure->workers[index];
			int result = 0;

			if (worker->end.role == (uint32_t)role)
				result = prepare_worker(worker);
			if (result)
				return result;
		}
	return 0;
}

void core_measure_free(struct core_measure *measure)
{
	if (!measure)
		return;
	core_measure_cancel(measure);
	if (measure->count)
		core_measure_join(measure);
	for (uint32_t index = 0; index < measure->count; index++)
		free_worker(measure->workers[index]);
	if (measure->done_fd >= 0)
		close(measure->done_fd);
	if (measure->wake_fd >= 0)
		close(measure->wake_fd);
	free(measure);
}
