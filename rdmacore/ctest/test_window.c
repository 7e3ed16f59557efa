/* Memory windows of both types: bound, used, bound again, invalidated from both sides, refused. */
#include <pthread.h>
#include <unistd.h>

#include "../soft_qp.h"
#include "../soft_qp_state.h"
#include "../soft_requester.h"
#include "bare.h"
#include "check.h"

#define WINDOW 8192
#define SIZE 256

static struct ibv_mr *bindable(struct bench *bench)
{
	struct ibv_mr *mr = bench->provider->ibv_reg_mr(bench->pd, bench->memory, BENCH_MEMORY,
							BENCH_ACCESS | IBV_ACCESS_MW_BIND);

	CHECK(mr);
	return mr;
}

static void make_pair(struct bench *bench, struct bare *client, struct bare *server)
{
	bare_create(client, bench, IBV_QPT_RC, NULL);
	bare_create(server, bench, IBV_QPT_RC, NULL);
	bare_connect(client, server);
}

static struct ibv_mw *make_window(struct bench *bench, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(bench->pd, type);

	CHECK(mw && mw->type == type);
	return mw;
}

static struct ibv_mw_bind_info range(struct ibv_mr *mr, struct bench *bench, unsigned int access)
{
	return (struct ibv_mw_bind_info){.mr = mr, .addr = (uintptr_t)bench->memory + WINDOW,
					 .length = SIZE, .mw_access_flags = access};
}

/* A write of 8 bytes at that offset under that key. */
static enum ibv_wc_status write_to(struct bare *client, size_t offset, uint32_t rkey)
{
	struct ibv_sge sge = bench_sge(client->bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 50, &sge);

	wr.wr.rdma.remote_addr = (uintptr_t)client->bench->memory + offset;
	wr.wr.rdma.rkey = rkey;
	CHECK(!bare_post(client, &wr));
	return poll_one(client->cq).status;
}

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
	struct ibv_mw *mw = make_window(bench, IBV_MW_TYPE_1);
	struct ibv_mr *mr = bindable(bench);
	struct bare client, server;
	uint32_t old;

	make_pair(bench, &client, &server);
	/* Programs ask for the local right as well, and it does not matter. */
	bind_type_1(&server, mw, range(mr, bench, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE),
		    IBV_WC_SUCCESS);
	CHECK(write_to(&client, WINDOW, mw->rkey) == IBV_WC_SUCCESS);
	CHECK(write_to(&client, WINDOW + SIZE - 8, mw->rkey) == IBV_WC_SUCCESS);
	if (is_soft(bench->provider)) /* IBTA 10.6.7.2.7; rdma_rxe says EINVAL */
		CHECK(bench->provider->ibv_dereg_mr(mr) == EBUSY);
	/* Bound again: the old key is wrong at once, and the region can go when nothing is bound to it. */
	old = mw->rkey;
	bind_type_1(&server, mw, range(mr, bench, IBV_ACCESS_REMOTE_READ), IBV_WC_SUCCESS);
	CHECK(write_to(&client, WINDOW, old) == IBV_WC_REM_ACCESS_ERR);
	bare_destroy(&client);
	bare_destroy(&server);
	make_pair(bench, &client, &server);
	CHECK(write_to(&client, WINDOW, mw->rkey) == IBV_WC_REM_ACCESS_ERR); /* may be read only */
	bare_destroy(&client);
	bare_destroy(&server);
	make_pair(bench, &client, &server);
	if (is_soft(bench->provider)) { /* rdma_rxe's user half follows the region's pointer, which is NULL */
		bind_type_1(&server, mw, (struct ibv_mw_bind_info){0}, IBV_WC_SUCCESS);
		CHECK(!bench->provider->ibv_dereg_mr(mr));
		mr = bindable(bench);
		bind_type_1(&server, mw, range(mr, bench, IBV_ACCESS_REMOTE_READ), IBV_WC_SUCCESS);
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
	struct ibv_mw *mw = make_window(bench, IBV_MW_TYPE_2);
	struct ibv_mr *mr = bindable(bench);
	struct bare client, server, other, stranger;
	struct ibv_wc wc;

	make_pair(bench, &client, &server);
	make_pair(bench, &other, &stranger);
	bind_type_2(&server, mw, range(mr, bench, IBV_ACCESS_REMOTE_WRITE), IBV_WC_SUCCESS);
	CHECK(write_to(&client, WINDOW, mw->rkey) == IBV_WC_SUCCESS);
	/* Only through the queue pair that bound it. */
	CHECK(write_to(&other, WINDOW, mw->rkey) == IBV_WC_REM_ACCESS_ERR);

	invalidate(&server, mw->rkey, IBV_WC_SUCCESS);
	bind_type_2(&server, mw, range(mr, bench, IBV_ACCESS_REMOTE_WRITE), IBV_WC_SUCCESS);
	CHECK(write_to(&client, WINDOW, mw->rkey) == IBV_WC_SUCCESS);
	CHECK(!bare_recv(&server, 1, 4096, 64));
	send_invalidate(&client, mw->rkey, IBV_WC_SUCCESS);
	wc = expect_wc(&server, 1, IBV_WC_SUCCESS);
	if (is_soft(bench->provider)) /* rdma_rxe of Linux 6.1 does not tell users of the invalidation */
		CHECK(wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == mw->rkey);
	CHECK(write_to(&client, WINDOW, mw->rkey) == IBV_WC_REM_ACCESS_ERR);
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
	struct ibv_mw *mw = make_window(bench, IBV_MW_TYPE_2);
	struct ibv_mr *mr = bindable(bench);
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);
	struct bare client, server;

	make_pair(bench, &client, &server);
	memset(bench->memory, 0x33, 8);
	memset(bench->memory + WINDOW, 0, SIZE);
	bind_type_2(&server, mw, range(mr, bench, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED),
		    IBV_WC_SUCCESS);
	wr.wr.rdma.remote_addr = 16;
	wr.wr.rdma.rkey = mw->rkey;
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 1, IBV_WC_SUCCESS);
	CHECK(bench->memory[WINDOW + 15] == 0 && bench->memory[WINDOW + 16] == 0x33 &&
	      bench->memory[WINDOW + 23] == 0x33 && bench->memory[WINDOW + 24] == 0);
	CHECK(!ibv_dealloc_mw(mw)); /* bound still */
	CHECK(write_to(&client, 16, wr.wr.rdma.rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!bench->provider->ibv_dereg_mr(mr));
	bare_destroy(&client);
	bare_destroy(&server);
}

/* Binding what is not allowed, and invalidating what is not one's own. */
static void test_refused(struct bench *bench)
{
	for (int wrong = 0; wrong < 7; wrong++) {
		struct ibv_mw *mw = make_window(bench, IBV_MW_TYPE_2);
		struct ibv_mr *mr = bindable(bench);
		struct ibv_mr *read_only = bench->provider->ibv_reg_mr(
			bench->pd, bench->memory, BENCH_MEMORY, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
		struct ibv_mw_bind_info info = range(mr, bench, IBV_ACCESS_REMOTE_WRITE);
		struct bare client, server;

		CHECK(read_only);
		make_pair(bench, &client, &server);
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
			invalidate(&server, mw->rkey, IBV_WC_MW_BIND_ERR);
			break;
		case 6: /* an older key of a bound window */
			bind_type_2(&server, mw, info, IBV_WC_SUCCESS);
			invalidate(&server, mw->rkey ^ 1, IBV_WC_MW_BIND_ERR);
			break;
		case 5: /* a region is no window */
			CHECK(!bare_recv(&server, 1, 4096, 64));
			send_invalidate(&client, bench->mr->rkey, IBV_WC_REM_ACCESS_ERR);
			expect_wc(&server, 1, IBV_WC_REM_INV_REQ_ERR);
			expect_async_event(bench, IBV_EVENT_QP_ACCESS_ERR);
			break;
		}
		CHECK(bare_state(&server) == IBV_QPS_ERR);
		bare_destroy(&client);
		bare_destroy(&server);
		CHECK(!ibv_dealloc_mw(mw));
		CHECK(!bench->provider->ibv_dereg_mr(mr));
		CHECK(!bench->provider->ibv_dereg_mr(read_only));
	}
}

/* Which ranges of a region can be bound, and under which keys. */
static void test_bounds(struct bench *bench)
{
	const uint64_t memory = (uintptr_t)bench->memory;
	const struct {
		uint64_t address, length;
		bool zero_based;
		uint32_t key_change;
		enum ibv_wc_status status;
	} rows[] = {
		{memory, BENCH_MEMORY, false, 0, IBV_WC_SUCCESS},
		{memory + BENCH_MEMORY - SIZE, SIZE, false, 0, IBV_WC_SUCCESS},
		{memory + BENCH_MEMORY - SIZE + 1, SIZE, false, 0, IBV_WC_MW_BIND_ERR},
		{memory, BENCH_MEMORY + 1, false, 0, IBV_WC_MW_BIND_ERR},
		{memory + BENCH_MEMORY, 1, false, 0, IBV_WC_MW_BIND_ERR},
		{memory - 1, 8, false, 0, IBV_WC_MW_BIND_ERR},
		{memory + 8, UINT64_MAX, false, 0, IBV_WC_MW_BIND_ERR},
		{UINT64_MAX - 3, 8, false, 0, IBV_WC_MW_BIND_ERR},
		{memory, 0, false, 0, IBV_WC_MW_BIND_ERR}, /* a type 2 window is never bound to nothing */
		{0, SIZE, true, 0, IBV_WC_MW_BIND_ERR}, /* IBTA 10.6.7.2.1 */
		{memory, SIZE, false, 0x100, IBV_WC_MW_BIND_ERR}, /* the key of another window */
	};

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct ibv_mw *mw = make_window(bench, IBV_MW_TYPE_2);
		struct ibv_mr *mr = bench->provider->ibv_reg_mr(
			bench->pd, bench->memory, BENCH_MEMORY,
			BENCH_ACCESS | IBV_ACCESS_MW_BIND | (rows[row].zero_based ? IBV_ACCESS_ZERO_BASED : 0));
		struct ibv_mw_bind_info info = {.mr = mr, .addr = rows[row].address,
						.length = rows[row].length,
						.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
		struct bare client, server;

		CHECK(mr);
		make_pair(bench, &client, &server);
		mw->rkey ^= rows[row].key_change;
		bind_type_2(&server, mw, info, rows[row].status);
		bare_destroy(&client);
		bare_destroy(&server);
		CHECK(!ibv_dealloc_mw(mw));
		CHECK(!bench->provider->ibv_dereg_mr(mr)); /* no window is left behind */
	}
}

/* What cannot be asked for at all. */
static void test_not_posted(struct bench *bench)
{
	struct ibv_pd *pd = bench->provider->ibv_alloc_pd(bench->context);
	struct ibv_mw *own = make_window(bench, IBV_MW_TYPE_2), *foreign = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mr *mr = bindable(bench);
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
	struct ibv_mw_bind bind = {.bind_info = range(mr, bench, IBV_ACCESS_REMOTE_WRITE)};
	struct bare client, server;

	CHECK(foreign && foreign_mr);
	make_pair(bench, &client, &server);
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = rows[row].flags};

		wr.bind_mw.mw = rows[row].mw;
		wr.bind_mw.rkey = ibv_inc_rkey(own->rkey);
		wr.bind_mw.bind_info = range(rows[row].mr, bench, rows[row].access);
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

/* What a posted request names goes before its turn comes. */
static void test_gone_meanwhile(struct bench *bench)
{
	for (int way = 0; way < 3; way++) {
		struct ibv_pd *pd = bench->provider->ibv_alloc_pd(bench->context);
		struct ibv_mw *mw = make_window(bench, IBV_MW_TYPE_2);
		struct ibv_mr *mr = bindable(bench);
		struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW};
		struct bare client, server;

		CHECK(pd);
		make_pair(bench, &client, &server);
		CHECK(!bare_modify(&server, (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD}, IBV_QP_STATE));
		wr.bind_mw.mw = mw;
		wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
		wr.bind_mw.bind_info = range(mr, bench, IBV_ACCESS_REMOTE_WRITE);
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

static bool is_draining(struct bare *bare)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!bare->bench->provider->ibv_query_qp(bare->qp, &attr, IBV_QP_STATE, &init));
	CHECK(attr.qp_state == IBV_QPS_SQD);
	return attr.sq_draining;
}

/* From SQD to RTS, as modify_qp would do it, but for the second half of the work on a window. */
static void begin_local(struct bare *server)
{
	struct soft_qp *qp = soft_qp(server->qp);

	soft_lock_take(&qp->requester.lock);
	atomic_store(&qp->state, IBV_QPS_RTS);
	CHECK(soft_requester_begin_local(qp));
	soft_lock_release(&qp->requester.lock);
}

static bool end_turn(struct bare *server, uint32_t turn)
{
	struct soft_qp *qp = soft_qp(server->qp);
	bool again;

	soft_lock_take(&qp->requester.lock);
	again = soft_requester_end_local(qp, turn);
	soft_lock_release(&qp->requester.lock);
	soft_qp_settle(qp);
	return again;
}

static bool end_local(struct bare *server)
{
	return end_turn(server, soft_qp(server->qp)->requester.local_turn);
}

/* A request to bind that waits in SQD for its first half. */
static void post_bind(struct bare *server, struct ibv_mw *mw, struct ibv_mr *mr, uint32_t key, uint64_t wr_id)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	CHECK(!bare_modify(server, (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD}, IBV_QP_STATE));
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = key;
	wr.bind_mw.bind_info = range(mr, server->bench, IBV_ACCESS_REMOTE_WRITE);
	CHECK(!bare_post(server, &wr));
}

/*
 * Two queue pairs bind one window at the same time: the second half of one comes between those of the other.
 * Of type 1 the later one has it, of type 2 the earlier one, and the region knows of one window.
 */
static void test_bound_by_two(struct bench *bench)
{
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_mw *mw = make_window(bench, (enum ibv_mw_type)type);
		struct ibv_mr *mr = bindable(bench);
		bool first = type == IBV_MW_TYPE_1;
		struct bare clients[2], servers[2];
		uint32_t keys[2];

		for (int end = 0; end < 2; end++) {
			struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW,
						 .send_flags = IBV_SEND_SIGNALED};

			make_pair(bench, &clients[end], &servers[end]);
			CHECK(!bare_modify(&servers[end], (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD},
					   IBV_QP_STATE));
			keys[end] = ibv_inc_rkey(end ? keys[0] : mw->rkey);
			wr.bind_mw.mw = mw;
			wr.bind_mw.rkey = keys[end];
			wr.bind_mw.bind_info = range(mr, bench, IBV_ACCESS_REMOTE_WRITE);
			CHECK(!bare_post(&servers[end], &wr));
			begin_local(&servers[end]);
		}
		CHECK(!end_local(&servers[0]));
		expect_wc(&servers[0], 1, IBV_WC_SUCCESS);
		CHECK(end_local(&servers[1]) == first);
		if (first)
			CHECK(!end_local(&servers[1]));
		expect_wc(&servers[1], 1, first ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR);
		CHECK(write_to(&clients[first], WINDOW, keys[first]) == IBV_WC_SUCCESS);
		if (first)
			CHECK(write_to(&clients[0], WINDOW, keys[0]) == IBV_WC_REM_ACCESS_ERR);
		CHECK(bench->provider->ibv_dereg_mr(mr) == EBUSY);
		CHECK(!ibv_dealloc_mw(mw));
		CHECK(!bench->provider->ibv_dereg_mr(mr));
		for (int end = 0; end < 2; end++) {
			bare_destroy(&clients[end]);
			bare_destroy(&servers[end]);
		}
	}
}

/*
 * SQD begins while a window is being bound, between the two halves of that: it is finished, and then the queue
 * is drained, and what is posted behind it waits.
 */
static void test_drained_while_bound(struct bench *bench)
{
	struct ibv_qp_attr drain = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_mw *mw = make_window(bench, IBV_MW_TYPE_2);
	struct ibv_mr *mr = bindable(bench);
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct bare client, server;

	make_pair(bench, &client, &server);
	CHECK(!bare_modify(&server, (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD}, IBV_QP_STATE));
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = mw->rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = range(mr, bench, IBV_ACCESS_REMOTE_WRITE);
	CHECK(!bare_post(&server, &wr));
	begin_local(&server);
	CHECK(!bare_modify(&server, drain, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	CHECK(is_draining(&server));
	expect_no_async_event(bench);
	CHECK(!end_local(&server));
	expect_wc(&server, 1, IBV_WC_SUCCESS);
	CHECK(expect_async_event(bench, IBV_EVENT_SQ_DRAINED).element.qp == server.qp);
	CHECK(!is_draining(&server));
	CHECK(write_to(&client, WINDOW, mw->rkey) == IBV_WC_SUCCESS);
	CHECK(!bare_recv(&client, 2, 4096, 64));
	wr = bench_wr(IBV_WR_SEND, 3, &sge);
	CHECK(!bare_post(&server, &wr));
	expect_no_wc(&server);
	expect_no_wc(&client);
	CHECK(!bare_modify(&server, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE));
	expect_wc(&server, 3, IBV_WC_SUCCESS);
	expect_wc(&client, 2, IBV_WC_SUCCESS);
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!bench->provider->ibv_dereg_mr(mr));
}

static void *deallocate(void *mw)
{
	CHECK(!ibv_dealloc_mw(mw));
	return NULL;
}

/* The window goes between the halves of a bind, while its owner still waits for transfers: the region is free. */
static void test_deallocated_while_bound(struct bench *bench)
{
	struct ibv_mw *mw = make_window(bench, IBV_MW_TYPE_1);
	struct soft_pd *pd = soft_pd(bench->pd);
	struct ibv_mr *mr = bindable(bench);
	struct bare client, server;
	pthread_t thread;

	make_pair(bench, &client, &server);
	post_bind(&server, mw, mr, ibv_inc_rkey(mw->rkey), 1);
	begin_local(&server);
	soft_lock_take(&soft_qp(client.qp)->responder.lock);
	CHECK(!pthread_create(&thread, NULL, deallocate, mw));
	while (!pthread_mutex_trylock(&pd->lock)) { /* not there yet */
		pthread_mutex_unlock(&pd->lock);
		usleep(100);
	}
	CHECK(!end_local(&server));
	soft_lock_release(&soft_qp(client.qp)->responder.lock);
	CHECK(!pthread_join(thread, NULL));
	expect_wc(&server, 1, IBV_WC_MW_BIND_ERR);
	CHECK(!bench->provider->ibv_dereg_mr(mr));
	bare_destroy(&client);
	bare_destroy(&server);
}

/*
 * A reset ends work between its halves, and the same begins anew: the first one's second half, which comes late, must
 * leave it alone, for it has not waited for the transfers that the second one waits for.
 */
static void test_late_half(struct bench *bench)
{
	struct ibv_mw *mw = make_window(bench, IBV_MW_TYPE_1);
	struct ibv_mr *mr = bindable(bench);
	struct bare client, server;
	uint32_t turn;

	make_pair(bench, &client, &server);
	post_bind(&server, mw, mr, ibv_inc_rkey(mw->rkey), 1);
	begin_local(&server);
	turn = soft_qp(server.qp)->requester.local_turn;
	CHECK(!bare_modify(&server, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	bare_init(&server);
	bare_ready_to_receive(&server, &client);
	bare_ready_to_send(&server);
	post_bind(&server, mw, mr, ibv_inc_rkey(mw->rkey), 2);
	begin_local(&server);
	CHECK(!end_turn(&server, turn));
	expect_no_wc(&server);
	CHECK(!end_local(&server));
	expect_wc(&server, 2, IBV_WC_SUCCESS);
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!bench->provider->ibv_dereg_mr(mr));
}

/* Access events of the writes that were refused on purpose. */
static void drop_events(struct bench *bench)
{
	struct ibv_async_event event;

	while (!bench->provider->ibv_get_async_event(bench->context, &event))
		bench->provider->ibv_ack_async_event(&event);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	test_type_1(&bench);
	test_type_2(&bench);
	if (is_soft(provider)) {
		/* rdma_rxe of Linux 6.1 has no zero-based windows and fails with LOC_QP_OP_ERR. */
		test_zero_based(&bench);
		drop_events(&bench);
		test_refused(&bench);
		test_bounds(&bench);
		test_not_posted(&bench);
		test_gone_meanwhile(&bench);
		test_bound_by_two(&bench);
		drop_events(&bench);
		test_drained_while_bound(&bench);
		test_deallocated_while_bound(&bench);
		test_late_half(&bench);
	}
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
