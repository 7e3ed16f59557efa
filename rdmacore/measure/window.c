#include "measure/worker.h"

#include <stdlib.h>
#include <sys/resource.h>

static uint64_t nanoseconds(struct timeval time)
{
	return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_usec * 1000;
}

static void processor_time(uint64_t *user_ns, uint64_t *system_ns)
{
	struct rusage usage = {0};

	getrusage(RUSAGE_THREAD, &usage);
	*user_ns = nanoseconds(usage.ru_utime);
	*system_ns = nanoseconds(usage.ru_stime);
}

void core_measure_window_open(struct core_measure_worker *worker, uint64_t now, uint64_t messages)
{
	struct core_measure_window *window = &worker->window;
	struct core_measure_sampler *sampler = &worker->sampler;

	window->open = true;
	window->begin_ns = now;
	window->base = messages;
	processor_time(&window->cpu_user_ns, &window->cpu_system_ns);
	worker->result.begin_ns = now;
	atomic_store_explicit(&worker->live.now_ns, now, memory_order_relaxed);
	atomic_store_explicit(&worker->live.begin_ns, now, memory_order_release);
	sampler->begin_ns = now;
	sampler->messages = messages;
	sampler->next_ns = sampler->interval_ns ? now + sampler->interval_ns : UINT64_MAX;
}

void core_measure_window_close(struct core_measure_worker *worker, uint64_t now, uint64_t messages)
{
	struct core_measure_window *window = &worker->window;
	struct core_measure_result *result = &worker->result;
	uint64_t user_ns, system_ns;

	if (!window->open)
		return;
	window->open = false;
	if (worker->sampler.interval_ns && now > worker->sampler.begin_ns)
		core_measure_sampler_take(worker, now, messages);
	worker->sampler.next_ns = UINT64_MAX;
	processor_time(&user_ns, &system_ns);
	result->messages = messages - window->base;
	result->bytes = result->messages * worker->size;
	result->elapsed_ns = now - window->begin_ns;
	result->cpu_user_ns = user_ns - window->cpu_user_ns;
	result->cpu_system_ns = system_ns - window->cpu_system_ns;
	result->sample_ns = worker->sampler.interval_ns;
}

/* --- samples ------------------------------------------------------------------------------------------ */

int core_measure_sampler_init(struct core_measure_sampler *sampler, const struct core_measure_spec *spec)
{
	sampler->next_ns = UINT64_MAX;
	if (!spec->sample_ns)
		return 0;
	sampler->interval_ns = spec->sample_ns;
	sampler->size = spec->samples_max;
	sampler->samples = calloc(sampler->size, sizeof(*sampler->samples));
	return sampler->samples ? 0 : -ENOMEM;
}

/* Make room by merging pairs of intervals. */
static void merge(struct core_measure_sampler *sampler)
{
	uint32_t merged = 0;

	for (uint32_t index = 0; index < sampler->used; index += 2, merged++) {
		struct core_measure_sample *into = &sampler->samples[merged];

		*into = sampler->samples[index];
		if (index + 1 < sampler->used) {
			const struct core_measure_sample *other = &sampler->samples[index + 1];

			into->end_ns = other->end_ns;
			into->messages += other->messages;
			into->bytes += other->bytes;
		}
	}
	sampler->used = merged;
	sampler->interval_ns *= 2;
}

void core_measure_sampler_take(struct core_measure_worker *worker, uint64_t now, uint64_t messages)
{
	struct core_measure_sampler *sampler = &worker->sampler;
	uint64_t begin = worker->window.begin_ns;

	if (sampler->used == sampler->size)
		merge(sampler);
	sampler->samples[sampler->used++] = (struct core_measure_sample){
		.begin_ns = sampler->begin_ns - begin,
		.end_ns = now - begin,
		.messages = messages - sampler->messages,
		.bytes = (messages - sampler->messages) * worker->size,
	};
	sampler->begin_ns = now;
	sampler->messages = messages;
	/* On the grid, so that delays do not add up; a long time without messages is one long interval. */
	sampler->next_ns += sampler->interval_ns;
	if (sampler->next_ns <= now)
		sampler->next_ns = now + sampler->interval_ns;
}
