/*
 * Messages of 8 bytes that one thread posts in batches of 16 on the local link, of one queue pair and of
 * 10,000 in turn, and what each of those costs in memory.  The last request of a batch is signaled, as other
 * programs that measure this have it; every receive completes.
 *
 * Prints one line a row: name, value, unit.
 */
#include <malloc.h>

#include "bench.h"
#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "soft/objects/qp.h"

#define ROUNDS 101
#define BATCH 16
#define BATCHES 1000 /* a round of one queue pair */
#define LENGTH 8
#define SLOT 64 /* each queue pair writes to a place of its own */
#define MANY 10000

struct crowd {
	struct bench bench;
	struct ibv_cq *send_cq, *recv_cq;
	uint32_t count;
	struct bare *ends; /* two that follow each other are connected */
	struct ibv_mr *mr;
	char *memory;
	double state; /* bytes that each queue pair took, without its queues */
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

static void make_ends(struct crowd *crowd)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = BATCH, .max_recv_wr = BATCH, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC, .send_cq = crowd->send_cq, .recv_cq = crowd->recv_cq,
	};
	size_t before = mallinfo2().uordblks, queues = 0;

	for (uint32_t end = 0; end < crowd->count; end++) {
		crowd->ends[end].bench = &crowd->bench;
		crowd->ends[end].qp = crowd->bench.provider->ibv_create_qp(crowd->bench.pd, &attr);
		CHECK(crowd->ends[end].qp);
		queues += queue_bytes(crowd->ends[end].qp);
	}
	for (uint32_t end = 0; end < crowd->count; end += 2)
		bare_connect(&crowd->ends[end], &crowd->ends[end + 1]);
	crowd->state = (double)(mallinfo2().uordblks - before - queues) / crowd->count;
}

static void crowd_open(struct crowd *crowd, struct core_provider *provider, uint32_t count)
{
	size_t size = (size_t)count * SLOT;

	*crowd = (struct crowd){.count = count};
	bench_open(&crowd->bench, provider);
	crowd->send_cq = make_cq(&crowd->bench);
	crowd->recv_cq = make_cq(&crowd->bench);
	crowd->ends = calloc(count, sizeof(*crowd->ends));
	crowd->memory = aligned_alloc(SLOT, size);
	CHECK(crowd->ends && crowd->memory);
	memset(crowd->memory, 1, size);
	crowd->mr = provider->ibv_reg_mr(crowd->bench.pd, crowd->memory, size, BENCH_ACCESS);
	CHECK(crowd->mr);
	make_ends(crowd);
}

static void crowd_close(struct crowd *crowd)
{
	struct core_provider *provider = crowd->bench.provider;

	for (uint32_t end = 0; end < crowd->count; end++)
		CHECK(!provider->ibv_destroy_qp(crowd->ends[end].qp));
	CHECK(!provider->ibv_dereg_mr(crowd->mr));
	CHECK(!provider->ibv_destroy_cq(crowd->send_cq) && !provider->ibv_destroy_cq(crowd->recv_cq));
	bench_close(&crowd->bench);
	free(crowd->memory);
	free(crowd->ends);
}

/* One batch of either kind, made once and posted again and again. */
struct batch {
	struct ibv_sge sge;
	struct ibv_send_wr sends[BATCH];
	struct ibv_recv_wr recvs[BATCH];
};

static void batch_make(struct batch *batch, const struct crowd *crowd, enum ibv_wr_opcode opcode)
{
	batch->sge = (struct ibv_sge){(uintptr_t)crowd->memory, LENGTH, crowd->mr->lkey};
	for (int n = 0; n < BATCH; n++) {
		bool last = n + 1 == BATCH;

		batch->sends[n] = (struct ibv_send_wr){
			.sg_list = &batch->sge, .num_sge = 1, .opcode = opcode,
			.next = last ? NULL : &batch->sends[n + 1],
			.send_flags = last ? IBV_SEND_SIGNALED : 0,
			.wr.rdma.remote_addr = (uintptr_t)crowd->memory,
			.wr.rdma.rkey = crowd->mr->rkey,
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
 * Messages a second: of each connection in turn the first end, and then of each the second, writes to a place
 * of its own.
 */
static double write_rate(struct crowd *crowd, struct batch *batch, uint32_t batches)
{
	struct ibv_send_wr *bad;
	double begin = processor_time();

	for (uint32_t done = 0, end = 0; done < batches; done++) {
		for (int n = 0; n < BATCH; n++)
			batch->sends[n].wr.rdma.remote_addr = (uintptr_t)crowd->memory + end * SLOT;
		CHECK(!ibv_post_send(crowd->ends[end].qp, batch->sends, &bad));
		take(crowd->send_cq, 1);
		end += 2;
		if (end >= crowd->count)
			end = end % 2 ? 0 : 1;
	}
	return (double)batches * BATCH / (processor_time() - begin) * 1e9;
}

static double send_rate(struct crowd *crowd, struct batch *batch)
{
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;
	double begin = processor_time();

	for (uint32_t done = 0; done < BATCHES; done++) {
		CHECK(!ibv_post_recv(crowd->ends[1].qp, batch->recvs, &bad_recv));
		CHECK(!ibv_post_send(crowd->ends[0].qp, batch->sends, &bad_send));
		take(crowd->recv_cq, BATCH);
		take(crowd->send_cq, 1);
	}
	return (double)BATCHES * BATCH / (processor_time() - begin) * 1e9;
}

int main(void)
{
	struct core_provider *provider = open_provider();
	double sends[ROUNDS], writes[ROUNDS], many_writes[ROUNDS];
	struct batch send, write, many_write;
	struct crowd one, many;

	crowd_open(&one, provider, 2);
	crowd_open(&many, provider, MANY);
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
	crowd_close(&many);
	crowd_close(&one);
	close_provider(provider);
	return 0;
}
