/*
 * Legal choices (provider/legal.h): each is made, is counted, and leaves what IBTA promises as it is. A choice that is
 * not asked for is never made.
 */
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "ctest/support/check.h"
#include "ctest/support/legal.h"
#include "ctest/support/pair.h"
#include "soft/base/legal.h"

#define ROUNDS 400 /* of a choice that is made once in eight times */
#define MEMORY 4096
#define BURST 8

static void connect_pair(struct pair *pair, uint32_t choices)
{
	struct pair_options options = {.memory = MEMORY, .depth = 64, .rnr_retry = 7, .retry = 7, .resources = 1};

	pair_connect(pair, open_legal(choices, 3), 7471, options);
}

static void close_pair(struct pair *pair)
{
	struct core_provider *provider = pair->provider;

	pair_close(pair);
	close_provider(provider);
}

/* All but the choice that was asked for. */
static void check_only(struct core_provider *provider, enum core_legal choice)
{
	CHECK(made(provider, choice));
	for (int other = 0; other < CORE_LEGAL_CHOICES; other++)
		CHECK(other == (int)choice || !made(provider, (enum core_legal)other));
}

static void test_draws(void)
{
	struct soft_legal both, one;
	struct soft_legal_draws of_both, of_one;
	_Atomic uint64_t made_both[CORE_LEGAL_CHOICES] = {0}, made_one[CORE_LEGAL_CHOICES] = {0};
	uint32_t rates[CORE_LEGAL_CHOICES] = {[CORE_LEGAL_EVENT_EMPTY] = 2};
	int chosen = 0;

	soft_legal_init(&both, 5, ONLY(CORE_LEGAL_POLL_SHORT) | ONLY(CORE_LEGAL_EVENT_EMPTY), NULL, made_both);
	soft_legal_init(&one, 5, ONLY(CORE_LEGAL_EVENT_EMPTY), NULL, made_one);
	soft_legal_draws_init(&of_both, &both);
	soft_legal_draws_init(&of_one, &one);
	for (int draw = 0; draw < ROUNDS; draw++) {
		uint64_t drawn;

		soft_legal_choose(&of_both, CORE_LEGAL_POLL_SHORT);
		CHECK(!soft_legal_choose(&of_one, CORE_LEGAL_POLL_SHORT));
		drawn = soft_legal_choose(&of_both, CORE_LEGAL_EVENT_EMPTY);
		CHECK(drawn == soft_legal_choose(&of_one, CORE_LEGAL_EVENT_EMPTY));
		chosen += drawn != 0;
	}
	CHECK(chosen > ROUNDS / 16 && chosen < ROUNDS / 4);
	CHECK(made_one[CORE_LEGAL_EVENT_EMPTY] == (uint64_t)chosen);
	/* Another rate than that of the table. */
	soft_legal_init(&one, 5, ONLY(CORE_LEGAL_EVENT_EMPTY), rates, made_one);
	soft_legal_draws_init(&of_one, &one);
	chosen = 0;
	for (int draw = 0; draw < ROUNDS; draw++)
		chosen += soft_legal_choose(&of_one, CORE_LEGAL_EVENT_EMPTY) != 0;
	CHECK(chosen > ROUNDS / 3 && chosen < ROUNDS * 2 / 3);
	soft_legal_init(&one, 5, 0, NULL, made_one);
	soft_legal_draws_init(&of_one, &one);
	CHECK(!soft_legal_choose(&of_one, CORE_LEGAL_EVENT_EMPTY));
}

/* Send a burst from the client; the server has the receives. */
static void burst(struct pair *pair, uint64_t first)
{
	for (uint64_t index = 0; index < BURST; index++)
		CHECK(!post_recv(&pair->server, first + index, 0, 8));
	for (uint64_t index = 0; index < BURST; index++)
		CHECK(!post_send(&pair->client, IBV_WR_SEND, first + index, 0, 8, NULL, 0));
}

/* Poll until BURST completions came. Each work queue's are in order. Returns how often a poll took less than it could. */
static int drain(struct ibv_cq *cq, uint64_t first)
{
	struct ibv_wc wc[BURST];
	int partial = 0;

	for (int count = 0, polled; count < BURST; count += polled) {
		polled = ibv_poll_cq(cq, BURST, wc);
		CHECK(polled >= 0 && polled <= BURST - count);
		for (int index = 0; index < polled; index++)
			CHECK(wc[index].status == IBV_WC_SUCCESS && wc[index].wr_id == first + (uint64_t)(count + index));
		partial += polled && count + polled < BURST;
	}
	return partial;
}

static void test_polls(enum core_legal choice)
{
	struct pair pair;
	int partial = 0;

	connect_pair(&pair, ONLY(choice));
	for (uint64_t round = 0; round < ROUNDS; round++) {
		burst(&pair, round * BURST);
		partial += drain(pair.client.id->send_cq, round * BURST);
		partial += drain(pair.server.id->recv_cq, round * BURST);
	}
	CHECK(partial);
	check_only(pair.provider, choice);
	close_pair(&pair);
}

/* In a queue of both directions the receive of an answer may come before the send of its request. */
static void test_order(void)
{
	struct pair_options options = {.memory = MEMORY, .depth = 64, .rnr_retry = 7, .retry = 7, .resources = 1,
				       .one_queue = true};
	struct pair pair;
	int early = 0;

	pair_connect(&pair, open_legal(ONLY(CORE_LEGAL_COMPLETION_LATE) | ONLY(CORE_LEGAL_COMPLETION_ORDER), 3), 7471,
		     options);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		CHECK(!post_recv(&pair.server, round, 0, 8) && !post_recv(&pair.client, round, 0, 8));
		CHECK(!post_send(&pair.client, IBV_WR_SEND, round, 0, 8, NULL, 0));
		for (int count = 0; count < 2; count++)
			if (poll_one(pair.server.cq).opcode == IBV_WC_RECV)
				CHECK(!post_send(&pair.server, IBV_WR_SEND, round, 0, 8, NULL, 0));
		early += poll_one(pair.client.cq).opcode == IBV_WC_RECV;
		CHECK(poll_one(pair.client.cq).wr_id == round);
	}
	CHECK(early);
	CHECK(made(pair.provider, CORE_LEGAL_COMPLETION_LATE) && made(pair.provider, CORE_LEGAL_COMPLETION_ORDER));
	close_pair(&pair);
}

/* Poll until the queue is empty; returns how many completions there were. */
static uint64_t poll_all(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	uint64_t count = 0;
	int polled;

	while ((polled = ibv_poll_cq(cq, 1, &wc)) > 0)
		count++;
	CHECK(!polled);
	return count;
}

/* A program that polls again after it has armed the queue always gets on. Without that it would sleep. */
/* It may also poll once for as many as there can be: fewer mean that the queue was empty (infiniband/verbs.h). */
static void test_single_polls(void)
{
	struct pair pair;
	uint64_t received = 0;

	connect_pair(&pair, ONLY(CORE_LEGAL_POLL_SHORT));
	CHECK(!ibv_req_notify_cq(pair.server.id->recv_cq, 0));
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct pollfd readable = {pair.server.id->recv_cq_channel->fd, POLLIN, 0};

		burst(&pair, round * BURST);
		while (received < (round + 1) * BURST) {
			struct ibv_wc wc[BURST + 1];
			struct ibv_cq *cq;
			void *context;
			int polled;

			CHECK(poll(&readable, 1, 10000) == 1);
			CHECK(!pair.provider->ibv_get_cq_event(pair.server.id->recv_cq_channel, &cq, &context));
			pair.provider->ibv_ack_cq_events(cq, 1);
			CHECK(!ibv_req_notify_cq(cq, 0));
			polled = ibv_poll_cq(cq, BURST + 1, wc);
			CHECK(polled >= 0 && polled <= BURST);
			received += (uint64_t)polled;
		}
		drain(pair.client.id->send_cq, round * BURST);
	}
	check_only(pair.provider, CORE_LEGAL_POLL_SHORT);
	close_pair(&pair);
}

static void test_events(enum core_legal choice, uint32_t more)
{
	struct pair pair;
	uint64_t received = 0, empty = 0;

	connect_pair(&pair, ONLY(choice) | more);
	CHECK(!ibv_req_notify_cq(pair.server.id->recv_cq, 0));
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct pollfd readable = {pair.server.id->recv_cq_channel->fd, POLLIN, 0};

		burst(&pair, round * BURST);
		while (received < (round + 1) * BURST) {
			struct ibv_cq *cq;
			void *context;

			CHECK(poll(&readable, 1, 10000) == 1);
			CHECK(!pair.provider->ibv_get_cq_event(pair.server.id->recv_cq_channel, &cq, &context));
			pair.provider->ibv_ack_cq_events(cq, 1);
			received += poll_all(cq);
			CHECK(!ibv_req_notify_cq(cq, 0));
			received += poll_all(cq);
		}
		drain(pair.client.id->send_cq, round * BURST);
		empty += poll(&readable, 1, 0) == 1; /* the queue is empty, and its event is there */
	}
	CHECK(made(pair.provider, choice));
	CHECK(choice != CORE_LEGAL_EVENT_EMPTY || empty);
	close_pair(&pair);
}

/* A program that looks at memory while the device writes to it: a data race on purpose. */
__attribute__((no_sanitize("thread"))) static bool has(const volatile char *byte, char value)
{
	return *byte == value;
}

/* The last byte of a WRITE before the first, a later WRITE before an earlier one; and all of it before a receive. */
static void test_writes(void)
{
	struct pair pair;
	int torn = 0, overtaken = 0;

	connect_pair(&pair, ONLY(CORE_LEGAL_WRITE_LATE));
	for (int round = 1; round <= ROUNDS; round++) {
		char value = (char)round;

		memset(pair.client.memory, value, MEMORY);
		CHECK(!post_recv(&pair.server, 0, MEMORY - 1, 1));
		CHECK(!post_send(&pair.client, IBV_WR_RDMA_WRITE, 1, 0, 64, &pair.server, 0));
		CHECK(!post_send(&pair.client, IBV_WR_RDMA_WRITE, 2, 0, 8, &pair.server, 128));
		torn += has(&pair.server.memory[63], value) && !has(&pair.server.memory[0], value);
		overtaken += has(&pair.server.memory[128 + 7], value) && !has(&pair.server.memory[0], value);
		CHECK(!post_send(&pair.client, IBV_WR_SEND, 3, 0, 1, NULL, 0));
		CHECK(poll_one(pair.server.id->recv_cq).status == IBV_WC_SUCCESS);
		CHECK(!memcmp(pair.server.memory, pair.client.memory, 64));
		CHECK(!memcmp(pair.server.memory + 128, pair.client.memory, 8));
		for (uint64_t wr_id = 1; wr_id <= 3; wr_id++)
			CHECK(poll_one(pair.client.id->send_cq).wr_id == wr_id);
		/* A READ sees what was written before it. */
		memset(pair.client.memory, ~value, 64);
		CHECK(!post_send(&pair.client, IBV_WR_RDMA_WRITE, 4, 0, 64, &pair.server, 0));
		CHECK(!post_send(&pair.client, IBV_WR_RDMA_READ, 5, 256, 64, &pair.server, 0));
		CHECK(poll_one(pair.client.id->send_cq).wr_id == 4 && poll_one(pair.client.id->send_cq).wr_id == 5);
		CHECK(!memcmp(pair.client.memory + 256, pair.client.memory, 64));
	}
	CHECK(torn && overtaken);
	check_only(pair.provider, CORE_LEGAL_WRITE_LATE);
	/* Memory that is not registered any more is not written. */
	for (int round = 0; round < 16; round++)
		CHECK(!post_send(&pair.client, IBV_WR_RDMA_WRITE, 6, 0, 64, &pair.server, 0));
	close_pair(&pair);
}

/* Without time for the timer: polling a completion in this process shows what was written before. */
static void test_write_is_polled(void)
{
	struct pair pair;

	connect_pair(&pair, ONLY(CORE_LEGAL_WRITE_LATE));
	for (int round = 1; round <= ROUNDS; round++) {
		memset(pair.client.memory, round, 64);
		CHECK(!post_send(&pair.client, IBV_WR_RDMA_WRITE, 1, 0, 64, &pair.server, 0));
		CHECK(poll_one(pair.client.id->send_cq).status == IBV_WC_SUCCESS);
		CHECK(!memcmp(pair.server.memory, pair.client.memory, 64));
	}
	close_pair(&pair);
}

/* Every message arrives, after an RNR NAK. Where the peer does not try again there is none. */
static void test_rnr(uint8_t retries)
{
	struct pair_options options = {.memory = MEMORY, .depth = 64, .rnr_retry = retries, .retry = 7, .resources = 1};
	struct ibv_qp_attr quick = {.min_rnr_timer = 1};
	struct pair pair;

	pair_connect(&pair, open_legal(ONLY(CORE_LEGAL_RNR), 3), 7471, options);
	CHECK(!pair.provider->ibv_modify_qp(pair.server.id->qp, &quick, IBV_QP_MIN_RNR_TIMER));
	for (uint64_t round = 0; round < 3000; round++) {
		burst(&pair, round * BURST);
		drain(pair.client.id->send_cq, round * BURST);
		drain(pair.server.id->recv_cq, round * BURST);
	}
	CHECK(!!made(pair.provider, CORE_LEGAL_RNR) == (retries > 0));
	close_pair(&pair);
}

/* Of a failed completion only wr_id, status and qp_num are as they were. */
static void test_failed_fields(void)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct pair pair;
	int changed = 0;

	connect_pair(&pair, ONLY(CORE_LEGAL_FAILED_FIELDS));
	burst(&pair, 0);
	drain(pair.client.id->send_cq, 0);
	drain(pair.server.id->recv_cq, 0);
	for (uint64_t index = 0; index < BURST; index++)
		CHECK(!post_recv(&pair.server, index, 0, 8));
	CHECK(!pair.provider->ibv_modify_qp(pair.server.id->qp, &error, IBV_QP_STATE));
	for (uint64_t index = 0; index < BURST; index++) {
		struct ibv_wc wc = poll_one(pair.server.id->recv_cq);

		CHECK(wc.wr_id == index && wc.status == IBV_WC_WR_FLUSH_ERR && wc.qp_num == pair.server.id->qp->qp_num);
		changed += wc.opcode != IBV_WC_RECV;
	}
	CHECK(changed);
	check_only(pair.provider, CORE_LEGAL_FAILED_FIELDS);
	close_pair(&pair);
}

int main(void)
{
	test_draws();
	test_polls(CORE_LEGAL_POLL_SHORT);
	test_polls(CORE_LEGAL_COMPLETION_LATE);
	test_order();
	test_single_polls();
	test_events(CORE_LEGAL_EVENT_EMPTY, 0);
	test_events(CORE_LEGAL_EVENT_MISSED, ONLY(CORE_LEGAL_COMPLETION_LATE));
	test_writes();
	test_write_is_polled();
	test_rnr(7);
	test_rnr(0);
	test_failed_fields();
	printf("legal choices: each is made, and what is promised holds\n");
	return 0;
}
