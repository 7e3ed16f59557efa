#include "measure/idle.h"

#include <poll.h>

/* Completion events were asked for; take those that came. */
static int take_events(struct core_measure_worker *worker, struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	int result;

	do
		result = core_get_cq_event(worker->end.provider, channel, &cq);
	while (result == 0);
	return result == -EAGAIN ? 0 : core_measure_fail(worker, result, CORE_MEASURE_NOTIFY);
}

static int ask_for_events(struct core_measure_worker *worker)
{
	int result = core_req_notify_cq(worker->send_cq, 0);

	if (!result && worker->recv_cq != worker->send_cq)
		result = core_req_notify_cq(worker->recv_cq, 0);
	return result ? core_measure_fail(worker, result, CORE_MEASURE_NOTIFY) : 0;
}

int core_measure_sleep(struct core_measure_worker *worker)
{
	struct pollfd fds[] = {
		{.fd = worker->send_cq->channel->fd, .events = POLLIN},
		{.fd = worker->recv_cq->channel->fd, .events = POLLIN},
		{.fd = worker->measure->wake_fd, .events = POLLIN},
	};
	int result = ask_for_events(worker);

	/* What came before the request raises no event (ibv_req_notify_cq(3)). */
	if (!result)
		result = core_measure_reap_all(worker);
	if (result)
		return result < 0 ? result : 0;
	if (poll(fds, 3, -1) < 0 && errno != EINTR)
		return core_measure_fail(worker, -errno, CORE_MEASURE_NOTIFY);
	result = take_events(worker, worker->send_cq->channel);
	if (!result && worker->recv_cq->channel != worker->send_cq->channel)
		result = take_events(worker, worker->recv_cq->channel);
	return result;
}
