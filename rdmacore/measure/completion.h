/* Processing completions. */
#ifndef MEASURE_COMPLETION_H
#define MEASURE_COMPLETION_H

#include <sched.h>

#include "measure/worker.h"

/* Process one completion. 0, or a negative errno with the error recorded. */
int core_measure_take(struct core_measure_worker *worker, const struct ibv_wc *wc);

/* Poll once. The number of completions, or a negative errno. */
static inline int core_measure_reap(struct core_measure_worker *worker, struct ibv_cq *cq)
{
	struct ibv_wc wc[CORE_MEASURE_POLL_MAX];
	int polled = ibv_poll_cq(cq, (int)worker->poll_batch, wc);

	for (int index = 0; index < polled; index++) {
		int result = core_measure_take(worker, &wc[index]);

		if (result)
			return result;
	}
	return polled >= 0 ? polled : core_measure_fail(worker, -EIO, CORE_MEASURE_POLL_CQ);
}

/* Both queues; the receive queue only where receives are posted. */
static inline int core_measure_reap_all(struct core_measure_worker *worker)
{
	int sent = core_measure_reap(worker, worker->send_cq);
	int received;

	if (sent < 0 || worker->recv_cq == worker->send_cq || !worker->controls)
		return sent;
	received = core_measure_reap(worker, worker->recv_cq);
	return received < 0 ? received : sent + received;
}

/* Workers without work. */

/* Polls without success before the processor is yielded: about 50 us. */
#define CORE_MEASURE_SPINS 4096

/* Sleep until a completion event or a stop; 0 or a negative errno. */
int core_measure_sleep(struct core_measure_worker *worker);

/*
 * After a poll without success: spin, because the answer usually arrives soon. If it takes long, the peer may wait
 * for this processor, so yield it. spins counts from 0.
 */
static inline int core_measure_idle(struct core_measure_worker *worker, unsigned int *spins)
{
	if (core_measure_stopped(worker))
		return core_measure_fail(worker, -ECANCELED, CORE_MEASURE_NO_ERROR);
	if (worker->events && !worker->pacing)
		return core_measure_sleep(worker);
	if (++*spins >= CORE_MEASURE_SPINS)
		sched_yield();
	return 0;
}

#endif
