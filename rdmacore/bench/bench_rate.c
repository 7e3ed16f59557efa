/*
 * One thread posts messages of 8 bytes in batches of 16 on the local link, to one queue pair and to 10,000 in turn.
 * Also the memory of a queue pair. The last request of a batch is signaled, as in other programs that measure this;
 * each receive completes.
 *
 * Prints one line for each row: name, value, unit.
 */
#include <malloc.h>

#include "bench.h"
#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "soft/objects/qp.h"

#define ROUNDS 101
#define BATCH 16
#define BATCHES 1000 /* for one queue pair */
#define LENGTH 8
#define SLOT 64 /* each queue pair writes to a slot of its own */
#define MANY 10000

struct pairs {
	struct bench bench;
	struct ibv_cq *send_cq, *recv_cq;
	uint32_t count;
	struct bare *ends; /* each two consecutive ones are connected */
	struct ibv_mr *mr;
	char *memory;
	double state; /* bytes of a queue pair without its queues */
};

static struct ibv_cq *make_cq(struct bench *bench)
{
	struct ibv_cq *cq = bench->provider->ibv_create_cq(bench->context, 2 * BATCH, NULL, NULL, 0);

	CHECK(cq);
	return cq;
}

static size_t queue_bytes(const struct ibv_qp *ibv_qp)
{
	const struct soft_qp *qp = (const struct soft_qp *)ibv_qp;

	return (size_t)(qp->requester.mask + 1) * qp->requester.stride +
	       (size_t)(qp->receive.mask + 1) * qp->receive.stride;
}

static void make_ends(struct pairs *pairs)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = BATCH, .max_recv_wr = BATCH, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC, .send_cq = pairs->send_cq, .recv_cq = pairs->recv_cq,
	};
	size_t before = mallinfo2().uordblks, queues = 0;

	for (uint32_t end = 0; end < pairs->count; end++) {
		pairs->ends[end].bench = &pairs->bench;
		pairs->ends[end].qp = pairs->bench.provider->ibv_create_qp(pairs->bench.pd, &attr);
		CHECK(pairs->ends[end].qp);
		queues += queue_bytes(pairs->ends[end].qp);
	}
	for (uint32_t end = 0; end < pairs->count; end += 2)
		bare_connect(&pairs->ends[end], &pairs->ends[end + 1]);
	pairs->state = (double)(mallinfo2().uordblks - before - queues) / pairs->count;
}

static void pairs_open(struct pairs *pairs, struct core_provider *provider, uint32_t count)
{
	size_t size = (size_t)count * SLOT;

	*pairs = (struct pairs){.count = count};
	bench_open(&pairs->bench, provider);
	pairs->send_cq = make_cq(&pairs->bench);
	pairs->recv_cq = make_cq(&pairs->bench);
	pairs->ends = calloc(count, sizeof(*pairs->ends));
	pairs->memory = aligned_alloc(SLOT, size);
	CHECK(pairs->ends && pairs->memory);
	memset(pairs->memory, 1, size);
	pairs->mr = provider->ibv_reg_mr(pairs->bench.pd, pairs->memory, size, BENCH_ACCESS);
	CHECK(pairs->mr);
	make_ends(pairs);
}

static void pairs_close(struct pairs *pairs)
{
	struct core_provider *provider = pairs->bench.provider;

	for (uint32_t end = 0; end < pairs->count; end++)
		CHECK(!provider->ibv_destroy_qp(pairs->ends[end].qp));
	CHECK(!provider->ibv_dereg_mr(pairs->mr));
	CHECK(!provider->ibv_destroy_cq(pairs->send_cq) && !provider->ibv_destroy_cq(pairs->recv_cq));
	bench_close(&pairs->bench);
	free(pairs->memory);
	free(pairs->ends);
}

/* A batch of either kind, created once and posted again and again. */
struct batch {
	struct ibv_sge sge;
	struct ibv_send_wr sends[BATCH];
	struct ibv_recv_wr recvs[BATCH];
};

static void batch_make(struct batch *batch, const struct pairs *pairs, enum ibv_wr_opcode opcode)
{
	batch->sge = (struct ibv_sge){(uintptr_t)pairs->memory, LENGTH, pairs->mr->lkey};
	for (int n = 0; n < BATCH; n++) {
		bool last = n + 1 == BATCH;

		batch->sends[n] = (struct ibv_send_wr){
			.sg_list = &batch->sge, .num_sge = 1, .opcode = opcode,
			.next = last ? NULL : &batch->sends[n + 1],
			.send_flags = last ? IBV_SEND_SIGNALED : 0,
			.wr.rdma.remote_addr = (uintptr_t)pairs->memory,
			.wr.rdma.rkey = pairs->mr->rkey,
		};
		batch->recvs[n] = (struct ibv_recv_wr){
			.sg_list = &batch->sge, .num_sge = 1,
			.next = last ? NULL : &batch->recvs[n + 1],
		};
	}
}

static void take(struct ibv_cq *cq, int count)
{
	struct ibv_wc wcs[BATCH];

	for (int taken = 0; taken < count;) {
		int polled = ibv_poll_cq(cq, count - taken, wcs);

		CHECK(polled >= 0);
		for (int n = 0; n < polled; n++)
			CHECK(wcs[n].status == IBV_WC_SUCCESS);
		taken += polled;
	}
}

/*
 * Messages a second: first the first end of each connection in turn, and then the second, writes to a slot of its
 * own.
 */
static double write_rate(struct pairs *pairs, struct batch *batch, uint32_t batches)
{
	struct ibv_send_wr *bad;
	double begin = processor_time();

	for (uint32_t done = 0, end = 0; done < batches; done++) {
		for (int n = 0; n < BATCH; n++)
			batch->sends[n].wr.rdma.remote_addr = (uintptr_t)pairs->memory + end * SLOT;
		CHECK(!ibv_post_send(pairs->ends[end].qp, batch->sends, &bad));
		take(pairs->send_cq, 1);
		end += 2;
		if (end >= pairs->count)
			end = end % 2 ? 0 : 1;
	}
	return (double)batches * BATCH / (processor_time() - begin) * 1e9;
}

static double send_rate(struct pairs *pairs, struct batch *batch)
{
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;
	double begin = processor_time();

	for (uint32_t done = 0; done < BATCHES; done++) {
		CHECK(!ibv_post_recv(pairs->ends[1].qp, batch->recvs, &bad_recv));
		CHECK(!ibv_post_send(pairs->ends[0].qp, batch->sends, &bad_send));
		take(pairs->recv_cq, BATCH);
		take(pairs->send_cq, 1);
	}
	return (double)BATCHES * BATCH / (processor_time() - begin) * 1e9;
}

int main(void)
{
	struct core_provider *provider = open_provider();
	double sends[ROUNDS], writes[ROUNDS], many_writes[ROUNDS];
	struct batch send, write, many_write;
	struct pairs one, many;

	pairs_open(&one, provider, 2);
	pairs_open(&many, provider, MANY);
	batch_make(&send, &one, IBV_WR_SEND);
	batch_make(&write, &one, IBV_WR_RDMA_WRITE);
	batch_make(&many_write, &many, IBV_WR_RDMA_WRITE);
	for (int round = 0; round < ROUNDS; round++) {
		sends[round] = send_rate(&one, &send);
		writes[round] = write_rate(&one, &write, BATCHES);
		many_writes[round] = write_rate(&many, &many_write, MANY);
	}
	report("write-8B", median(writes, ROUNDS) / 1e6, "M/s");
	report("send-8B", median(sends, ROUNDS) / 1e6, "M/s");
	report("write-8B-10000-QPs", median(many_writes, ROUNDS) / 1e6, "M/s");
	report("qp-state", many.state, "B");
	pairs_close(&many);
	pairs_close(&one);
	close_provider(provider);
	return 0;
}
