/*
 * Work on a window has two halves, with a wait for transfers in between (soft_requester_begin_local). What can
 * happen in between: to the queue pair, to others, and to the owners of the objects.
 */
#include <pthread.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/window.h"
#include "soft/engine/calls.h"
#include "soft/objects/qp.h"

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

static bool end_mw_op(struct bare *server, uint32_t turn)
{
	struct soft_qp *qp = soft_qp(server->qp);
	bool again;

	soft_lock_take(&qp->requester.lock);
	again = soft_requester_end_local(qp, turn);
	soft_lock_release(&qp->requester.lock);
	soft_qp_enter_error(qp);
	return again;
}

static bool end_local(struct bare *server)
{
	return end_mw_op(server, soft_qp(server->qp)->requester.mw_op_seq);
}

/* A request to bind that waits in SQD for its first half. */
static void post_bind(struct bare *server, struct ibv_mw *mw, struct ibv_mr *mr, uint32_t key, uint64_t wr_id)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	CHECK(!bare_modify(server, (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD}, IBV_QP_STATE));
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = key;
	wr.bind_mw.bind_info = window_range(mr, server->bench, IBV_ACCESS_REMOTE_WRITE);
	CHECK(!bare_post(server, &wr));
}

/*
 * Two queue pairs bind one window at the same time: the second half of one comes between the halves of the other. A
 * type 1 window belongs to the later one, a type 2 window to the earlier one, and the region counts one window.
 */
static void test_bound_by_two(struct bench *bench)
{
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_mw *mw = window_make(bench, (enum ibv_mw_type)type);
		struct ibv_mr *mr = window_region(bench);
		bool first = type == IBV_MW_TYPE_1;
		struct bare clients[2], servers[2];
		uint32_t keys[2];

		for (int end = 0; end < 2; end++) {
			struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW,
						 .send_flags = IBV_SEND_SIGNALED};

			window_pair(bench, &clients[end], &servers[end]);
			CHECK(!bare_modify(&servers[end], (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD},
					   IBV_QP_STATE));
			keys[end] = ibv_inc_rkey(end ? keys[0] : mw->rkey);
			wr.bind_mw.mw = mw;
			wr.bind_mw.rkey = keys[end];
			wr.bind_mw.bind_info = window_range(mr, bench, IBV_ACCESS_REMOTE_WRITE);
			CHECK(!bare_post(&servers[end], &wr));
			begin_local(&servers[end]);
		}
		CHECK(!end_local(&servers[0]));
		expect_wc(&servers[0], 1, IBV_WC_SUCCESS);
		CHECK(end_local(&servers[1]) == first);
		if (first)
			CHECK(!end_local(&servers[1]));
		expect_wc(&servers[1], 1, first ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR);
		CHECK(window_write(&clients[first], WINDOW_OFFSET, keys[first]) == IBV_WC_SUCCESS);
		if (first)
			CHECK(window_write(&clients[0], WINDOW_OFFSET, keys[0]) == IBV_WC_REM_ACCESS_ERR);
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
 * SQD begins between the halves of a bind: the bind completes, then the queue is drained, and requests posted after
 * it wait.
 */
static void test_drained_while_bound(struct bench *bench)
{
	struct ibv_qp_attr drain = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_mw *mw = window_make(bench, IBV_MW_TYPE_2);
	struct ibv_mr *mr = window_region(bench);
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct bare client, server;

	window_pair(bench, &client, &server);
	CHECK(!bare_modify(&server, (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD}, IBV_QP_STATE));
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = mw->rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = window_range(mr, bench, IBV_ACCESS_REMOTE_WRITE);
	CHECK(!bare_post(&server, &wr));
	begin_local(&server);
	CHECK(!bare_modify(&server, drain, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	CHECK(is_draining(&server));
	expect_no_async_event(bench);
	CHECK(!end_local(&server));
	expect_wc(&server, 1, IBV_WC_SUCCESS);
	CHECK(expect_async_event(bench, IBV_EVENT_SQ_DRAINED).element.qp == server.qp);
	CHECK(!is_draining(&server));
	CHECK(window_write(&client, WINDOW_OFFSET, mw->rkey) == IBV_WC_SUCCESS);
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

/* Until another thread has it. */
static void wait_taken(pthread_mutex_t *lock)
{
	while (!pthread_mutex_trylock(lock)) {
		pthread_mutex_unlock(lock);
		usleep(100);
	}
}

static void *deallocate(void *mw)
{
	CHECK(!ibv_dealloc_mw(mw));
	return NULL;
}

/* The window goes between the halves of a bind, while its owner still waits for transfers: the region is free. */
static void test_deallocated_while_bound(struct bench *bench)
{
	struct ibv_mw *mw = window_make(bench, IBV_MW_TYPE_1);
	struct soft_pd *pd = soft_pd(bench->pd);
	struct ibv_mr *mr = window_region(bench);
	struct bare client, server;
	pthread_t thread;

	window_pair(bench, &client, &server);
	post_bind(&server, mw, mr, ibv_inc_rkey(mw->rkey), 1);
	begin_local(&server);
	bare_hold(&soft_qp(client.qp)->responder.lock);
	CHECK(!pthread_create(&thread, NULL, deallocate, mw));
	wait_taken(&pd->lock.native); /* by it */
	CHECK(!end_local(&server));
	bare_let_go(&soft_qp(client.qp)->responder.lock);
	CHECK(!pthread_join(thread, NULL));
	expect_wc(&server, 1, IBV_WC_MW_BIND_ERR);
	CHECK(!bench->provider->ibv_dereg_mr(mr));
	bare_destroy(&client);
	bare_destroy(&server);
}

/*
 * A reset ends work between its halves, and the same work begins again. The second half of the first one is delayed
 * and must have no effect. It has not waited for the transfers that the second one waits for.
 */
static void test_late_half(struct bench *bench)
{
	struct ibv_mw *mw = window_make(bench, IBV_MW_TYPE_1);
	struct ibv_mr *mr = window_region(bench);
	struct bare client, server;
	uint32_t turn;

	window_pair(bench, &client, &server);
	post_bind(&server, mw, mr, ibv_inc_rkey(mw->rkey), 1);
	begin_local(&server);
	turn = soft_qp(server.qp)->requester.mw_op_seq;
	CHECK(!bare_modify(&server, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	bare_init(&server);
	bare_ready_to_receive(&server, &client);
	bare_ready_to_send(&server);
	post_bind(&server, mw, mr, ibv_inc_rkey(mw->rkey), 2);
	begin_local(&server);
	CHECK(!end_mw_op(&server, turn));
	expect_no_wc(&server);
	CHECK(!end_local(&server));
	expect_wc(&server, 2, IBV_WC_SUCCESS);
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!bench->provider->ibv_dereg_mr(mr));
}

static void *go_on(void *server)
{
	CHECK(!bare_modify(server, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE));
	return NULL;
}

static void *destroy_queue_pair(void *server)
{
	struct bare *bare = server;

	CHECK(!bare->bench->provider->ibv_destroy_qp(bare->qp));
	return NULL;
}

/*
 * The queue pair is destroyed while a thread is between the halves. The thread keeps a reference and completes
 * nothing.
 */
static void test_destroyed_between(struct bench *bench)
{
	struct ibv_mw *mw = window_make(bench, IBV_MW_TYPE_1);
	struct soft_pd *pd = soft_pd(bench->pd);
	struct ibv_mr *mr = window_region(bench);
	struct bare client, server, other;
	pthread_t worker, destroyer;
	struct soft_qp *qp;
	uint32_t references;

	window_pair(bench, &client, &server);
	bare_create(&other, bench, IBV_QPT_RC, NULL);
	qp = soft_qp(server.qp);
	post_bind(&server, mw, mr, ibv_inc_rkey(mw->rkey), 1);
	references = atomic_load(&qp->references);
	bare_hold(&soft_qp(other.qp)->responder.lock);
	CHECK(!pthread_create(&worker, NULL, go_on, &server));
	wait_taken(&pd->lock.native); /* by it, which waits for transfers to the other */
	CHECK(!pthread_create(&destroyer, NULL, destroy_queue_pair, &server));
	while (atomic_load(&qp->state) != IBV_QPS_RESET)
		usleep(100);
	CHECK(atomic_load(&qp->references) == references + 1);
	bare_let_go(&soft_qp(other.qp)->responder.lock);
	CHECK(!pthread_join(worker, NULL));
	CHECK(!pthread_join(destroyer, NULL));
	expect_no_wc(&server);
	CHECK(!bench->provider->ibv_destroy_cq(server.cq));
	bare_destroy(&client);
	bare_destroy(&other);
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!bench->provider->ibv_dereg_mr(mr));
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	if (on_soft("what soft is made of")) {
		bench_open(&bench, provider);
		test_bound_by_two(&bench);
		window_drop_events(&bench);
		test_drained_while_bound(&bench);
		test_deallocated_while_bound(&bench);
		test_late_half(&bench);
		test_destroyed_between(&bench);
		bench_close(&bench);
	}
	close_provider(provider);
	return 0;
}
