/* Memory windows of both types: bound, used, bound again, invalidated from both sides, refused. */
#include "ctest/support/check.h"
#include "ctest/support/window.h"

static void bind_type_1(struct bare *server, struct ibv_mw *mw, struct ibv_mw_bind_info info,
			enum ibv_wc_status status)
{
	struct ibv_mw_bind bind = {.wr_id = 60, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
	uint32_t before = mw->rkey;
	struct ibv_wc wc;

	CHECK(!ibv_bind_mw(server->qp, mw, &bind));
	CHECK(mw->rkey != before && mw->rkey >> 8 == before >> 8);
	wc = expect_wc(server, 60, status);
	CHECK(status != IBV_WC_SUCCESS || wc.opcode == IBV_WC_BIND_MW);
}

static void bind_type_2(struct bare *server, struct ibv_mw *mw, struct ibv_mw_bind_info info,
			enum ibv_wc_status status)
{
	struct ibv_send_wr wr = {.wr_id = 61, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = info;
	CHECK(!bare_post(server, &wr));
	expect_wc(server, 61, status);
	if (status == IBV_WC_SUCCESS)
		mw->rkey = wr.bind_mw.rkey;
}

static void test_type_1(struct bench *bench)
{
	struct ibv_mw *mw = window_make(bench, IBV_MW_TYPE_1);
	struct ibv_mr *mr = window_region(bench);
	struct bare client, server;
	uint32_t old;

	window_pair(bench, &client, &server);
	/* Programs set the local right as well, which has no effect. */
	bind_type_1(&server, mw, window_range(mr, bench, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE),
		    IBV_WC_SUCCESS);
	CHECK(window_write(&client, WINDOW_OFFSET, mw->rkey) == IBV_WC_SUCCESS);
	CHECK(window_write(&client, WINDOW_OFFSET + WINDOW_SIZE - 8, mw->rkey) == IBV_WC_SUCCESS);
	CHECK(bench->provider->ibv_dereg_mr(mr) == (on_soft("regions with windows") ? EBUSY : EINVAL));
	/*
	 * Bound again: the old key is invalid at once, and the region can be deregistered when nothing is bound to
	 * it.
	 */
	old = mw->rkey;
	bind_type_1(&server, mw, window_range(mr, bench, IBV_ACCESS_REMOTE_READ), IBV_WC_SUCCESS);
	CHECK(window_write(&client, WINDOW_OFFSET, old) == IBV_WC_REM_ACCESS_ERR);
	bare_destroy(&client);
	bare_destroy(&server);
	window_pair(bench, &client, &server);
	CHECK(window_write(&client, WINDOW_OFFSET, mw->rkey) == IBV_WC_REM_ACCESS_ERR); /* may be read only */
	bare_destroy(&client);
	bare_destroy(&server);
	window_pair(bench, &client, &server);
	if (on_soft("windows bound to nothing")) {
		bind_type_1(&server, mw, (struct ibv_mw_bind_info){0}, IBV_WC_SUCCESS);
		CHECK(!bench->provider->ibv_dereg_mr(mr));
		mr = window_region(bench);
		bind_type_1(&server, mw, window_range(mr, bench, IBV_ACCESS_REMOTE_READ), IBV_WC_SUCCESS);
	}
	CHECK(!ibv_dealloc_mw(mw)); /* the window ends with it */
	CHECK(!bench->provider->ibv_dereg_mr(mr));
	bare_destroy(&client);
	bare_destroy(&server);
}

static void send_invalidate(struct bare *client, uint32_t key, enum ibv_wc_status status)
{
	struct ibv_sge sge = bench_sge(client->bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND_WITH_INV, 70, &sge);

	wr.invalidate_rkey = key;
	CHECK(!bare_post(client, &wr));
	expect_wc(client, 70, status);
}

static void invalidate(struct bare *server, uint32_t key, enum ibv_wc_status status)
{
	struct ibv_send_wr wr = {.wr_id = 71, .opcode = IBV_WR_LOCAL_INV,
				 .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = key};

	CHECK(!bare_post(server, &wr));
	expect_wc(server, 71, status);
}

static void test_type_2(struct bench *bench)
{
	struct ibv_mw *mw = window_make(bench, IBV_MW_TYPE_2);
	struct ibv_mr *mr = window_region(bench);
	struct bare client, server, other, stranger;
	struct ibv_wc wc;

	window_pair(bench, &client, &server);
	window_pair(bench, &other, &stranger);
	bind_type_2(&server, mw, window_range(mr, bench, IBV_ACCESS_REMOTE_WRITE), IBV_WC_SUCCESS);
	CHECK(window_write(&client, WINDOW_OFFSET, mw->rkey) == IBV_WC_SUCCESS);
	/* Only through the queue pair that bound it. */
	CHECK(window_write(&other, WINDOW_OFFSET, mw->rkey) == IBV_WC_REM_ACCESS_ERR);

	invalidate(&server, mw->rkey, IBV_WC_SUCCESS);
	bind_type_2(&server, mw, window_range(mr, bench, IBV_ACCESS_REMOTE_WRITE), IBV_WC_SUCCESS);
	CHECK(window_write(&client, WINDOW_OFFSET, mw->rkey) == IBV_WC_SUCCESS);
	CHECK(!bare_recv(&server, 1, 4096, 64));
	send_invalidate(&client, mw->rkey, IBV_WC_SUCCESS);
	wc = expect_wc(&server, 1, IBV_WC_SUCCESS);
	if (on_soft("the flag of invalidation"))
		CHECK(wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == mw->rkey);
	CHECK(window_write(&client, WINDOW_OFFSET, mw->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!bench->provider->ibv_dereg_mr(mr));
	CHECK(!ibv_dealloc_mw(mw));
	bare_destroy(&client);
	bare_destroy(&server);
	bare_destroy(&other);
	bare_destroy(&stranger);
}

/* A window's own addresses from 0 on. */
static void test_zero_based(struct bench *bench)
{
	struct ibv_mw *mw = window_make(bench, IBV_MW_TYPE_2);
	struct ibv_mr *mr = window_region(bench);
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);
	struct bare client, server;

	window_pair(bench, &client, &server);
	memset(bench->memory, 0x33, 8);
	memset(bench->memory + WINDOW_OFFSET, 0, WINDOW_SIZE);
	bind_type_2(&server, mw, window_range(mr, bench, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED),
		    IBV_WC_SUCCESS);
	wr.wr.rdma.remote_addr = 16;
	wr.wr.rdma.rkey = mw->rkey;
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 1, IBV_WC_SUCCESS);
	CHECK(bench->memory[WINDOW_OFFSET + 15] == 0 && bench->memory[WINDOW_OFFSET + 16] == 0x33 &&
	      bench->memory[WINDOW_OFFSET + 23] == 0x33 && bench->memory[WINDOW_OFFSET + 24] == 0);
	CHECK(!ibv_dealloc_mw(mw)); /* bound still */
	CHECK(window_write(&client, 16, wr.wr.rdma.rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!bench->provider->ibv_dereg_mr(mr));
	bare_destroy(&client);
	bare_destroy(&server);
}

static void close_bound(struct bare *client, struct bare *server, struct ibv_mw *mw)
{
	bool window_last = on_soft("queue pairs with windows");

	CHECK(window_last || !ibv_dealloc_mw(mw));
	bare_destroy(client);
	bare_destroy(server);
	CHECK(!window_last || !ibv_dealloc_mw(mw));
}

/* Binding outside of the rights, and invalidating another's window. */
static void test_refused(struct bench *bench)
{
	enum ibv_wc_status not_invalidated =
		on_soft("the status of LOCAL_INV") ? IBV_WC_MW_BIND_ERR : IBV_WC_LOC_QP_OP_ERR;

	for (int wrong = 0; wrong < 7; wrong++) {
		struct ibv_mw *mw = window_make(bench, IBV_MW_TYPE_2);
		struct ibv_mr *mr = window_region(bench);
		struct ibv_mr *read_only = bench->provider->ibv_reg_mr(
			bench->pd, bench->memory, BENCH_MEMORY, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
		struct ibv_mw_bind_info info = window_range(mr, bench, IBV_ACCESS_REMOTE_WRITE);
		struct bare client, server;

		CHECK(read_only);
		window_pair(bench, &client, &server);
		switch (wrong) {
		case 0: /* a region that is not for windows */
			info.mr = bench->mr;
			bind_type_2(&server, mw, info, IBV_WC_MW_BIND_ERR);
			break;
		case 1: /* beyond the region */
			info.length = BENCH_MEMORY;
			bind_type_2(&server, mw, info, IBV_WC_MW_BIND_ERR);
			break;
		case 2: /* a right that the region has not */
			info.mr = read_only;
			bind_type_2(&server, mw, info, IBV_WC_MW_BIND_ERR);
			break;
		case 3: /* twice */
			bind_type_2(&server, mw, info, IBV_WC_SUCCESS);
			bind_type_2(&server, mw, info, IBV_WC_MW_BIND_ERR);
			break;
		case 4: /* an unbound window */
			if (on_soft("LOCAL_INV of a window that is not bound"))
				invalidate(&server, mw->rkey, IBV_WC_MW_BIND_ERR);
			else
				bare_fail(&server);
			break;
		case 6: /* an older key of a bound window */
			bind_type_2(&server, mw, info, IBV_WC_SUCCESS);
			invalidate(&server, mw->rkey ^ 1, not_invalidated);
			break;
		case 5: /* the key of a region, not of a window */
			CHECK(!bare_recv(&server, 1, 4096, 64));
			send_invalidate(&client, bench->mr->rkey, on_soft("the sender of a wrong invalidation") ?
									  IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
			expect_wc(&server, 1, IBV_WC_REM_INV_REQ_ERR);
			if (on_soft("events of refused requests"))
				expect_async_event(bench, IBV_EVENT_QP_ACCESS_ERR);
			break;
		}
		CHECK(bare_state(&server) == IBV_QPS_ERR);
		close_bound(&client, &server, mw);
		CHECK(!bench->provider->ibv_dereg_mr(mr));
		CHECK(!bench->provider->ibv_dereg_mr(read_only));
	}
}

/* Which ranges of a region can be bound, and under which keys. */
static void test_bounds(struct bench *bench)
{
	const uint64_t memory = (uintptr_t)bench->memory;
	enum ibv_wc_status wraps = on_soft("windows that wrap around") ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS;
	const struct {
		uint64_t address, length;
		bool zero_based;
		uint32_t key_change;
		enum ibv_wc_status status;
	} rows[] = {
		{memory, BENCH_MEMORY, false, 0, IBV_WC_SUCCESS},
		{memory + BENCH_MEMORY - WINDOW_SIZE, WINDOW_SIZE, false, 0, IBV_WC_SUCCESS},
		{memory + BENCH_MEMORY - WINDOW_SIZE + 1, WINDOW_SIZE, false, 0, IBV_WC_MW_BIND_ERR},
		{memory, BENCH_MEMORY + 1, false, 0, IBV_WC_MW_BIND_ERR},
		{memory + BENCH_MEMORY, 1, false, 0, IBV_WC_MW_BIND_ERR},
		{memory - 1, 8, false, 0, IBV_WC_MW_BIND_ERR},
		{memory + 8, UINT64_MAX, false, 0, wraps},
		{UINT64_MAX - 3, 8, false, 0, wraps},
		{memory, 0, false, 0, IBV_WC_MW_BIND_ERR}, /* a type 2 window is never unbound by a bind */
		{0, WINDOW_SIZE, true, 0, IBV_WC_MW_BIND_ERR}, /* IBTA 10.6.7.2.1 */
		{memory, WINDOW_SIZE, false, 0x100, IBV_WC_MW_BIND_ERR}, /* the key of another window */
	};

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct ibv_mw *mw = window_make(bench, IBV_MW_TYPE_2);
		struct ibv_mr *mr = bench->provider->ibv_reg_mr(
			bench->pd, bench->memory, BENCH_MEMORY,
			BENCH_ACCESS | IBV_ACCESS_MW_BIND | (rows[row].zero_based ? IBV_ACCESS_ZERO_BASED : 0));
		struct ibv_mw_bind_info info = {.mr = mr, .addr = rows[row].address,
						.length = rows[row].length,
						.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
		struct bare client, server;

		CHECK(mr);
		window_pair(bench, &client, &server);
		mw->rkey ^= rows[row].key_change;
		bind_type_2(&server, mw, info, rows[row].status);
		close_bound(&client, &server, mw);
		CHECK(!bench->provider->ibv_dereg_mr(mr)); /* no window is left behind */
	}
}

/* Requests that cannot be posted. */
static void test_not_posted(struct bench *bench)
{
	struct ibv_pd *pd = bench->provider->ibv_alloc_pd(bench->context);
	struct ibv_mw *own = window_make(bench, IBV_MW_TYPE_2), *foreign = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mr *mr = window_region(bench);
	struct ibv_mr *foreign_mr = bench->provider->ibv_reg_mr(pd, bench->memory, BENCH_MEMORY,
								BENCH_ACCESS | IBV_ACCESS_MW_BIND);
	const struct {
		struct ibv_mw *mw;
		struct ibv_mr *mr;
		unsigned int access, flags;
	} rows[] = {
		{NULL, mr, IBV_ACCESS_REMOTE_WRITE, 0}, {foreign, mr, IBV_ACCESS_REMOTE_WRITE, 0},
		{foreign, foreign_mr, IBV_ACCESS_REMOTE_WRITE, 0}, {own, NULL, IBV_ACCESS_REMOTE_WRITE, 0},
		{own, foreign_mr, IBV_ACCESS_REMOTE_WRITE, 0},
		{own, mr, IBV_ACCESS_MW_BIND, 0}, {own, mr, IBV_ACCESS_REMOTE_WRITE, IBV_SEND_INLINE},
	};
	struct ibv_mw_bind bind = {.bind_info = window_range(mr, bench, IBV_ACCESS_REMOTE_WRITE)};
	struct bare client, server;

	CHECK(foreign && foreign_mr);
	window_pair(bench, &client, &server);
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = rows[row].flags};

		wr.bind_mw.mw = rows[row].mw;
		wr.bind_mw.rkey = ibv_inc_rkey(own->rkey);
		wr.bind_mw.bind_info = window_range(rows[row].mr, bench, rows[row].access);
		CHECK(bare_post(&server, &wr) == EINVAL);
	}
	CHECK(ibv_bind_mw(server.qp, own, &bind) == EINVAL); /* ibv_bind_mw(3): type 1 only */
	CHECK(!ibv_alloc_mw(bench->pd, (enum ibv_mw_type)3) && errno == EINVAL);
	CHECK(bare_state(&server) == IBV_QPS_RTS);
	expect_no_wc(&server);
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!ibv_dealloc_mw(own) && !ibv_dealloc_mw(foreign));
	CHECK(!bench->provider->ibv_dereg_mr(mr) && !bench->provider->ibv_dereg_mr(foreign_mr));
	CHECK(!bench->provider->ibv_dealloc_pd(pd));
}

/* Objects that a posted request names are destroyed before it is executed. */
static void test_gone_meanwhile(struct bench *bench)
{
	for (int way = 0; way < 3; way++) {
		struct ibv_pd *pd = bench->provider->ibv_alloc_pd(bench->context);
		struct ibv_mw *mw = window_make(bench, IBV_MW_TYPE_2);
		struct ibv_mr *mr = window_region(bench);
		struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW};
		struct bare client, server;

		CHECK(pd);
		window_pair(bench, &client, &server);
		CHECK(!bare_modify(&server, (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD}, IBV_QP_STATE));
		wr.bind_mw.mw = mw;
		wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
		wr.bind_mw.bind_info = window_range(mr, bench, IBV_ACCESS_REMOTE_WRITE);
		CHECK(!bare_post(&server, &wr));
		if (way == 0)
			CHECK(!ibv_dealloc_mw(mw));
		else if (way == 1)
			CHECK(!bench->provider->ibv_dereg_mr(mr));
		else
			CHECK(!bench->provider->ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));
		CHECK(!bare_modify(&server, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE));
		expect_wc(&server, 1, IBV_WC_MW_BIND_ERR);
		bare_destroy(&client);
		bare_destroy(&server);
		CHECK(way == 0 || !ibv_dealloc_mw(mw));
		CHECK(way == 1 || !bench->provider->ibv_dereg_mr(mr));
		CHECK(!bench->provider->ibv_dealloc_pd(pd));
	}
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	test_type_1(&bench);
	test_type_2(&bench);
	test_zero_based(&bench);
	window_drop_events(&bench);
	test_refused(&bench);
	test_bounds(&bench);
	if (on_soft("bindings that cannot be posted"))
		test_not_posted(&bench);
	if (on_soft("SQD"))
		test_gone_meanwhile(&bench);
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
