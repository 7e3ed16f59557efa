/*
 * Legal choices (provider/legal.h) about connections: data before ESTABLISHED, flushes after DISCONNECTED, the highest
 * numbers, and the longest times. Each is made with some seeds, and not with others.
 */
#include <poll.h>
#include <stdio.h>

#include "core/core.h"
#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/legal.h"

#define PORT 7472
#define SEEDS 16
#define BURST 8
#define MILLISECOND UINT64_C(1000000)

static const struct pair_options usual = {.memory = 4096, .depth = 64, .rnr_retry = 7, .retry = 7, .resources = 1};

/* Whether COMM_EST is there. */
static bool take_established(struct pair *pair)
{
	struct ibv_context *context = pair->server.id->verbs;
	struct pollfd readable = {.fd = context->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	if (!poll(&readable, 1, 0))
		return false;
	CHECK(!pair->provider->ibv_get_async_event(context, &event));
	CHECK(event.event_type == IBV_EVENT_COMM_EST && event.element.qp == pair->server.id->qp);
	pair->provider->ibv_ack_async_event(&event);
	return true;
}

/* The first message before the RTU raises the event, once; one after ESTABLISHED does not. */
static void test_communication_established(void)
{
	struct pair_options options = usual;
	int raised = 0;

	options.early = true;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct core_options clock = {.virtual_clock = true};
		struct core_provider *provider = open_legal_with(ONLY(CORE_LEGAL_COMM_EST), seed, clock);
		uint64_t began = core_clock_now(provider);
		struct pair pair;
		bool chosen;

		pair_connect(&pair, provider, PORT, options);
		chosen = made(provider, CORE_LEGAL_COMM_EST);
		CHECK(take_established(&pair) == chosen);
		CHECK((core_clock_now(provider) != began) == chosen);
		CHECK(core_clock_now(provider) - began <= 5 * MILLISECOND);
		CHECK(!post_recv(&pair.server, 1, 0, 8) && !post_send(&pair.client, IBV_WR_SEND, 1, 0, 8, NULL, 0));
		for (uint64_t wr_id = 0; wr_id < 2; wr_id++)
			CHECK(poll_one(pair.server.id->recv_cq).wr_id == wr_id);
		CHECK(!take_established(&pair));
		raised += chosen;
		pair_close(&pair);
		close_provider(provider);
	}
	CHECK(raised && raised < SEEDS);
}

static int flushed(struct ibv_cq *cq)
{
	struct ibv_wc wc[BURST];
	int count = ibv_poll_cq(cq, BURST, wc);

	for (int index = 0; index < count; index++)
		CHECK(wc[index].status == IBV_WC_WR_FLUSH_ERR);
	return count;
}

/* DISCONNECTED comes before all flushes are there, or after that. All of them come. */
static void test_flushes(void)
{
	struct core_provider *provider = open_legal(ONLY(CORE_LEGAL_FLUSH_LATE), 3);
	int before = 0, after = 0;

	for (int round = 0; round < 2 * SEEDS; round++) {
		struct pair pair;
		int count;

		pair_connect(&pair, provider, PORT, usual);
		for (uint64_t index = 0; index < BURST; index++)
			CHECK(!post_recv(&pair.client, index, 0, 8));
		CHECK(!provider->rdma_disconnect(pair.client.id));
		expect_and_acknowledge(provider, pair.channel, RDMA_CM_EVENT_DISCONNECTED);
		CHECK(!provider->rdma_disconnect(pair.server.id));
		expect_and_acknowledge(provider, pair.client.channel, RDMA_CM_EVENT_DISCONNECTED);
		count = flushed(pair.client.id->recv_cq);
		before += count == BURST;
		after += count < BURST;
		for (; count < BURST; count++)
			CHECK(poll_one(pair.client.id->recv_cq).status == IBV_WC_WR_FLUSH_ERR);
		pair_destroy(&pair);
	}
	CHECK(before && after && made(provider, CORE_LEGAL_FLUSH_LATE));
	close_provider(provider);
}

/* The highest numbers and keys do what others do, and are not used twice at once. */
static void test_numbers(void)
{
	uint32_t numbers = 0, keys = 0, low = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct core_provider *provider = open_legal(ONLY(CORE_LEGAL_NUMBERS_HIGH), seed);
		struct pair pair;

		pair_connect(&pair, provider, PORT, usual);
		CHECK(pair.client.id->qp->qp_num != pair.server.id->qp->qp_num && pair.client.id->qp->qp_num < 0xffffff);
		CHECK(pair.client.mr->rkey != pair.server.mr->rkey);
		numbers += pair.client.id->qp->qp_num > 0xffff00;
		keys += pair.server.mr->rkey >= 0xfffc0000;
		low += pair.server.mr->rkey < 0xfffc0000 && pair.client.id->qp->qp_num < 0xffff00;
		pair.client.memory[0] = 'x';
		CHECK(!post_send(&pair.client, IBV_WR_RDMA_WRITE, 1, 0, 1, &pair.server, 9));
		CHECK(poll_one(pair.client.id->send_cq).status == IBV_WC_SUCCESS && pair.server.memory[9] == 'x');
		pair_close(&pair);
		close_provider(provider);
	}
	CHECK(numbers && keys && low);
}

/* More regions than there are such keys: all keys differ, and freed ones are used again. */
static void test_many_keys(void)
{
	struct core_provider *provider = open_legal(ONLY(CORE_LEGAL_NUMBERS_HIGH), 3);
	struct ibv_mr *regions[256];
	struct pair pair;

	pair_connect(&pair, provider, PORT, usual);
	for (int round = 0; round < 2; round++) {
		for (int index = 0; index < 256; index++) {
			regions[index] = provider->ibv_reg_mr(pair.client.id->pd, pair.client.memory, 8, 0);
			CHECK(regions[index] && regions[index]->lkey);
			for (int other = 0; other < index; other++)
				CHECK(regions[other]->lkey != regions[index]->lkey);
		}
		for (int index = 0; index < 256; index++)
			CHECK(!provider->ibv_dereg_mr(regions[index]));
	}
	CHECK(made(provider, CORE_LEGAL_NUMBERS_HIGH) >= 64);
	pair_close(&pair);
	close_provider(provider);
}

/* A request arrives at once, or between 3 and 4 s later, and before it is repeated. Its MRA may be slow, too. */
static void test_slow(void)
{
	int slow = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct core_options options = {.virtual_clock = true, .legal_rates = {[CORE_LEGAL_CM_SLOW] = 2}};
		struct core_provider *provider = open_legal_with(ONLY(CORE_LEGAL_CM_SLOW), seed, options);
		uint64_t began = core_clock_now(provider), took;
		struct setup setup = connecting(provider, PORT);
		bool chosen = made(provider, CORE_LEGAL_CM_SLOW);

		advance_readable(provider, setup.passive);
		took = (core_clock_now(provider) - began) / MILLISECOND;
		CHECK(!took || (chosen && took >= 3000 && took <= 4000));
		slow += took > 0;
		take_request(&setup);
		finish(&setup);
		close_provider(provider);
	}
	CHECK(slow && slow < SEEDS);
}

/* The time from DISCONNECTED to TIMEWAIT_EXIT at the client. */
static uint64_t timewait(uint32_t choices, uint64_t seed)
{
	struct core_options options = {.virtual_clock = true};
	struct core_provider *provider = open_legal_with(choices, seed, options);
	uint64_t began, took;
	struct pair pair;

	pair_connect(&pair, provider, PORT, usual);
	CHECK(!provider->rdma_disconnect(pair.client.id));
	expect_and_acknowledge(provider, pair.channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!provider->rdma_disconnect(pair.server.id));
	expect_and_acknowledge(provider, pair.client.channel, RDMA_CM_EVENT_DISCONNECTED);
	began = core_clock_now(provider);
	advance_readable(provider, pair.client.channel);
	took = core_clock_now(provider) - began;
	expect_and_acknowledge(provider, pair.client.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	pair_destroy(&pair);
	close_provider(provider);
	return took;
}

static void test_timewait(void)
{
	uint64_t usual_time = timewait(0, 0);
	int longer = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint64_t time = timewait(ONLY(CORE_LEGAL_TIMEWAIT_LONG), seed);

		CHECK(time >= usual_time && time <= 4 * usual_time);
		longer += time > usual_time;
	}
	CHECK(longer && longer < SEEDS);
}

int main(void)
{
	test_communication_established();
	test_flushes();
	test_numbers();
	test_many_keys();
	test_slow();
	test_timewait();
	printf("legal choices about connections: each is made, and what is promised holds\n");
	return 0;
}
