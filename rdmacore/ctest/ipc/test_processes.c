/* Ids of two processes connect, disconnect, and are killed. */
#include <arpa/inet.h>
#include <poll.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/process.h"

#define PORT 7471

/* A connection between two, without queue pairs. */
struct connection {
	struct process server, client;
	struct rdma_cm_id *listener, *child, *id;
};

static struct connection requested_between(void)
{
	struct connection connection = {.server = process_start(1), .client = process_start(2)};

	connection.listener = process_listen(&connection.server, PORT);
	connection.id = process_connect(&connection.client, PORT);
	connection.child = process_request(&connection.server);
	return connection;
}

static void accept_connection(struct connection *connection)
{
	struct process *client = &connection->client;
	struct rdma_cm_event *event;

	process_accept(&connection->server, connection->child);
	event = expect_event(client->provider, client->channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(event->param.conn.private_data_len == 196 && !memcmp(event->param.conn.private_data, "welcome\0", 8));
	CHECK(!client->provider->rdma_ack_cm_event(event));
	CHECK(!client->provider->rdma_establish(connection->id));
	process_expect(&connection->server, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void end_connection(struct connection *connection)
{
	if (connection->id)
		process_destroy(&connection->client, connection->id);
	if (connection->child)
		process_destroy(&connection->server, connection->child);
	if (connection->listener)
		process_destroy(&connection->server, connection->listener);
	process_end(&connection->client);
	process_end(&connection->server);
}

/* Either side may disconnect. */
static void test_connect_and_disconnect(void)
{
	for (int from_server = 0; from_server < 2; from_server++) {
		struct connection connection = requested_between();
		struct process *first = from_server ? &connection.server : &connection.client;
		struct process *second = from_server ? &connection.client : &connection.server;

		accept_connection(&connection);
		CHECK(!first->provider->rdma_disconnect(from_server ? connection.child : connection.id));
		process_expect(second, RDMA_CM_EVENT_DISCONNECTED, 0);
		CHECK(!second->provider->rdma_disconnect(from_server ? connection.id : connection.child));
		process_expect(first, RDMA_CM_EVENT_DISCONNECTED, 0);
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

/* No id has the port, an id has it and does not listen, or an id listens at another address. */
static void test_nobody_listens(void)
{
	struct process server = process_start(1), client = process_start(2);
	struct rdma_cm_id *id = process_connect(&client, PORT), *bound;
	struct sockaddr_storage address = local_address(PORT);

	process_expect(&client, RDMA_CM_EVENT_REJECTED, 8);
	process_destroy(&client, id);
	bound = process_id(&server, RDMA_PS_TCP);
	CHECK(!server.provider->rdma_bind_addr(bound, (struct sockaddr *)&address));
	id = process_connect(&client, PORT);
	process_expect(&client, RDMA_CM_EVENT_REJECTED, 8);
	process_destroy(&client, id);
	process_destroy(&server, bound);

	((struct sockaddr_in *)(void *)&address)->sin_addr.s_addr = htonl(0x7f000009);
	bound = process_id(&server, RDMA_PS_TCP);
	CHECK(!server.provider->rdma_bind_addr(bound, (struct sockaddr *)&address));
	CHECK(!server.provider->rdma_listen(bound, 0));
	id = process_connect(&client, PORT);
	process_expect(&client, RDMA_CM_EVENT_REJECTED, 28);
	process_destroy(&client, id);
	process_destroy(&server, bound);
	process_end(&client);
	process_end(&server);
}

/*
 * A listener that starts only now, because its peer was quick, is found; so is one that the client has connected to
 * before. If this thread waits for long, the request is rejected, and the test repeats it.
 */
static void test_late_listener(void)
{
	struct process server = process_start(1), client = process_start(2);
	int found = 0;

	for (int round = 0; found < 3; round++) {
		struct rdma_cm_id *id = process_connect(&client, PORT), *listening = process_listen(&server, PORT);
		struct pollfd channels[2] = {{server.channel->fd, POLLIN, 0}, {client.channel->fd, POLLIN, 0}};

		CHECK(round < 100);
		CHECK(poll(channels, 2, 20000) > 0);
		if (channels[0].revents) {
			process_destroy(&server, process_request(&server));
			process_expect(&client, RDMA_CM_EVENT_REJECTED, 28);
			found++;
		} else {
			process_expect(&client, RDMA_CM_EVENT_REJECTED, 8);
		}
		process_destroy(&client, id);
		process_destroy(&server, listening);
	}
	process_end(&client);
	process_end(&server);
}

/* The port goes from one process to another, and a connection to the first is still there. */
static void test_port_moves(void)
{
	struct connection connection = requested_between();
	struct process other = process_start(3);
	struct rdma_cm_id *listening, *id, *child;

	accept_connection(&connection);
	process_destroy(&connection.server, connection.listener);
	connection.listener = NULL;
	id = process_connect(&connection.client, PORT);
	process_expect(&connection.client, RDMA_CM_EVENT_REJECTED, 8);
	process_destroy(&connection.client, id);

	listening = process_listen(&other, PORT);
	id = process_connect(&connection.client, PORT);
	child = process_request(&other);
	process_destroy(&connection.client, id);
	process_destroy(&other, child);
	process_destroy(&other, listening);
	process_end(&other);
	end_connection(&connection);
}

/* Fabrics of other names are elsewhere. */
static void test_foreign_packets(void)
{
	struct process server = process_start(1), client = {.provider = process_open("elsewhere", 2)};
	struct rdma_cm_id *listening = process_listen(&server, PORT), *id, *same_port;

	client.channel = create_channel(client.provider);
	id = process_connect(&client, PORT);
	process_expect(&client, RDMA_CM_EVENT_REJECTED, 8);
	same_port = process_listen(&client, PORT);
	process_destroy(&client, same_port);
	process_destroy(&client, id);
	process_destroy(&server, listening);
	process_end(&client);
	process_end(&server);
}

/* Two processes with the same seed draw the same numbers, and are still distinguished. */
static void test_one_seed(void)
{
	struct process server = process_start(1), clients[2] = {process_start(2), process_start(2)};
	struct rdma_cm_id *listening = process_listen(&server, PORT), *ids[2], *children[2];

	for (int index = 0; index < 2; index++) {
		ids[index] = process_connect(&clients[index], PORT);
		children[index] = process_request(&server);
	}
	for (int index = 0; index < 2; index++) {
		process_destroy(&clients[index], ids[index]);
		process_destroy(&server, children[index]);
		process_end(&clients[index]);
	}
	process_destroy(&server, listening);
	process_end(&server);
}

static void test_many(void)
{
	enum { MANY = 1000 };
	struct process server = process_start(1), client = process_start(2);
	struct rdma_cm_id *listening = process_listen(&server, PORT), *ids[MANY], *children[MANY];

	for (int index = 0; index < MANY; index++)
		ids[index] = process_connect(&client, PORT);
	for (int index = 0; index < MANY; index++)
		children[index] = process_request(&server);
	for (int index = 0; index < MANY; index++)
		process_accept(&server, children[index]);
	for (int index = 0; index < MANY; index++) {
		struct rdma_cm_event *event =
			expect_event(client.provider, client.channel, RDMA_CM_EVENT_CONNECT_RESPONSE);

		CHECK(!client.provider->rdma_establish(event->id));
		CHECK(!client.provider->rdma_ack_cm_event(event));
	}
	for (int index = 0; index < MANY; index++)
		process_expect(&server, RDMA_CM_EVENT_ESTABLISHED, 0);
	for (int index = 0; index < MANY; index++)
		process_destroy(&client, ids[index]);
	for (int index = 0; index < MANY; index++)
		process_expect(&server, RDMA_CM_EVENT_DISCONNECTED, 0);
	for (int index = 0; index < MANY; index++)
		process_destroy(&server, children[index]);
	process_destroy(&server, listening);
	process_end(&client);
	process_end(&server);
}

static void make_queue_pair(struct process *process, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_recv_wr receive = {.wr_id = 7}, *bad;

	CHECK(!process->provider->rdma_create_qp(id, NULL, &attr));
	CHECK(!ibv_post_recv(id->qp, &receive, &bad));
}

/* An empty message, which has come. */
static void send_between(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	struct ibv_send_wr send = {.wr_id = 8, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;

	CHECK(!ibv_post_send(from->qp, &send, &bad));
	wc = poll_one(to->recv_cq);
	CHECK(wc.wr_id == 7 && wc.status == IBV_WC_SUCCESS);
}

/*
 * A connection ends as soon as its last message has arrived. The end, which the connection manager reports, must not
 * arrive before the acknowledgement. The sender polls and so receives itself; it sees its request completed, not
 * flushed.
 */
static void test_end_behind_acknowledgement(void)
{
	struct process server = process_start(1), client = process_start(2);
	struct rdma_cm_id *listening = process_listen(&server, PORT);
	struct ibv_wc wc;

	for (int round = 0; round < 50; round++) {
		struct rdma_cm_id *id = process_resolve(&client, RDMA_PS_TCP, PORT), *child;
		struct rdma_cm_event *event;

		make_queue_pair(&client, id);
		CHECK(!client.provider->rdma_connect(id, &(struct rdma_conn_param){.retry_count = 7}));
		event = expect_event(server.provider, server.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		child = event->id;
		CHECK(!server.provider->rdma_ack_cm_event(event));
		make_queue_pair(&server, child);
		CHECK(!server.provider->rdma_accept(child, NULL));
		process_expect(&client, RDMA_CM_EVENT_ESTABLISHED, 0);
		process_expect(&server, RDMA_CM_EVENT_ESTABLISHED, 0);
		for (int spin = 0; spin < 100; spin++)
			CHECK(!ibv_poll_cq(id->recv_cq, 1, &wc) && !ibv_poll_cq(child->recv_cq, 1, &wc));
		send_between(child, id);
		CHECK(poll_one(child->send_cq).status == IBV_WC_SUCCESS);
		send_between(id, child);
		CHECK(!server.provider->rdma_disconnect(child));
		process_expect(&client, RDMA_CM_EVENT_DISCONNECTED, 0);
		CHECK(!client.provider->rdma_disconnect(id));
		wc = poll_one(id->send_cq);
		CHECK(wc.wr_id == 8 && wc.status == IBV_WC_SUCCESS);
		process_expect(&server, RDMA_CM_EVENT_DISCONNECTED, 0);
		client.provider->rdma_destroy_qp(id);
		server.provider->rdma_destroy_qp(child);
		process_destroy(&client, id);
		process_destroy(&server, child);
	}
	process_destroy(&server, listening);
	process_end(&server);
	process_end(&client);
}

/* A process is killed at each moment: the other side gets what the kernel of the killed process would have sent. */
static void test_death(void)
{
	struct connection connection = requested_between();

	process_kill(&connection.server); /* with the request unanswered */
	process_expect(&connection.client, RDMA_CM_EVENT_REJECTED, 28);
	end_connection(&connection);

	connection = requested_between();
	process_kill(&connection.client);
	process_wait_alone(&connection.server);
	REFUSED(connection.server.provider->rdma_accept(connection.child, &(struct rdma_conn_param){.qp_num = 1}), EINVAL);
	end_connection(&connection);

	connection = requested_between();
	process_accept(&connection.server, connection.child);
	process_kill(&connection.client); /* with the reply unread */
	process_expect(&connection.server, RDMA_CM_EVENT_REJECTED, 28);
	end_connection(&connection);

	connection = requested_between();
	process_accept(&connection.server, connection.child);
	process_expect(&connection.client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	process_kill(&connection.server); /* with the reply unanswered */
	process_expect(&connection.client, RDMA_CM_EVENT_REJECTED, 28);
	end_connection(&connection);

	connection = requested_between();
	accept_connection(&connection);
	process_kill(&connection.server);
	process_expect(&connection.client, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_connection(&connection);

	connection = requested_between();
	accept_connection(&connection);
	process_kill(&connection.client);
	process_expect(&connection.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_connection(&connection);

	connection = requested_between();
	accept_connection(&connection);
	CHECK(!connection.client.provider->rdma_disconnect(connection.id));
	process_kill(&connection.server); /* after a DREQ */
	process_expect(&connection.client, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_connection(&connection);
}

/* Connections of other processes continue. */
static void test_death_of_one(void)
{
	struct connection connection = requested_between();
	struct process other = process_start(3);
	struct rdma_cm_id *id = process_connect(&other, PORT), *child = process_request(&connection.server);

	accept_connection(&connection);
	process_kill(&other);
	process_expect(&other, RDMA_CM_EVENT_REJECTED, 28);
	CHECK(!connection.client.provider->rdma_disconnect(connection.id));
	process_expect(&connection.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	process_destroy(&connection.server, child);
	process_destroy(&other, id);
	process_end(&other);
	end_connection(&connection);
}

/*
 * A datagram service: its queue pair is returned, rejected or unknown, and the requesting end learns of a killed
 * process.
 */
static void test_datagrams(void)
{
	struct process server = process_start(1), client = process_start(2);
	struct rdma_cm_id *listening = process_listen_in(&server, RDMA_PS_UDP, PORT), *ids[3], *child;
	struct rdma_conn_param param = {.qp_num = 77, .private_data = "here", .private_data_len = 4};
	struct rdma_cm_event *event;

	for (int index = 0; index < 3; index++)
		ids[index] = process_connect_in(&client, RDMA_PS_UDP, PORT);
	child = process_request_in(&server, RDMA_PS_UDP);
	CHECK(!server.provider->rdma_accept(child, &param));
	event = expect_event(client.provider, client.channel, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(event->param.ud.qp_num == 77 && event->param.ud.qkey == RDMA_UDP_QKEY);
	CHECK(event->param.ud.private_data_len == 136 && !memcmp(event->param.ud.private_data, "here\0", 5));
	CHECK(!client.provider->rdma_ack_cm_event(event));
	process_destroy(&server, child);
	child = process_request_in(&server, RDMA_PS_UDP);
	CHECK(!server.provider->rdma_reject(child, NULL, 0));
	process_expect(&client, RDMA_CM_EVENT_UNREACHABLE, 2);
	process_destroy(&server, child);
	child = process_request_in(&server, RDMA_PS_UDP);
	process_kill(&server);
	process_expect(&client, RDMA_CM_EVENT_UNREACHABLE, 2);
	process_destroy(&server, child);
	process_destroy(&server, listening);
	process_destroy(&client, ids[2]);
	ids[2] = process_connect_in(&client, RDMA_PS_UDP, PORT);
	process_expect(&client, RDMA_CM_EVENT_UNREACHABLE, 1); /* there is no listener any more */
	for (int index = 0; index < 3; index++)
		process_destroy(&client, ids[index]);
	process_end(&client);
	process_end(&server);
}

int main(void)
{
	test_connect_and_disconnect();
	test_reject();
	test_nobody_listens();
	test_late_listener();
	test_port_moves();
	test_foreign_packets();
	test_one_seed();
	test_many();
	test_end_behind_acknowledgement();
	test_death();
	test_death_of_one();
	test_datagrams();
	return 0;
}
