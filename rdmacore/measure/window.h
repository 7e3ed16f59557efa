/* The timed part of a measurement, and what was done in each interval of it. */
#ifndef MEASURE_WINDOW_H
#define MEASURE_WINDOW_H

#include "measure/worker.h"

void core_measure_window_open(struct core_measure_worker *worker, uint64_t now, uint64_t messages);
/* Does nothing when it is closed. */
void core_measure_window_close(struct core_measure_worker *worker, uint64_t now, uint64_t messages);
/* Allocate for spec; -ENOMEM. */
int core_measure_sampler_init(struct core_measure_sampler *sampler,
			      const struct core_measure_spec *spec);
void core_measure_sampler_take(struct core_measure_worker *worker, uint64_t now, uint64_t messages);

/* In the timed part, at any time that the clock was read. */
static inline void core_measure_tick(struct core_measure_worker *worker, uint64_t now,
				     uint64_t messages)
{
	atomic_store_explicit(&worker->live.now_ns, now, memory_order_relaxed);
	/* Released: who sees that many finds their times in the histogram. */
	atomic_store_explicit(&worker->live.messages, messages - worker->window.base,
			      memory_order_release);
	if (now >= worker->sampler.next_ns)
		core_measure_sampler_take(worker, now, messages);
}

#endif
