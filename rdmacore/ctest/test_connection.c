/* Connection management between two ids: what each side hears in every way a connection can go. */
#include <arpa/inet.h>
#include <poll.h>

#include "check.h"
#include "pair.h"

#define PORT 7011

struct setup {
	struct core_provider *provider;
	struct rdma_event_channel *passive, *active;
	struct rdma_cm_id *listener, *client, *child;
};

static struct rdma_cm_id *resolved_client(struct core_provider *provider,
					  struct rdma_event_channel *channel, uint16_t port)
{
	struct sockaddr_storage address = local_address(port);
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
	expect_and_acknowledge(provider, channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!provider->rdma_resolve_route(id, 2000));
	expect_and_acknowledge(provider, channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

/*
 * A number of its own for each: the kernel takes a second connection of the same device and queue pair
 * number for a stale one.
 */
static struct rdma_conn_param usual_param(void)
{
	static uint32_t qp_num = 4711;

	return (struct rdma_conn_param){.responder_resources = 3, .initiator_depth = 2,
					.retry_count = 9, .rnr_retry_count = 5, .qp_num = qp_num++};
}

/* A listener and a client whose request has been read by the listener, without queue pairs. */
static struct setup requested(struct core_provider *provider)
{
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_conn_param param = usual_param();
	struct setup setup = {.provider = provider};
	struct rdma_cm_event *event;

	param.private_data = "hello";
	param.private_data_len = 5;
	setup.passive = create_channel(provider);
	setup.active = create_channel(provider);
	CHECK(!provider->rdma_create_id(setup.passive, &setup.listener, &setup, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(setup.listener, (struct sockaddr *)&address));
	CHECK(!provider->rdma_listen(setup.listener, 2));
	setup.client = resolved_client(provider, setup.active, PORT);
	CHECK(!provider->rdma_connect(setup.client, &param));
	event = expect_event(provider, setup.passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	/* Depths change places on the way, retry counts are three bits, data is padded to 56 bytes. */
	CHECK(event->param.conn.responder_resources == 2 && event->param.conn.initiator_depth == 3);
	CHECK(event->param.conn.retry_count == 7 && event->param.conn.rnr_retry_count == 5);
	CHECK(event->param.conn.private_data_len == 56 && event->param.conn.qp_num == param.qp_num);
	CHECK(!memcmp(event->param.conn.private_data, "hello\0\0", 7));
	setup.child = event->id;
	CHECK(setup.child->verbs && setup.child->pd && setup.child->port_num == 1);
	CHECK(provider->rdma_get_dst_port(setup.child) == provider->rdma_get_src_port(setup.client));
	CHECK(!provider->rdma_ack_cm_event(event));
	return setup;
}

static void finish(struct setup *setup)
{
	if (setup->child)
		CHECK(!setup->provider->rdma_destroy_id(setup->child));
	if (setup->client)
		CHECK(!setup->provider->rdma_destroy_id(setup->client));
	if (setup->listener)
		CHECK(!setup->provider->rdma_destroy_id(setup->listener));
	setup->provider->rdma_destroy_event_channel(setup->active);
	setup->provider->rdma_destroy_event_channel(setup->passive);
}

static void expect_status(struct setup *setup, struct rdma_event_channel *channel,
			  enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = expect_event(setup->provider, channel, type);

	if (event->status != status)
		fprintf(stderr, "event %d, status %d\n", type, event->status);
	CHECK(event->status == status);
	CHECK(!setup->provider->rdma_ack_cm_event(event));
}

static void expect_silence(struct rdma_event_channel *channel)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};

	CHECK(poll(&readable, 1, 0) == 0);
}

static int accept_request(struct setup *setup)
{
	struct rdma_conn_param param = usual_param();

	return setup->provider->rdma_accept(setup->child, &param);
}

/* Without queue pairs: CONNECT_RESPONSE, rdma_establish, ESTABLISHED at the passive side only. */
static void establish(struct setup *setup)
{
	CHECK(!accept_request(setup));
	expect_status(setup, setup->active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	CHECK(!setup->provider->rdma_establish(setup->client));
	expect_status(setup, setup->passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect_silence(setup->active);
}

static void test_establish_and_disconnect(struct core_provider *provider)
{
	struct setup setup = requested(provider);

	establish(&setup);
	CHECK(!provider->rdma_disconnect(setup.child));
	expect_status(&setup, setup.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	expect_silence(setup.passive); /* until the other side disconnects as well */
	CHECK(!provider->rdma_disconnect(setup.client));
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	finish(&setup);
}

static void test_reject(struct core_provider *provider)
{
	struct setup setup = requested(provider);
	struct rdma_conn_param param = usual_param();
	struct rdma_cm_event *event;

	CHECK(!provider->rdma_reject(setup.child, "speak v1", 8));
	event = expect_event(provider, setup.active, RDMA_CM_EVENT_REJECTED);
	CHECK(event->status == 28 && event->param.conn.private_data_len == 148);
	CHECK(!memcmp(event->param.conn.private_data, "speak v1\0", 9));
	CHECK(!provider->rdma_ack_cm_event(event));
	CHECK(provider->rdma_connect(setup.client, &param) == -1 && errno == EINVAL);
	finish(&setup);
}

static void test_nobody_listens(struct core_provider *provider)
{
	struct rdma_conn_param param = usual_param();
	struct setup setup = {.provider = provider};

	setup.passive = create_channel(provider);
	setup.active = create_channel(provider);
	setup.client = resolved_client(provider, setup.active, PORT);
	CHECK(!provider->rdma_connect(setup.client, &param));
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 8);
	finish(&setup);
}

static void destroy(struct setup *setup, struct rdma_cm_id **id)
{
	CHECK(!setup->provider->rdma_destroy_id(*id));
	*id = NULL;
}

/* Section 2.16 of the CM's rules: what the peer of a destroyed id is told. */
static void test_destroy_in_every_state(struct core_provider *provider)
{
	struct setup setup = requested(provider);

	destroy(&setup, &setup.client); /* REQ sent: REJ 4, which an unaccepted child is not told */
	expect_silence(setup.passive);
	/* On a kernel the REJ is on its way, and who comes first nobody can know. */
	if (is_soft(provider))
		CHECK(accept_request(&setup) == -1 && errno == EINVAL);
	finish(&setup);

	setup = requested(provider);
	destroy(&setup, &setup.child);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	finish(&setup);

	setup = requested(provider);
	CHECK(!accept_request(&setup));
	destroy(&setup, &setup.child); /* REP sent */
	expect_status(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	finish(&setup);

	setup = requested(provider);
	CHECK(!accept_request(&setup));
	wait_readable(setup.active);
	destroy(&setup, &setup.client); /* REP received */
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_REJECTED, 28);
	finish(&setup);

	setup = requested(provider);
	establish(&setup);
	destroy(&setup, &setup.client);
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	finish(&setup);
}

static void test_listener_goes_with_unread_requests(struct core_provider *provider)
{
	struct rdma_conn_param param = usual_param();
	struct setup setup = requested(provider);
	struct rdma_cm_id *second = resolved_client(provider, setup.active, PORT);

	CHECK(!provider->rdma_connect(second, &param));
	wait_readable(setup.passive);
	destroy(&setup, &setup.listener);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	expect_silence(setup.passive);
	CHECK(!provider->rdma_destroy_id(second));
	finish(&setup);
}

/* A full backlog drops the request without a word. */
static void test_backlog(struct core_provider *provider)
{
	struct setup setup = requested(provider);
	struct rdma_cm_id *clients[3];

	for (int client = 0; client < 3; client++) {
		struct rdma_conn_param param = usual_param();

		clients[client] = resolved_client(provider, setup.active, PORT);
		CHECK(!provider->rdma_connect(clients[client], &param));
	}
	for (int request = 0; request < 2; request++) {
		struct rdma_cm_event *event =
			expect_event(provider, setup.passive, RDMA_CM_EVENT_CONNECT_REQUEST);
		struct rdma_cm_id *child = event->id;

		CHECK(!provider->rdma_ack_cm_event(event));
		CHECK(!provider->rdma_destroy_id(child));
		expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	}
	expect_silence(setup.passive);
	expect_silence(setup.active);
	for (int client = 0; client < 3; client++)
		CHECK(!provider->rdma_destroy_id(clients[client]));
	finish(&setup);
}

static void test_limits(struct core_provider *provider)
{
	static const char data[200];
	struct setup setup = requested(provider);
	struct rdma_cm_id *other = resolved_client(provider, setup.active, PORT);
	struct rdma_conn_param param = usual_param();

	param.private_data = data;
	param.private_data_len = 57;
	CHECK(provider->rdma_connect(other, &param) == -1 && errno == EINVAL);
	param.private_data_len = 0;
	param.initiator_depth = 129;
	CHECK(provider->rdma_connect(other, &param) == -1 && errno == EINVAL);
	CHECK(provider->rdma_reject(setup.child, data, 149) == -1 && errno == EINVAL);
	param.initiator_depth = 1;
	param.private_data_len = 197;
	/* Too much data to accept with also ends the request (cma.c, rdma_accept). */
	CHECK(provider->rdma_accept(setup.child, &param) == -1 && errno == EINVAL);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	CHECK(!provider->rdma_destroy_id(other));
	finish(&setup);
}

static int bind_error(struct core_provider *provider, struct rdma_event_channel *channel,
		      uint32_t address, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(address)};
	struct rdma_cm_id *id;
	int error;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	error = provider->rdma_bind_addr(id, (struct sockaddr *)&in) ? errno : 0;
	if (!error && !port)
		CHECK(ntohs(provider->rdma_get_src_port(id)) >= 32768);
	CHECK(!provider->rdma_destroy_id(id));
	return error;
}

static void test_ports(struct core_provider *provider)
{
	struct setup setup = requested(provider);

	CHECK(bind_error(provider, setup.passive, INADDR_LOOPBACK, PORT) == EADDRINUSE);
	CHECK(bind_error(provider, setup.passive, INADDR_ANY, PORT) == EADDRNOTAVAIL);
	CHECK(bind_error(provider, setup.passive, INADDR_LOOPBACK + 1, PORT) == 0);
	CHECK(bind_error(provider, setup.passive, INADDR_LOOPBACK, 0) == 0);
	CHECK(bind_error(provider, setup.passive, 0xc0000201, PORT) == EADDRNOTAVAIL);
	CHECK(provider->rdma_listen(setup.client, 1) == -1 && errno == EINVAL);
	finish(&setup);
}

int main(void)
{
	struct core_provider *provider = open_provider();

	test_establish_and_disconnect(provider);
	test_reject(provider);
	test_nobody_listens(provider);
	test_destroy_in_every_state(provider);
	test_listener_goes_with_unread_requests(provider);
	/* When a kernel sees a request, and so whether the backlog was full then, nobody can know. */
	if (is_soft(provider))
		test_backlog(provider);
	test_limits(provider);
	if (is_soft(provider)) /* it names loopback addresses */
		test_ports(provider);
	close_provider(provider);
	return 0;
}
