/*
 * Programs for legal.sh, by the first argument. Each takes something for granted that IBTA and the man pages leave open,
 * as real programs do. With "fixed" as the second argument it does not. All pass on a device that makes no rare choice.
 * Both ends are in this process.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>

#include <arpa/inet.h>

#include "exec_test.h"

#define DEPTH 16
#define BURST 8
#define LENGTH 64
#define WRITTEN ((DEPTH - 1) * LENGTH) /* where a WRITE goes: no receive does */
#define WAIT 100 /* milliseconds until a program with a mistake counts as hung, and a fixed one */
#define WAIT_FIXED 10000

struct end {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char memory[DEPTH * LENGTH];
	bool established;
};

struct connection {
	struct rdma_cm_id *listener;
	struct end server, client;
	bool fixed;
};

static bool readable(int descriptor, int milliseconds)
{
	struct pollfd events = {.fd = descriptor, .events = POLLIN};

	return poll(&events, 1, milliseconds) == 1;
}

/* The next event, which must be that one. Returns its id. */
static struct rdma_cm_id *take(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	while (rdma_get_cm_event(channel, &event))
		REQUIRE(errno == EINTR);
	REQUIRE(event->event == type);
	id = event->id;
	REQUIRE(!rdma_ack_cm_event(event));
	return id;
}

static void make(struct end *end, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
	};

	REQUIRE(end->channel = ibv_create_comp_channel(end->id->verbs));
	REQUIRE(end->cq = ibv_create_cq(end->id->verbs, 4 * DEPTH, NULL, end->channel, 0));
	attr.send_cq = attr.recv_cq = end->cq;
	REQUIRE(!rdma_create_qp(end->id, pd, &attr));
	REQUIRE(end->mr = ibv_reg_mr(end->id->qp->pd, end->memory, sizeof(end->memory),
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
}

static void expect(struct end *end, uint64_t number)
{
	struct ibv_sge to = {(uintptr_t)end->memory + number % DEPTH * LENGTH, LENGTH, end->mr->lkey};
	struct ibv_recv_wr receive = {.wr_id = number, .sg_list = &to, .num_sge = 1}, *bad;

	REQUIRE(!ibv_post_recv(end->id->qp, &receive, &bad));
}

static void post(struct end *end, enum ibv_wr_opcode opcode, uint64_t number, const struct end *peer)
{
	struct ibv_sge from = {(uintptr_t)end->memory + number % DEPTH * LENGTH, LENGTH, end->mr->lkey};
	struct ibv_send_wr send = {.wr_id = number, .sg_list = &from, .num_sge = 1, .opcode = opcode}, *bad;

	if (peer) {
		send.wr.rdma.remote_addr = (uintptr_t)peer->memory + WRITTEN;
		send.wr.rdma.rkey = peer->mr->rkey;
	}
	REQUIRE(!ibv_post_send(end->id->qp, &send, &bad));
}

static struct ibv_wc complete(struct end *end)
{
	struct ibv_wc wc;
	int polled;

	while (!(polled = ibv_poll_cq(end->cq, 1, &wc)))
		;
	REQUIRE(polled == 1 && wc.status == IBV_WC_SUCCESS);
	return wc;
}

/* Until the client's ESTABLISHED. */
static void connect_ends(struct connection *connection, uint8_t rnr_retries)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = rnr_retries};
	struct end *server = &connection->server, *client = &connection->client;

	REQUIRE(server->events = rdma_create_event_channel());
	REQUIRE(client->events = rdma_create_event_channel());
	REQUIRE(!rdma_create_id(server->events, &connection->listener, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_bind_addr(connection->listener, (struct sockaddr *)&address) && !rdma_listen(connection->listener, 1));
	address.sin_port = rdma_get_src_port(connection->listener);
	REQUIRE(!rdma_create_id(client->events, &client->id, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_resolve_addr(client->id, NULL, (struct sockaddr *)&address, 2000));
	take(client->events, RDMA_CM_EVENT_ADDR_RESOLVED);
	REQUIRE(!rdma_resolve_route(client->id, 2000));
	take(client->events, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make(client, NULL);
	REQUIRE(!rdma_connect(client->id, &param));
	server->id = take(server->events, RDMA_CM_EVENT_CONNECT_REQUEST);
	make(server, NULL);
	for (uint64_t number = 0; rnr_retries && number < BURST; number++)
		expect(server, number);
	REQUIRE(!rdma_accept(server->id, &param));
	take(client->events, RDMA_CM_EVENT_ESTABLISHED);
}

static void connect_both(struct connection *connection)
{
	connect_ends(connection, 7);
	take(connection->server.events, RDMA_CM_EVENT_ESTABLISHED);
}

/* Polls the last byte of a WRITE, and reads the others. */
static void last_byte(struct connection *connection)
{
	volatile char *memory = connection->server.memory + WRITTEN;

	connect_both(connection);
	for (char round = 1; round < BURST; round++) {
		memset(connection->client.memory, round, LENGTH);
		post(&connection->client, IBV_WR_RDMA_WRITE, 0, &connection->server);
		if (connection->fixed) {
			post(&connection->client, IBV_WR_SEND, 1, NULL);
			complete(&connection->server);
		}
		while (memory[LENGTH - 1] != round)
			;
		REQUIRE(memory[0] == round);
		complete(&connection->client);
		if (connection->fixed)
			complete(&connection->client);
	}
}

/* Takes the first completion for that of its request, and the second for the answer. */
static void send_before_answer(struct connection *connection)
{
	connect_both(connection);
	for (uint64_t round = 0; round < BURST; round++) {
		struct ibv_wc first;

		expect(&connection->client, round);
		post(&connection->client, IBV_WR_SEND, round, NULL);
		complete(&connection->server);
		post(&connection->server, IBV_WR_SEND, round, NULL);
		complete(&connection->server);
		first = complete(&connection->client);
		REQUIRE(connection->fixed || first.opcode == IBV_WC_SEND);
		complete(&connection->client);
	}
}

/* Has no state for data that comes before ESTABLISHED. */
static void established_before_data(struct connection *connection)
{
	struct end *server = &connection->server;
	bool received = false;

	connect_ends(connection, 7);
	post(&connection->client, IBV_WR_SEND, 0, NULL);
	while (!received || !server->established) {
		struct ibv_wc wc;

		if (readable(server->events->fd, 0)) {
			take(server->events, RDMA_CM_EVENT_ESTABLISHED);
			server->established = true;
		}
		if (ibv_poll_cq(server->cq, 1, &wc) == 1) {
			REQUIRE(connection->fixed || server->established);
			received = true;
		}
	}
}

/* Posts its receives at ESTABLISHED, although the peer may send before. */
static void receive_at_established(struct connection *connection)
{
	struct end *server = &connection->server;

	connect_ends(connection, connection->fixed);
	if (readable(server->events->fd, 0)) {
		take(server->events, RDMA_CM_EVENT_ESTABLISHED);
		expect(server, 0);
	}
	post(&connection->client, IBV_WR_SEND, 0, NULL);
	complete(&connection->client);
}

/* Takes any asynchronous event for the end of the device. */
static void event_is_fatal(struct connection *connection)
{
	struct ibv_context *context;
	struct ibv_async_event event;

	connect_ends(connection, 7);
	context = connection->server.id->verbs;
	post(&connection->client, IBV_WR_SEND, 0, NULL);
	complete(&connection->server);
	if (readable(context->async_fd, 0)) {
		REQUIRE(!ibv_get_async_event(context, &event));
		REQUIRE(connection->fixed && event.event_type == IBV_EVENT_COMM_EST);
		rdma_notify(connection->server.id, event.event_type);
		ibv_ack_async_event(&event);
	}
	take(connection->server.events, RDMA_CM_EVENT_ESTABLISHED);
}

static void take_cq_event(struct end *end, bool fixed)
{
	struct ibv_cq *cq;
	void *context;

	REQUIRE(readable(end->channel->fd, fixed ? WAIT_FIXED : WAIT));
	REQUIRE(!ibv_get_cq_event(end->channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
}

/* Takes fewer completions than it asks for as the last ones, although it arms the queue after that. */
static void short_poll(struct connection *connection)
{
	struct end *server = &connection->server;
	struct ibv_wc wc[DEPTH];
	int received = 0;

	connect_both(connection);
	REQUIRE(!ibv_req_notify_cq(server->cq, 0));
	for (uint64_t number = 0; number < BURST; number++)
		post(&connection->client, IBV_WR_SEND, number, NULL);
	while (received < BURST) {
		int polled;

		take_cq_event(server, connection->fixed);
		if (connection->fixed)
			REQUIRE(!ibv_req_notify_cq(server->cq, 0));
		do {
			polled = ibv_poll_cq(server->cq, DEPTH, wc);
			received += polled;
		} while (connection->fixed && polled);
		if (!connection->fixed)
			REQUIRE(!ibv_req_notify_cq(server->cq, 0));
	}
}

/* Expects one completion for each event. */
static void event_is_completion(struct connection *connection)
{
	struct end *server = &connection->server;
	struct ibv_wc wc;

	connect_both(connection);
	REQUIRE(!ibv_req_notify_cq(server->cq, 0));
	for (uint64_t number = 0; number < BURST; number++) {
		int polled;

		post(&connection->client, IBV_WR_SEND, number, NULL);
		do {
			take_cq_event(server, connection->fixed);
			REQUIRE(!ibv_req_notify_cq(server->cq, 0));
			polled = ibv_poll_cq(server->cq, 1, &wc);
		} while (connection->fixed && !polled);
		REQUIRE(polled == 1);
	}
}

/* Arms the queue after it was empty, and sleeps without another poll. */
static void lost_wakeup(struct connection *connection)
{
	struct end *server = &connection->server;
	struct ibv_wc wc;

	connect_both(connection);
	for (uint64_t number = 0; number < BURST; number++) {
		post(&connection->client, IBV_WR_SEND, number, NULL);
		while (!ibv_poll_cq(server->cq, 1, &wc)) {
			REQUIRE(!ibv_req_notify_cq(server->cq, 0));
			if (connection->fixed && ibv_poll_cq(server->cq, 1, &wc))
				break;
			take_cq_event(server, connection->fixed);
		}
	}
}

static void nothing(int number)
{
	(void)number;
}

/* Handles a signal, and does not repeat a call that the signal interrupts. */
static void interrupted(struct connection *connection)
{
	struct sigaction action = {.sa_handler = nothing};
	struct rdma_cm_event *event;

	REQUIRE(!sigaction(SIGUSR1, &action, NULL));
	connect_ends(connection, 7);
	while (rdma_get_cm_event(connection->server.events, &event))
		REQUIRE(connection->fixed && errno == EINTR);
	REQUIRE(!rdma_ack_cm_event(event));
}

/* Polls at DISCONNECTED, once, for all requests that are flushed. */
static void flushed_at_disconnected(struct connection *connection)
{
	struct end *server = &connection->server, *client = &connection->client;
	struct ibv_wc wc;
	int flushed = 0;

	connect_both(connection);
	for (uint64_t number = 0; number < BURST; number++)
		expect(client, number);
	REQUIRE(!rdma_disconnect(client->id));
	take(server->events, RDMA_CM_EVENT_DISCONNECTED);
	REQUIRE(!rdma_disconnect(server->id));
	take(client->events, RDMA_CM_EVENT_DISCONNECTED);
	do
		while (ibv_poll_cq(client->cq, 1, &wc) == 1)
			flushed++;
	while (connection->fixed && flushed < BURST);
	REQUIRE(flushed == BURST);
}

/* Learns from the opcode of a failed completion what it was. */
static void failed_opcode(struct connection *connection)
{
	struct end *client = &connection->client;
	int flushed = 0, receives = 0;
	struct ibv_wc wc;

	connect_both(connection);
	for (uint64_t number = 0; number < BURST; number++)
		expect(client, number);
	REQUIRE(!rdma_disconnect(client->id));
	while (flushed < BURST)
		if (ibv_poll_cq(client->cq, 1, &wc) == 1) {
			flushed++;
			receives += connection->fixed ? wc.wr_id < BURST : wc.opcode == IBV_WC_RECV;
		}
	REQUIRE(receives == BURST);
}

/* Writes to a buffer that is posted. */
static void buffer_reused(struct connection *connection)
{
	struct end *server = &connection->server, *client = &connection->client;

	connect_both(connection);
	for (uint64_t number = 0; number < 1000; number++) {
		uint64_t slot = number % BURST;
		struct ibv_wc wc;

		memset(client->memory, (int)slot, LENGTH);
		post(client, IBV_WR_SEND, 0, NULL);
		if (connection->fixed)
			complete(client);
		memset(client->memory, 0xff, LENGTH);
		wc = complete(server);
		REQUIRE(server->memory[wc.wr_id * LENGTH] == (char)slot);
		expect(server, wc.wr_id);
		if (!connection->fixed)
			complete(client);
	}
}

static const struct mode {
	const char *name;
	void (*run)(struct connection *connection);
} modes[] = {
	{"last_byte", last_byte},
	{"send_before_answer", send_before_answer},
	{"established_before_data", established_before_data},
	{"receive_at_established", receive_at_established},
	{"event_is_fatal", event_is_fatal},
	{"short_poll", short_poll},
	{"event_is_completion", event_is_completion},
	{"lost_wakeup", lost_wakeup},
	{"interrupted", interrupted},
	{"flushed_at_disconnected", flushed_at_disconnected},
	{"failed_opcode", failed_opcode},
	{"buffer_reused", buffer_reused},
};

int main(int argc, char **argv)
{
	static struct connection connection;

	alarm(PATIENCE);
	connection.fixed = argc == 3 && !strcmp(argv[2], "fixed");
	for (size_t index = 0; argc >= 2 && index < sizeof(modes) / sizeof(modes[0]); index++)
		if (!strcmp(argv[1], modes[index].name)) {
			modes[index].run(&connection);
			return 0;
		}
	fprintf(stderr, "assumptions MODE [fixed]\n");
	return 64;
}
