/* The active end: connections made and ended, in_flight at a time, each step timed. */
#include <stdlib.h>

#include "core_measure_connects.h"

struct client {
	struct core_measure_worker *worker;
	struct core_measure_connects *connects;
	struct core_measure_connection *slots;
	uint64_t begun; /* connections, warm-up included */
	uint64_t warm; /* of those, before the timed part */
	uint64_t completed;
	uint64_t counted; /* completed of the timed part */
	uint64_t began_ns, last_ns;
	uint32_t under_way;
	bool timed;
};

static void sample(struct client *client, const struct core_measure_connection *connection,
		   enum core_measure_step step, uint64_t nanoseconds)
{
	if (connection->timed)
		core_histogram_record(&client->worker->histogram[step], nanoseconds);
}

/* The awaited step has ended; the next begins now. */
static void step_over(struct client *client, struct core_measure_connection *connection, uint64_t now)
{
	sample(client, connection, connection->step, now - connection->step_ns);
	connection->step_ns = now;
}

/* A connection failed: count it if some may, else fail.  It is gone afterwards in either case. */
static int give_up(struct client *client, struct core_measure_connection *connection,
		   const struct core_measure_error *error)
{
	const struct core_measure_spec *spec = &client->worker->measure->spec;

	core_measure_connection_end(client->connects, connection);
	client->under_way--;
	if (!connection->farewell && client->worker->result.failed++ < spec->errors_max)
		return 0;
	return core_measure_connect_fail_with(client->worker, error);
}

static int call_failed(struct client *client, struct core_measure_connection *connection, int result,
		       enum core_measure_step step)
{
	return give_up(client, connection, &(struct core_measure_error){.result = result,
									 .stage = CORE_MEASURE_CALL,
									 .step = step,
									 .message = connection->number});
}

static int start(struct client *client, struct core_measure_connection *connection, bool farewell)
{
	const struct core_measure_end *end = &client->worker->end;
	uint64_t now = core_measure_now();
	int result;

	*connection = (struct core_measure_connection){
		.step = CORE_MEASURE_STEP_CREATE_ID,
		.timed = client->timed && !farewell,
		.farewell = farewell,
		.number = client->begun,
		.began_ns = now,
		.step_ns = now,
	};
	client->under_way++;
	client->begun += !farewell;
	result = core_create_id(client->connects->provider, client->connects->channel, RDMA_PS_TCP,
				&connection->id);
	if (result) {
		connection->id = NULL;
		return call_failed(client, connection, result, CORE_MEASURE_STEP_CREATE_ID);
	}
	connection->id->context = connection;
	step_over(client, connection, core_measure_now());
	connection->step = CORE_MEASURE_STEP_RESOLVE_ADDR;
	result = core_resolve_addr(client->connects->provider, connection->id, &end->source,
				   &end->listen_or_destination,
				   (int)client->worker->measure->spec.timeout_ms);
	return result ? call_failed(client, connection, result, connection->step) : 0;
}

static int resolve_route(struct client *client, struct core_measure_connection *connection)
{
	int result;

	connection->step = CORE_MEASURE_STEP_RESOLVE_ROUTE;
	result = core_resolve_route(client->connects->provider, connection->id,
				    (int)client->worker->measure->spec.timeout_ms);
	return result ? call_failed(client, connection, result, connection->step) : 0;
}

static int connect_id(struct client *client, struct core_measure_connection *connection)
{
	struct core_conn_param param;
	int result;

	connection->step = CORE_MEASURE_STEP_CREATE_QP;
	result = core_measure_connect_qp(client->connects, connection->id);
	if (result)
		return call_failed(client, connection, result, connection->step);
	step_over(client, connection, core_measure_now());
	connection->step = CORE_MEASURE_STEP_CONNECT;
	core_measure_connect_param(&param, connection->farewell ? CORE_MEASURE_FAREWELL :
								  CORE_MEASURE_HELLO);
	result = core_connect(client->connects->provider, connection->id, &param);
	return result ? call_failed(client, connection, result, connection->step) : 0;
}

static int disconnect(struct client *client, struct core_measure_connection *connection)
{
	int result;

	connection->step = CORE_MEASURE_STEP_DISCONNECT;
	result = core_disconnect(client->connects->provider, connection->id);
	return result ? call_failed(client, connection, result, connection->step) : 0;
}

static int end_connection(struct client *client, struct core_measure_connection *connection)
{
	uint64_t now;

	core_measure_connection_end(client->connects, connection);
	client->under_way--;
	now = core_measure_now();
	if (connection->farewell)
		return 0;
	connection->step = CORE_MEASURE_STEP_DESTROY;
	step_over(client, connection, now);
	sample(client, connection, CORE_MEASURE_STEP_TOTAL, now - connection->began_ns);
	client->completed++;
	if (connection->timed) {
		client->counted++;
		client->last_ns = now;
		core_measure_tick(client->worker, now, client->counted);
	}
	return 0;
}

static int handle(struct client *client, const struct core_event *event)
{
	struct core_measure_connection *connection = event->id->context;
	enum core_measure_step awaited = connection->step;
	bool good = event->status == 0;

	if (event->type == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return 0;
	if (connection->farewell && awaited == CORE_MEASURE_STEP_CONNECT &&
	    event->type == RDMA_CM_EVENT_REJECTED)
		return end_connection(client, connection);
	if (awaited == CORE_MEASURE_STEP_RESOLVE_ADDR) {
		good = good && event->type == RDMA_CM_EVENT_ADDR_RESOLVED;
	} else if (awaited == CORE_MEASURE_STEP_RESOLVE_ROUTE) {
		good = good && event->type == RDMA_CM_EVENT_ROUTE_RESOLVED;
	} else if (awaited == CORE_MEASURE_STEP_CONNECT) {
		good = good && event->type == RDMA_CM_EVENT_ESTABLISHED && !connection->farewell;
	} else {
		good = event->type == RDMA_CM_EVENT_DISCONNECTED;
	}
	if (!good)
		return give_up(client, connection, &(struct core_measure_error){
							   .result = -ECONNREFUSED,
							   .stage = CORE_MEASURE_EVENT_ERROR,
							   .step = awaited,
							   .event = event->type,
							   .event_status = event->status,
							   .message = connection->number,
						   });
	step_over(client, connection, core_measure_now());
	if (awaited == CORE_MEASURE_STEP_RESOLVE_ADDR)
		return resolve_route(client, connection);
	if (awaited == CORE_MEASURE_STEP_RESOLVE_ROUTE)
		return connect_id(client, connection);
	if (awaited == CORE_MEASURE_STEP_CONNECT)
		return disconnect(client, connection);
	return end_connection(client, connection);
}

/* Whether one more connection is wanted. */
static bool more(struct client *client)
{
	const struct core_measure_spec *spec = &client->worker->measure->spec;
	uint64_t now = core_measure_now();

	if (!client->timed && client->begun >= spec->warmup_iterations &&
	    now - client->began_ns >= spec->warmup_ns) {
		/* As in bandwidth, the timed part begins with nothing under way. */
		if (client->under_way)
			return false;
		client->timed = true;
		client->warm = client->begun;
		client->began_ns = client->last_ns = now;
		core_measure_window_open(client->worker, now, 0);
	}
	if (!client->timed)
		return true;
	if (spec->iterations)
		return client->begun - client->warm < spec->iterations;
	return now - client->began_ns < spec->duration_ns || client->begun == client->warm;
}

static int fill(struct client *client)
{
	for (uint32_t slot = 0; slot < client->worker->measure->spec.in_flight; slot++) {
		/* A start may fail and be counted: the slot is free again then. */
		while (!client->slots[slot].id && more(client)) {
			int result = start(client, &client->slots[slot], false);

			if (result)
				return result;
		}
	}
	return 0;
}

static int run(struct client *client)
{
	for (;;) {
		struct core_event event;
		int result = fill(client);

		if (result || !client->under_way)
			return result;
		result = core_measure_connect_event(client->worker, &event);
		if (!result)
			result = handle(client, &event);
		if (result)
			return result;
	}
}

static int say_farewell(struct client *client)
{
	struct core_event event;
	int result = start(client, &client->slots[0], true);

	while (!result && client->under_way) {
		result = core_measure_connect_event(client->worker, &event);
		if (!result)
			result = handle(client, &event);
	}
	return result;
}

int core_measure_connect_active(struct core_measure_worker *worker)
{
	uint32_t in_flight = worker->measure->spec.in_flight;
	struct client client = {
		.worker = worker,
		.connects = worker->connects,
		.slots = calloc(in_flight, sizeof(*client.slots)),
		.began_ns = core_measure_now(),
	};
	int result;

	if (!client.slots)
		return core_measure_connect_failed(worker, -ENOMEM, CORE_MEASURE_STEP_TOTAL, 0);
	result = run(&client);
	core_measure_window_close(worker, client.last_ns, client.counted);
	if (!result)
		result = say_farewell(&client);
	for (uint32_t slot = 0; slot < in_flight; slot++)
		core_measure_connection_end(client.connects, &client.slots[slot]);
	free(client.slots);
	return result;
}
