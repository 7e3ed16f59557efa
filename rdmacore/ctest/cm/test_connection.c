/* Connection management between two ids: the events of each side for each course of a connection. */
#include <arpa/inet.h>
#include <poll.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "soft/base/clock.h"
#include "soft/cm/id.h"

#define PORT 7011

static void test_establish_and_disconnect(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);

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
	struct setup setup = requested(provider, PORT);
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

/* The messages to the peer of a destroyed id, in each state. */
static void test_destroy_in_every_state(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);

	destroy_id(&setup, &setup.client); /* REQ sent: REJ 4, of which an unaccepted child gets no event */
	expect_silence(setup.passive);
	if (on_soft("when a message arrives"))
		CHECK(accept_request(&setup) == -1 && errno == EINVAL);
	finish(&setup);

	setup = requested(provider, PORT);
	destroy_id(&setup, &setup.child);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	finish(&setup);

	setup = requested(provider, PORT);
	CHECK(!accept_request(&setup));
	destroy_id(&setup, &setup.child); /* REP sent */
	expect_status(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	finish(&setup);

	setup = requested(provider, PORT);
	CHECK(!accept_request(&setup));
	wait_readable(setup.active);
	destroy_id(&setup, &setup.client); /* REP received */
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_REJECTED, 28);
	finish(&setup);

	setup = requested(provider, PORT);
	establish(&setup);
	destroy_id(&setup, &setup.client);
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	finish(&setup);
}

static void test_listener_goes_with_unread_requests(struct core_provider *provider)
{
	struct rdma_conn_param param = usual_param();
	struct setup setup = requested(provider, PORT);
	struct rdma_cm_id *second = resolved_client(provider, setup.active, PORT);

	CHECK(!provider->rdma_connect(second, &param));
	wait_readable(setup.passive);
	destroy_id(&setup, &setup.listener);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	expect_silence(setup.passive);
	CHECK(!provider->rdma_destroy_id(second));
	finish(&setup);
}

/* Requests that were dropped together do not come again together; on the virtual clock to the millisecond. */
static void test_retries_spread(struct core_provider *provider)
{
	enum { CLIENTS = 32 };
	const uint64_t wait = 6144 * SOFT_MILLISECOND;
	struct setup setup = connecting(provider, PORT); /* its backlog is full */
	struct rdma_cm_id *clients[CLIENTS];
	struct soft_clock clock;
	uint64_t began, last = 0;
	bool in_order = true;

	soft_clock_wall(&clock);
	began = clock.now(&clock);
	for (int client = 0; client < CLIENTS; client++) {
		struct rdma_conn_param param = usual_param();
		uint64_t deadline;

		clients[client] = resolved_client(provider, setup.active, PORT);
		CHECK(!provider->rdma_connect(clients[client], &param));
		if (!client) /* it is the second that a backlog of two holds */
			continue;
		deadline = soft_id(clients[client])->timer.deadline;
		CHECK(deadline >= began + wait && deadline <= clock.now(&clock) + wait + wait / 16);
		in_order &= deadline >= last;
		last = deadline;
	}
	CHECK(!in_order);
	for (int client = 0; client < CLIENTS; client++)
		CHECK(!provider->rdma_destroy_id(clients[client]));
	take_request(&setup);
	finish(&setup);
}

/* A full backlog drops the request without a word. */
static void test_backlog(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);
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
	struct setup setup = requested(provider, PORT);
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
	struct setup setup = requested(provider, PORT);

	CHECK(bind_error(provider, setup.passive, INADDR_LOOPBACK, PORT) == EADDRINUSE);
	CHECK(bind_error(provider, setup.passive, INADDR_ANY, PORT) == EADDRNOTAVAIL);
	CHECK(bind_error(provider, setup.passive, INADDR_LOOPBACK + 1, PORT) == 0);
	CHECK(bind_error(provider, setup.passive, INADDR_LOOPBACK, 0) == 0);
	CHECK(bind_error(provider, setup.passive, 0xc0000201, PORT) == EADDRNOTAVAIL);
	CHECK(provider->rdma_listen(setup.client, 1) == -1 && errno == EINVAL);
	finish(&setup);
}

/*
 * rdma_create_qp(3): "the protection domain must be for that same device", as the id has it open: one of another
 * opening of the device is as foreign as one of another device.
 */
static void test_foreign_domain(struct core_provider *provider)
{
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
						.max_recv_sge = 1}, .qp_type = IBV_QPT_RC};
	struct rdma_event_channel *channel = create_channel(provider);
	struct sockaddr_storage address = local_address(PORT);
	struct ibv_context *other;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&address));
	other = provider->ibv_open_device(id->verbs->device);
	CHECK(other);
	pd = provider->ibv_alloc_pd(other);
	CHECK(pd);
	REFUSED(provider->rdma_create_qp(id, pd, &attr), EINVAL);
	CHECK(!id->qp && !id->send_cq && !id->recv_cq);
	CHECK(!provider->ibv_dealloc_pd(pd));
	CHECK(!provider->ibv_close_device(other));
	CHECK(!provider->rdma_destroy_id(id));
	provider->rdma_destroy_event_channel(channel);
}

/* A thread asks for an event of a channel that another one has just destroyed. librdmacm reads freed memory then. */
static void test_destroyed_channel(struct core_provider *provider)
{
	struct rdma_event_channel *channel = provider->rdma_create_event_channel();
	struct rdma_cm_event *event;

	CHECK(channel);
	provider->rdma_destroy_event_channel(channel);
	errno = 0;
	CHECK(provider->rdma_get_cm_event(channel, &event) == -1 && errno == EBADF);
	provider->rdma_destroy_event_channel(channel);
}

int main(void)
{
	struct core_provider *provider = open_provider();

	test_establish_and_disconnect(provider);
	test_reject(provider);
	test_nobody_listens(provider);
	test_destroy_in_every_state(provider);
	test_listener_goes_with_unread_requests(provider);
	if (on_soft("when a message arrives")) {
		test_backlog(provider);
		test_retries_spread(provider);
	}
	test_limits(provider);
	test_foreign_domain(provider);
	if (on_soft("loopback addresses"))
		test_ports(provider);
	if (on_soft("destroyed event channels"))
		test_destroyed_channel(provider);
	close_provider(provider);
	return 0;
}
