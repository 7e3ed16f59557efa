/* Legal choices (provider/legal.h) about acknowledgements, which need a link with packets. */
#include <stdio.h>

#include "ctest/support/check.h"
#include "ctest/support/legal.h"
#include "ctest/support/pair.h"

#define PORT 7473
#define BURST 8

static void connect_pair(struct pair *pair, uint32_t choices, uint64_t seed, uint32_t rate)
{
	struct pair_options options = {.memory = 4096, .depth = 64, .rnr_retry = 7, .retry = 7, .resources = 1};
	struct core_options packets = {.link = CORE_LINK_PACKETS,
				       .legal_rates = {[CORE_LEGAL_ACK_LATE] = rate, [CORE_LEGAL_ACK_CREDITS] = rate}};
	struct ibv_qp_attr quick = {.min_rnr_timer = 1};

	pair_connect(pair, open_legal_with(choices, seed, packets), PORT, options);
	CHECK(!pair->provider->ibv_modify_qp(pair->server.id->qp, &quick, IBV_QP_MIN_RNR_TIMER));
}

static void close_pair(struct pair *pair)
{
	struct core_provider *provider = pair->provider;

	pair_close(pair);
	close_provider(provider);
}

static void post(struct pair *pair, uint64_t first, uint64_t end)
{
	for (uint64_t wr_id = first; wr_id < end; wr_id++)
		CHECK(!post_send(&pair->client, IBV_WR_SEND, wr_id, 0, 8, NULL, 0));
}

static void complete(struct ibv_cq *cq, uint64_t first, uint64_t end)
{
	for (uint64_t wr_id = first; wr_id < end; wr_id++) {
		struct ibv_wc wc = poll_one(cq);

		CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == wr_id);
	}
}

/*
 * The server has no receive when the client sends a burst. A client that knows that sends one message, and no other
 * packet arrives out of sequence. Returns whether that was so.
 */
static bool sends_by_credits(uint32_t choices, uint64_t seed)
{
	struct pair pair;
	bool chosen, alone;

	connect_pair(&pair, choices, seed, 0);
	chosen = made(pair.provider, CORE_LEGAL_ACK_CREDITS);
	CHECK(!post_recv(&pair.server, 0, 0, 8));
	post(&pair, 0, 1);
	complete(pair.client.id->send_cq, 0, 1);
	post(&pair, 1, BURST);
	while (!counter(pair.provider, "rcvd_rnr_err"))
		CHECK(!ibv_poll_cq(pair.client.id->send_cq, 0, NULL));
	for (uint64_t wr_id = 1; wr_id < BURST; wr_id++)
		CHECK(!post_recv(&pair.server, wr_id, 0, 8));
	complete(pair.client.id->send_cq, 1, BURST);
	complete(pair.server.id->recv_cq, 0, BURST);
	alone = !counter(pair.provider, "out_of_sequence");
	CHECK(!alone || chosen);
	close_pair(&pair);
	return alone;
}

static void test_credits(void)
{
	int alone = 0;

	CHECK(!sends_by_credits(0, 0));
	for (uint64_t seed = 0; seed < BURST; seed++)
		alone += sends_by_credits(ONLY(CORE_LEGAL_ACK_CREDITS), seed);
	CHECK(alone);
}

/* Late acknowledgements delay completions, and nothing is sent again. */
static void test_late(void)
{
	struct pair pair;

	connect_pair(&pair, ONLY(CORE_LEGAL_ACK_LATE), 3, 2);
	for (uint64_t round = 0; round < BURST; round++) {
		uint64_t first = round * BURST, end = first + BURST;

		for (uint64_t wr_id = first; wr_id < end; wr_id++)
			CHECK(!post_recv(&pair.server, wr_id, 0, 8));
		post(&pair, first, end);
		complete(pair.client.id->send_cq, first, end);
		complete(pair.server.id->recv_cq, first, end);
	}
	CHECK(made(pair.provider, CORE_LEGAL_ACK_LATE));
	CHECK(!counter(pair.provider, "local_ack_timeout_err") && !counter(pair.provider, "duplicate_request"));
	close_pair(&pair);
}

int main(void)
{
	test_credits();
	test_late();
	printf("legal acknowledgements: late ones, and credits for receives\n");
	return 0;
}
