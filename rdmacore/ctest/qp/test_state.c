/* States of queue pairs: which attributes each transition requires and rejects, and the effects of a state. */
#include "ctest/support/bare.h"
#include "ctest/support/check.h"

#define CONNECTED_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define UC_RTR (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RC_RTR (UC_RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RC_RTS                                                                                     \
	(IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

struct required {
	enum ibv_qp_type type;
	int init, rtr, rts;
};

static const struct required table[] = {
	{IBV_QPT_RC, CONNECTED_INIT, RC_RTR, RC_RTS},
	{IBV_QPT_UC, CONNECTED_INIT, UC_RTR, IBV_QP_SQ_PSN},
	{IBV_QPT_UD, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN},
};

static struct ibv_qp_attr all_attributes(struct bench *bench)
{
	return (struct ibv_qp_attr){
		.path_mtu = bench->mtu, .qkey = BENCH_QKEY, .rq_psn = 0x123456, .sq_psn = 0xabcdef,
		.dest_qp_num = 77, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .port_num = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .sl = 2,
			    .grh = {.dgid = bench->gid, .sgid_index = bench->gid_index, .hop_limit = 5}},
		.max_rd_atomic = 3, .max_dest_rd_atomic = 2, .min_rnr_timer = 9, .timeout = 12,
		.retry_cnt = 6, .rnr_retry = 5,
	};
}

/* The transition with one bit fewer than required, for each, then with a foreign one, then right. */
static void check_transition(struct bare *bare, struct ibv_qp_attr attr, enum ibv_qp_state to, int mask,
			     int foreign)
{
	attr.qp_state = to;
	for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
		if (mask & bit)
			CHECK(bare_modify(bare, attr, IBV_QP_STATE | (mask & ~bit)) == EINVAL);
	CHECK(bare_modify(bare, attr, IBV_QP_STATE | mask | foreign) == EINVAL);
	CHECK(!bare_modify(bare, attr, IBV_QP_STATE | mask));
	CHECK(bare_state(bare) == to);
}

static void check_query(struct bare *bare, const struct ibv_qp_attr *set)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!bare->bench->provider->ibv_query_qp(bare->qp, &attr, (IBV_QP_DEST_QPN << 1) - 1, &init));
	CHECK(attr.qp_state == IBV_QPS_RTS && attr.sq_psn == set->sq_psn && attr.port_num == 1);
	CHECK(init.qp_type == bare->qp->qp_type && init.send_cq == bare->cq && init.recv_cq == bare->cq);
	CHECK(init.cap.max_send_wr >= BENCH_DEPTH && attr.cap.max_send_wr == init.cap.max_send_wr);
	if (bare->qp->qp_type == IBV_QPT_UD) {
		CHECK(attr.qkey == set->qkey);
		return;
	}
	CHECK(attr.qp_access_flags == set->qp_access_flags && attr.rq_psn == set->rq_psn);
	CHECK(attr.dest_qp_num == 77 && attr.path_mtu == set->path_mtu);
	CHECK(attr.ah_attr.is_global && attr.ah_attr.sl == (on_soft("service levels") ? 2 : 0));
	CHECK(!memcmp(&attr.ah_attr.grh.dgid, &set->ah_attr.grh.dgid, sizeof(union ibv_gid)));
	if (bare->qp->qp_type != IBV_QPT_RC)
		return;
	CHECK(attr.max_rd_atomic >= 3 && attr.max_dest_rd_atomic >= 2); /* rdma_rxe rounds them up */
	CHECK(attr.min_rnr_timer == 9 && attr.timeout == 12 && attr.retry_cnt == 6 &&
	      attr.rnr_retry == 5);
}

static void test_masks(struct bench *bench)
{
	for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
		struct ibv_qp_attr attr = all_attributes(bench);
		struct bare bare;

		bare_create(&bare, bench, table[row].type, NULL);
		attr.qp_state = IBV_QPS_RTR;
		CHECK(bare_modify(&bare, attr, IBV_QP_STATE | table[row].rtr) == EINVAL);
		attr.qp_state = IBV_QPS_ERR;
		CHECK(bare_modify(&bare, attr, IBV_QP_STATE) == EINVAL); /* RESET does not lead to ERR */
		check_transition(&bare, attr, IBV_QPS_INIT, table[row].init, IBV_QP_SQ_PSN);
		check_transition(&bare, attr, IBV_QPS_RTR, table[row].rtr, IBV_QP_SQ_PSN);
		check_transition(&bare, attr, IBV_QPS_RTS, table[row].rts, IBV_QP_RQ_PSN);
		check_query(&bare, &attr);
		attr.qp_state = IBV_QPS_RTS;
		CHECK(bare_modify(&bare, attr, IBV_QP_STATE | IBV_QP_TIMEOUT) == EINVAL);
		attr.qp_state = IBV_QPS_RESET;
		CHECK(!bare_modify(&bare, attr, IBV_QP_STATE));
		CHECK(bare_state(&bare) == IBV_QPS_RESET);
		bare_destroy(&bare);
	}
}

/* Which requests can be posted in which state. */
static void test_posting(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 1, &sge);
	struct bare client, server;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	CHECK(bare_recv(&client, 1, 0, 8) == EINVAL);
	CHECK(bare_post(&client, &wr) == EINVAL);
	bare_init(&client);
	CHECK(!bare_recv(&client, 2, 0, 8));
	CHECK(bare_post(&client, &wr) == EINVAL);
	bare_init(&server);
	bare_ready_to_receive(&client, &server);
	CHECK(bare_post(&client, &wr) == EINVAL);
	/* RESET drops posted requests, without completions. */
	CHECK(!bare_modify(&client, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	bare_init(&client);
	bare_fail(&client);
	expect_no_wc(&client);
	bare_destroy(&client);
	bare_destroy(&server);
}

/* ERR flushes posted requests, each queue in its order, and those that are posted from then on. */
static void test_flush(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 0, &sge);
	struct bare client, server;
	uint64_t sends = 10, receives = 20;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	bare_connect(&client, &server);
	for (int number = 0; number < 3; number++) {
		CHECK(!bare_recv(&client, receives + (uint64_t)number, 4096, 8));
		wr.wr_id = sends + (uint64_t)number; /* without receives: they wait for an RNR timer */
		wr.send_flags = 0; /* errors complete nevertheless */
		CHECK(!bare_post(&client, &wr));
	}
	bare_fail(&client);
	for (int number = 0; number < 6; number++) {
		struct ibv_wc wc = poll_one(client.cq);

		CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
		CHECK(wc.wr_id == (wc.wr_id < 20 ? sends++ : receives++));
	}
	wr.wr_id = 30;
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 30, IBV_WC_WR_FLUSH_ERR);
	CHECK(!bare_recv(&client, 31, 4096, 8));
	expect_wc(&client, 31, IBV_WC_WR_FLUSH_ERR);
	bare_destroy(&client);
	bare_destroy(&server);
}

/*
 * A receive that fails moves its queue pair to ERR. Its completion comes before those of requests that are flushed
 * then. The first of these may be later than some that have succeeded unsignaled: each queue keeps its order.
 */
static void test_failed_receive(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 8), own;
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 10, &sge);
	struct ibv_recv_wr receive = {.wr_id = 20, .sg_list = &own, .num_sge = 1}, *bad;
	struct bare client, server;
	struct ibv_mr *mr;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	bare_connect(&client, &server);
	mr = bench->provider->ibv_reg_mr(bench->pd, bench->memory + 4096, 8, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	own = (struct ibv_sge){(uintptr_t)mr->addr, 8, mr->lkey};
	CHECK(!ibv_post_recv(client.qp, &receive, &bad));
	CHECK(!bench->provider->ibv_dereg_mr(mr));
	wr.send_flags = 0;
	wr.wr.rdma.remote_addr = (uintptr_t)bench->memory + 8192;
	wr.wr.rdma.rkey = bench->mr->rkey;
	CHECK(!bare_post(&client, &wr));
	for (uint64_t wr_id = 11; wr_id < 13; wr_id++) { /* without receives: they wait for an RNR timer */
		wr = bench_wr(IBV_WR_SEND, wr_id, &sge);
		wr.send_flags = 0;
		CHECK(!bare_post(&client, &wr));
	}
	wr = bench_wr(IBV_WR_SEND, 30, &sge);
	CHECK(!bare_post(&server, &wr));
	expect_wc(&client, 20, IBV_WC_LOC_PROT_ERR);
	expect_wc(&client, 11, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&client, 12, IBV_WC_WR_FLUSH_ERR);
	expect_no_wc(&client);
	expect_wc(&server, 30, IBV_WC_REM_OP_ERR);
	bare_destroy(&client);
	bare_destroy(&server);
}

/* RESET takes the queue pair's completions out of a queue and leaves those of others, in their order. */
static void test_reset_completions(struct bench *bench)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = BENCH_DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct bare bare, other = {.bench = bench};
	uint64_t wr_id = 0;

	bare_create(&bare, bench, IBV_QPT_RC, NULL);
	attr.send_cq = attr.recv_cq = other.cq = bare.cq;
	other.qp = bench->provider->ibv_create_qp(bench->pd, &attr);
	CHECK(other.qp);
	bare_init(&bare);
	bare_init(&other);
	bare_fail(&bare);
	bare_fail(&other);
	/* Twice around the ring, and never the same number of each. */
	for (int round = 0; round < 16 * BENCH_DEPTH; round++) {
		uint64_t first = wr_id, wanted = wr_id;

		for (int number = 0; number < round % 7; number++)
			CHECK(!bare_recv(number & round ? &bare : &other, wr_id++, 0, 8));
		CHECK(!bare_modify(&bare, reset, IBV_QP_STATE));
		for (; wanted != wr_id; wanted++)
			if (!((int)(wanted - first) & round))
				CHECK(expect_wc(&other, wanted, IBV_WC_WR_FLUSH_ERR).qp_num ==
				      other.qp->qp_num);
		expect_no_wc(&bare);
		bare_init(&bare);
		bare_fail(&bare);
	}
	CHECK(!bench->provider->ibv_destroy_qp(other.qp));
	bare_destroy(&bare);
}

/* In SQD no new request is sent, sent ones complete; then back to RTS. */
static void test_drain(struct bench *bench)
{
	struct ibv_qp_attr drain = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .timeout = 11};
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 1, &sge);
	struct ibv_qp_init_attr init;
	struct bare client, server;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	bare_connect(&client, &server);
	CHECK(!bare_post(&client, &wr)); /* waits for a receive */
	CHECK(!bare_modify(&client, drain, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	expect_no_wc(&client);
	wr.wr_id = 2;
	CHECK(!bare_post(&client, &wr));
	CHECK(!bare_recv(&server, 3, 4096, 8));
	CHECK(!bare_recv(&server, 4, 4096, 8));
	expect_wc(&server, 3, IBV_WC_SUCCESS);
	expect_wc(&client, 1, IBV_WC_SUCCESS);
	CHECK(expect_async_event(bench, IBV_EVENT_SQ_DRAINED).element.qp == client.qp);
	expect_no_wc(&server);
	CHECK(!bench->provider->ibv_query_qp(client.qp, &attr, IBV_QP_STATE, &init));
	CHECK(attr.qp_state == IBV_QPS_SQD && !attr.sq_draining);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD, .timeout = 11};
	CHECK(!bare_modify(&client, attr, IBV_QP_STATE | IBV_QP_TIMEOUT));
	/* It still receives. */
	CHECK(!bare_recv(&client, 5, 8192, 8));
	wr.wr_id = 6;
	CHECK(!bare_post(&server, &wr));
	expect_wc(&client, 5, IBV_WC_SUCCESS);
	expect_wc(&server, 6, IBV_WC_SUCCESS);
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!bare_modify(&client, attr, IBV_QP_STATE));
	expect_wc(&server, 4, IBV_WC_SUCCESS);
	expect_wc(&client, 2, IBV_WC_SUCCESS);
	expect_no_async_event(bench);
	bare_destroy(&client);
	bare_destroy(&server);
}

/* A message to a queue pair in RTR shows that its peer is ready: one event for each time it leaves RESET. */
static void test_communication_established(struct bench *bench)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 1, &sge);
	struct bare client, server;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	for (int life = 0; life < 2; life++) {
		bare_init(&client);
		bare_init(&server);
		bare_ready_to_receive(&client, &server);
		bare_ready_to_receive(&server, &client);
		bare_ready_to_send(&client);
		CHECK(!bare_recv(&server, 2, 4096, 8));
		CHECK(!bare_recv(&server, 3, 4096, 8));
		for (wr.wr_id = 2; wr.wr_id <= 3; wr.wr_id++) {
			CHECK(!bare_post(&client, &wr));
			expect_wc(&server, wr.wr_id, IBV_WC_SUCCESS);
			expect_wc(&client, wr.wr_id, IBV_WC_SUCCESS);
		}
		CHECK(expect_async_event(bench, IBV_EVENT_COMM_EST).element.qp == server.qp);
		bare_ready_to_send(&server);
		CHECK(!bare_recv(&server, 4, 4096, 8));
		CHECK(!bare_post(&client, &wr));
		expect_wc(&server, 4, IBV_WC_SUCCESS);
		expect_wc(&client, 4, IBV_WC_SUCCESS);
		expect_no_async_event(bench);
		CHECK(!bare_modify(&client, reset, IBV_QP_STATE) && !bare_modify(&server, reset, IBV_QP_STATE));
	}
	bare_destroy(&client);
	bare_destroy(&server);
}

static void test_values(struct bench *bench)
{
	struct ibv_qp_attr attr = all_attributes(bench);
	struct bare bare;

	bare_create(&bare, bench, IBV_QPT_RC, NULL);
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 2;
	CHECK(bare_modify(&bare, attr, IBV_QP_STATE | CONNECTED_INIT) == EINVAL);
	attr.port_num = 1;
	CHECK(!bare_modify(&bare, attr, IBV_QP_STATE | CONNECTED_INIT));
	attr.qp_state = IBV_QPS_RTR;
	attr.max_dest_rd_atomic = 129;
	CHECK(bare_modify(&bare, attr, IBV_QP_STATE | RC_RTR) == EINVAL);
	attr.max_dest_rd_atomic = 1;
	attr.path_mtu = 6;
	CHECK(bare_modify(&bare, attr, IBV_QP_STATE | RC_RTR) == EINVAL);
	CHECK(bare_state(&bare) == IBV_QPS_INIT);
	bare_destroy(&bare);
}

/* A receive is outstanding until its completion is polled, also when its queue pair is gone by then. */
static void test_room_for_receives(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 1, &sge);
	struct bare client, server;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	bare_connect(&client, &server);
	for (uint64_t id = 0; id < BENCH_DEPTH; id++)
		CHECK(!bare_recv(&server, id, 64, 64));
	CHECK(bare_recv(&server, BENCH_DEPTH, 64, 64) == ENOMEM);
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 1, IBV_WC_SUCCESS);
	CHECK(bare_recv(&server, BENCH_DEPTH, 64, 64) == ENOMEM);
	expect_wc(&server, 0, IBV_WC_SUCCESS);
	CHECK(!bare_recv(&server, BENCH_DEPTH, 64, 64));
	CHECK(bare_recv(&server, BENCH_DEPTH + 1, 64, 64) == ENOMEM);

	bare_fail(&server);
	CHECK(bare_recv(&server, BENCH_DEPTH + 1, 64, 64) == ENOMEM);
	expect_wc(&server, 1, IBV_WC_WR_FLUSH_ERR);
	CHECK(!bare_recv(&server, BENCH_DEPTH + 1, 64, 64));
	CHECK(!bench->provider->ibv_destroy_qp(server.qp));
	for (uint64_t id = 2; id <= BENCH_DEPTH + 1; id++)
		expect_wc(&server, id, IBV_WC_WR_FLUSH_ERR);
	expect_no_wc(&server);
	CHECK(!bench->provider->ibv_destroy_cq(server.cq));
	bare_destroy(&client);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	test_masks(&bench);
	test_posting(&bench);
	if (on_soft("late receives"))
		test_flush(&bench);
	if (on_soft("wrong local keys"))
		test_failed_receive(&bench);
	if (on_soft("completions that RESET finds"))
		test_reset_completions(&bench);
	if (on_soft("SQD"))
		test_drain(&bench);
	if (on_soft("COMM_EST"))
		test_communication_established(&bench);
	if (on_soft("attributes beyond the device"))
		test_values(&bench);
	if (on_soft("room for receives"))
		test_room_for_receives(&bench);
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
