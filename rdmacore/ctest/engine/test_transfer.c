/* Data over a connected pair: every operation, and every way it is refused. */
#include <infiniband/verbs.h>

#include "ctest/support/check.h"
#include "ctest/support/pair.h"

static const struct pair_options usual = {.memory = 1 << 20, .depth = 16, .rnr_retry = 7, .retry = 7,
					  .resources = 1};

static void test_send_write_read(struct core_provider *provider)
{
	struct pair pair;
	struct ibv_wc wc;

	pair_connect(&pair, provider, 7001, usual);
	memset(pair.client.memory, 0x5a, 1 << 19);
	CHECK(!post_recv(&pair.server, 7, 0, 4096));
	CHECK(!post_send(&pair.client, IBV_WR_SEND, 1, 0, 100, NULL, 0));
	wc = poll_one(pair.client.id->send_cq);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == 1 && wc.opcode == IBV_WC_SEND);
	wc = poll_one(pair.server.id->recv_cq);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == 7 && wc.byte_len == 100 &&
	      wc.opcode == IBV_WC_RECV && wc.qp_num == pair.server.id->qp->qp_num);
	CHECK(!memcmp(pair.server.memory, pair.client.memory, 100) && !pair.server.memory[100]);

	CHECK(!post_send(&pair.client, IBV_WR_RDMA_WRITE, 2, 0, 1 << 19, &pair.server, 4096));
	wc = poll_one(pair.client.id->send_cq);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_WRITE);
	CHECK(!memcmp(pair.server.memory + 4096, pair.client.memory, 1 << 19));

	memset(pair.client.memory, 0, 1 << 20);
	CHECK(!post_send(&pair.client, IBV_WR_RDMA_READ, 3, 64, 1 << 18, &pair.server, 4096));
	wc = poll_one(pair.client.id->send_cq);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_READ && wc.byte_len == 1 << 18);
	CHECK(!memcmp(pair.client.memory + 64, pair.server.memory + 4096, 1 << 18));

	CHECK(!post_recv(&pair.server, 8, 0, 0));
	CHECK(!post_send(&pair.client, IBV_WR_RDMA_WRITE_WITH_IMM, 4, 0, 32, &pair.server, 0));
	wc = poll_one(pair.server.id->recv_cq);
	CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.wc_flags & IBV_WC_WITH_IMM &&
	      wc.byte_len == 32);
	pair_close(&pair);
}

/* The responder gets an event when it rejects a request (IBTA 11.6.3.2). */
static void expect_async(struct pair *pair, enum ibv_event_type type)
{
	struct ibv_async_event event;

	if (!on_soft("events of refused requests"))
		return;
	CHECK(!pair->provider->ibv_get_async_event(pair->server.id->verbs, &event));
	CHECK(event.event_type == type && event.element.qp == pair->server.id->qp);
	pair->provider->ibv_ack_async_event(&event);
}

static void test_flush_in_order(struct core_provider *provider)
{
	bool flushes_late_posts = on_soft("late receives");
	uint64_t last = 3;
	struct pair pair;

	pair_connect(&pair, provider, 7001, usual);
	for (uint64_t id = 1; id <= last; id++)
		CHECK(!post_recv(&pair.client, id, 0, 64));
	CHECK(!provider->rdma_disconnect(pair.client.id));
	if (flushes_late_posts) {
		CHECK(!post_recv(&pair.client, ++last, 0, 64));
		CHECK(!post_send(&pair.client, IBV_WR_SEND, 9, 0, 64, NULL, 0));
		CHECK(poll_one(pair.client.id->send_cq).status == IBV_WC_WR_FLUSH_ERR);
	}
	for (uint64_t id = 1; id <= last; id++) {
		struct ibv_wc wc = poll_one(pair.client.id->recv_cq);

		CHECK(wc.wr_id == id && wc.status == IBV_WC_WR_FLUSH_ERR);
	}
	expect_and_acknowledge(provider, pair.channel, RDMA_CM_EVENT_DISCONNECTED);
	pair_destroy(&pair);
}

static enum ibv_qp_state state_of(struct core_provider *provider, struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!provider->ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

static void check_both_failed(struct pair *pair)
{
	CHECK(state_of(pair->provider, pair->client.id->qp) == IBV_QPS_ERR);
	CHECK(state_of(pair->provider, pair->server.id->qp) == IBV_QPS_ERR);
}

static void test_remote_access(struct core_provider *provider)
{
	/* which field is wrong: key, range or right */
	for (int wrong = 0; wrong < 3; wrong++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .num_sge = 1}, *bad;
		struct ibv_mr *locked;
		struct ibv_sge sge;
		struct pair pair;

		pair_connect(&pair, provider, 7001, usual);
		locked = provider->ibv_reg_mr(pair.server.id->pd, pair.server.memory, 4096,
					      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
		CHECK(locked);
		memset(pair.client.memory, 0xa5, 64);
		CHECK(!post_recv(&pair.server, 9, 0, 64));
		sge = (struct ibv_sge){(uintptr_t)pair.client.memory, 64, pair.client.mr->lkey};
		wr.sg_list = &sge;
		wr.wr.rdma.remote_addr = (uintptr_t)pair.server.memory + (wrong == 1 ? (1 << 20) - 63 : 0);
		wr.wr.rdma.rkey = wrong == 0 ? pair.server.mr->rkey ^ 1 :
				  wrong == 1 ? pair.server.mr->rkey : locked->rkey;
		CHECK(!ibv_post_send(pair.client.id->qp, &wr, &bad));
		CHECK(poll_one(pair.client.id->send_cq).status == IBV_WC_REM_ACCESS_ERR);
		CHECK(poll_one(pair.server.id->recv_cq).status == IBV_WC_WR_FLUSH_ERR);
		check_both_failed(&pair);
		expect_async(&pair, IBV_EVENT_QP_ACCESS_ERR);
		for (size_t byte = 0; byte < pair.server.size; byte++)
			CHECK(!pair.server.memory[byte]);
		CHECK(!provider->ibv_dereg_mr(locked));
		pair_destroy(&pair);
	}
}

static void test_message_too_long(struct core_provider *provider)
{
	bool soft = on_soft("messages longer than their receive");
	enum ibv_wc_status sender = soft ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR;
	enum ibv_wc_status receiver = soft ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_QP_OP_ERR;
	struct pair pair;

	pair_connect(&pair, provider, 7001, usual);
	CHECK(!post_recv(&pair.server, 1, 0, 63));
	CHECK(!post_send(&pair.client, IBV_WR_SEND, 2, 0, 64, NULL, 0));
	CHECK(poll_one(pair.client.id->send_cq).status == sender);
	CHECK(poll_one(pair.server.id->recv_cq).status == receiver);
	expect_async(&pair, IBV_EVENT_QP_REQ_ERR);
	check_both_failed(&pair);
	pair_destroy(&pair);
}

static void test_local_protection(struct core_provider *provider)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .num_sge = 1}, *bad;
	enum ibv_wc_status status;
	struct ibv_sge sge;
	struct pair pair;

	pair_connect(&pair, provider, 7001, usual);
	CHECK(!post_recv(&pair.server, 1, 0, 64));
	sge = (struct ibv_sge){(uintptr_t)pair.client.memory, 64, pair.client.mr->lkey + 1};
	wr.sg_list = &sge;
	CHECK(!ibv_post_send(pair.client.id->qp, &wr, &bad));
	status = poll_one(pair.client.id->send_cq).status;
	/* rdma_rxe returns the former in Linux 6.1 and the latter in 6.12. */
	CHECK(on_soft("wrong local keys") ? status == IBV_WC_LOC_PROT_ERR :
					    status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_WR_FLUSH_ERR);
	CHECK(state_of(provider, pair.client.id->qp) == IBV_QPS_ERR);
	CHECK(state_of(provider, pair.server.id->qp) == IBV_QPS_RTS);
	pair_destroy(&pair);
}

/* The other side has no receive: one retry of 655.36 ms, then the request fails. */
static void test_receiver_not_ready(struct core_provider *provider)
{
	struct pair_options options = usual;
	struct pair pair;

	options.rnr_retry = 1;
	pair_connect(&pair, provider, 7001, options);
	CHECK(!post_send(&pair.client, IBV_WR_SEND, 1, 0, 64, NULL, 0));
	CHECK(!post_send(&pair.client, IBV_WR_SEND, 2, 0, 64, NULL, 0));
	CHECK(poll_one(pair.client.id->send_cq).status == IBV_WC_RNR_RETRY_EXC_ERR);
	CHECK(poll_one(pair.client.id->send_cq).status == IBV_WC_WR_FLUSH_ERR);
	pair_destroy(&pair);

	/* A receive that comes during the wait is found by the retry. */
	pair_connect(&pair, provider, 7001, usual);
	CHECK(!post_send(&pair.client, IBV_WR_SEND, 1, 0, 64, NULL, 0));
	CHECK(!post_recv(&pair.server, 2, 0, 64));
	CHECK(poll_one(pair.server.id->recv_cq).status == IBV_WC_SUCCESS);
	CHECK(poll_one(pair.client.id->send_cq).status == IBV_WC_SUCCESS);
	pair_close(&pair);
}

int main(void)
{
	struct core_provider *provider = open_provider();

	test_send_write_read(provider);
	test_flush_in_order(provider);
	test_remote_access(provider);
	test_message_too_long(provider);
	test_local_protection(provider);
	test_receiver_not_ready(provider);
	close_provider(provider);
	return 0;
}
