/* Taking completions in. */
#ifndef MEASURE_COMPLETION_H
#define MEASURE_COMPLETION_H

#include "measure/fail.h"

/* Take one completion in.  0 or a negative errno with the error recorded. */
int core_measure_take(struct core_measure_worker *worker, const struct ibv_wc *wc);

/* Poll once.  The number taken or a negative errno. */
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

/* Both queues. */
static inline int core_measure_reap_all(struct core_measure_worker *worker)
{
	int sent = core_measure_reap(worker, worker->send_cq);
	int received;

	if (sent < 0 || worker->recv_cq == worker->send_cq || !worker->controls)
		return sent;
	received = core_measure_reap(worker, worker->recv_cq);
	return received < 0 ? received : sent + received;
}

#endif
