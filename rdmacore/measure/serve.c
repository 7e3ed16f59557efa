/* The passive end: accepts requests with the right greeting, until the closing one. */
#include <stdlib.h>

#include "measure/connects.h"
#include "measure/worker.h"

struct server {
	struct core_measure_worker *worker;
	struct core_measure_connects *connects;
	struct core_measure_connection *connections;
	bool leaving;
};

static void end_connection(struct server *server, struct core_measure_connection *connection)
{
	if (connection->next)
		connection->next->previous = connection->previous;
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		server->connections = connection->next;
	core_measure_connection_end(server->connects, connection);
	free(connection);
}

/* -EINVAL: the client has cancelled the request, so it cannot be answered any more; the client records the error. */
static int failed_answer(struct server *server, struct core_measure_connection *connection, int result,
			 int step)
{
	struct core_measure_worker *worker = server->worker;

	if (result != -EINVAL)
		return core_measure_connect_failed(worker, result, step, worker->received);
	worker->result.failed++;
	end_connection(server, connection);
	return 0;
}

static int accept_request(struct server *server, struct rdma_cm_id *id)
{
	struct core_measure_connection *connection = calloc(1, sizeof(*connection));
	struct core_measure_worker *worker = server->worker;
	struct core_conn_param param;
	int result;

	if (!connection) {
		core_destroy_id(server->connects->provider, id);
		return core_measure_connect_failed(worker, -ENOMEM, CORE_MEASURE_STEP_CONNECT,
						   worker->received);
	}
	connection->id = id;
	id->context = connection;
	connection->next = server->connections;
	if (connection->next)
		connection->next->previous = connection;
	server->connections = connection;
	result = core_measure_connect_qp(server->connects, id);
	if (result)
		return failed_answer(server, connection, result, CORE_MEASURE_STEP_CREATE_QP);
	core_measure_connect_param(&param, CORE_MEASURE_HELLO);
	result = core_accept(server->connects->provider, id, &param);
	return result ? failed_answer(server, connection, result, CORE_MEASURE_STEP_CONNECT) : 0;
}

static void refuse(struct server *server, struct rdma_cm_id *id)
{
	core_reject(server->connects->provider, id, NULL, 0);
	core_destroy_id(server->connects->provider, id);
}

static void count(struct core_measure_worker *worker, struct core_measure_connection *connection)
{
	if (connection->counted)
		return;
	connection->counted = true;
	worker->received++;
	core_measure_tick(worker, core_measure_now(), worker->received);
}

static int handle(struct server *server, const struct core_event *event)
{
	struct core_measure_worker *worker = server->worker;
	struct core_measure_connection *connection;

	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		int greeting = core_measure_greeting(&event->conn);

		if (greeting == CORE_MEASURE_HELLO)
			return accept_request(server, event->id);
		if (greeting == CORE_MEASURE_CLOSING)
			server->leaving = true;
		refuse(server, event->id);
		return 0;
	}
	if (event->id == server->connects->listener) {
		struct core_measure_error error = {
			.result = -EIO,
			.stage = CORE_MEASURE_EVENT_ERROR,
			.event = event->type,
			.event_status = event->status,
			.message = worker->received,
		};

		return core_measure_connect_fail_with(worker, &error);
	}
	connection = event->id->context;
	switch (event->type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		count(worker, connection);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		/* If the RTU was lost, the DREQ shows that the client got the REP (cm.c, cm_dreq_handler). */
		count(worker, connection);
		/* Answers the peer's disconnect; the id is destroyed next, whatever this returns. */
		core_disconnect(server->connects->provider, connection->id);
		end_connection(server, connection);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		/* The client has cancelled it, and records the error. */
		worker->result.failed++;
		end_connection(server, connection);
		break;
	}
	return 0;
}

int core_measure_connect_passive(struct core_measure_worker *worker)
{
	struct server server = {.worker = worker, .connects = worker->connects};
	struct core_event event;
	int result = 0;

	core_measure_window_open(worker, core_measure_now(), 0);
	while (!result && !(server.leaving && !server.connections)) {
		result = core_measure_connect_event(worker, &event);
		if (!result)
			result = handle(&server, &event);
	}
	core_measure_window_close(worker, core_measure_now(), worker->received);
	while (server.connections)
		end_connection(&server, server.connections);
	return result;
}
