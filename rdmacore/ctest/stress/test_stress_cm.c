/*
 * Servers accept, reject, drop or end connections at random, and clients connect and leave at any moment, while the
 * device is removed and returns. Each id gets only events that are allowed, each once, and the data of an event is
 * that of its own peer. A message arrives over each established connection, and nothing is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "ctest/stress/stress.h"
#include "ctest/support/bare.h"
#include "ctest/support/check.h"

#define SERVERS 4
#define CLIENTS 12
#define PORT 7121
#define BACKLOG 4096

/* How a client identifies itself; the answer is the same. */
struct greeting {
	uint64_t client, number;
};

static _Atomic unsigned int clients_left;

/* The events of an id so far, each at most once. */
struct heard {
	unsigned int events; /* a bit each */
	struct greeting greeting;
};

#define BIT(type) (1u << RDMA_CM_EVENT_##type)

/* after: one of these came before, unless there are none. */
static void hear(struct heard *heard, const struct rdma_cm_event *event, unsigned int after)
{
	unsigned int bit = 1u << event->event;

	if (heard->events & bit || (after && !(heard->events & after)))
		fprintf(stderr, "event %d after %#x\n", event->event, heard->events);
	CHECK(!(heard->events & bit) && (!after || heard->events & after));
	heard->events |= bit;
}

/* The next event, or NULL after that many milliseconds; the descriptor is readable whenever there is an event. */
static struct rdma_cm_event *next_event(struct core_provider *provider, struct rdma_event_channel *channel,
					int milliseconds)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	int ready = poll(&readable, 1, milliseconds);

	if (!provider->rdma_get_cm_event(channel, &event)) {
		CHECK(ready == 1 || poll(&readable, 1, 0) >= 0);
		return event;
	}
	CHECK(errno == EAGAIN);
	return NULL;
}

static struct rdma_event_channel *make_channel(struct core_provider *provider)
{
	struct rdma_event_channel *channel = create_channel(provider);

	CHECK(!fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	return channel;
}

static struct rdma_conn_param param_of(const struct greeting *greeting)
{
	return (struct rdma_conn_param){.responder_resources = 1, .initiator_depth = 1, .retry_count = 2,
					.rnr_retry_count = 7, .private_data = greeting,
					.private_data_len = sizeof(*greeting)};
}

static void check_greeting(const struct rdma_cm_event *event, const struct greeting *expected)
{
	CHECK(event->param.conn.private_data_len >= sizeof(*expected));
	CHECK(!memcmp(event->param.conn.private_data, expected, sizeof(*expected)));
}

/* False: its device is gone. */
static bool make_qp(struct core_provider *provider, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.cap = {4, 4, 1, 1, 64}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};

	if (!provider->rdma_create_qp(id, NULL, &attr))
		return true;
	CHECK(errno == EIO || errno == ENXIO || errno == EINVAL);
	return false;
}

/* --- servers -------------------------------------------------------------------------------------- */

struct child {
	struct rdma_cm_id *id;
	struct heard heard;
	struct child *next, **link;
	struct ibv_mr *mr;
	struct greeting message; /* what the client sends */
};

struct server {
	struct stress_thread *thread;
	struct core_provider *provider;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct child *children;
};

static void check_message(struct child *child)
{
	struct ibv_wc wc;

	while (child->id->qp && ibv_poll_cq(child->id->recv_cq, 1, &wc) == 1)
		if (wc.status == IBV_WC_SUCCESS)
			CHECK(!memcmp(&child->message, &child->heard.greeting, sizeof(child->message)));
}

static void free_child(struct server *server, struct child *child)
{
	check_message(child);
	if (child->id->qp)
		server->provider->rdma_destroy_qp(child->id);
	if (child->mr)
		CHECK(!server->provider->ibv_dereg_mr(child->mr));
	CHECK(!server->provider->rdma_destroy_id(child->id));
	*child->link = child->next;
	if (child->next)
		child->next->link = child->link;
	free(child);
}

/* A queue pair with a receive for the one message. */
static bool prepare(struct server *server, struct child *child)
{
	struct ibv_sge sge = {(uintptr_t)&child->message, sizeof(child->message), 0};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	int error;

	if (!make_qp(server->provider, child->id))
		return false;
	child->mr = server->provider->ibv_reg_mr(child->id->pd, &child->message, sizeof(child->message),
						 IBV_ACCESS_LOCAL_WRITE);
	if (!child->mr)
		return false;
	sge.lkey = child->mr->lkey;
	error = ibv_post_recv(child->id->qp, &wr, &bad);
	CHECK(!error || error == EIO);
	return !error;
}

static void answer(struct server *server, struct child *child)
{
	struct rdma_conn_param param = param_of(&child->heard.greeting);
	int result;

	switch (stress_below(server->thread, 6)) {
	case 0:
		free_child(server, child);
		return;
	case 1:
		result = server->provider->rdma_reject(child->id, param.private_data, param.private_data_len);
		CHECK(!result || errno == EINVAL || errno == ENXIO);
		free_child(server, child);
		return;
	case 2: /* later, or never */
		return;
	}
	if (!prepare(server, child) || server->provider->rdma_accept(child->id, &param))
		free_child(server, child); /* the client has left, or the device */
}

static void take_request(struct server *server, struct rdma_cm_event *event)
{
	struct child *child = calloc(1, sizeof(*child));

	CHECK(child && event->listen_id == server->listener);
	child->id = event->id;
	child->id->context = child;
	CHECK(event->param.conn.private_data_len >= sizeof(child->heard.greeting));
	memcpy(&child->heard.greeting, event->param.conn.private_data, sizeof(child->heard.greeting));
	child->next = server->children;
	child->link = &server->children;
	if (child->next)
		child->next->link = &child->next;
	server->children = child;
	CHECK(!server->provider->rdma_ack_cm_event(event));
	answer(server, child);
}

/* Whether the server must start again: its device was removed. */
static bool serve(struct server *server, struct rdma_cm_event *event)
{
	enum rdma_cm_event_type type = event->event;
	struct rdma_cm_id *id = event->id;
	struct child *child = id->context;

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		take_request(server, event);
		return false;
	}
	if (id == server->listener) {
		CHECK(type == RDMA_CM_EVENT_DEVICE_REMOVAL);
		CHECK(!server->provider->rdma_ack_cm_event(event));
		return true;
	}
	hear(&child->heard, event, type == RDMA_CM_EVENT_TIMEWAIT_EXIT ? BIT(DISCONNECTED) : 0);
	CHECK(!server->provider->rdma_ack_cm_event(event));
	if (type == RDMA_CM_EVENT_ESTABLISHED && stress_below(server->thread, 4))
		return false;
	if (type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_DISCONNECTED)
		server->provider->rdma_disconnect(id); /* whatever has become of it meanwhile */
	if (type != RDMA_CM_EVENT_ESTABLISHED)
		free_child(server, child);
	return false;
}

/* False: the device is away, or has just gone. */
static bool begin_server(struct server *server)
{
	struct sockaddr_storage address = local_address((uint16_t)(PORT + server->thread->number));
	struct core_provider *provider = server->provider;

	server->channel = make_channel(provider);
	CHECK(!provider->rdma_create_id(server->channel, &server->listener, NULL, RDMA_PS_TCP));
	if (!provider->rdma_bind_addr(server->listener, (struct sockaddr *)&address) &&
	    !provider->rdma_listen(server->listener, BACKLOG))
		return true;
	CHECK(errno == ENODEV || errno == ENXIO);
	return false;
}

/* Requests that were not read go with the listener. */
static void end_server(struct server *server)
{
	CHECK(!server->provider->rdma_destroy_id(server->listener));
	while (server->children)
		free_child(server, server->children);
	server->provider->rdma_destroy_event_channel(server->channel);
}

static void be_server(struct stress_thread *thread)
{
	while (atomic_load(&clients_left)) {
		struct server server = {.thread = thread, .provider = thread->stress->provider};
		unsigned int requests = 50 + stress_below(thread, 1000);
		bool over;

		stress_does(thread, "begins to listen");
		over = !begin_server(&server);
		stress_does(thread, "serves");
		while (!over && requests-- && atomic_load(&clients_left)) {
			struct rdma_cm_event *event = next_event(server.provider, server.channel, 10);

			stress_progresses(thread);
			over = event && serve(&server, event);
			/* Children without events are destroyed. */
			if (!over && !event && server.children)
				free_child(&server, server.children);
		}
		stress_does(thread, "ends its listener");
		end_server(&server);
		thread->rounds++;
	}
}

/* --- clients -------------------------------------------------------------------------------------- */

struct client {
	struct stress_thread *thread;
	struct core_provider *provider;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct heard heard;
};

#define AFTER_CONNECT (BIT(ESTABLISHED) | BIT(REJECTED) | BIT(UNREACHABLE) | BIT(CONNECT_ERROR))

/* Look at the next event; 0 when there was none in that time. */
static unsigned int listen_once(struct client *client, int milliseconds)
{
	struct rdma_cm_event *event = next_event(client->provider, client->channel, milliseconds);
	unsigned int bit;

	if (!event)
		return 0;
	CHECK(event->id == client->id);
	bit = 1u << event->event;
	hear(&client->heard, event,
	     bit == BIT(ROUTE_RESOLVED) ? BIT(ADDR_RESOLVED) :
	     bit & (AFTER_CONNECT & ~BIT(CONNECT_ERROR)) ? BIT(ROUTE_RESOLVED) :
	     bit == BIT(DISCONNECTED) ? BIT(ESTABLISHED) :
	     bit == BIT(TIMEWAIT_EXIT) ? BIT(DISCONNECTED) | BIT(REJECTED) : 0);
	if (bit == BIT(ESTABLISHED) || (bit == BIT(REJECTED) && event->status == 28)) /* by the consumer */
		if (event->param.conn.private_data_len &&
		    ((const struct greeting *)event->param.conn.private_data)->number)
			check_greeting(event, &client->heard.greeting);
	CHECK(!client->provider->rdma_ack_cm_event(event));
	client->thread->rounds++;
	return bit;
}

/* Whether one of wanted came; false if the device was removed or the limit was reached. */
static bool gets_event(struct client *client, unsigned int wanted, const char *what)
{
	const unsigned int ends = BIT(DEVICE_REMOVAL) | BIT(ADDR_ERROR) | BIT(ROUTE_ERROR);

	stress_does(client->thread, what);
	while (!(client->heard.events & (wanted | ends)))
		listen_once(client, 20);
	return client->heard.events & wanted && !(client->heard.events & ends);
}

/* Sometimes it leaves in the middle. */
static bool leaves(struct client *client)
{
	return !stress_below(client->thread, 8);
}

static void send_message(struct client *client)
{
	struct ibv_sge sge = {(uintptr_t)&client->heard.greeting, sizeof(client->heard.greeting), 0};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED}, *bad;
	int error = ibv_post_send(client->id->qp, &wr, &bad);

	CHECK(!error || error == EIO);
}

static void connect_and_leave(struct client *client)
{
	struct sockaddr_storage address =
		local_address((uint16_t)(PORT + stress_below(client->thread, SERVERS)));
	struct core_provider *provider = client->provider;
	struct rdma_conn_param param = param_of(&client->heard.greeting);

	if (provider->rdma_resolve_addr(client->id, NULL, (struct sockaddr *)&address, 2000)) {
		CHECK(errno == ENODEV || errno == ENXIO);
		return;
	}
	if (leaves(client) || !gets_event(client, BIT(ADDR_RESOLVED), "waits for its address"))
		return;
	if (provider->rdma_resolve_route(client->id, 2000)) {
		CHECK(errno == ENXIO);
		return;
	}
	if (leaves(client) || !gets_event(client, BIT(ROUTE_RESOLVED), "waits for its route") ||
	    !make_qp(provider, client->id))
		return;
	if (provider->rdma_connect(client->id, &param)) {
		CHECK(errno == ENXIO || errno == EIO);
		return;
	}
	if (leaves(client) || !gets_event(client, AFTER_CONNECT, "waits for an answer to its request") ||
	    !(client->heard.events & BIT(ESTABLISHED)))
		return;
	send_message(client);
	if (stress_below(client->thread, 2))
		listen_once(client, 5);
	if (leaves(client) || provider->rdma_disconnect(client->id))
		return;
	if (stress_below(client->thread, 2))
		gets_event(client, BIT(DISCONNECTED), "waits for the end of its connection");
}

static void be_client(struct stress_thread *thread)
{
	while (stress_goes_on(thread->stress)) {
		struct client client = {.thread = thread, .provider = thread->stress->provider};

		client.heard.greeting = (struct greeting){thread->number, 1 + soft_random_next(&thread->random) / 2};
		stress_does(thread, "makes an id");
		client.channel = make_channel(client.provider);
		CHECK(!client.provider->rdma_create_id(client.channel, &client.id, NULL, RDMA_PS_TCP));
		connect_and_leave(&client);
		stress_does(thread, "destroys its id");
		if (client.id->qp)
			client.provider->rdma_destroy_qp(client.id);
		CHECK(!client.provider->rdma_destroy_id(client.id));
		client.provider->rdma_destroy_event_channel(client.channel);
	}
	atomic_fetch_sub(&clients_left, 1);
}

int main(int count, char **arguments)
{
	struct stress stress;

	stress_open(&stress, count, arguments);
	atomic_store(&clients_left, CLIENTS);
	for (unsigned int server = 0; server < SERVERS; server++)
		stress_add(&stress, "server", server, be_server);
	for (unsigned int client = 0; client < CLIENTS; client++)
		stress_add(&stress, "client", client, be_client);
	stress_add(&stress, "remover", 0, stress_remove_device);
	stress_run(&stress);
	stress_close(&stress);
	return 0;
}
