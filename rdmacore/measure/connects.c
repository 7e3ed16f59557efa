#include "measure/connects.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "measure/worker.h"

#define GREETING "rdmarun"
#define CQ_ENTRIES 16 /* any size: nothing is posted */

int core_measure_connects_prepare(struct core_measure_worker *worker)
{
	struct core_measure_connects *connects = calloc(1, sizeof(*connects));
	int fd, result;

	if (!connects)
		return core_measure_connect_failed(worker, -ENOMEM, CORE_MEASURE_STEP_CREATE_ID, 0);
	worker->connects = connects;
	connects->provider = worker->end.provider;
	result = core_create_event_channel(connects->provider, &connects->channel, &fd);
	if (!result && worker->end.role == CORE_MEASURE_PASSIVE) {
		result = core_create_id(connects->provider, connects->channel, RDMA_PS_TCP,
					&connects->listener);
		if (!result)
			result = core_bind_addr(connects->provider, connects->listener,
						&worker->end.listen_or_destination);
		if (!result)
			result = core_listen(connects->provider, connects->listener, 0);
		if (!result)
			connects->listener->context = NULL;
	}
	if (!result && worker->end.role == CORE_MEASURE_ACTIVE &&
	    !worker->end.listen_or_destination.port) {
		struct core_address address;

		for (uint32_t end = 0; end < worker->measure->count; end++)
			if (worker->measure->workers[end] != worker) {
				core_measure_listens(worker->measure, end, &address);
				worker->end.listen_or_destination.port = address.port;
			}
	}
	return result ? core_measure_connect_failed(worker, result, CORE_MEASURE_STEP_CREATE_ID, 0) : 0;
}

void core_measure_connects_free(struct core_measure_worker *worker)
{
	struct core_measure_connects *connects = worker->connects;

	if (!connects)
		return;
	if (connects->cq)
		core_destroy_cq(connects->provider, connects->cq);
	if (connects->listener)
		core_destroy_id(connects->provider, connects->listener);
	if (connects->channel)
		core_destroy_event_channel(connects->provider, connects->channel);
	free(connects);
	worker->connects = NULL;
}

void core_measure_listens(struct core_measure *measure, uint32_t end, struct core_address *address)
{
	struct core_measure_connects *connects = measure->workers[end]->connects;

	*address = (struct core_address){0};
	if (connects && connects->listener)
		core_local_address(connects->listener, address);
}

void core_measure_connect_param(struct core_conn_param *param, enum core_measure_greeting greeting)
{
	*param = (struct core_conn_param){
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.private_data_len = CORE_MEASURE_GREETING_SIZE,
	};
	memcpy(param->private_data, GREETING, sizeof(GREETING));
	param->private_data[CORE_MEASURE_GREETING_SIZE - 1] = (uint8_t)greeting;
}

int core_measure_greeting(const struct core_conn_param *param)
{
	if (param->private_data_len < CORE_MEASURE_GREETING_SIZE ||
	    memcmp(param->private_data, GREETING, sizeof(GREETING)) != 0)
		return 0;
	return param->private_data[CORE_MEASURE_GREETING_SIZE - 1];
}

int core_measure_connect_qp(struct core_measure_connects *connects, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	if (!connects->cq) {
		int result = core_create_cq(connects->provider, id->verbs, CQ_ENTRIES, NULL, &connects->cq);

		if (result)
			return result;
	}
	if (connects->cq->context != id->verbs) /* addresses of one host on two devices */
		return -EXDEV;
	attr.send_cq = attr.recv_cq = connects->cq;
	return core_create_qp(connects->provider, id, NULL, &attr);
}

void core_measure_connection_end(struct core_measure_connects *connects,
				 struct core_measure_connection *connection)
{
	if (!connection->id)
		return;
	if (connection->id->qp)
		core_destroy_qp(connects->provider, connection->id, false, false);
	core_destroy_id(connects->provider, connection->id);
	connection->id = NULL;
}

int core_measure_connect_fail_with(struct core_measure_worker *worker,
				   const struct core_measure_error *error)
{
	if (core_measure_stopped(worker))
		return core_measure_fail(worker, -ECANCELED, CORE_MEASURE_NO_ERROR);
	return core_measure_fail_with(worker, error);
}

int core_measure_connect_failed(struct core_measure_worker *worker, int result,
				enum core_measure_step step, uint64_t number)
{
	struct core_measure_error error = {
		.result = result,
		.stage = CORE_MEASURE_CALL,
		.step = step,
		.message = number,
	};

	return core_measure_connect_fail_with(worker, &error);
}

int core_measure_connect_event(struct core_measure_worker *worker, struct core_event *event)
{
	struct core_measure_connects *connects = worker->connects;
	struct pollfd fds[] = {
		{.fd = connects->channel->fd, .events = POLLIN},
		{.fd = worker->measure->wake_fd, .events = POLLIN},
	};

	for (;;) {
		int result;

		if (core_measure_stopped(worker))
			return core_measure_fail(worker, -ECANCELED, CORE_MEASURE_NO_ERROR);
		result = core_get_event(connects->provider, connects->channel, false, event);
		if (result == 0)
			return 0;
		if (result != -EAGAIN)
			return core_measure_connect_failed(worker, result, CORE_MEASURE_STEP_TOTAL, 0);
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return core_measure_connect_failed(worker, -errno, CORE_MEASURE_STEP_TOTAL, 0);
	}
}
