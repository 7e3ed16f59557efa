/* Compare and swap, fetch and add, atomic write: their effects, their errors, and that a duplicate has no effect. */
#include <pthread.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"

#define TARGET 4096
#define RESULT 64

static uint64_t *word(struct bench *bench, size_t offset)
{
	return (uint64_t *)(void *)(bench->memory + offset);
}

struct ends {
	struct bare client, server;
};

static void open_ends(struct ends *ends, struct bench *bench)
{
	bare_create(&ends->client, bench, IBV_QPT_RC, NULL);
	bare_create(&ends->server, bench, IBV_QPT_RC, NULL);
	bare_connect(&ends->client, &ends->server);
}

static void close_ends(struct ends *ends)
{
	bare_destroy(&ends->client);
	bare_destroy(&ends->server);
}

/* Requests with operands have their target in other fields than the others. */
static void aim(struct ibv_send_wr *wr, uint64_t address, uint32_t rkey)
{
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr->wr.atomic.remote_addr = address;
		wr->wr.atomic.rkey = rkey;
	} else {
		wr->wr.rdma.remote_addr = address;
		wr->wr.rdma.rkey = rkey;
	}
}

static struct ibv_send_wr at_target(struct bench *bench, enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = bench_wr(opcode, 1, sge);

	aim(&wr, (uintptr_t)word(bench, TARGET), bench->mr->rkey);
	return wr;
}

static struct ibv_send_wr atomic(struct bench *bench, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
				 uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr wr = at_target(bench, opcode, sge);

	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return wr;
}

/* The next request arrives, and its answer does not. */
static int lose_answer(struct bench *bench)
{
	struct core_fault fault = {
		.from = {.family = AF_INET, .ip = {127, 0, 0, 1}},
		.to = {.family = AF_INET, .ip = {127, 0, 0, 1}},
		.traffic = CORE_FAULT_DATA, .probability = 1000000, .skip = 1, .count = 1,
	};
	int rule = core_fault_add(bench->provider, &fault);

	CHECK(rule >= 0);
	return rule;
}

static void expect_lost(struct bench *bench, int rule)
{
	uint32_t lost;

	CHECK(!core_fault_remove(bench->provider, rule, &lost) && lost == 1);
}

static void test_operations(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, RESULT, 8);
	struct ends ends;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	open_ends(&ends, bench);
	*word(bench, TARGET) = 5;
	wr = atomic(bench, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, UINT64_C(1) << 40, 99);
	CHECK(!bare_post(&ends.client, &wr));
	wc = expect_wc(&ends.client, 1, IBV_WC_SUCCESS);
	CHECK(wc.opcode == IBV_WC_FETCH_ADD && wc.byte_len == 8);
	CHECK(*word(bench, RESULT) == 5 && *word(bench, TARGET) == (UINT64_C(1) << 40) + 5);

	wr = atomic(bench, IBV_WR_ATOMIC_CMP_AND_SWP, &sge, (UINT64_C(1) << 40) + 5, 7);
	CHECK(!bare_post(&ends.client, &wr));
	wc = expect_wc(&ends.client, 1, IBV_WC_SUCCESS);
	CHECK(wc.opcode == IBV_WC_COMP_SWAP && wc.byte_len == 8);
	CHECK(*word(bench, RESULT) == (UINT64_C(1) << 40) + 5 && *word(bench, TARGET) == 7);

	/* Another value than the expected one is returned, and nothing is swapped. */
	wr = atomic(bench, IBV_WR_ATOMIC_CMP_AND_SWP, &sge, 8, 9);
	CHECK(!bare_post(&ends.client, &wr));
	expect_wc(&ends.client, 1, IBV_WC_SUCCESS);
	CHECK(*word(bench, RESULT) == 7 && *word(bench, TARGET) == 7);
	expect_no_wc(&ends.server);
	close_ends(&ends);
}

enum wrong { WRONG_KEY, WRONG_RANGE, WRONG_RIGHT, WRONG_ALIGNMENT, WRONG_QUEUE_PAIR, WRONG_LOCAL_KEY };

/* One way to refuse one of them; its target is never touched. */
static void refuse(struct bench *bench, enum ibv_wr_opcode opcode, const struct ibv_mr *without,
		   enum wrong wrong)
{
	static const enum ibv_wc_status expected[] = {
		[WRONG_KEY] = IBV_WC_REM_ACCESS_ERR, [WRONG_RANGE] = IBV_WC_REM_ACCESS_ERR,
		[WRONG_RIGHT] = IBV_WC_REM_ACCESS_ERR, [WRONG_ALIGNMENT] = IBV_WC_REM_INV_REQ_ERR,
		[WRONG_QUEUE_PAIR] = IBV_WC_REM_INV_REQ_ERR, [WRONG_LOCAL_KEY] = IBV_WC_LOC_PROT_ERR,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_sge sge = bench_sge(bench, RESULT, 8);
	struct ibv_send_wr wr = at_target(bench, opcode, &sge);
	uint64_t target = (uintptr_t)word(bench, TARGET);
	struct ends ends;

	open_ends(&ends, bench);
	*word(bench, TARGET) = 5;
	*word(bench, RESULT) = 6;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = 1;
	if (wrong == WRONG_KEY)
		aim(&wr, target, bench->mr->rkey ^ 1);
	else if (wrong == WRONG_RANGE)
		aim(&wr, (uintptr_t)bench->memory + BENCH_MEMORY, bench->mr->rkey);
	else if (wrong == WRONG_RIGHT)
		aim(&wr, target, without->rkey);
	else if (wrong == WRONG_ALIGNMENT)
		aim(&wr, target + 4, bench->mr->rkey);
	else if (wrong == WRONG_QUEUE_PAIR)
		CHECK(!bare_modify(&ends.server, attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS));
	else
		sge.lkey ^= 1;
	CHECK(!bare_post(&ends.client, &wr));
	expect_wc(&ends.client, 1, expected[wrong]);
	CHECK(bare_state(&ends.client) == IBV_QPS_ERR);
	CHECK(*word(bench, TARGET) == 5);
	if (wrong != WRONG_LOCAL_KEY && on_soft("events of refused requests"))
		expect_async_event(bench, wrong <= WRONG_RIGHT ? IBV_EVENT_QP_ACCESS_ERR :
								 IBV_EVENT_QP_REQ_ERR);
	close_ends(&ends);
}

/* Each way, with a region that lacks the one right that it needs. */
static void test_refused(struct bench *bench, enum ibv_wr_opcode opcode, int lacks)
{
	struct ibv_mr *mr = bench->provider->ibv_reg_mr(bench->pd, bench->memory, 8192,
							BENCH_ACCESS & ~lacks);

	CHECK(mr);
	for (int wrong = WRONG_KEY; wrong <= WRONG_LOCAL_KEY; wrong++)
		if ((wrong != WRONG_ALIGNMENT || on_soft("alignment of atomics")) &&
		    (wrong != WRONG_LOCAL_KEY || on_soft("wrong local keys")))
			refuse(bench, opcode, mr, wrong);
	CHECK(!bench->provider->ibv_dereg_mr(mr));
}

/* The answer is lost, so the request is sent again; it was executed once, and the answer is the same. */
static void test_duplicate(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, RESULT, 8);
	struct ends ends;
	struct ibv_send_wr wr;
	int rule;

	open_ends(&ends, bench);
	*word(bench, TARGET) = 5;
	*word(bench, RESULT) = 0;
	rule = lose_answer(bench);
	wr = atomic(bench, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1, 0);
	CHECK(!bare_post(&ends.client, &wr));
	CHECK(*word(bench, TARGET) == 6);
	expect_wc(&ends.client, 1, IBV_WC_SUCCESS);
	CHECK(*word(bench, TARGET) == 6 && *word(bench, RESULT) == 5);
	expect_lost(bench, rule);
	close_ends(&ends);
}

/*
 * While the answer to a READ is lost, a fenced request waits for it. So does a READ beyond max_rd_atomic. A plain
 * request does not.
 */
static void test_fence_and_depth(struct bench *bench)
{
	for (int fenced = 0; fenced < 2; fenced++) {
		struct ibv_sge read = bench_sge(bench, 8192, 8), write = bench_sge(bench, 12288, 8);
		struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_READ, 1, &read);
		struct ends ends;
		int rule;

		open_ends(&ends, bench);
		*word(bench, 8192) = 0;
		*word(bench, 12288) = 3;
		*word(bench, TARGET) = 4;
		wr.wr.rdma.remote_addr = (uintptr_t)word(bench, TARGET);
		wr.wr.rdma.rkey = bench->mr->rkey;
		rule = lose_answer(bench);
		CHECK(!bare_post(&ends.client, &wr));
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr_id = 2;
		wr.sg_list = &write;
		wr.send_flags |= fenced ? IBV_SEND_FENCE : 0;
		CHECK(!bare_post(&ends.client, &wr));
		/* The fenced write has not happened when the READ is repeated, so it finds the old value. */
		expect_wc(&ends.client, 1, IBV_WC_SUCCESS);
		expect_wc(&ends.client, 2, IBV_WC_SUCCESS);
		CHECK(*word(bench, 8192) == (fenced ? 4 : 3) && *word(bench, TARGET) == 3);
		expect_lost(bench, rule);
		close_ends(&ends);
	}
}

#define ADDERS 3
#define ADDITIONS 20000

struct adder {
	struct ends ends;
	size_t result; /* where its results are written; used by no other thread */
};

static void *add(void *argument)
{
	struct adder *adder = argument;
	struct ends *ends = &adder->ends;
	struct bench *bench = ends->client.bench;
	struct ibv_sge sge = bench_sge(bench, adder->result, 8);

	for (int addition = 0; addition < ADDITIONS; addition++) {
		struct ibv_send_wr wr = atomic(bench, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1, 0);

		CHECK(!bare_post(&ends->client, &wr));
		expect_wc(&ends->client, 1, IBV_WC_SUCCESS);
	}
	return NULL;
}

/* Several queue pairs and the processor itself add to one word, and not one addition is lost. */
static void test_concurrent(struct bench *bench)
{
	struct adder adders[ADDERS];
	pthread_t threads[ADDERS];

	*word(bench, TARGET) = 0;
	for (int index = 0; index < ADDERS; index++) {
		adders[index].result = RESULT + 64 * (size_t)index;
		open_ends(&adders[index].ends, bench);
		CHECK(!pthread_create(&threads[index], NULL, add, &adders[index]));
	}
	for (int addition = 0; addition < ADDITIONS; addition++)
		__atomic_fetch_add(word(bench, TARGET), 1, __ATOMIC_SEQ_CST);
	for (int index = 0; index < ADDERS; index++)
		CHECK(!pthread_join(threads[index], NULL));
	CHECK(*word(bench, TARGET) == (ADDERS + 1) * ADDITIONS);
	for (int index = 0; index < ADDERS; index++)
		close_ends(&adders[index].ends);
}

static void test_atomic_write(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, RESULT, 8), half = bench_sge(bench, RESULT, 4);
	struct ends ends;
	struct ibv_send_wr wr;

	open_ends(&ends, bench);
	*word(bench, TARGET) = 5;
	*word(bench, RESULT) = UINT64_C(0x123456789abcdef);
	wr = at_target(bench, IBV_WR_ATOMIC_WRITE, &sge);
	CHECK(!bare_post(&ends.client, &wr));
	CHECK(expect_wc(&ends.client, 1, IBV_WC_SUCCESS).opcode == IBV_WC_ATOMIC_WRITE);
	CHECK(*word(bench, TARGET) == UINT64_C(0x123456789abcdef));
	/* The value may be taken when it is posted. */
	*word(bench, RESULT) = 6;
	wr.send_flags |= IBV_SEND_INLINE;
	CHECK(!bare_post(&ends.client, &wr));
	*word(bench, RESULT) = 7;
	expect_wc(&ends.client, 1, IBV_WC_SUCCESS);
	CHECK(*word(bench, TARGET) == 6);
	/* It is 8 bytes, no more and no fewer. */
	wr = at_target(bench, IBV_WR_ATOMIC_WRITE, &half);
	CHECK(bare_post(&ends.client, &wr) == EINVAL);
	expect_no_wc(&ends.client);
	expect_no_wc(&ends.server);
	close_ends(&ends);
}

/* The answer is lost, and another write comes before the request is repeated. */
static void test_atomic_write_duplicate(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, RESULT, 8);
	struct ends ends;
	struct ibv_send_wr wr;
	int rule;

	open_ends(&ends, bench);
	*word(bench, RESULT) = 8;
	rule = lose_answer(bench);
	wr = at_target(bench, IBV_WR_ATOMIC_WRITE, &sge);
	CHECK(!bare_post(&ends.client, &wr));
	CHECK(*word(bench, TARGET) == 8);
	*word(bench, TARGET) = 9;
	expect_wc(&ends.client, 1, IBV_WC_SUCCESS);
	CHECK(*word(bench, TARGET) == 9);
	expect_lost(bench, rule);
	close_ends(&ends);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	test_operations(&bench);
	test_refused(&bench, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC);
	if (on_soft("faults")) {
		test_duplicate(&bench);
		test_fence_and_depth(&bench);
	}
	if (on_soft("atomicity with the processor"))
		test_concurrent(&bench);
	if (on_soft("FLUSH and ATOMIC_WRITE")) {
		test_atomic_write(&bench);
		test_refused(&bench, IBV_WR_ATOMIC_WRITE, IBV_ACCESS_REMOTE_WRITE);
		test_atomic_write_duplicate(&bench);
	}
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
