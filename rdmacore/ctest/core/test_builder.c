/* Requests in flat form by the builders of ibv_wr_post(3): each operation, errors, and all or nothing. */
#include <pthread.h>

#include "core/post.h"
#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "provider/newer.h"

#define SOURCE 0
#define TARGET 4096
#define BACK 8192
#define ALL                                                                                        \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |    \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                                 \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |                 \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)
/* rdma_rxe of Linux 6.1 executes neither. */
#define SOFT_ONLY (IBV_QP_EX_WITH_ATOMIC_WRITE | CORE_QP_EX_WITH_FLUSH)

/* An end that is posted to by its builders. */
struct built {
	struct bare bare;
	struct ibv_qp_ex *qp;
	uint64_t operations;
};

static struct ibv_qp *create_qp(struct bench *bench, struct ibv_cq *cq, enum ibv_qp_type type,
				uint64_t operations)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = BENCH_DEPTH, .max_recv_wr = BENCH_DEPTH, .max_send_sge = 4,
			.max_recv_sge = 4, .max_inline_data = 64},
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = bench->pd,
		.send_ops_flags = operations,
	};
	struct verbs_context *context = verbs_get_ctx_op(bench->context, create_qp_ex);

	CHECK(context);
	return context->create_qp_ex(bench->context, &attr);
}

static void built_create(struct built *built, struct bench *bench, enum ibv_qp_type type, uint64_t operations)
{
	*built = (struct built){.bare.bench = bench};
	built->bare.cq = bench->provider->ibv_create_cq(bench->context, 4 * BENCH_DEPTH, NULL, NULL, 0);
	CHECK(built->bare.cq);
	built->bare.qp = create_qp(bench, built->bare.cq, type, operations);
	CHECK(built->bare.qp);
	built->qp = core_qp_builder(bench->provider, built->bare.qp, operations, &built->operations);
	CHECK(built->qp && built->operations == operations);
}

static uint64_t operations(void)
{
	return on_soft("FLUSH and ATOMIC_WRITE") ? ALL | SOFT_ONLY : ALL;
}

static void open_ends(struct built *client, struct bare *server, struct bench *bench)
{
	built_create(client, bench, IBV_QPT_RC, operations());
	bare_create(server, bench, IBV_QPT_RC, NULL);
	bare_connect(&client->bare, server);
	memset(bench->memory, 0, 3 * 4096);
	memcpy(bench->memory + SOURCE, "abcdefghijklmnop", 16);
}

static void close_ends(struct built *client, struct bare *server)
{
	bare_destroy(&client->bare);
	bare_destroy(server);
}

static struct core_sge entry(const struct bench *bench, size_t offset, uint32_t length)
{
	return (struct core_sge){(uintptr_t)bench->memory + offset, length, bench->mr->lkey};
}

/* A signaled request of one entry, to TARGET. */
static struct core_send_wr request(const struct bench *bench, uint32_t opcode, uint64_t wr_id)
{
	return (struct core_send_wr){.wr_id = wr_id, .opcode = opcode, .flags = IBV_SEND_SIGNALED, .num_sge = 1,
				     .rkey = bench->mr->rkey,
				     .remote_address = (uintptr_t)bench->memory + TARGET};
}

static int build(struct built *built, const struct core_send_wr *wrs, uint32_t count,
		 const struct core_sge *sges, uint32_t num_sges)
{
	uint32_t posted = 77;
	int result = core_build_send(built->bare.bench->provider, built->qp, built->operations, wrs, count, sges,
				     num_sges, NULL, 0, &posted);

	CHECK(posted == (result ? 0 : count));
	return result;
}

static void test_operations(struct bench *bench)
{
	struct core_sge list[] = {entry(bench, SOURCE, 8), entry(bench, BACK, 8), entry(bench, SOURCE + 8, 8)};
	struct core_send_wr wr;
	struct built client;
	struct bare server;
	struct ibv_wc wc;

	open_ends(&client, &server, bench);
	for (uint64_t id = 0; id < 3; id++)
		CHECK(!bare_recv(&server, id, TARGET + 1024 * id, 64));
	wr = request(bench, IBV_WR_SEND, 1);
	CHECK(!build(&client, &wr, 1, list, 3));
	CHECK(expect_wc(&client.bare, 1, IBV_WC_SUCCESS).opcode == IBV_WC_SEND);
	CHECK(expect_wc(&server, 0, IBV_WC_SUCCESS).byte_len == 8);
	CHECK(!memcmp(bench->memory + TARGET, "abcdefgh", 8));

	wr = request(bench, IBV_WR_SEND_WITH_IMM, 2);
	wr.imm_data = 0x11223344;
	wr.num_sge = 0;
	CHECK(!build(&client, &wr, 1, list, 3));
	expect_wc(&client.bare, 2, IBV_WC_SUCCESS);
	wc = expect_wc(&server, 1, IBV_WC_SUCCESS);
	CHECK(wc.byte_len == 0 && wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == 0x11223344);

	wr = request(bench, IBV_WR_RDMA_WRITE, 3);
	wr.first_sge = 2;
	CHECK(!build(&client, &wr, 1, list, 3));
	CHECK(expect_wc(&client.bare, 3, IBV_WC_SUCCESS).opcode == IBV_WC_RDMA_WRITE);
	CHECK(!memcmp(bench->memory + TARGET, "ijklmnop", 8));

	wr = request(bench, IBV_WR_RDMA_WRITE_WITH_IMM, 4);
	wr.imm_data = 5;
	CHECK(!build(&client, &wr, 1, list, 3));
	expect_wc(&client.bare, 4, IBV_WC_SUCCESS);
	wc = expect_wc(&server, 2, IBV_WC_SUCCESS);
	CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.imm_data == 5);

	wr = request(bench, IBV_WR_RDMA_READ, 5);
	wr.first_sge = 1;
	CHECK(!build(&client, &wr, 1, list, 3));
	CHECK(expect_wc(&client.bare, 5, IBV_WC_SUCCESS).opcode == IBV_WC_RDMA_READ);
	CHECK(!memcmp(bench->memory + BACK, "abcdefgh", 8));
	close_ends(&client, &server);
}

static uint64_t word(const struct bench *bench, size_t offset)
{
	uint64_t value;

	memcpy(&value, bench->memory + offset, sizeof(value));
	return value;
}

static void test_atomics(struct bench *bench)
{
	struct core_sge back = entry(bench, BACK, 8);
	struct core_sge halves[] = {entry(bench, SOURCE, 3), entry(bench, SOURCE + 3, 5)};
	struct core_send_wr wr = request(bench, IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
	struct built client;
	struct bare server;

	open_ends(&client, &server, bench);
	wr.compare_add = 7;
	CHECK(!build(&client, &wr, 1, &back, 1));
	CHECK(expect_wc(&client.bare, 1, IBV_WC_SUCCESS).opcode == IBV_WC_FETCH_ADD);
	CHECK(word(bench, TARGET) == 7 && word(bench, BACK) == 0);
	wr = request(bench, IBV_WR_ATOMIC_CMP_AND_SWP, 2);
	wr.compare_add = 7;
	wr.swap = 9;
	CHECK(!build(&client, &wr, 1, &back, 1));
	CHECK(expect_wc(&client.bare, 2, IBV_WC_SUCCESS).opcode == IBV_WC_COMP_SWAP);
	CHECK(word(bench, TARGET) == 9 && word(bench, BACK) == 7);
	wr = request(bench, IBV_WR_ATOMIC_WRITE, 3);
	wr.num_sge = 2;
	if (on_soft("FLUSH and ATOMIC_WRITE")) {
		CHECK(!build(&client, &wr, 1, halves, 2));
		CHECK(expect_wc(&client.bare, 3, IBV_WC_SUCCESS).opcode == IBV_WC_ATOMIC_WRITE);
		CHECK(!memcmp(bench->memory + TARGET, "abcdefgh", 8));
		halves[1].length = 4;
		CHECK(build(&client, &wr, 1, halves, 2) == -EINVAL);
		halves[1].length = 6;
		CHECK(build(&client, &wr, 1, halves, 2) == -EINVAL);
		halves[0].address = 0;
		CHECK(build(&client, &wr, 1, halves, 2) == -EFAULT);
	} else {
		CHECK(build(&client, &wr, 1, halves, 2) == -EOPNOTSUPP);
	}
	expect_no_wc(&client.bare);
	close_ends(&client, &server);
}

/* Lists, and data that may change as soon as it is posted. */
static void test_data(struct bench *bench)
{
	struct core_sge list[] = {entry(bench, SOURCE, 8), entry(bench, SOURCE + 8, 8)};
	struct core_send_wr wr = request(bench, IBV_WR_RDMA_WRITE, 1);
	struct built client;
	struct bare server;

	open_ends(&client, &server, bench);
	wr.num_sge = 2;
	CHECK(!build(&client, &wr, 1, list, 2));
	expect_wc(&client.bare, 1, IBV_WC_SUCCESS);
	CHECK(!memcmp(bench->memory + TARGET, "abcdefghijklmnop", 16));
	for (uint32_t entries = 1; on_soft("inline data by builders") && entries <= 2; entries++) {
		memset(bench->memory + TARGET, 0, 16);
		wr = request(bench, IBV_WR_RDMA_WRITE, 2);
		wr.num_sge = entries;
		wr.flags |= IBV_SEND_INLINE;
		list[0].lkey = list[1].lkey = 0; /* not looked at */
		CHECK(!build(&client, &wr, 1, list, 2));
		memset(bench->memory + SOURCE, 0, 16);
		expect_wc(&client.bare, 2, IBV_WC_SUCCESS);
		CHECK(!memcmp(bench->memory + TARGET, "abcdefghijklmnop", 8 * entries));
		memcpy(bench->memory + SOURCE, "abcdefghijklmnop", 16);
	}
	close_ends(&client, &server);
}

/* Errors that the core finds itself, in the last of 40 requests: none of them is posted. */
static void test_errors(struct bench *bench)
{
	struct core_sge list[CORE_WORK_ENTRIES + 2];
	struct core_send_wr wrs[40], plain = request(bench, IBV_WR_RDMA_WRITE, 1);
	const struct {
		uint32_t opcode, flags, first, count;
		int error;
	} rows[] = {
		{IBV_WR_SEND_WITH_INV, 0, 0, 1, -EOPNOTSUPP}, /* not requested at creation */
		{CORE_WR_FLUSH, 0, 0, 1, -EOPNOTSUPP},
		{IBV_WR_BIND_MW, 0, 0, 1, -EINVAL}, /* not possible in the flat form */
		{IBV_WR_TSO, 0, 0, 1, -EINVAL},
		{77, 0, 0, 1, -EINVAL},
		{UINT32_MAX, 0, 0, 1, -EINVAL},
		{IBV_WR_RDMA_READ, IBV_SEND_INLINE, 0, 1, -EINVAL},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_INLINE, 0, 1, -EINVAL},
		{IBV_WR_RDMA_WRITE, 0, CORE_WORK_ENTRIES + 3, 0, -EINVAL},
		{IBV_WR_RDMA_WRITE, 0, CORE_WORK_ENTRIES + 1, 2, -EINVAL},
		{IBV_WR_RDMA_WRITE, 0, 1, UINT32_MAX, -EINVAL},
		{IBV_WR_RDMA_WRITE, 0, 0, CORE_WORK_ENTRIES + 1, -EINVAL}, /* more than any device takes */
	};
	struct built client;
	struct bare server;
	uint32_t posted;

	built_create(&client, bench, IBV_QPT_RC,
		     IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	bare_connect(&client.bare, &server);
	for (size_t index = 0; index < sizeof(list) / sizeof(list[0]); index++)
		list[index] = entry(bench, SOURCE, 8);
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		for (uint32_t index = 0; index < 40; index++)
			wrs[index] = plain;
		wrs[39].opcode = rows[row].opcode;
		wrs[39].flags |= rows[row].flags;
		wrs[39].first_sge = rows[row].first;
		wrs[39].num_sge = rows[row].count;
		CHECK(build(&client, wrs, 40, list, CORE_WORK_ENTRIES + 2) == rows[row].error);
	}
	/* A guest's: outside of its memory. */
	CHECK(core_build_send(bench->provider, client.qp, client.operations, wrs, 1, list, 1, NULL, 8,
			      &posted) == -EFAULT && !posted);
	CHECK(!build(&client, NULL, 0, NULL, 0));
	expect_no_wc(&client.bare);
	/* A plain queue pair has no place for a FLUSH. */
	plain.opcode = CORE_WR_FLUSH;
	CHECK(core_post_send(bench->provider, server.qp, &plain, 1, list, 1, NULL, 0, &posted) == -EOPNOTSUPP);
	CHECK(!posted && !core_qp_builder(bench->provider, server.qp, ALL, &client.operations) &&
	      !client.operations);
	close_ends(&client, &server);
}

/* More at once than are converted at once, and more than there is room for. */
static void test_batch(struct bench *bench)
{
	struct core_sge list[] = {entry(bench, SOURCE, 8)};
	struct core_send_wr wrs[1000];
	struct built client;
	struct bare server;
	int error;

	open_ends(&client, &server, bench);
	for (uint32_t index = 0; index < 1000; index++)
		wrs[index] = request(bench, IBV_WR_RDMA_WRITE, index);
	for (int round = 0; round < 3; round++) {
		error = build(&client, wrs, 1000, list, 1);
		CHECK(error == (on_soft("the errno of a full send queue") ? -ENOMEM : -ENOSPC));
		CHECK(!build(&client, wrs, BENCH_DEPTH, list, 1));
		for (uint32_t index = 0; index < BENCH_DEPTH; index++)
			expect_wc(&client.bare, index, IBV_WC_SUCCESS);
		expect_no_wc(&client.bare);
	}
	close_ends(&client, &server);
}

static void test_datagrams(struct bench *bench)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1,
				   .grh = {.dgid = bench->gid, .sgid_index = bench->gid_index}};
	struct core_sge list[] = {entry(bench, SOURCE, 8)};
	struct core_send_wr wr = request(bench, IBV_WR_SEND_WITH_IMM, 1);
	struct built client;
	struct bare server;

	built_create(&client, bench, IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	bare_create(&server, bench, IBV_QPT_UD, NULL);
	for (int end = 0; end < 2; end++) {
		bare_init(end ? &server : &client.bare);
		bare_ready_to_receive(end ? &server : &client.bare, NULL);
		bare_ready_to_send(end ? &server : &client.bare);
	}
	CHECK(!bare_recv(&server, 2, TARGET, 64));
	CHECK(!core_create_ah(bench->provider, bench->pd, &attr, &wr.ah));
	wr.remote_qpn = server.qp->qp_num;
	wr.remote_qkey = BENCH_QKEY;
	wr.imm_data = 6;
	CHECK(!build(&client, &wr, 1, list, 1));
	expect_wc(&client.bare, 1, IBV_WC_SUCCESS);
	CHECK(expect_wc(&server, 2, IBV_WC_SUCCESS).imm_data == 6);
	wr.opcode = IBV_WR_RDMA_WRITE;
	CHECK(build(&client, &wr, 1, list, 1) == -EOPNOTSUPP);
	wr.opcode = IBV_WR_SEND;
	CHECK(!core_destroy_ah(bench->provider, bench->pd, wr.ah));
	CHECK(build(&client, &wr, 1, list, 1) == -EINVAL);
	wr.ah = 0;
	CHECK(build(&client, &wr, 1, list, 1) == -EINVAL);
	expect_no_wc(&client.bare);
	close_ends(&client, &server);
}

/* A window that the builder binds. It is used, and the peer or the owner invalidates its key. */
static void test_windows(struct bench *bench)
{
	struct core_sge list[] = {entry(bench, SOURCE, 8)};
	struct core_mw_bind bind = {.wr_id = 1, .address = (uintptr_t)bench->memory + TARGET, .length = 64,
				    .flags = IBV_SEND_SIGNALED, .access = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_mr *mr = bench->provider->ibv_reg_mr(bench->pd, bench->memory, BENCH_MEMORY,
							BENCH_ACCESS | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(bench->pd, IBV_MW_TYPE_2);
	uint32_t before = mw->rkey;
	struct core_send_wr wr;
	struct built a, b;

	CHECK(mr);
	built_create(&a, bench, IBV_QPT_RC, ALL);
	built_create(&b, bench, IBV_QPT_RC, ALL);
	bare_connect(&a.bare, &b.bare);
	CHECK(core_bind_mw(a.bare.qp, a.qp, ALL & ~(uint64_t)IBV_QP_EX_WITH_BIND_MW, mw, mr, &bind) ==
	      -EOPNOTSUPP);
	bind.flags |= IBV_SEND_INLINE;
	CHECK(core_bind_mw(a.bare.qp, a.qp, a.operations, mw, mr, &bind) == -EINVAL);
	CHECK(mw->rkey == before);
	bind.flags = IBV_SEND_SIGNALED;
	for (int by_peer = 0; by_peer < 2; by_peer++) {
		CHECK(!core_bind_mw(a.bare.qp, a.qp, a.operations, mw, mr, &bind));
		CHECK(mw->rkey != before && mw->rkey >> 8 == before >> 8);
		CHECK(expect_wc(&a.bare, 1, IBV_WC_SUCCESS).opcode == IBV_WC_BIND_MW);
		wr = request(bench, IBV_WR_RDMA_WRITE, 2);
		wr.rkey = mw->rkey;
		CHECK(!build(&b, &wr, 1, list, 1));
		expect_wc(&b.bare, 2, IBV_WC_SUCCESS);
		wr = request(bench, by_peer ? IBV_WR_SEND_WITH_INV : IBV_WR_LOCAL_INV, 3);
		wr.imm_data = mw->rkey;
		wr.num_sge = 0;
		CHECK(!bare_recv(&a.bare, 4, BACK, 8));
		CHECK(!build(by_peer ? &b : &a, &wr, 1, list, 1));
		if (by_peer) {
			CHECK(!!(expect_wc(&a.bare, 4, IBV_WC_SUCCESS).wc_flags & IBV_WC_WITH_INV) ==
			      on_soft("the flag of invalidation"));
			expect_wc(&b.bare, 3, IBV_WC_SUCCESS);
		} else {
			CHECK(expect_wc(&a.bare, 3, IBV_WC_SUCCESS).opcode == IBV_WC_LOCAL_INV);
		}
	}
	bare_destroy(&a.bare);
	bare_destroy(&b.bare);
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!bench->provider->ibv_dereg_mr(mr));
}

static void test_flush(struct bench *bench)
{
	struct core_sge list[] = {entry(bench, SOURCE, 8), {0, 8, 0}, {0, 80, 0}};
	struct ibv_qp_attr access = {.qp_state = IBV_QPS_RTS,
				     .qp_access_flags = BENCH_ACCESS | CORE_ACCESS_FLUSH_GLOBAL};
	struct ibv_mr *mr = bench->provider->ibv_reg_mr(bench->pd, bench->memory + TARGET, 64,
							BENCH_ACCESS | CORE_ACCESS_FLUSH_GLOBAL);
	struct core_send_wr wrs[3];
	struct built client;
	struct bare server;

	CHECK(mr);
	open_ends(&client, &server, bench);
	CHECK(!bare_modify(&server, access, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS));
	for (uint32_t index = 0; index < 3; index++) {
		wrs[index] = request(bench, index ? CORE_WR_FLUSH : IBV_WR_RDMA_WRITE, index);
		wrs[index].rkey = mr->rkey;
		wrs[index].placement = CORE_FLUSH_GLOBAL;
	}
	wrs[1].num_sge = 2; /* sixteen bytes; only the length of the second entry counts */
	wrs[2].selectivity = CORE_FLUSH_MR;
	wrs[2].num_sge = 0;
	CHECK(!build(&client, wrs, 3, list, 3));
	expect_wc(&client.bare, 0, IBV_WC_SUCCESS);
	CHECK((int)expect_wc(&client.bare, 1, IBV_WC_SUCCESS).opcode == CORE_WC_FLUSH);
	CHECK((int)expect_wc(&client.bare, 2, IBV_WC_SUCCESS).opcode == CORE_WC_FLUSH);
	CHECK(!memcmp(bench->memory + TARGET, "abcdefgh", 8));
	wrs[1].placement = 0;
	CHECK(build(&client, wrs, 3, list, 3) == -EINVAL);
	wrs[1].placement = 4;
	CHECK(build(&client, wrs, 3, list, 3) == -EINVAL);
	wrs[1].placement = CORE_FLUSH_GLOBAL;
	wrs[1].selectivity = 2;
	CHECK(build(&client, wrs, 3, list, 3) == -EINVAL);
	wrs[1].selectivity = CORE_FLUSH_RANGE;
	wrs[1].flags |= IBV_SEND_INLINE;
	CHECK(build(&client, wrs, 3, list, 3) == -EINVAL);
	expect_no_wc(&client.bare);
	/* One byte more than the key covers is in the lengths alone. */
	wrs[1].flags = IBV_SEND_SIGNALED;
	wrs[1].first_sge = 2;
	wrs[1].num_sge = 1;
	CHECK(!build(&client, wrs + 1, 1, list, 3));
	expect_wc(&client.bare, 1, IBV_WC_REM_ACCESS_ERR);
	expect_async_event(bench, IBV_EVENT_QP_ACCESS_ERR);
	close_ends(&client, &server);
	CHECK(!bench->provider->ibv_dereg_mr(mr));
}

/* A provider may lack builders that were not requested, and even some that were. */
static void test_absent(struct bench *bench)
{
	struct core_sge list[] = {entry(bench, SOURCE, 8)};
	struct core_send_wr wr = request(bench, IBV_WR_RDMA_READ, 1);
	struct built client;
	struct bare server;
	uint64_t operations;

	open_ends(&client, &server, bench);
	client.qp->wr_rdma_read = NULL;
	CHECK(core_qp_builder(bench->provider, client.bare.qp, ALL, &client.operations) == client.qp);
	CHECK(client.operations == (ALL & ~(uint64_t)IBV_QP_EX_WITH_RDMA_READ));
	CHECK(build(&client, &wr, 1, list, 1) == -EOPNOTSUPP);
	client.qp->wr_set_inline_data_list = NULL;
	wr.opcode = IBV_WR_SEND;
	wr.flags |= IBV_SEND_INLINE;
	CHECK(build(&client, &wr, 1, list, 1) == -EOPNOTSUPP);
	expect_no_wc(&client.bare);
	client.qp->wr_abort = NULL;
	CHECK(!core_qp_builder(bench->provider, client.bare.qp, ALL, &operations) && !operations);
	close_ends(&client, &server);
}

#define POSTS (2 * BENCH_DEPTH) /* completions of both threads that there is room for */

static void *post_many(void *argument)
{
	struct built *client = argument;
	struct core_sge list[] = {entry(client->bare.bench, SOURCE, 8)};
	struct core_send_wr wrs[4];
	uint32_t done = 0;

	for (uint32_t index = 0; index < 4; index++) {
		wrs[index] = request(client->bare.bench, IBV_WR_RDMA_READ, index);
		wrs[index].remote_address += 1024;
		if (index < 3)
			wrs[index].flags = 0;
	}
	list->address += BACK;
	while (done < POSTS)
		if (!build(client, wrs, 4, list, 1))
			done++;
	return NULL;
}

/* Two threads post batches to one queue pair, of which each stays whole. */
static void test_threads(struct bench *bench)
{
	pthread_t threads[2];
	struct built client;
	struct bare server;

	open_ends(&client, &server, bench);
	for (int thread = 0; thread < 2; thread++)
		CHECK(!pthread_create(&threads[thread], NULL, post_many, &client));
	for (int batch = 0; batch < 2 * POSTS; batch++)
		expect_wc(&client.bare, 3, IBV_WC_SUCCESS);
	for (int thread = 0; thread < 2; thread++)
		CHECK(!pthread_join(threads[thread], NULL));
	expect_no_wc(&client.bare);
	close_ends(&client, &server);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	test_operations(&bench);
	test_atomics(&bench);
	test_data(&bench);
	test_errors(&bench);
	test_batch(&bench);
	test_datagrams(&bench);
	test_windows(&bench);
	test_absent(&bench);
	test_threads(&bench);
	if (on_soft("FLUSH and ATOMIC_WRITE"))
		test_flush(&bench);
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
