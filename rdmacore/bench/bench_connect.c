/*
 * Connections on soft: how many one thread creates and ends in a second, and what many at once cost.
 *
 * Prints one line for each row: name, value, unit.
 */
#include <malloc.h>

#include "bench.h"
#include "ctest/support/check.h"
#include "ctest/support/pair.h"

#define PORT 7003
#define CYCLES 20000
#define ROUNDS 5
#define MANY 10000

struct ends {
	struct core_provider *provider;
	struct rdma_event_channel *passive, *active;
	struct rdma_cm_id *listener;
};

static struct rdma_cm_id *acknowledged(struct ends *ends, struct rdma_event_channel *channel,
				       enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(!ends->provider->rdma_get_cm_event(channel, &event));
	CHECK(event->event == type && event->status == 0);
	id = event->id;
	CHECK(!ends->provider->rdma_ack_cm_event(event));
	return id;
}

static struct ends listen_here(struct core_provider *provider)
{
	struct sockaddr_storage address = local_address(PORT);
	struct ends ends = {.provider = provider};

	ends.passive = create_channel(provider);
	ends.active = create_channel(provider);
	CHECK(!provider->rdma_create_id(ends.passive, &ends.listener, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(ends.listener, (struct sockaddr *)&address));
	CHECK(!provider->rdma_listen(ends.listener, 0));
	return ends;
}

static void stop(struct ends *ends)
{
	CHECK(!ends->provider->rdma_destroy_id(ends->listener));
	ends->provider->rdma_destroy_event_channel(ends->active);
	ends->provider->rdma_destroy_event_channel(ends->passive);
}

/* Like cmtime of rdma-core: queue pairs are the user's, and none are needed here. */
static void connect_one(struct ends *ends, uint32_t number, struct rdma_cm_id **client,
			struct rdma_cm_id **child)
{
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_conn_param param = {.qp_num = 2 * number, .retry_count = 7};
	struct core_provider *provider = ends->provider;

	CHECK(!provider->rdma_create_id(ends->active, client, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_resolve_addr(*client, NULL, (struct sockaddr *)&address, 2000));
	acknowledged(ends, ends->active, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!provider->rdma_resolve_route(*client, 2000));
	acknowledged(ends, ends->active, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CHECK(!provider->rdma_connect(*client, &param));
	*child = acknowledged(ends, ends->passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	param.qp_num = 2 * number + 1;
	CHECK(!provider->rdma_accept(*child, &param));
	acknowledged(ends, ends->active, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(!provider->rdma_establish(*client));
	acknowledged(ends, ends->passive, RDMA_CM_EVENT_ESTABLISHED);
}

static void disconnect_one(struct ends *ends, struct rdma_cm_id *client, struct rdma_cm_id *child)
{
	struct core_provider *provider = ends->provider;

	CHECK(!provider->rdma_disconnect(client));
	acknowledged(ends, ends->passive, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!provider->rdma_disconnect(child));
	acknowledged(ends, ends->active, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!provider->rdma_destroy_id(child));
	CHECK(!provider->rdma_destroy_id(client));
}

static void bench_cycles(struct core_provider *provider)
{
	struct ends ends = listen_here(provider);
	double values[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		double began = now();

		for (uint32_t cycle = 0; cycle < CYCLES; cycle++) {
			struct rdma_cm_id *client, *child;

			connect_one(&ends, cycle % 0x7fff, &client, &child);
			disconnect_one(&ends, client, child);
		}
		values[round] = CYCLES / (now() - began) * 1e9;
	}
	report("connect-accept-disconnect", median(values, ROUNDS), "/s");
	stop(&ends);
}

/*
 * The times of the first and the last thousand show whether it is linear, and the heap shows what one costs, with
 * both ends.
 */
static void bench_many(struct core_provider *provider)
{
	static struct rdma_cm_id *clients[MANY], *children[MANY];
	struct ends ends = listen_here(provider);
	size_t before = mallinfo2().uordblks, after;
	double first = 0, last = 0;

	for (uint32_t tenth = 0; tenth < 10; tenth++) {
		double began = now();

		for (uint32_t n = tenth * (MANY / 10); n < (tenth + 1) * (MANY / 10); n++)
			connect_one(&ends, n, &clients[n], &children[n]);
		last = now() - began;
		if (tenth == 0)
			first = last;
	}
	after = mallinfo2().uordblks;
	report("connections-10000-each", (double)(after - before) / MANY / 1024, "KiB");
	report("connections-first-1000", first / 1e3 / (MANY / 10), "us");
	report("connections-last-1000", last / 1e3 / (MANY / 10), "us");
	for (uint32_t n = 0; n < MANY; n++)
		disconnect_one(&ends, clients[n], children[n]);
	stop(&ends);
}

int main(void)
{
	struct core_provider *provider = open_provider();

	bench_cycles(provider);
	bench_many(provider);
	close_provider(provider);
	return 0;
}
