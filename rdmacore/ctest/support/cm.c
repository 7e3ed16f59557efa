#include "ctest/support/cm.h"

#include <poll.h>

#include "ctest/support/check.h"

struct rdma_cm_id *resolved_client(struct core_provider *provider,
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
struct rdma_conn_param usual_param(void)
{
	static uint32_t qp_num = 4711;

	return (struct rdma_conn_param){.responder_resources = 3, .initiator_depth = 2,
					.retry_count = 9, .rnr_retry_count = 5, .qp_num = qp_num++};
}

struct setup connecting(struct core_provider *provider, uint16_t port)
{
	struct sockaddr_storage address = local_address(port);
	struct rdma_conn_param param = usual_param();
	struct setup setup = {.provider = provider, .qp_num = param.qp_num};

	param.private_data = "hello";
	param.private_data_len = 5;
	setup.passive = create_channel(provider);
	setup.active = create_channel(provider);
	CHECK(!provider->rdma_create_id(setup.passive, &setup.listener, &setup, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(setup.listener, (struct sockaddr *)&address));
	CHECK(!provider->rdma_listen(setup.listener, 2));
	setup.client = resolved_client(provider, setup.active, port);
	CHECK(!provider->rdma_connect(setup.client, &param));
	return setup;
}

void take_request(struct setup *setup)
{
	struct rdma_cm_event *event =
		expect_event(setup->provider, setup->passive, RDMA_CM_EVENT_CONNECT_REQUEST);

	/* Depths change places on the way, retry counts are three bits, data is padded to 56 bytes. */
	CHECK(event->param.conn.responder_resources == 2 && event->param.conn.initiator_depth == 3);
	CHECK(event->param.conn.retry_count == 7 && event->param.conn.rnr_retry_count == 5);
	CHECK(event->param.conn.private_data_len == 56 && event->param.conn.qp_num == setup->qp_num);
	CHECK(!memcmp(event->param.conn.private_data, "hello\0\0", 7));
	setup->child = event->id;
	CHECK(setup->child->verbs && setup->child->pd && setup->child->port_num == 1);
	CHECK(setup->provider->rdma_get_dst_port(setup->child) ==
	      setup->provider->rdma_get_src_port(setup->client));
	CHECK(!setup->provider->rdma_ack_cm_event(event));
}

struct setup requested(struct core_provider *provider, uint16_t port)
{
	struct setup setup = connecting(provider, port);

	take_request(&setup);
	return setup;
}

void finish(struct setup *setup)
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

void destroy_id(struct setup *setup, struct rdma_cm_id **id)
{
	CHECK(!setup->provider->rdma_destroy_id(*id));
	*id = NULL;
}

void expect_status(struct setup *setup, struct rdma_event_channel *channel,
		   enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = expect_event(setup->provider, channel, type);

	if (event->status != status)
		fprintf(stderr, "event %d, status %d\n", type, event->status);
	CHECK(event->status == status);
	CHECK(!setup->provider->rdma_ack_cm_event(event));
}

void expect_silence(struct rdma_event_channel *channel)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};

	CHECK(poll(&readable, 1, 0) == 0);
}

int accept_request(struct setup *setup)
{
	struct rdma_conn_param param = usual_param();

	return setup->provider->rdma_accept(setup->child, &param);
}

void establish(struct setup *setup)
{
	CHECK(!accept_request(setup));
	expect_status(setup, setup->active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	CHECK(!setup->provider->rdma_establish(setup->client));
	expect_status(setup, setup->passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect_silence(setup->active);
}
