/*
 * Large RDMA WRITEs beside memcpy of the same buffers, by turns: what the soft provider adds to the one copy
 * that its local link makes.  Each row is the median of many short rounds.
 *
 * Prints one line a row: name, value, unit.
 */
#include "../ctest/check.h"
#include "../ctest/pair.h"
#include "bench.h"

#define ROUNDS 101
#define BYTES (4 << 20) /* copied in a round, in messages */
#define LARGEST (1 << 20)

static double copy(struct pair *pair, size_t length)
{
	double begin = now();

	for (size_t done = 0; done < BYTES; done += length) {
		memcpy(pair->server.memory, pair->client.memory, length);
		__asm__ volatile("" : : "r"(pair->server.memory) : "memory");
	}
	return BYTES / (now() - begin);
}

static double write(struct pair *pair, size_t length)
{
	double begin = now();
	struct ibv_wc wc;

	for (size_t done = 0; done < BYTES; done += length) {
		CHECK(!post_send(&pair->client, IBV_WR_RDMA_WRITE, 0, 0, (uint32_t)length, &pair->server, 0));
		while (ibv_poll_cq(pair->client.id->send_cq, 1, &wc) == 0)
			;
		CHECK(wc.status == IBV_WC_SUCCESS);
	}
	return BYTES / (now() - begin);
}

static void bench(struct pair *pair, size_t length, const char *copy_row, const char *write_row)
{
	double copies[ROUNDS], writes[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		copies[round] = copy(pair, length);
		writes[round] = write(pair, length);
	}
	report(copy_row, median(copies, ROUNDS), "GB/s");
	report(write_row, median(writes, ROUNDS), "GB/s");
}

int main(void)
{
	struct pair_options options = {.memory = LARGEST, .depth = 16, .rnr_retry = 7, .retry = 7};
	struct core_provider *provider = open_provider();
	struct pair pair;

	pair_connect(&pair, provider, 7002, options);
	memset(pair.client.memory, 1, LARGEST);
	memset(pair.server.memory, 2, LARGEST);
	bench(&pair, 64 << 10, "memcpy-64KiB", "write-64KiB");
	bench(&pair, LARGEST, "memcpy-1MiB", "write-1MiB");
	pair_close(&pair);
	close_provider(provider);
	return 0;
}
