/*
 * Large RDMA WRITEs and memcpy of the same buffers, in turns. The difference is what the soft provider adds to the one
 * copy that its local link makes. Each row is the median of many short rounds.
 *
 * Prints one line for each row: name, value, unit.
 */
#include "bench.h"
#include "ctest/support/check.h"
#include "ctest/support/pair.h"

#define ROUNDS 101
#define BATCH 16
#define LARGEST (1 << 20)

static double copy(struct pair *pair, size_t length)
{
	double begin = now();

	for (int n = 0; n < BATCH; n++) {
		memcpy(pair->server.memory, pair->client.memory, length);
		__asm__ volatile("" : : "r"(pair->server.memory) : "memory");
	}
	return BATCH * (double)length / (now() - begin);
}

/* In batches, of which the last request is signaled, as in other programs that measure this. */
static double write(struct pair *pair, size_t length)
{
	struct ibv_sge sge = {(uintptr_t)pair->client.memory, (uint32_t)length, pair->client.mr->lkey};
	struct ibv_send_wr batch[BATCH], *bad;
	struct ibv_wc wc;
	double begin;

	for (int n = 0; n < BATCH; n++)
		batch[n] = (struct ibv_send_wr){
			.next = n + 1 < BATCH ? &batch[n + 1] : NULL,
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = n + 1 < BATCH ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)pair->server.memory, pair->server.mr->rkey},
		};
	begin = now();
	CHECK(!ibv_post_send(pair->client.id->qp, batch, &bad));
	while (ibv_poll_cq(pair->client.id->send_cq, 1, &wc) == 0)
		;
	CHECK(wc.status == IBV_WC_SUCCESS);
	return BATCH * (double)length / (now() - begin);
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
	struct pair_options options = {.memory = LARGEST, .depth = BATCH, .rnr_retry = 7, .retry = 7,
				       .unsignaled = true};
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
