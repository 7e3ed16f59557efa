/*
 * The active end: it creates and ends connections, in_flight at a time, and measures each step. A connection
 * continues as soon as it can or, in lockstep, when all of them have completed the previous step.
 */
#include <stdlib.h>

#include "measure/connects.h"
#include "measure/worker.h"

struct client {
	struct core_measure_worker *worker;
	struct core_measure_connects *connects;
	struct core_measure_connection *slots;
	uint64_t begun; /* connections, warm-up included */
	uint64_t warm; /* of those, before the timed part */
	uint64_t completed;
	uint64_t counted; /* completed in the timed part */
	uint64_t began_ns, last_ns;
	uint32_t under_way;
	uint32_t awaiting; /* connections that wait for an event each */
	bool timed;
};

static void sample(struct client *client, const struct core_measure_connection *connection,
		   enum core_measure_step step, uint64_t nanoseconds)
{
	if (connection->timed)
		core_histogram_record(&client->worker->histogram[step], nanoseconds);
}

/* The connection is destroyed, successful or not. */
static void over(struct client *client, struct core_measure_connection *connection)
{
	core_measure_connection_end(client->connects, connection);
	client->awaiting -= connection->awaiting;
	connection->awaiting = false;
	client->under_way--;
}

/* The present step has ended; the next one begins now. */
static void step_over(struct client *client, struct core_measure_connection *connection)
{
	uint64_t now = core_measure_now();

	client->awaiting -= connection->awaiting;
	connection->awaiting = false;
	sample(client, connection, connection->step, now - connection->step_ns);
	connection->step_ns = now;
	if (connection->step != CORE_MEASURE_STEP_DESTROY)
		return;
	sample(client, connection, CORE_MEASURE_STEP_TOTAL, now - connection->began_ns);
	client->completed++;
	if (connection->timed) {
		client->counted++;
		client->last_ns = now;
		core_measure_tick(client->worker, now, client->counted);
	}
}

/* A connection failed: count it if failures are allowed, otherwise fail. It is destroyed in both cases. */
static int give_up(struct client *client, struct core_measure_connection *connection,
		   const struct core_measure_error *error)
{
	const struct core_measure_spec *spec = &client->worker->measure->spec;

	over(client, connection);
	if (!connection->closing && client->worker->result.failed++ < spec->errors_max)
		return 0;
	return core_measure_connect_fail_with(client->worker, error);
}

/* Whether an event ends the step, and which. */
static bool ends_by_event(enum core_measure_step step, enum rdma_cm_event_type *event)
{
	switch (step) {
	case CORE_MEASURE_STEP_RESOLVE_ADDR:
		*event = RDMA_CM_EVENT_ADDR_RESOLVED;
		return true;
	case CORE_MEASURE_STEP_RESOLVE_ROUTE:
		*event = RDMA_CM_EVENT_ROUTE_RESOLVED;
		return true;
	case CORE_MEASURE_STEP_CONNECT:
		*event = RDMA_CM_EVENT_ESTABLISHED;
		return true;
	case CORE_MEASURE_STEP_DISCONNECT:
		*event = RDMA_CM_EVENT_DISCONNECTED;
		return true;
	default:
		return false;
	}
}

static int call(struct client *client, struct core_measure_connection *connection)
{
	struct core_provider *provider = client->connects->provider;
	const struct core_measure_end *end = &client->worker->end;
	int timeout_ms = (int)client->worker->measure->spec.timeout_ms;
	struct core_conn_param param;
	int result;

	switch (connection->step) {
	case CORE_MEASURE_STEP_CREATE_ID:
		result = core_create_id(provider, client->connects->channel, RDMA_PS_TCP, &connection->id);
		if (result)
			connection->id = NULL;
		else
			connection->id->context = connection;
		return result;
	case CORE_MEASURE_STEP_RESOLVE_ADDR:
		return core_resolve_addr(provider, connection->id, &end->source,
					 &end->listen_or_destination, timeout_ms);
	case CORE_MEASURE_STEP_RESOLVE_ROUTE:
		return core_resolve_route(provider, connection->id, timeout_ms);
	case CORE_MEASURE_STEP_CREATE_QP:
		return core_measure_connect_qp(client->connects, connection->id);
	case CORE_MEASURE_STEP_CONNECT:
		core_measure_connect_param(&param, connection->closing ? CORE_MEASURE_CLOSING :
									  CORE_MEASURE_HELLO);
		return core_connect(provider, connection->id, &param);
	case CORE_MEASURE_STEP_DISCONNECT:
		return core_disconnect(provider, connection->id);
	default:
		over(client, connection);
		return 0;
	}
}

/* Execute a step, which ends then unless an event is awaited. */
static int take(struct client *client, struct core_measure_connection *connection,
		enum core_measure_step step)
{
	enum rdma_cm_event_type event;
	int result;

	connection->step = step;
	result = call(client, connection);
	if (result)
		return give_up(client, connection, &(struct core_measure_error){
							   .result = result,
							   .stage = CORE_MEASURE_CALL,
							   .step = step,
							   .message = connection->number,
						   });
	if (ends_by_event(step, &event)) {
		connection->awaiting = true;
		client->awaiting++;
	} else {
		step_over(client, connection);
	}
	return 0;
}

/* Execute steps until an event is awaited or the connection ends. */
static int go_on(struct client *client, struct core_measure_connection *connection)
{
	int result = 0;

	while (!result && connection->id && !connection->awaiting)
		result = take(client, connection, connection->step + 1);
	return result;
}

static int start(struct client *client, struct core_measure_connection *connection, bool closing)
{
	uint64_t now = core_measure_now();

	*connection = (struct core_measure_connection){
		.timed = client->timed && !closing,
		.closing = closing,
		.number = client->begun,
		.began_ns = now,
		.step_ns = now,
	};
	client->under_way++;
	client->begun += !closing;
	return take(client, connection, CORE_MEASURE_STEP_CREATE_ID);
}

/* Handle an event. Its connection may continue afterwards, or has ended. */
static int handle(struct client *client, const struct core_event *event)
{
	struct core_measure_connection *connection = event->id->context;
	enum rdma_cm_event_type wanted;
	bool good;

	if (event->type == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return 0;
	if (connection->closing && connection->step == CORE_MEASURE_STEP_CONNECT &&
	    event->type == RDMA_CM_EVENT_REJECTED) {
		over(client, connection);
		return 0;
	}
	good = connection->awaiting && ends_by_event(connection->step, &wanted) &&
	       (int)wanted == event->type;
	if (connection->step == CORE_MEASURE_STEP_CONNECT)
		good = good && !connection->closing;
	if (connection->step != CORE_MEASURE_STEP_DISCONNECT)
		good = good && event->status == 0;
	if (!good)
		return give_up(client, connection, &(struct core_measure_error){
							   .result = -ECONNREFUSED,
							   .stage = CORE_MEASURE_EVENT_ERROR,
							   .step = connection->step,
							   .event = event->type,
							   .event_status = event->status,
							   .message = connection->number,
						   });
	step_over(client, connection);
	return 0;
}

/* Wait for an event and handle it; connection is the one that it was about. */
static int await(struct client *client, struct core_measure_connection **connection)
{
	struct core_event event;
	int result = core_measure_connect_event(client->worker, &event);

	if (result)
		return result;
	*connection = event.id->context;
	return handle(client, &event);
}

/* Whether another connection is wanted. */
static bool more(struct client *client)
{
	const struct core_measure_spec *spec = &client->worker->measure->spec;
	uint64_t now = core_measure_now();

	if (!client->timed && client->begun >= spec->warmup_iterations &&
	    now - client->began_ns >= spec->warmup_ns) {
		/* As in bandwidth, the timed part begins with no connection under way. */
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

/* --- each at its own pace ----------------------------------------------------------------------------- */

static int fill(struct client *client)
{
	for (uint32_t slot = 0; slot < client->worker->measure->spec.in_flight; slot++) {
		/* A start may fail and be counted: the slot is free again then. */
		while (!client->slots[slot].id && more(client)) {
			int result = start(client, &client->slots[slot], false);

			if (!result)
				result = go_on(client, &client->slots[slot]);
			if (result)
				return result;
		}
	}
	return 0;
}

static int run(struct client *client)
{
	for (;;) {
		struct core_measure_connection *connection;
		int result = fill(client);

		if (result || !client->under_way)
			return result;
		result = await(client, &connection);
		if (!result)
			result = go_on(client, connection);
		if (result)
			return result;
	}
}

/* --- in lockstep -------------------------------------------------------------------------------------- */

static int begin_step(struct client *client, struct core_measure_connection *connection,
		      enum core_measure_step step)
{
	int result = 0;

	if (step != CORE_MEASURE_STEP_CREATE_ID) {
		connection->step_ns = core_measure_now();
		return connection->id ? take(client, connection, step) : 0;
	}
	while (!result && !connection->id && more(client))
		result = start(client, connection, false);
	return result;
}

/* One step of all connections. */
static int step_of_all(struct client *client, enum core_measure_step step)
{
	struct core_measure_connection *connection;
	int result = 0;

	for (uint32_t slot = 0; !result && slot < client->worker->measure->spec.in_flight; slot++)
		result = begin_step(client, &client->slots[slot], step);
	while (!result && client->awaiting)
		result = await(client, &connection);
	return result;
}

static int run_in_lockstep(struct client *client)
{
	uint64_t *took_ns = client->worker->result.step_ns;
	int result = 0;

	while (!result && more(client)) {
		uint64_t began_ns = core_measure_now(), step_ns = began_ns;

		for (int step = CORE_MEASURE_STEP_CREATE_ID; !result && step < CORE_MEASURE_STEPS; step++) {
			uint64_t now;

			result = step_of_all(client, step);
			now = core_measure_now();
			if (client->timed)
				took_ns[step] += now - step_ns;
			step_ns = now;
		}
		if (client->timed)
			took_ns[CORE_MEASURE_STEP_TOTAL] += step_ns - began_ns;
	}
	return result;
}

/* --- the whole ---------------------------------------------------------------------------------------- */

static int announce_end(struct client *client)
{
	struct core_measure_connection *connection = &client->slots[0];
	int result = start(client, connection, true);

	if (!result)
		result = go_on(client, connection);
	while (!result && client->under_way) {
		result = await(client, &connection);
		if (!result)
			result = go_on(client, connection);
	}
	return result;
}

int core_measure_connect_active(struct core_measure_worker *worker)
{
	const struct core_measure_spec *spec = &worker->measure->spec;
	struct client client = {
		.worker = worker,
		.connects = worker->connects,
		.slots = calloc(spec->in_flight, sizeof(*client.slots)),
		.began_ns = core_measure_now(),
	};
	int result;

	if (!client.slots)
		return core_measure_connect_failed(worker, -ENOMEM, CORE_MEASURE_STEP_TOTAL, 0);
	result = spec->lockstep ? run_in_lockstep(&client) : run(&client);
	core_measure_window_close(worker, client.last_ns, client.counted);
	if (!result)
		result = announce_end(&client);
	for (uint32_t slot = 0; slot < spec->in_flight; slot++)
		core_measure_connection_end(client.connects, &client.slots[slot]);
	free(client.slots);
	return result;
}
