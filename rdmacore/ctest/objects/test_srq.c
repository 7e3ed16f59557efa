/* Shared receive queues: which queue pair gets a receive, the limit event, resizing, and the end of a queue pair. */
#include "ctest/support/bare.h"
#include "ctest/support/check.h"

static struct ibv_srq *make_srq(struct bench *bench, uint32_t max_wr)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = max_wr, .max_sge = 2}};
	struct ibv_srq *srq = bench->provider->ibv_create_srq(bench->pd, &attr);

	CHECK(srq && attr.attr.max_wr >= max_wr && attr.attr.max_sge >= 2);
	return srq;
}

static void send_and_wait(struct bare *from, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = bench_sge(from->bench, 0, length);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, wr_id, &sge);

	CHECK(!bare_post(from, &wr));
	expect_wc(from, wr_id, IBV_WC_SUCCESS);
}

/* Two connections take their receives from one queue, in the order in which they need them. */
static void test_shared_by_two(struct bench *bench)
{
	struct ibv_srq *srq = make_srq(bench, 16);
	struct bare client[2], server[2];
	struct ibv_wc wc;

	for (int end = 0; end < 2; end++) {
		bare_create(&client[end], bench, IBV_QPT_RC, NULL);
		bare_create(&server[end], bench, IBV_QPT_RC, srq);
		bare_connect(&client[end], &server[end]);
	}
	for (uint64_t id = 1; id <= 3; id++)
		CHECK(!srq_recv(bench, srq, id, 4096 * id, 64));
	/* Receives of a queue pair with a shared queue are posted there alone. */
	CHECK(bare_recv(&server[0], 9, 0, 64) == EINVAL);
	memset(bench->memory, 0x5a, 64);
	send_and_wait(&client[0], 10, 64);
	send_and_wait(&client[1], 11, 32);
	send_and_wait(&client[0], 12, 16);
	CHECK(expect_wc(&server[0], 1, IBV_WC_SUCCESS).byte_len == 64);
	wc = expect_wc(&server[1], 2, IBV_WC_SUCCESS);
	CHECK(wc.byte_len == 32 && wc.qp_num == server[1].qp->qp_num);
	expect_wc(&server[0], 3, IBV_WC_SUCCESS);
	CHECK(!memcmp(bench->memory + 8192, bench->memory, 32) && !bench->memory[8192 + 32]);

	CHECK(bench->provider->ibv_destroy_srq(srq) == EBUSY);
	for (int end = 0; end < 2; end++) {
		bare_destroy(&client[end]);
		bare_destroy(&server[end]);
	}
	CHECK(!bench->provider->ibv_destroy_srq(srq));
}

/* An empty shared queue is an RNR NAK, and a receive that comes during the wait ends it. */
static void test_empty(struct bench *bench)
{
	struct ibv_srq *srq = make_srq(bench, 4);
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 1, &sge);
	struct bare client, server;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, srq);
	bare_connect(&client, &server);
	CHECK(!bare_post(&client, &wr));
	expect_no_wc(&server);
	CHECK(!srq_recv(bench, srq, 2, 4096, 64));
	expect_wc(&server, 2, IBV_WC_SUCCESS);
	expect_wc(&client, 1, IBV_WC_SUCCESS);
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!bench->provider->ibv_destroy_srq(srq));
}

static void test_limit(struct bench *bench)
{
	struct ibv_srq *srq = make_srq(bench, 8);
	struct ibv_srq_attr attr = {.srq_limit = 2};
	struct bare client, server;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, srq);
	bare_connect(&client, &server);
	for (uint64_t id = 1; id <= 4; id++)
		CHECK(!srq_recv(bench, srq, id, 4096 * id, 64));
	CHECK(!bench->provider->ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	CHECK(!bench->provider->ibv_query_srq(srq, &attr));
	CHECK(attr.srq_limit == 2 && attr.max_wr >= 8);
	send_and_wait(&client, 1, 8);
	send_and_wait(&client, 2, 8);
	expect_no_async_event(bench); /* two are left, which is not fewer than two */
	send_and_wait(&client, 3, 8);
	CHECK(expect_async_event(bench, IBV_EVENT_SRQ_LIMIT_REACHED).element.srq == srq);
	send_and_wait(&client, 4, 8);
	expect_no_async_event(bench); /* one event an arming */
	CHECK(!bench->provider->ibv_query_srq(srq, &attr));
	CHECK(attr.srq_limit == 0);
	for (uint64_t id = 1; id <= 4; id++)
		expect_wc(&server, id, IBV_WC_SUCCESS);
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!bench->provider->ibv_destroy_srq(srq));
}

/* Posted receives stay posted, in order; a size below their number is rejected. */
static void test_resize(struct bench *bench)
{
	struct ibv_srq *srq = make_srq(bench, 4);
	struct ibv_srq_attr attr;
	struct bare client, server;
	uint64_t posted;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, srq);
	bare_connect(&client, &server);
	CHECK(!bench->provider->ibv_query_srq(srq, &attr) && attr.max_wr >= 4); /* a device may grant more */
	posted = attr.max_wr;
	for (uint64_t id = 1; id <= posted; id++)
		CHECK(!srq_recv(bench, srq, id, 4096, 64));
	CHECK(srq_recv(bench, srq, posted + 1, 4096, 64) == ENOMEM);
	attr.max_wr = 32;
	CHECK(!bench->provider->ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	while (posted < 32)
		CHECK(!srq_recv(bench, srq, ++posted, 4096, 64));
	attr.max_wr = 31;
	CHECK(bench->provider->ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	for (uint64_t id = 1; id <= posted; id++) {
		send_and_wait(&client, id, 8);
		expect_wc(&server, id, IBV_WC_SUCCESS);
	}
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!bench->provider->ibv_destroy_srq(srq));
}

/* A queue pair that goes to ERR leaves the receives to others, and raises an event. */
static void test_last_wqe(struct bench *bench)
{
	struct ibv_srq *srq = make_srq(bench, 4);
	struct bare client, server, other;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, srq);
	bare_create(&other, bench, IBV_QPT_RC, srq);
	bare_connect(&client, &server);
	CHECK(!srq_recv(bench, srq, 1, 4096, 64));
	bare_fail(&server);
	CHECK(expect_async_event(bench, IBV_EVENT_QP_LAST_WQE_REACHED).element.qp == server.qp);
	expect_no_wc(&server);
	bare_fail(&client);
	CHECK(!bare_modify(&client, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	bare_connect(&client, &other);
	send_and_wait(&client, 2, 8);
	expect_wc(&other, 1, IBV_WC_SUCCESS);
	expect_no_async_event(bench);
	bare_destroy(&client);
	bare_destroy(&server);
	bare_destroy(&other);
	CHECK(!bench->provider->ibv_destroy_srq(srq));
}

/* The queue and its memory in a protection domain of their own, and keys of the wrong one. */
static void test_protection_domain(struct bench *bench)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_pd *pd = bench->provider->ibv_alloc_pd(bench->context);
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct bare client, server;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_sge payload = bench_sge(bench, 0, 8);
	struct ibv_send_wr send_wr = bench_wr(IBV_WR_SEND, 4, &payload);

	CHECK(pd);
	srq = bench->provider->ibv_create_srq(pd, &attr);
	CHECK(srq);
	mr = bench->provider->ibv_reg_mr(pd, bench->memory + 4096, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, srq);
	bare_connect(&client, &server);
	sge = (struct ibv_sge){(uintptr_t)bench->memory + 4096, 64, mr->lkey};
	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
	send_and_wait(&client, 3, 8);
	expect_wc(&server, 1, IBV_WC_SUCCESS);
	CHECK(!srq_recv(bench, srq, 2, 4096, 64)); /* a key of the queue pair's domain */
	CHECK(!bare_post(&client, &send_wr));
	expect_wc(&client, 4, IBV_WC_REM_OP_ERR);
	expect_wc(&server, 2, IBV_WC_LOC_PROT_ERR);
	expect_async_event(bench, IBV_EVENT_QP_LAST_WQE_REACHED);
	CHECK(bench->provider->ibv_dealloc_pd(pd) == EBUSY);
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!bench->provider->ibv_dereg_mr(mr));
	CHECK(!bench->provider->ibv_destroy_srq(srq));
	CHECK(!bench->provider->ibv_dealloc_pd(pd));
}

/* A WRITE that is rejected after its receive was taken: no other queue pair can have it, so it completes here. */
static void test_refused_write(struct bench *bench)
{
	struct ibv_srq *srq = make_srq(bench, 4);
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE_WITH_IMM, 1, &sge);
	struct bare client, server;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, srq);
	bare_connect(&client, &server);
	CHECK(!srq_recv(bench, srq, 2, 4096, 64));
	CHECK(!srq_recv(bench, srq, 3, 4096, 64));
	wr.wr.rdma.remote_addr = (uintptr_t)bench->memory;
	wr.wr.rdma.rkey = bench->mr->rkey ^ 1;
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 1, IBV_WC_REM_ACCESS_ERR);
	expect_wc(&server, 2, IBV_WC_WR_FLUSH_ERR);
	expect_no_wc(&server); /* the other stays where it is */
	expect_async_event(bench, IBV_EVENT_QP_ACCESS_ERR);
	expect_async_event(bench, IBV_EVENT_QP_LAST_WQE_REACHED);
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!bench->provider->ibv_destroy_srq(srq));
}

/* It is created without a limit, and unknown attributes and types are rejected. */
static void test_attributes(struct bench *bench)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 3}};
	struct ibv_srq_init_attr_ex extended = {
		.attr = {.max_wr = 4, .max_sge = 1}, .pd = bench->pd, .srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
	};
	struct ibv_srq *srq = bench->provider->ibv_create_srq(bench->pd, &attr);
	bool soft = on_soft("attributes of shared queues");
	uint32_t limit = soft ? 0 : 3;
	struct ibv_srq_attr got = {.max_wr = 4};
	struct bare server;
	struct ibv_qp_attr qp_attr;
	struct ibv_qp_init_attr init;

	CHECK(srq && attr.attr.srq_limit == limit);
	CHECK(bench->provider->ibv_modify_srq(srq, &got, 1 << 4) == (soft ? EINVAL : 0));
	CHECK(!bench->provider->ibv_query_srq(srq, &got) && got.srq_limit == limit && got.max_wr >= 4);
	CHECK(!verbs_get_ctx(bench->context)->create_srq_ex(bench->context, &extended) &&
	      errno == EINVAL); /* XRC without a domain */
	/* The sizes of its own queue are ignored (ibv_create_qp(3)). */
	bare_create(&server, bench, IBV_QPT_RC, srq);
	CHECK(!bench->provider->ibv_query_qp(server.qp, &qp_attr, IBV_QP_CAP, &init));
	CHECK(init.srq == srq && init.cap.max_recv_wr == 0 && init.cap.max_recv_sge == 0);
	bare_destroy(&server);
	CHECK(!bench->provider->ibv_destroy_srq(srq));
}

static void test_limits(struct bench *bench)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = UINT32_MAX, .max_sge = 1}};
	struct ibv_srq_attr change;
	struct ibv_sge sges[3];
	struct ibv_recv_wr wr = {.sg_list = sges, .num_sge = 3}, *bad = NULL;
	struct ibv_srq *srq;

	CHECK(!bench->provider->ibv_create_srq(bench->pd, &attr) && errno == EINVAL);
	attr.attr = (struct ibv_srq_attr){.max_wr = 4, .max_sge = 1000};
	CHECK(!bench->provider->ibv_create_srq(bench->pd, &attr) && errno == EINVAL);
	srq = make_srq(bench, 4);
	for (int entry = 0; entry < 3; entry++)
		sges[entry] = bench_sge(bench, 0, 8);
	CHECK(ibv_post_srq_recv(srq, &wr, &bad) == EINVAL && bad == &wr);
	CHECK(!bench->provider->ibv_query_srq(srq, &change));
	change.srq_limit = change.max_wr + 1;
	CHECK(bench->provider->ibv_modify_srq(srq, &change, IBV_SRQ_LIMIT) == EINVAL);
	CHECK(!bench->provider->ibv_destroy_srq(srq));
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	test_shared_by_two(&bench);
	test_empty(&bench);
	test_limit(&bench);
	test_resize(&bench);
	test_attributes(&bench);
	if (on_soft("the last receive of a shared queue"))
		test_last_wqe(&bench);
	if (on_soft("shared queues of another domain"))
		test_protection_domain(&bench);
	if (on_soft("receives of refused requests"))
		test_refused_write(&bench);
	test_limits(&bench);
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
