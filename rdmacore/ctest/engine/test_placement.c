/*
 * FLUSH, which version 44 of rdma-core does not define: what it waits for, and its errors. And the value of an
 * ATOMIC_WRITE.
 */
#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "provider/newer.h"

#define TARGET 4096
#define LENGTH 64
#define RIGHTS (BENCH_ACCESS | CORE_ACCESS_FLUSH_GLOBAL)

struct ends {
	struct bare client, server;
	struct ibv_qp_ex *builder; /* of the client */
	struct ibv_mr *mr; /* a part of the shared memory, and it may be flushed */
};

static void open_ends(struct ends *ends, struct bench *bench, unsigned int granted)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = bench->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE |
				  CORE_QP_EX_WITH_FLUSH,
	};
	struct ibv_qp_attr access = {.qp_state = IBV_QPS_RTS, .qp_access_flags = granted};

	*ends = (struct ends){.client.bench = bench};
	ends->client.cq = bench->provider->ibv_create_cq(bench->context, 16, NULL, NULL, 0);
	CHECK(ends->client.cq);
	attr.send_cq = attr.recv_cq = ends->client.cq;
	ends->client.qp = verbs_get_ctx(bench->context)->create_qp_ex(bench->context, &attr);
	CHECK(ends->client.qp);
	ends->builder = bench->provider->ibv_qp_to_qp_ex(ends->client.qp);
	CHECK(ends->builder);
	bare_create(&ends->server, bench, IBV_QPT_RC, NULL);
	bare_connect(&ends->client, &ends->server);
	CHECK(!bare_modify(&ends->server, access, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS));
	ends->mr = bench->provider->ibv_reg_mr(bench->pd, bench->memory + TARGET, LENGTH, RIGHTS);
	CHECK(ends->mr);
}

static void close_ends(struct ends *ends)
{
	CHECK(!ends->client.bench->provider->ibv_dereg_mr(ends->mr));
	bare_destroy(&ends->client);
	bare_destroy(&ends->server);
}

/* A WRITE and a FLUSH of it in one batch; of a range, and of all that the key covers. */
static void test_done(struct bench *bench)
{
	uint64_t target = (uintptr_t)bench->memory + TARGET;
	struct ends ends;

	open_ends(&ends, bench, RIGHTS);
	memset(bench->memory, 0x11, LENGTH);
	memset(bench->memory + TARGET, 0, LENGTH);
	ibv_wr_start(ends.builder);
	ends.builder->wr_flags = IBV_SEND_SIGNALED;
	ends.builder->wr_id = 1;
	ibv_wr_rdma_write(ends.builder, ends.mr->rkey, target);
	ibv_wr_set_sge(ends.builder, bench->mr->lkey, (uintptr_t)bench->memory, LENGTH);
	ends.builder->wr_id = 2;
	core_wr_flush(ends.builder, ends.mr->rkey, target, LENGTH, CORE_FLUSH_GLOBAL, CORE_FLUSH_RANGE);
	ends.builder->wr_id = 3;
	core_wr_flush(ends.builder, ends.mr->rkey, 1, 8, CORE_FLUSH_GLOBAL, CORE_FLUSH_MR); /* no range of it */
	CHECK(!ibv_wr_complete(ends.builder));
	CHECK(expect_wc(&ends.client, 1, IBV_WC_SUCCESS).opcode == IBV_WC_RDMA_WRITE);
	CHECK((int)expect_wc(&ends.client, 2, IBV_WC_SUCCESS).opcode == CORE_WC_FLUSH);
	CHECK((int)expect_wc(&ends.client, 3, IBV_WC_SUCCESS).opcode == CORE_WC_FLUSH);
	CHECK(!memcmp(bench->memory, bench->memory + TARGET, LENGTH));
	expect_no_wc(&ends.server);
	close_ends(&ends);
}

/* The value is read when the request is built (ibv_wr_post(3)); its memory may change afterwards. */
static void test_atomic_value(struct bench *bench)
{
	uint64_t value = 0x0102030405060708, placed;
	struct ends ends;

	open_ends(&ends, bench, RIGHTS);
	memset(bench->memory + TARGET, 0, LENGTH);
	ibv_wr_start(ends.builder);
	ends.builder->wr_id = 1;
	ends.builder->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(ends.builder, ends.mr->rkey, (uintptr_t)bench->memory + TARGET, &value);
	value = 0;
	CHECK(!ibv_wr_complete(ends.builder));
	CHECK(expect_wc(&ends.client, 1, IBV_WC_SUCCESS).opcode == IBV_WC_ATOMIC_WRITE);
	memcpy(&placed, bench->memory + TARGET, sizeof(placed));
	CHECK(placed == 0x0102030405060708);
	close_ends(&ends);
}

static void test_refused(struct bench *bench)
{
	static const struct {
		unsigned int granted;
		uint32_t key_change;
		uint64_t offset;
		uint32_t length;
		uint8_t type, level;
		enum ibv_wc_status status;
	} rows[] = {
		/* The queue pair does not allow it. */
		{BENCH_ACCESS, 0, 0, 8, CORE_FLUSH_GLOBAL, CORE_FLUSH_RANGE, IBV_WC_REM_INV_REQ_ERR},
		{RIGHTS, 0, 0, 8, CORE_FLUSH_GLOBAL | CORE_FLUSH_PERSISTENT, CORE_FLUSH_RANGE,
		 IBV_WC_REM_INV_REQ_ERR},
		/* The key does not. */
		{RIGHTS, 1, 0, 8, CORE_FLUSH_GLOBAL, CORE_FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR},
		{RIGHTS, 1, 0, 8, CORE_FLUSH_GLOBAL, CORE_FLUSH_MR, IBV_WC_REM_ACCESS_ERR},
		{RIGHTS, UINT32_MAX, 0, 8, CORE_FLUSH_GLOBAL, CORE_FLUSH_MR, IBV_WC_REM_ACCESS_ERR},
		{RIGHTS | CORE_ACCESS_FLUSH_PERSISTENT, 0, 0, 8, CORE_FLUSH_PERSISTENT, CORE_FLUSH_RANGE,
		 IBV_WC_REM_ACCESS_ERR},
		/* It covers less. */
		{RIGHTS, 0, 1, LENGTH, CORE_FLUSH_GLOBAL, CORE_FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR},
		{RIGHTS, 0, UINT64_MAX - 4, 8, CORE_FLUSH_GLOBAL, CORE_FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR},
	};

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		uint64_t target = (uintptr_t)bench->memory + TARGET;
		struct ends ends;

		open_ends(&ends, bench, rows[row].granted);
		ibv_wr_start(ends.builder);
		ends.builder->wr_id = 7;
		core_wr_flush(ends.builder, ends.mr->rkey ^ rows[row].key_change, target + rows[row].offset,
			      rows[row].length, rows[row].type, rows[row].level);
		CHECK(!ibv_wr_complete(ends.builder));
		expect_wc(&ends.client, 7, rows[row].status);
		expect_async_event(bench, rows[row].status == IBV_WC_REM_ACCESS_ERR ?
						  IBV_EVENT_QP_ACCESS_ERR :
						  IBV_EVENT_QP_REQ_ERR);
		close_ends(&ends);
	}
}

/* Requests that cannot be posted. */
static void test_malformed(struct bench *bench)
{
	static const struct {
		size_t length;
		uint8_t type, level;
		bool data;
	} rows[] = {
		{8, 0, CORE_FLUSH_RANGE, false}, {8, 4, CORE_FLUSH_RANGE, false},
		{8, CORE_FLUSH_GLOBAL, 2, false}, {SIZE_MAX, CORE_FLUSH_GLOBAL, CORE_FLUSH_RANGE, false},
		{8, CORE_FLUSH_GLOBAL, CORE_FLUSH_RANGE, true},
	};
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr((enum ibv_wr_opcode)CORE_WR_FLUSH, 1, &sge);
	struct ends ends;

	open_ends(&ends, bench, RIGHTS);
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		ibv_wr_start(ends.builder);
		core_wr_flush(ends.builder, ends.mr->rkey, (uintptr_t)bench->memory + TARGET, rows[row].length,
			      rows[row].type, rows[row].level);
		if (rows[row].data)
			ibv_wr_set_sge(ends.builder, bench->mr->lkey, (uintptr_t)bench->memory, 8);
		CHECK(ibv_wr_complete(ends.builder) == EINVAL);
	}
	/* struct ibv_send_wr has no fields for it. */
	CHECK(bare_post(&ends.client, &wr) == EINVAL);
	expect_no_wc(&ends.client);
	close_ends(&ends);
	/* This memory lasts as long as the machine runs. */
	CHECK(!bench->provider->ibv_reg_mr(bench->pd, bench->memory, 8, CORE_ACCESS_FLUSH_PERSISTENT));
}

static void test_advertised(struct bench *bench)
{
	struct ibv_device_attr_ex attr;

	CHECK(!verbs_get_ctx(bench->context)->query_device_ex(bench->context, NULL, &attr, sizeof(attr)));
	CHECK(attr.device_cap_flags_ex & CORE_CAP_FLUSH_GLOBAL);
	CHECK(attr.device_cap_flags_ex & CORE_CAP_ATOMIC_WRITE);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	if (on_soft("FLUSH and ATOMIC_WRITE")) {
		test_advertised(&bench);
		test_done(&bench);
		test_atomic_value(&bench);
		test_refused(&bench);
		test_malformed(&bench);
	}
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
