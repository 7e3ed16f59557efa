/* Port spaces and addresses that are of InfiniBand links, on a RoCE device: how far they get, and what refuses. */
#include <arpa/inet.h>
#include <infiniband/ib.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"

#ifndef AF_IB
#define AF_IB 27
#endif

#define PORT 7061

static struct rdma_cm_id *new_id(struct core_provider *provider, struct rdma_event_channel *channel,
				 enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, space));
	return id;
}

/*
 * IP over InfiniBand does not exist on Ethernet (cma_acquire_dev_by_src_ip of Linux): no address leads to a device.
 * Calls without a device behave as in the other port spaces.
 */
static void test_ipoib(struct core_provider *provider)
{
	struct rdma_event_channel *channel = create_channel(provider);
	struct sockaddr_storage address = local_address(PORT);
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct setup setup = {.provider = provider};
	struct rdma_cm_id *id = new_id(provider, channel, RDMA_PS_IPOIB);

	CHECK(id->qp_type == IBV_QPT_UD);
	REFUSED(provider->rdma_bind_addr(id, (struct sockaddr *)&address), EINVAL);
	CHECK(!id->verbs);
	/* The same by resolution, with an event as the result. The id stays as it was, so it can be repeated. */
	for (int time = 0; time < 2; time++) {
		CHECK(!provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
		expect_status(&setup, channel, RDMA_CM_EVENT_ADDR_ERROR, -EINVAL);
		CHECK(!id->verbs);
	}
	CHECK(!provider->rdma_destroy_id(id));

	id = new_id(provider, channel, RDMA_PS_IPOIB);
	CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&any));
	CHECK(provider->rdma_get_src_port(id) == htons(PORT) && !id->verbs);
	CHECK(!provider->rdma_listen(id, 1));
	CHECK(!provider->rdma_destroy_id(id));
	provider->rdma_destroy_event_channel(channel);
}

/* The device's first GID with another interface id: of its subnet, and without an owner. */
static struct sockaddr_ib neighbour(struct core_provider *provider)
{
	struct sockaddr_ib address = {.sib_family = AF_IB, .sib_pkey = htobe16(0xffff),
				      .sib_sid_mask = htobe64(UINT64_MAX)};
	struct ibv_context **devices;
	union ibv_gid gid;
	int count;

	core_select(provider);
	devices = provider->rdma_get_devices(&count);
	CHECK(devices && count == 1 && !provider->ibv_query_gid(devices[0], 1, 0, &gid));
	provider->rdma_free_devices(devices);
	gid.raw[15] ^= 0x55;
	memcpy(&address.sib_addr, &gid, sizeof(gid));
	return address;
}

/*
 * On Linux an address of InfiniBand leads to a RoCE device by the subnet prefix of its GIDs. It does not lead to a
 * route, which needs a network interface. So there is no private data of 92 bytes here.
 */
static void test_af_ib(struct core_provider *provider)
{
	const enum rdma_port_space spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB};
	struct rdma_event_channel *channel = create_channel(provider);
	struct sockaddr_ib to = neighbour(provider), elsewhere = to, any = to;

	memset(&any.sib_addr, 0, sizeof(any.sib_addr));
	elsewhere.sib_addr.sib_addr32[0] ^= htobe32(0x20000000);
	for (size_t space = 0; space < sizeof(spaces) / sizeof(spaces[0]); space++) {
		struct rdma_cm_id *id = new_id(provider, channel, spaces[space]);

		to.sib_sid = any.sib_sid = elsewhere.sib_sid = htobe64((uint64_t)spaces[space] << 16 | PORT);
		REFUSED(provider->rdma_bind_addr(id, (struct sockaddr *)&to), ENODEV);
		any.sib_sid ^= htobe64(1 << 20); /* not a port space */
		REFUSED(provider->rdma_bind_addr(id, (struct sockaddr *)&any), EPROTONOSUPPORT);
		REFUSED(provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&elsewhere, 2000), ENODEV);
		CHECK(!id->verbs);
		CHECK(!provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000));
		expect_and_acknowledge(provider, channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		CHECK(id->verbs && id->pd && provider->rdma_get_dst_port(id) == htons(PORT));
		REFUSED(provider->rdma_resolve_route(id, 2000), ENODEV);
		CHECK(!provider->rdma_destroy_id(id));

		id = new_id(provider, channel, spaces[space]);
		any.sib_sid ^= htobe64(1 << 20);
		CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&any));
		CHECK(provider->rdma_get_src_port(id) == htons(PORT) && !id->verbs);
		REFUSED(provider->rdma_bind_addr(id, (struct sockaddr *)&any), EINVAL);
		CHECK(!provider->rdma_listen(id, 1));
		CHECK(!provider->rdma_destroy_id(id));
	}
	expect_silence(channel);
	provider->rdma_destroy_event_channel(channel);
}

/*
 * The port space of InfiniBand has connections. With IP addresses their header is in the private data. 56 bytes are
 * the program's, as in the port space of TCP (the 92 are of AF_IB).
 */
static void test_private_data(struct core_provider *provider)
{
	struct rdma_event_channel *channel = create_channel(provider);
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_conn_param param = {.private_data = "", .private_data_len = 57, .qp_num = 4711};
	char data[57] = "";
	struct rdma_cm_id *id = new_id(provider, channel, RDMA_PS_IB);

	param.private_data = data;
	CHECK(id->qp_type == IBV_QPT_RC);
	CHECK(!provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
	expect_and_acknowledge(provider, channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!provider->rdma_resolve_route(id, 2000));
	expect_and_acknowledge(provider, channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	REFUSED(provider->rdma_connect(id, &param), EINVAL);
	param.private_data_len = 56;
	CHECK(!provider->rdma_destroy_id(id));

	id = new_id(provider, channel, RDMA_PS_IB);
	CHECK(!provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
	expect_and_acknowledge(provider, channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!provider->rdma_resolve_route(id, 2000));
	expect_and_acknowledge(provider, channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CHECK(!provider->rdma_connect(id, &param));
	expect_status(&(struct setup){.provider = provider}, channel, RDMA_CM_EVENT_REJECTED, 8);
	CHECK(!provider->rdma_destroy_id(id));
	provider->rdma_destroy_event_channel(channel);
}

int main(void)
{
	struct core_provider *provider = open_provider();

	test_private_data(provider);
	test_ipoib(provider);
	test_af_ib(provider);
	close_provider(provider);
	return 0;
}
