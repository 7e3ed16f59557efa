/*
 * Two open providers are to each other what two processes are: they share nothing but the names of sockets, and the
 * fabric's name keeps others away.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "soft/cm/cm.h"
#include "soft/host.h"
#include "soft/ipc/ipc.h"

#define PORT 7471

static struct core_provider *open_process(const char *fabric, uint64_t seed)
{
	struct core_options options = {.link = CORE_LINK_UDP, .seeded = seed, .seed = seed};
	struct core_provider *provider;
	char why[512] = "";

	snprintf(options.fabric, sizeof(options.fabric), "%s", fabric);
	CHECK(!core_open("soft", &options, &provider, why, sizeof(why)));
	return provider;
}

/* A name of this test's own, as other tests may run beside it. */
static const char *fabric(void)
{
	static char name[CORE_FABRIC_MAX + 1];

	snprintf(name, sizeof(name), "test-%d", getpid());
	return name;
}

static struct soft_ipc *ipc_of(struct core_provider *provider)
{
	return ((struct soft_host *)provider->host)->cm->ipc;
}

/* One process of a connection, with a channel of its own. */
struct process {
	struct core_provider *provider;
	struct rdma_event_channel *channel;
};

static struct process started(uint64_t seed)
{
	struct process process = {.provider = open_process(fabric(), seed)};

	process.channel = create_channel(process.provider);
	return process;
}

static void ended(struct process *process)
{
	process->provider->rdma_destroy_event_channel(process->channel);
	close_provider(process->provider);
}

/* What is left of a process that was killed: its descriptors are closed, and nobody runs. */
static void killed(struct process *process)
{
	struct soft_ipc *ipc = ipc_of(process->provider);

	soft_mutex_lock(ipc->lock);
	for (struct soft_ipc_peer *peer = ipc->peers; peer; peer = peer->next)
		shutdown(peer->socket.fd, SHUT_RDWR);
	soft_mutex_unlock(ipc->lock);
}

static struct rdma_cm_id *new_id(struct process *process)
{
	struct rdma_cm_id *id;

	CHECK(!process->provider->rdma_create_id(process->channel, &id, NULL, RDMA_PS_TCP));
	return id;
}

static struct rdma_cm_id *listener(struct process *process, uint16_t port)
{
	struct sockaddr_storage address = local_address(port);
	struct rdma_cm_id *id = new_id(process);

	CHECK(!process->provider->rdma_bind_addr(id, (struct sockaddr *)&address));
	CHECK(!process->provider->rdma_listen(id, 0));
	return id;
}

static struct rdma_cm_id *connecting_to(struct process *process, uint16_t port)
{
	struct rdma_cm_id *id = resolved_client(process->provider, process->channel, port);
	struct rdma_conn_param param = usual_param();

	param.private_data = "hello";
	param.private_data_len = 5;
	CHECK(!process->provider->rdma_connect(id, &param));
	return id;
}

static void destroy(struct process *process, struct rdma_cm_id *id)
{
	CHECK(!process->provider->rdma_destroy_id(id));
}

static void expect(struct process *process, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = expect_event(process->provider, process->channel, type);

	if (event->status != status)
		fprintf(stderr, "event %d has status %d\n", type, event->status);
	CHECK(event->status == status);
	CHECK(!process->provider->rdma_ack_cm_event(event));
}

static struct rdma_cm_id *request_of(struct process *process)
{
	struct rdma_cm_event *event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *child = event->id;

	CHECK(event->param.conn.responder_resources == 2 && event->param.conn.initiator_depth == 3);
	CHECK(event->param.conn.retry_count == 7 && event->param.conn.rnr_retry_count == 5);
	CHECK(event->param.conn.private_data_len == 56 && !memcmp(event->param.conn.private_data, "hello\0\0", 7));
	CHECK(!process->provider->rdma_ack_cm_event(event));
	return child;
}

static void accept_child(struct process *process, struct rdma_cm_id *child)
{
	struct rdma_conn_param param = usual_param();

	param.private_data = "welcome";
	param.private_data_len = 7;
	CHECK(!process->provider->rdma_accept(child, &param));
}

/* A connection between two, without queue pairs. */
struct connection {
	struct process server, client;
	struct rdma_cm_id *listener, *child, *id;
};

static struct connection requested_between(void)
{
	struct connection connection = {.server = started(1), .client = started(2)};

	connection.listener = listener(&connection.server, PORT);
	connection.id = connecting_to(&connection.client, PORT);
	connection.child = request_of(&connection.server);
	return connection;
}

static void accept_connection(struct connection *connection)
{
	struct process *client = &connection->client;
	struct rdma_cm_event *event;

	accept_child(&connection->server, connection->child);
	event = expect_event(client->provider, client->channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(event->param.conn.private_data_len == 196 && !memcmp(event->param.conn.private_data, "welcome\0", 8));
	CHECK(!client->provider->rdma_ack_cm_event(event));
	CHECK(!client->provider->rdma_establish(connection->id));
	expect(&connection->server, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void end_connection(struct connection *connection)
{
	if (connection->id)
		destroy(&connection->client, connection->id);
	if (connection->child)
		destroy(&connection->server, connection->child);
	if (connection->listener)
		destroy(&connection->server, connection->listener);
	ended(&connection->client);
	ended(&connection->server);
}

/* Either side may ask for the end. */
static void test_connect_and_disconnect(void)
{
	for (int from_server = 0; from_server < 2; from_server++) {
		struct connection connection = requested_between();
		struct process *first = from_server ? &connection.server : &connection.client;
		struct process *second = from_server ? &connection.client : &connection.server;

		accept_connection(&connection);
		CHECK(!first->provider->rdma_disconnect(from_server ? connection.child : connection.id));
		expect(second, RDMA_CM_EVENT_DISCONNECTED, 0);
		CHECK(!second->provider->rdma_disconnect(from_server ? connection.id : connection.child));
		expect(first, RDMA_CM_EVENT_DISCONNECTED, 0);
		end_connection(&connection);
	}
}

static void test_reject(void)
{
	struct connection connection = requested_between();
	struct process *client = &connection.client;
	struct rdma_cm_event *event;

	CHECK(!connection.server.provider->rdma_reject(connection.child, "no", 2));
	event = expect_event(client->provider, client->channel, RDMA_CM_EVENT_REJECTED);
	CHECK(event->status == 28);
	CHECK(event->param.conn.private_data_len == 148 && !memcmp(event->param.conn.private_data, "no\0", 3));
	CHECK(!client->provider->rdma_ack_cm_event(event));
	end_connection(&connection);
}

/* Nobody has the port, somebody has it and does not listen, somebody listens at another address. */
static void test_nobody_listens(void)
{
	struct process server = started(1), client = started(2);
	struct rdma_cm_id *id = connecting_to(&client, PORT), *bound;
	struct sockaddr_storage address = local_address(PORT);

	expect(&client, RDMA_CM_EVENT_REJECTED, 8);
	destroy(&client, id);
	bound = new_id(&server);
	CHECK(!server.provider->rdma_bind_addr(bound, (struct sockaddr *)&address));
	id = connecting_to(&client, PORT);
	expect(&client, RDMA_CM_EVENT_REJECTED, 8);
	destroy(&client, id);
	destroy(&server, bound);

	((struct sockaddr_in *)(void *)&address)->sin_addr.s_addr = htonl(0x7f000009);
	bound = new_id(&server);
	CHECK(!server.provider->rdma_bind_addr(bound, (struct sockaddr *)&address));
	CHECK(!server.provider->rdma_listen(bound, 0));
	id = connecting_to(&client, PORT);
	expect(&client, RDMA_CM_EVENT_REJECTED, 28);
	destroy(&client, id);
	destroy(&server, bound);
	ended(&client);
	ended(&server);
}

/* The port goes from one process to another, and a connection to the first is still there. */
static void test_port_moves(void)
{
	struct connection connection = requested_between();
	struct process other = started(3);
	struct rdma_cm_id *listening, *id, *child;

	accept_connection(&connection);
	destroy(&connection.server, connection.listener);
	connection.listener = NULL;
	id = connecting_to(&connection.client, PORT);
	expect(&connection.client, RDMA_CM_EVENT_REJECTED, 8);
	destroy(&connection.client, id);

	listening = listener(&other, PORT);
	id = connecting_to(&connection.client, PORT);
	child = request_of(&other);
	destroy(&connection.client, id);
	destroy(&other, child);
	destroy(&other, listening);
	ended(&other);
	end_connection(&connection);
}

/* Fabrics of other names are elsewhere. */
static void test_strangers(void)
{
	struct process server = started(1), client = {.provider = open_process("elsewhere", 2)};
	struct rdma_cm_id *listening = listener(&server, PORT), *id, *same_port;

	client.channel = create_channel(client.provider);
	id = connecting_to(&client, PORT);
	expect(&client, RDMA_CM_EVENT_REJECTED, 8);
	same_port = listener(&client, PORT);
	destroy(&client, same_port);
	destroy(&client, id);
	destroy(&server, listening);
	ended(&client);
	ended(&server);
}

/* Two that were given one seed draw the same numbers, and are two all the same. */
static void test_one_seed(void)
{
	struct process server = started(1), clients[2] = {started(2), started(2)};
	struct rdma_cm_id *listening = listener(&server, PORT), *ids[2], *children[2];

	for (int index = 0; index < 2; index++) {
		ids[index] = connecting_to(&clients[index], PORT);
		children[index] = request_of(&server);
	}
	for (int index = 0; index < 2; index++) {
		destroy(&clients[index], ids[index]);
		destroy(&server, children[index]);
		ended(&clients[index]);
	}
	destroy(&server, listening);
	ended(&server);
}

static void test_many(void)
{
	enum { MANY = 1000 };
	struct process server = started(1), client = started(2);
	struct rdma_cm_id *listening = listener(&server, PORT), *ids[MANY], *children[MANY];

	for (int index = 0; index < MANY; index++)
		ids[index] = connecting_to(&client, PORT);
	for (int index = 0; index < MANY; index++)
		children[index] = request_of(&server);
	for (int index = 0; index < MANY; index++)
		accept_child(&server, children[index]);
	for (int index = 0; index < MANY; index++) {
		struct rdma_cm_event *event =
			expect_event(client.provider, client.channel, RDMA_CM_EVENT_CONNECT_RESPONSE);

		CHECK(!client.provider->rdma_establish(event->id));
		CHECK(!client.provider->rdma_ack_cm_event(event));
	}
	for (int index = 0; index < MANY; index++)
		expect(&server, RDMA_CM_EVENT_ESTABLISHED, 0);
	for (int index = 0; index < MANY; index++)
		destroy(&client, ids[index]);
	for (int index = 0; index < MANY; index++)
		expect(&server, RDMA_CM_EVENT_DISCONNECTED, 0);
	for (int index = 0; index < MANY; index++)
		destroy(&server, children[index]);
	destroy(&server, listening);
	ended(&client);
	ended(&server);
}

/* A process dies at each moment: the other side hears what the kernel of the dead would have said. */
static void test_death(void)
{
	struct connection connection = requested_between();

	killed(&connection.server); /* with the request unanswered */
	expect(&connection.client, RDMA_CM_EVENT_REJECTED, 28);
	end_connection(&connection);

	connection = requested_between();
	killed(&connection.client);
	while (!connection.server.provider->rdma_accept(connection.child, &(struct rdma_conn_param){.qp_num = 1}))
		break;
	end_connection(&connection);

	connection = requested_between();
	accept_connection(&connection);
	killed(&connection.server);
	expect(&connection.client, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_connection(&connection);

	connection = requested_between();
	accept_connection(&connection);
	killed(&connection.client);
	expect(&connection.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_connection(&connection);
}

int main(void)
{
	test_connect_and_disconnect();
	test_reject();
	test_nobody_listens();
	test_port_moves();
	test_strangers();
	test_one_seed();
	test_many();
	test_death();
	return 0;
}
