/* The device goes away under ids, queue pairs and contexts, and comes back; its hardware address changes. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"

#define PORT 7051

static int begin(struct core_provider *provider, uint32_t action)
{
	struct core_fault fault = {.action = action};
	int rule = core_fault_add(provider, &fault);

	CHECK(rule >= 0);
	CHECK(core_fault_add(provider, &fault) == -EBUSY);
	return rule;
}

/* Returns how many ids got an event. */
static uint32_t end(struct core_provider *provider, int rule)
{
	uint32_t affected;

	CHECK(!core_fault_remove(provider, rule, &affected));
	CHECK(core_fault_remove(provider, rule, &(uint32_t){0}) == -ENOENT);
	return affected;
}

static struct rdma_cm_id *wildcard_listener(struct core_provider *provider,
					    struct rdma_event_channel *channel, uint16_t port)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&any));
	CHECK(!provider->rdma_listen(id, 4));
	return id;
}

/* Both ends and the listener get the event once. The id on the wildcard address has no device to lose. */
static void test_ids(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);
	struct rdma_event_channel *apart = create_channel(provider);
	struct rdma_cm_id *wildcard = wildcard_listener(provider, apart, PORT + 1);
	struct sockaddr_storage address = local_address(PORT + 2);
	struct rdma_conn_param param = usual_param();
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct rdma_cm_id *idle;
	int mask, rule;

	establish(&setup);
	CHECK(!provider->rdma_create_id(apart, &idle, NULL, RDMA_PS_TCP));
	rule = begin(provider, CORE_FAULT_REMOVE_DEVICE);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	expect_silence(setup.active); /* and no DISCONNECTED, because the peer cannot send it */
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	expect_silence(setup.passive);
	expect_silence(apart);

	REFUSED(provider->rdma_disconnect(setup.client), ENXIO);
	REFUSED(provider->rdma_connect(setup.client, &param), ENXIO);
	REFUSED(provider->rdma_resolve_route(setup.client, 100), ENXIO);
	REFUSED(provider->rdma_accept(setup.child, &param), ENXIO);
	REFUSED(provider->rdma_reject(setup.child, NULL, 0), ENXIO);
	REFUSED(provider->rdma_notify(setup.child, IBV_EVENT_COMM_EST), ENXIO);
	REFUSED(provider->rdma_init_qp_attr(setup.child, &attr, &mask), ENXIO);
	REFUSED(provider->rdma_listen(setup.listener, 1), ENXIO);
	REFUSED(provider->rdma_migrate_id(setup.listener, apart), ENXIO);
	REFUSED(provider->rdma_bind_addr(idle, (struct sockaddr *)&address), ENODEV);
	CHECK(!provider->rdma_resolve_addr(idle, NULL, (struct sockaddr *)&address, 100));
	expect_status(&setup, apart, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);

	CHECK(end(provider, rule) == 3);
	expect_silence(setup.active); /* a removed id stays removed */
	REFUSED(provider->rdma_disconnect(setup.client), ENXIO);
	/* Its port is free, and the same call succeeds on the id that had none. */
	CHECK(!provider->rdma_resolve_addr(idle, NULL, (struct sockaddr *)&address, 100));
	expect_status(&setup, apart, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	CHECK(idle->verbs != setup.client->verbs && idle->pd != setup.client->pd);
	CHECK(!provider->rdma_destroy_id(idle));
	finish(&setup);
	CHECK(!provider->rdma_destroy_id(wildcard));
	provider->rdma_destroy_event_channel(apart);
}

/* A listener on any address serves the device that returns. */
static void test_wildcard(struct core_provider *provider)
{
	struct rdma_event_channel *passive = create_channel(provider), *active = create_channel(provider);
	struct rdma_cm_id *listener = wildcard_listener(provider, passive, PORT);
	struct rdma_conn_param param = usual_param();
	struct rdma_cm_event *event;
	struct rdma_cm_id *client;

	CHECK(end(provider, begin(provider, CORE_FAULT_REMOVE_DEVICE)) == 0);
	client = resolved_client(provider, active, PORT);
	CHECK(!provider->rdma_connect(client, &param));
	event = expect_event(provider, passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(event->id->verbs == client->verbs);
	CHECK(!provider->rdma_destroy_id(client));
	client = event->id;
	CHECK(!provider->rdma_ack_cm_event(event));
	CHECK(!provider->rdma_destroy_id(client));
	CHECK(!provider->rdma_destroy_id(listener));
	provider->rdma_destroy_event_channel(active);
	provider->rdma_destroy_event_channel(passive);
}

/* Pending requests: that of a removed device is not returned, and one that was read has no further events. */
static void test_requests(struct core_provider *provider)
{
	struct setup unread = connecting(provider, PORT), read = requested(provider, PORT + 1);
	int rule = begin(provider, CORE_FAULT_REMOVE_DEVICE);

	expect_status(&unread, unread.active, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	expect_status(&unread, unread.passive, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	expect_silence(unread.passive);
	expect_status(&read, read.passive, RDMA_CM_EVENT_DEVICE_REMOVAL, 0); /* the listener's */
	expect_silence(read.passive);
	REFUSED(accept_request(&read), ENXIO);
	expect_status(&read, read.active, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	CHECK(end(provider, rule) == 4);
	finish(&unread);
	finish(&read);
}

/* The result of a query that was not read cannot be read any more. */
static void test_queries(struct core_provider *provider)
{
	struct rdma_event_channel *channel = create_channel(provider);
	struct setup setup = {.provider = provider};
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_cm_id *resolved, *routed;
	int rule;

	CHECK(!provider->rdma_create_id(channel, &resolved, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_create_id(channel, &routed, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_resolve_addr(routed, NULL, (struct sockaddr *)&address, 100));
	expect_status(&setup, channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	CHECK(!provider->rdma_resolve_route(routed, 100));
	CHECK(!provider->rdma_resolve_addr(resolved, NULL, (struct sockaddr *)&address, 100));
	rule = begin(provider, CORE_FAULT_REMOVE_DEVICE);
	expect_status(&setup, channel, RDMA_CM_EVENT_ROUTE_ERROR, -1);
	expect_status(&setup, channel, RDMA_CM_EVENT_ADDR_ERROR, -1);
	expect_status(&setup, channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	expect_status(&setup, channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	CHECK(end(provider, rule) == 2);
	CHECK(!provider->rdma_destroy_id(resolved));
	CHECK(!provider->rdma_destroy_id(routed));
	provider->rdma_destroy_event_channel(channel);
}

/* The datagram id has joined a group, and the event is not read; its queue pair cannot be attached any more. */
static void test_group(struct core_provider *provider)
{
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1}, .qp_type = IBV_QPT_UD};
	struct rdma_event_channel *channel = create_channel(provider);
	struct sockaddr_storage address = local_address(PORT);
	struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xefc00001)};
	struct setup setup = {.provider = provider};
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_UDP));
	CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&address));
	CHECK(!provider->rdma_create_qp(id, NULL, &attr));
	CHECK(!provider->rdma_join_multicast(id, (struct sockaddr *)&group, NULL));
	CHECK(end(provider, begin(provider, CORE_FAULT_REMOVE_DEVICE)) == 1);
	expect_status(&setup, channel, RDMA_CM_EVENT_MULTICAST_ERROR, -1);
	expect_status(&setup, channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	provider->rdma_destroy_qp(id);
	CHECK(!provider->rdma_destroy_id(id));
	provider->rdma_destroy_event_channel(channel);
}

/* A synchronous call takes the event for its result; the next call returns an error. */
static void test_synchronous(struct core_provider *provider)
{
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_cm_id *listener, *request;
	int rule;

	core_select(provider);
	CHECK(!provider->rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(listener, (struct sockaddr *)&address));
	CHECK(!provider->rdma_listen(listener, 1));
	rule = begin(provider, CORE_FAULT_REMOVE_DEVICE);
	REFUSED(provider->rdma_get_request(listener, &request), ENXIO);
	CHECK(end(provider, rule) == 1);
	CHECK(!provider->rdma_destroy_id(listener));
}

static void expect_fatal(struct core_provider *provider, struct ibv_context *context)
{
	struct ibv_async_event event;
	int flags = fcntl(context->async_fd, F_GETFL);

	CHECK(!fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK));
	CHECK(!provider->ibv_get_async_event(context, &event));
	CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
	provider->ibv_ack_async_event(&event);
	CHECK(provider->ibv_get_async_event(context, &event) == -1 && errno == EAGAIN);
}

#define FAILS(call) CHECK((errno = 0, (call)) == NULL && errno == EIO)

static struct ibv_qp_ex *make_builder(struct end *end)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = end->id->send_cq, .recv_cq = end->id->recv_cq, .cap = {.max_send_wr = 1}, .qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = end->id->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND};
	struct ibv_qp *qp = ibv_create_qp_ex(end->id->verbs, &attr);

	CHECK(qp);
	return (struct ibv_qp_ex *)qp; /* which it begins with */
}

static int build_send(struct ibv_qp_ex *qp)
{
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	return ibv_wr_complete(qp);
}

/* Every command of the context, with objects that were made before. */
static void refuse_commands(struct core_provider *provider, struct end *end)
{
	struct ibv_context *context = end->id->verbs;
	struct ibv_pd *pd = end->id->pd;
	struct ibv_qp_init_attr init = {.send_cq = end->id->send_cq, .recv_cq = end->id->recv_cq,
					.cap = {.max_send_wr = 1}, .qp_type = IBV_QPT_RC};
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	union ibv_gid group = {.raw = {0xff, 0x12, [15] = 1}};
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	char memory[64];

	FAILS(provider->ibv_alloc_pd(context));
	FAILS(provider->ibv_reg_mr(pd, memory, sizeof(memory), 0));
	FAILS(provider->ibv_create_comp_channel(context));
	FAILS(provider->ibv_create_cq(context, 1, NULL, NULL, 0));
	FAILS(provider->ibv_create_qp(pd, &init));
	FAILS(provider->ibv_create_srq(pd, &shared));
	FAILS(provider->ibv_create_ah(pd, &to));
	FAILS(ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	CHECK(provider->ibv_resize_cq(end->id->send_cq, 8) == EIO);
	CHECK(provider->ibv_modify_qp(end->id->qp, &attr, IBV_QP_STATE) == EIO);
	CHECK(provider->ibv_query_qp(end->id->qp, &attr, IBV_QP_STATE, &init) == EIO);
	CHECK(provider->ibv_attach_mcast(end->id->qp, &group, 0) == EIO);
	CHECK(provider->ibv_query_device(context, &device) == EIO);
	CHECK(provider->ibv_query_port(context, 1, (struct _compat_ibv_port_attr *)(void *)&port) == EIO);
	CHECK(provider->ibv_rereg_mr(end->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) ==
	      IBV_REREG_MR_ERR_CMD);
	REFUSED(provider->rdma_disconnect(end->id), EIO); /* of the queue pair, before the kernel is called */
}

/* Requests of a removed queue pair never complete, and it accepts no more. */
static void test_queue_pairs(struct core_provider *provider)
{
	struct pair_options options = {.memory = 64, .depth = 4, .retry = 7, .rnr_retry = 7, .resources = 1};
	struct ibv_context *apart, **list;
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1}, .qp_type = IBV_QPT_RC};
	struct sockaddr_storage address = local_address(PORT);
	struct ibv_qp_ex *builder;
	struct pair pair;
	struct ibv_wc wc;
	struct rdma_cm_id *id;
	int rule, count;

	pair_connect(&pair, provider, PORT, options);
	apart = provider->ibv_open_device(pair.client.id->verbs->device);
	CHECK(apart);
	CHECK(!post_recv(&pair.server, 1, 0, 32));
	CHECK(!post_send(&pair.client, IBV_WR_SEND, 2, 0, 16, &pair.server, 0));
	CHECK(!post_recv(&pair.server, 3, 0, 32));
	builder = make_builder(&pair.client);
	CHECK(build_send(builder) == EINVAL); /* it is in RESET */
	rule = begin(provider, CORE_FAULT_REMOVE_DEVICE);
	CHECK(build_send(builder) == EIO);
	CHECK(!provider->ibv_destroy_qp(&builder->qp_base));
	CHECK(poll_one(pair.server.id->recv_cq).wr_id == 1); /* completed requests stay completed */
	CHECK(poll_one(pair.client.id->send_cq).wr_id == 2);
	CHECK(ibv_poll_cq(pair.server.id->recv_cq, 1, &wc) == 0);
	CHECK(post_send(&pair.client, IBV_WR_SEND, 4, 0, 16, &pair.server, 0) == EIO);
	CHECK(post_recv(&pair.server, 5, 0, 32) == EIO);
	refuse_commands(provider, &pair.client);
	refuse_commands(provider, &pair.server);
	expect_fatal(provider, pair.client.id->verbs);
	expect_fatal(provider, apart);
	CHECK(!provider->rdma_get_devices(&count) && errno == ENODEV);
	CHECK(!provider->ibv_open_device(apart->device) && errno == ENODEV);
	CHECK(end(provider, rule) == 3);

	/* The device that is back is another one. */
	list = provider->rdma_get_devices(&count);
	CHECK(list && count == 1 && list[0] != pair.client.id->verbs && list[0] != apart);
	FAILS(provider->ibv_alloc_pd(apart));
	CHECK(!provider->rdma_create_id(pair.channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&address));
	CHECK(id->verbs == list[0]);
	REFUSED(provider->rdma_create_qp(id, pair.client.id->pd, &attr), EINVAL);
	CHECK(!provider->rdma_create_qp(id, NULL, &attr));
	provider->rdma_destroy_qp(id);
	CHECK(!provider->rdma_destroy_id(id));
	provider->rdma_free_devices(list);
	pair_destroy(&pair);
	CHECK(!provider->ibv_close_device(apart));
}

/* Write, and take completions, until the device is gone. */
static void *work_until_removed(void *argument)
{
	struct pair *pair = argument;
	struct ibv_wc wc;
	int error = 0;

	while (error != EIO) {
		error = post_send(&pair->client, IBV_WR_RDMA_WRITE, 1, 0, 16, &pair->server, 0);
		CHECK(!error || error == ENOMEM || error == EIO);
		ibv_poll_cq(pair->client.id->send_cq, 1, &wc);
	}
	return NULL;
}

/* Create and destroy ids with an address until the device has none left. */
static void *resolve_until_removed(void *argument)
{
	struct core_provider *provider = argument;
	struct sockaddr_storage address = local_address(0);
	struct rdma_event_channel *channel = create_channel(provider);
	struct rdma_cm_id *id;
	int error = 0;

	while (!error) {
		CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
		if (provider->rdma_bind_addr(id, (struct sockaddr *)&address))
			error = errno;
		CHECK(!provider->rdma_destroy_id(id));
	}
	CHECK(error == ENODEV);
	provider->rdma_destroy_event_channel(channel);
	return NULL;
}

/* It goes away while others are at work on it. */
static void test_in_the_middle(struct core_provider *provider)
{
	struct pair_options options = {.memory = 64, .depth = 16, .retry = 7, .rnr_retry = 7, .resources = 1};

	for (int time = 0; time < 20; time++) {
		pthread_t worker, resolver;
		struct pair pair;
		int rule;

		pair_connect(&pair, provider, PORT, options);
		CHECK(!pthread_create(&worker, NULL, work_until_removed, &pair));
		CHECK(!pthread_create(&resolver, NULL, resolve_until_removed, provider));
		usleep(1000);
		rule = begin(provider, CORE_FAULT_REMOVE_DEVICE);
		CHECK(!pthread_join(worker, NULL));
		CHECK(!pthread_join(resolver, NULL));
		CHECK(end(provider, rule) >= 3);
		pair_destroy(&pair);
	}
}

/* Ids that were bound under another hardware address than the present one get the event. */
static void test_address(struct core_provider *provider)
{
	struct setup before = requested(provider, PORT), during;
	struct rdma_event_channel *apart = create_channel(provider);
	struct rdma_cm_id *wildcard = wildcard_listener(provider, apart, PORT + 2);
	int rule;

	establish(&before);
	rule = begin(provider, CORE_FAULT_CHANGE_ADDRESS);
	expect_status(&before, before.active, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	expect_status(&before, before.passive, RDMA_CM_EVENT_ADDR_CHANGE, 0); /* the listener, ... */
	expect_status(&before, before.passive, RDMA_CM_EVENT_ADDR_CHANGE, 0); /* ... and its child */
	expect_silence(before.passive);
	expect_silence(before.active);
	during = requested(provider, PORT + 1);
	CHECK(end(provider, rule) == 5);
	expect_silence(before.active);
	expect_silence(before.passive);
	expect_silence(apart);
	expect_status(&during, during.active, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	expect_status(&during, during.passive, RDMA_CM_EVENT_ADDR_CHANGE, 0); /* the request is not accepted */
	expect_silence(during.passive);
	/* The event is a hint: the connection continues. */
	CHECK(!provider->rdma_disconnect(before.client));
	expect_status(&before, before.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	CHECK(!provider->rdma_destroy_id(wildcard));
	provider->rdma_destroy_event_channel(apart);
	finish(&before);
	finish(&during);
}

int main(void)
{
	struct core_provider *provider;

	if (!on_soft("devices that go away"))
		return 0;
	provider = open_provider();
	test_ids(provider);
	test_wildcard(provider);
	test_requests(provider);
	test_queries(provider);
	test_group(provider);
	test_synchronous(provider);
	test_queue_pairs(provider);
	test_in_the_middle(provider);
	test_address(provider);
	close_provider(provider);
	return 0;
}
