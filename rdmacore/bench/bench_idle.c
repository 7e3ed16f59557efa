/*
 * Processor time of the idle link udp: two providers like those of two processes, and a thousand connected pairs that
 * have each sent a message. The completion queues are armed, as in programs that sleep.
 */
#include <unistd.h>

#include "bench.h"
#include "ctest/support/bare.h"
#include "ctest/support/check.h"

#define PAIRS 1000
#define SECONDS 3
#define ROUNDS 3

struct side {
	struct core_provider *provider;
	struct bench bench;
	struct bare ends[PAIRS];
};

static struct side sides[2];

static void open_side(struct side *side)
{
	struct core_options options = {.link = CORE_LINK_UDP, .fabric = "bench"};
	char why[512];

	CHECK(!core_open("soft", &options, &side->provider, why, sizeof(why)));
	bench_open(&side->bench, side->provider);
	for (int pair = 0; pair < PAIRS; pair++)
		bare_create(&side->ends[pair], &side->bench, IBV_QPT_RC, NULL);
}

static void close_side(struct side *side)
{
	for (int pair = 0; pair < PAIRS; pair++)
		bare_destroy(&side->ends[pair]);
	bench_close(&side->bench);
	close_provider(side->provider);
}

static void exchange(struct bare *from, struct bare *to)
{
	struct ibv_sge sge = bench_sge(from->bench, 0, 64);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 1, &sge);

	CHECK(!bare_recv(to, 2, 0, 64));
	CHECK(!bare_post(from, &wr));
	expect_wc(to, 2, IBV_WC_SUCCESS);
	expect_wc(from, 1, IBV_WC_SUCCESS);
}

int main(void)
{
	double shares[ROUNDS];

	open_side(&sides[0]);
	open_side(&sides[1]);
	for (int pair = 0; pair < PAIRS; pair++) {
		struct bare *ends[2] = {&sides[0].ends[pair], &sides[1].ends[pair]};

		bare_connect(ends[0], ends[1]);
		exchange(ends[0], ends[1]);
		exchange(ends[1], ends[0]);
		for (int end = 0; end < 2; end++)
			CHECK(!ibv_req_notify_cq(ends[end]->cq, 0));
	}
	for (int round = 0; round < ROUNDS; round++) {
		double begin = now(), busy = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);

		sleep(SECONDS);
		shares[round] = (nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - busy) / (now() - begin) * 100;
	}
	report("udp-idle-1000", median(shares, ROUNDS), "%");
	close_side(&sides[0]);
	close_side(&sides[1]);
	return 0;
}
