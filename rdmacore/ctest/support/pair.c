#include "ctest/support/pair.h"

#include <arpa/inet.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"
#include "ctest/support/check.h"

#define PAGE 4096
#define TIMEOUT_MS 20000 /* far more than any step takes on a loaded machine */

struct core_provider *open_provider(void)
{
	const char *name = getenv("CTEST_PROVIDER"), *link = getenv("CTEST_LINK");
	struct core_options options = {0};
	struct core_provider *provider;
	char why[512] = "";

	if (link && !strcmp(link, "udp")) {
		options.link = CORE_LINK_UDP;
		snprintf(options.fabric, sizeof(options.fabric), "test-%d", getpid());
	} else if (link && !strcmp(link, "packets")) {
		options.link = CORE_LINK_PACKETS;
	}
	if (core_open(name ? name : "soft", &options, &provider, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		exit(1);
	}
	return provider;
}

bool on_soft(const char *exception)
{
	const char *name = getenv("CTEST_PROVIDER");

	CHECK(*exception);
	return !name || !strcmp(name, "soft");
}

void close_provider(struct core_provider *provider)
{
	CHECK(core_close(provider) == 0);
}

struct sockaddr_storage ipv4_address(const char *text, uint16_t port)
{
	struct sockaddr_storage storage = {0};
	struct sockaddr_in *address = (struct sockaddr_in *)(void *)&storage;

	address->sin_family = AF_INET;
	address->sin_port = htons(port);
	CHECK(inet_pton(AF_INET, text, &address->sin_addr) == 1);
	return storage;
}

struct sockaddr_storage local_address(uint16_t port)
{
	const char *text = getenv("CTEST_ADDRESS");

	return ipv4_address(text ? text : "127.0.0.1", port);
}

struct rdma_event_channel *create_channel(struct core_provider *provider)
{
	struct rdma_event_channel *channel;

	core_select(provider);
	channel = provider->rdma_create_event_channel();
	CHECK(channel);
	return channel;
}

void wait_readable(struct rdma_event_channel *channel)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};

	CHECK(poll(&readable, 1, TIMEOUT_MS) == 1);
}

void advance_readable(struct core_provider *provider, struct rdma_event_channel *channel)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};

	while (!poll(&readable, 1, 0))
		CHECK(core_clock_advance(provider, UINT64_MAX) == 1);
}

struct rdma_cm_event *expect_event(struct core_provider *provider, struct rdma_event_channel *channel,
				   enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	wait_readable(channel);
	CHECK(provider->rdma_get_cm_event(channel, &event) == 0);
	if (event->event != type)
		fprintf(stderr, "event %d, status %d\n", event->event, event->status);
	CHECK(event->event == type);
	return event;
}

void expect_and_acknowledge(struct core_provider *provider, struct rdma_event_channel *channel,
			    enum rdma_cm_event_type type)
{
	CHECK(provider->rdma_ack_cm_event(expect_event(provider, channel, type)) == 0);
}

static void make_queue_pair(struct end *end, struct pair_options options)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = options.depth, .max_recv_wr = options.depth,
			.max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = !options.unsignaled,
	};

	if (options.one_queue) {
		end->cq = end->provider->ibv_create_cq(end->id->verbs, (int)(2 * options.depth), NULL, NULL, 0);
		CHECK(end->cq);
		attr.send_cq = attr.recv_cq = end->cq;
	}
	CHECK(end->provider->rdma_create_qp(end->id, NULL, &attr) == 0);
	end->size = options.memory;
	/* Whole pages, as other programs that measure have it: what two threads use shares no cache line. */
	end->memory = aligned_alloc(PAGE, (options.memory + PAGE - 1) / PAGE * PAGE);
	CHECK(end->memory);
	memset(end->memory, 0, options.memory);
	end->mr = end->provider->ibv_reg_mr(end->id->pd, end->memory, end->size,
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ);
	CHECK(end->mr);
}

void pair_connect(struct pair *pair, struct core_provider *provider, uint16_t port,
		  struct pair_options options)
{
	struct sockaddr_storage address = local_address(port);
	struct rdma_conn_param param = {
		.responder_resources = options.resources,
		.initiator_depth = options.resources,
		.retry_count = options.retry,
		.rnr_retry_count = options.rnr_retry,
	};
	struct rdma_cm_event *event;

	*pair = (struct pair){.provider = provider, .server.provider = provider,
			      .client.provider = provider};
	pair->channel = create_channel(provider);
	pair->server.channel = pair->channel;
	CHECK(!provider->rdma_create_id(pair->channel, &pair->listener, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(pair->listener, (struct sockaddr *)&address));
	CHECK(!provider->rdma_listen(pair->listener, 8));

	pair->client.channel = create_channel(provider);
	CHECK(!provider->rdma_create_id(pair->client.channel, &pair->client.id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_resolve_addr(pair->client.id, NULL, (struct sockaddr *)&address, 2000));
	expect_and_acknowledge(provider, pair->client.channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!provider->rdma_resolve_route(pair->client.id, 2000));
	expect_and_acknowledge(provider, pair->client.channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_queue_pair(&pair->client, options);
	CHECK(!provider->rdma_connect(pair->client.id, &param));

	event = expect_event(provider, pair->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	pair->server.id = event->id;
	CHECK(event->listen_id == pair->listener);
	CHECK(!provider->rdma_ack_cm_event(event));
	make_queue_pair(&pair->server, options);
	if (options.early)
		CHECK(!post_recv(&pair->server, 0, 0, 8));
	CHECK(!provider->rdma_accept(pair->server.id, &param));
	expect_and_acknowledge(provider, pair->client.channel, RDMA_CM_EVENT_ESTABLISHED);
	if (options.early) {
		CHECK(!post_send(&pair->client, IBV_WR_SEND, 0, 0, 8, NULL, 0));
		advance_readable(provider, pair->channel);
	}
	expect_and_acknowledge(provider, pair->channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void destroy_end(struct end *end)
{
	if (!end->id)
		return;
	if (end->id->qp) /* librdmacm does not look */
		end->provider->rdma_destroy_qp(end->id);
	if (end->cq)
		CHECK(!end->provider->ibv_destroy_cq(end->cq));
	CHECK(!end->provider->ibv_dereg_mr(end->mr));
	CHECK(!end->provider->rdma_destroy_id(end->id));
	free(end->memory);
}

void pair_destroy(struct pair *pair)
{
	destroy_end(&pair->client);
	destroy_end(&pair->server);
	CHECK(!pair->provider->rdma_destroy_id(pair->listener));
	pair->provider->rdma_destroy_event_channel(pair->client.channel);
	pair->provider->rdma_destroy_event_channel(pair->channel);
}

void pair_close(struct pair *pair)
{
	CHECK(!pair->provider->rdma_disconnect(pair->client.id));
	expect_and_acknowledge(pair->provider, pair->channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!pair->provider->rdma_disconnect(pair->server.id));
	expect_and_acknowledge(pair->provider, pair->client.channel, RDMA_CM_EVENT_DISCONNECTED);
	pair_destroy(pair);
}

int post_recv(struct end *end, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)end->memory + offset, length, end->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(end->id->qp, &wr, &bad);
}

int post_send(struct end *end, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t offset,
	      uint32_t length, const struct end *peer, size_t peer_offset)
{
	struct ibv_sge sge = {(uintptr_t)end->memory + offset, length, end->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode};
	struct ibv_send_wr *bad;

	if (peer) {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->memory + peer_offset;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	return ibv_post_send(end->id->qp, &wr, &bad);
}

static int64_t milliseconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

struct ibv_wc poll_one(struct ibv_cq *cq)
{
	struct timespec pause = {.tv_nsec = 100000};
	int64_t deadline = milliseconds() + TIMEOUT_MS;
	struct ibv_wc wc;

	for (uint64_t attempt = 0; attempt < 1000 || milliseconds() < deadline; attempt++) {
		int polled = ibv_poll_cq(cq, 1, &wc);

		CHECK(polled >= 0);
		if (polled)
			return wc;
		if (attempt > 1000)
			nanosleep(&pause, NULL);
	}
	CHECK(!"a completion");
	return wc;
}
