/* The extended verbs: reading queues and building requests in place, resizing, overruns, re-registered regions. */
#include <poll.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"

static struct ibv_cq_ex *make_cq(struct bench *bench, uint32_t entries)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = entries, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(bench->context, &attr);

	CHECK(cq);
	return cq;
}

/* Like the inline function of verbs.h, which would need libibverbs. */
static struct ibv_qp *create_qp(struct bench *bench, struct ibv_qp_init_attr_ex *attr)
{
	struct verbs_context *context = verbs_get_ctx_op(bench->context, create_qp_ex);

	CHECK(context);
	return context->create_qp_ex(bench->context, attr);
}

/* An end with an extended queue and with built requests. */
static struct ibv_qp_ex *make_end(struct bare *bare, struct bench *bench, enum ibv_qp_type type,
				  uint64_t operations)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = BENCH_DEPTH, .max_recv_wr = BENCH_DEPTH, .max_send_sge = 4,
			.max_recv_sge = 4, .max_inline_data = 64},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = bench->pd,
		.send_ops_flags = operations,
	};
	struct ibv_qp_ex *extended;

	*bare = (struct bare){.bench = bench, .cq = ibv_cq_ex_to_cq(make_cq(bench, 64))};
	attr.send_cq = attr.recv_cq = bare->cq;
	bare->qp = create_qp(bench, &attr);
	CHECK(bare->qp);
	extended = bench->provider->ibv_qp_to_qp_ex(bare->qp);
	CHECK(extended);
	return extended;
}

#define CONNECTED_OPERATIONS                                                                       \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |    \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                                 \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static void expect_next(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	CHECK(cq->status == IBV_WC_SUCCESS && cq->wr_id == wr_id && ibv_wc_read_opcode(cq) == opcode);
}

static void wait_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};
	int result;

	while ((result = ibv_start_poll(cq, &attr)) == ENOENT)
		;
	CHECK(!result);
}

static void test_builders(struct bench *bench)
{
	struct ibv_data_buf pieces[] = {{(void *)(uintptr_t)"abc", 3}, {(void *)(uintptr_t)"defg", 4}};
	struct ibv_poll_cq_attr poll_attr = {0};
	struct bare client, server;
	struct ibv_qp_ex *qp = make_end(&client, bench, IBV_QPT_RC, CONNECTED_OPERATIONS);
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)client.cq, *server_cq;
	uintptr_t memory = (uintptr_t)bench->memory;

	make_end(&server, bench, IBV_QPT_RC, CONNECTED_OPERATIONS);
	server_cq = (struct ibv_cq_ex *)server.cq;
	bare_connect(&client, &server);
	CHECK(ibv_start_poll(cq, &poll_attr) == ENOENT);
	CHECK(!bare_recv(&server, 1, 4096, 64));
	CHECK(!bare_recv(&server, 2, 8192, 64));
	memset(bench->memory + 12288, 0, 64);
	memcpy(bench->memory + 24576, "hijklmn", 7);
	memcpy(bench->memory + 28672, "abcdefg", 7);
	ibv_wr_start(qp);
	qp->wr_id = 10;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(qp, 5);
	if (on_soft("inline data by builders"))
		ibv_wr_set_inline_data_list(qp, 2, pieces);
	else
		ibv_wr_set_sge(qp, bench->mr->lkey, memory + 28672, 7);
	qp->wr_id = 11;
	ibv_wr_rdma_write(qp, bench->mr->rkey, memory + 12288);
	ibv_wr_set_sge(qp, bench->mr->lkey, memory + 24576, 7);
	qp->wr_id = 12;
	ibv_wr_rdma_read(qp, bench->mr->rkey, memory + 12288);
	ibv_wr_set_sge(qp, bench->mr->lkey, memory + 16384, 7);
	qp->wr_id = 13;
	ibv_wr_atomic_fetch_add(qp, bench->mr->rkey, memory + 20480, 3);
	ibv_wr_set_sge(qp, bench->mr->lkey, memory + 20488, 8);
	qp->wr_id = 14;
	ibv_wr_atomic_cmp_swp(qp, bench->mr->rkey, memory + 20480, 3, 9);
	ibv_wr_set_sge(qp, bench->mr->lkey, memory + 20496, 8);
	qp->wr_id = 15;
	ibv_wr_send(qp);
	CHECK(!ibv_wr_complete(qp));

	wait_poll(cq);
	expect_next(cq, 10, IBV_WC_SEND);
	for (uint64_t id = 11; id <= 15; id++) {
		static const enum ibv_wc_opcode opcodes[] = {IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
							     IBV_WC_FETCH_ADD, IBV_WC_COMP_SWAP,
							     IBV_WC_SEND};
		int result;

		while ((result = ibv_next_poll(cq)) == ENOENT) { /* a kernel's may not be there yet */
			ibv_end_poll(cq);
			wait_poll(cq);
			result = 0;
			break;
		}
		CHECK(!result);
		expect_next(cq, id, opcodes[id - 11]);
	}
	CHECK(ibv_next_poll(cq) == ENOENT);
	ibv_end_poll(cq);
	CHECK(!memcmp(bench->memory + 16384, "hijklmn", 7));
	CHECK(*(uint64_t *)(void *)(bench->memory + 20480) == 9 &&
	      *(uint64_t *)(void *)(bench->memory + 20496) == 3);

	wait_poll(server_cq);
	expect_next(server_cq, 1, IBV_WC_RECV);
	CHECK(!memcmp(bench->memory + 4096, "abcdefg", 7));
	CHECK(ibv_wc_read_byte_len(server_cq) == 7 && ibv_wc_read_imm_data(server_cq) == 5);
	CHECK(ibv_wc_read_wc_flags(server_cq) & IBV_WC_WITH_IMM);
	CHECK(ibv_wc_read_qp_num(server_cq) == server.qp->qp_num);
	ibv_end_poll(server_cq);
	wait_poll(server_cq);
	expect_next(server_cq, 2, IBV_WC_RECV);
	CHECK(ibv_wc_read_byte_len(server_cq) == 0);
	ibv_end_poll(server_cq);
	bare_destroy(&client);
	bare_destroy(&server);
}

/* A batch with an error, or an aborted one, leaves nothing. */
static void test_builder_errors(struct bench *bench)
{
	uint64_t operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_LOCAL_INV;
	struct ibv_sge list[5] = {{0}};
	struct bare client, server;
	struct ibv_qp_ex *qp = make_end(&client, bench, IBV_QPT_RC, operations);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_UD, .send_cq = client.cq, .recv_cq = client.cq, .pd = bench->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ,
	};

	CHECK(!create_qp(bench, &attr) && errno == EOPNOTSUPP);
	make_end(&server, bench, IBV_QPT_RC, operations);
	ibv_wr_start(qp);
	CHECK(ibv_wr_complete(qp) == EINVAL); /* not in RTS */
	bare_connect(&client, &server);
	CHECK(!bare_recv(&server, 1, 4096, 64));
	for (int wrong = 0; wrong < 8; wrong++) {
		ibv_wr_start(qp);
		qp->wr_id = 1;
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(qp);
		ibv_wr_set_sge(qp, bench->mr->lkey, (uintptr_t)bench->memory, 8);
		if (wrong == 0) {
			ibv_wr_rdma_read(qp, bench->mr->rkey, 0); /* not requested at creation */
		} else if (wrong == 1) {
			ibv_wr_send(qp);
			ibv_wr_set_sge_list(qp, 5, list);
		} else if (wrong == 2) {
			ibv_wr_send(qp);
			ibv_wr_set_inline_data(qp, bench->memory, 65);
		} else if (wrong == 3) {
			for (int request = 0; request < BENCH_DEPTH; request++)
				ibv_wr_send(qp);
		} else if (wrong == 4) {
			qp->wr_flags |= IBV_SEND_INLINE; /* ibv_wr_post(3): that is ibv_wr_set_inline_data */
			ibv_wr_send(qp);
		} else if (wrong == 5) { /* the first error counts */
			ibv_wr_rdma_read(qp, bench->mr->rkey, 0);
			for (int request = 0; request < BENCH_DEPTH; request++)
				ibv_wr_send(qp);
		} else if (wrong == 6) { /* a local request has no data */
			ibv_wr_local_inv(qp, 1);
			ibv_wr_set_sge(qp, bench->mr->lkey, (uintptr_t)bench->memory, 8);
		} else {
			ibv_wr_abort(qp);
		}
		if (wrong < 7)
			CHECK(ibv_wr_complete(qp) == (wrong == 3 ? ENOMEM : EINVAL));
		expect_no_wc(&client);
	}
	ibv_wr_start(qp);
	qp->wr_id = 2;
	ibv_wr_send(qp);
	CHECK(!ibv_wr_complete(qp));
	expect_wc(&client, 2, IBV_WC_SUCCESS);
	expect_wc(&server, 1, IBV_WC_SUCCESS);
	bare_destroy(&client);
	bare_destroy(&server);
}

static void test_built_datagram(struct bench *bench)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1,
				   .grh = {.dgid = bench->gid, .sgid_index = bench->gid_index}};
	struct ibv_ah *ah = bench->provider->ibv_create_ah(bench->pd, &attr);
	struct bare client, server;
	struct ibv_qp_ex *qp = make_end(&client, bench, IBV_QPT_UD, IBV_QP_EX_WITH_SEND);

	CHECK(ah);
	make_end(&server, bench, IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
	for (int end = 0; end < 2; end++) {
		bare_init(end ? &server : &client);
		bare_ready_to_receive(end ? &server : &client, NULL);
		bare_ready_to_send(end ? &server : &client);
	}
	CHECK(!bare_recv(&server, 1, 4096, 64));
	ibv_wr_start(qp);
	qp->wr_id = 2;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_ud_addr(qp, ah, server.qp->qp_num, BENCH_QKEY);
	ibv_wr_set_sge(qp, bench->mr->lkey, (uintptr_t)bench->memory, 8);
	CHECK(!ibv_wr_complete(qp));
	expect_wc(&client, 2, IBV_WC_SUCCESS);
	CHECK(expect_wc(&server, 1, IBV_WC_SUCCESS).byte_len == 48);
	if (on_soft("misuse of builders")) {
		ibv_wr_start(qp);
		ibv_wr_send(qp);
		ibv_wr_set_ud_addr(qp, ah, server.qp->qp_num, BENCH_QKEY);
		ibv_wr_send(qp); /* without an address: EINVAL, and the reference of the handle is released */
		CHECK(ibv_wr_complete(qp) == EINVAL);
		ibv_wr_start(qp);
		ibv_wr_send(qp);
		ibv_wr_set_ud_addr(qp, ah, server.qp->qp_num, BENCH_QKEY);
		ibv_wr_set_ud_addr(qp, ah, server.qp->qp_num, BENCH_QKEY); /* twice: the handle is held once */
		CHECK(ibv_wr_complete(qp) == EINVAL);
	}
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!bench->provider->ibv_destroy_ah(ah));
}

/* Completions stay in the queue, in order; too small a size is rejected. */
static void test_resize(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 0, &sge);
	struct bare client, server;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	bare_connect(&client, &server);
	wr.wr.rdma.remote_addr = (uintptr_t)bench->memory + 4096;
	wr.wr.rdma.rkey = bench->mr->rkey;
	for (int round = 0; round < 4; round++) {
		static const int sizes[] = {1024, 32, 300, 64};

		for (uint64_t id = 0; id < 20; id++) {
			wr.wr_id = id;
			CHECK(!bare_post(&client, &wr));
		}
		expect_wc(&client, 0, IBV_WC_SUCCESS);
		CHECK(!bench->provider->ibv_resize_cq(client.cq, sizes[round]));
		CHECK(client.cq->cqe >= sizes[round]);
		if (on_soft("when a message arrives"))
			CHECK(bench->provider->ibv_resize_cq(client.cq, 18) == EINVAL);
		for (uint64_t id = 1; id < 20; id++)
			expect_wc(&client, id, IBV_WC_SUCCESS);
		expect_no_wc(&client);
	}
	CHECK(bench->provider->ibv_resize_cq(client.cq, 0) == EINVAL);
	bare_destroy(&client);
	bare_destroy(&server);
}

/* More completions than there is room for: the queue and the queue pair raise events. */
static void test_overrun(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 0, &sge);
	struct bare client, server;
	struct ibv_wc wc;

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	bare_connect(&client, &server);
	CHECK(!bench->provider->ibv_resize_cq(client.cq, 4));
	wr.wr.rdma.remote_addr = (uintptr_t)bench->memory + 4096;
	wr.wr.rdma.rkey = bench->mr->rkey;
	for (int request = 0; request <= client.cq->cqe; request++)
		CHECK(!bare_post(&client, &wr));
	CHECK(expect_async_event(bench, IBV_EVENT_CQ_ERR).element.cq == client.cq);
	if (on_soft("completions without room")) {
		CHECK(expect_async_event(bench, IBV_EVENT_QP_FATAL).element.qp == client.qp);
		CHECK(bare_state(&client) == IBV_QPS_ERR);
	}
	CHECK(ibv_poll_cq(client.cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	bare_destroy(&client);
	bare_destroy(&server);
}

/* An event for solicited completions only, or for all. */
static void test_solicited(struct bench *bench)
{
	struct ibv_comp_channel *channel = bench->provider->ibv_create_comp_channel(bench->context);
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 1, &sge);
	struct bare client, server;
	struct pollfd readable = {.events = POLLIN};
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
						.max_recv_sge = 1}, .qp_type = IBV_QPT_RC};
	struct ibv_cq *cq;
	void *context;

	CHECK(channel);
	readable.fd = channel->fd;
	bare_create(&client, bench, IBV_QPT_RC, NULL);
	server = (struct bare){.bench = bench};
	server.cq = bench->provider->ibv_create_cq(bench->context, 8, bench, channel, 0);
	CHECK(server.cq);
	attr.send_cq = attr.recv_cq = server.cq;
	server.qp = bench->provider->ibv_create_qp(bench->pd, &attr);
	CHECK(server.qp);
	bare_connect(&client, &server);
	for (uint64_t id = 1; id <= 3; id++)
		CHECK(!bare_recv(&server, id, 4096, 8));
	CHECK(!ibv_req_notify_cq(server.cq, 1));
	CHECK(!bare_post(&client, &wr));
	expect_wc(&server, 1, IBV_WC_SUCCESS);
	CHECK(poll(&readable, 1, 0) == 0);
	wr.send_flags |= IBV_SEND_SOLICITED;
	CHECK(!bare_post(&client, &wr));
	CHECK(poll(&readable, 1, 20000) == 1);
	CHECK(!bench->provider->ibv_get_cq_event(channel, &cq, &context));
	CHECK(cq == server.cq && context == bench);
	bench->provider->ibv_ack_cq_events(cq, 1);
	expect_wc(&server, 2, IBV_WC_SUCCESS);
	CHECK(!bare_post(&client, &wr));
	expect_wc(&server, 3, IBV_WC_SUCCESS);
	CHECK(poll(&readable, 1, 0) == 0); /* one event an arming */
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!bench->provider->ibv_destroy_comp_channel(channel));
}

/* A region with addresses of its user's, then moved, then with fewer rights. */
static void test_regions(struct bench *bench)
{
	/* The kernel requires the same offset in a page. */
	uint64_t iova = UINT64_C(0x100000000000) + ((uintptr_t)bench->memory & 4095);
	struct ibv_mr *mr = bench->provider->ibv_reg_mr_iova2(bench->pd, bench->memory + 4096, 4096, iova,
							      BENCH_ACCESS);
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);
	struct bare client, server;

	CHECK(mr);
	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	bare_connect(&client, &server);
	memset(bench->memory, 0x11, 8);
	memset(bench->memory + 4096, 0, 8192);
	wr.wr.rdma.remote_addr = iova + 16;
	wr.wr.rdma.rkey = mr->rkey;
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 1, IBV_WC_SUCCESS);
	CHECK(bench->memory[4096 + 15] == 0 && bench->memory[4096 + 16] == 0x11);
	if (on_soft("regions that change")) {
		CHECK(!bench->provider->ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
						     bench->memory + 8192, 64, 0));
		wr.wr.rdma.remote_addr = (uintptr_t)bench->memory + 8192;
		wr.wr.rdma.rkey = mr->rkey;
		CHECK(!bare_post(&client, &wr));
		expect_wc(&client, 1, IBV_WC_SUCCESS);
		CHECK(bench->memory[8192] == 0x11 && mr->length == 64);
		CHECK(bench->provider->ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
						    IBV_ACCESS_REMOTE_WRITE) ==
		      IBV_REREG_MR_ERR_INPUT);
		CHECK(!bench->provider->ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
						     IBV_ACCESS_LOCAL_WRITE));
		CHECK(!bare_post(&client, &wr));
		expect_wc(&client, 1, IBV_WC_REM_ACCESS_ERR);
		expect_async_event(bench, IBV_EVENT_QP_ACCESS_ERR);
	}
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!bench->provider->ibv_dereg_mr(mr));
}

static void test_queries(struct bench *bench)
{
	struct ibv_device_attr_ex attr;
	struct ibv_gid_entry entry;
	__be16 pkey;

	CHECK(!verbs_get_ctx(bench->context)->query_device_ex(bench->context, NULL, &attr,
							      sizeof(attr)));
	CHECK(attr.orig_attr.max_srq > 0 && attr.orig_attr.max_ah > 0 &&
	      attr.orig_attr.atomic_cap != IBV_ATOMIC_NONE);
	CHECK(!bench->provider->_ibv_query_gid_ex(bench->context, 1, bench->gid_index, &entry, 0,
						  sizeof(entry)));
	CHECK(!memcmp(&entry.gid, &bench->gid, sizeof(entry.gid)) &&
	      entry.gid_type == IBV_GID_TYPE_ROCE_V2);
	CHECK(!bench->provider->ibv_query_pkey(bench->context, 1, 0, &pkey));
	CHECK(bench->provider->ibv_get_pkey_index(bench->context, 1, pkey) == 0);
	CHECK(bench->provider->ibv_get_pkey_index(bench->context, 1, (__be16)(pkey ^ 0x0101)) == -1);
	/* A program that was built with an older, shorter struct, or with a longer one. */
	memset(&attr, 0xaa, sizeof(attr));
	CHECK(!verbs_get_ctx(bench->context)->query_device_ex(bench->context, NULL, &attr,
							      sizeof(attr.orig_attr)));
	CHECK(((uint8_t *)&attr)[sizeof(attr.orig_attr)] == 0xaa);
	for (int index = -1; index <= 1024; index += 1025) {
		union ibv_gid gid;

		CHECK(bench->provider->ibv_query_gid(bench->context, 1, index, &gid) == -1);
		CHECK(bench->provider->ibv_query_pkey(bench->context, 1, index, &pkey) == -1);
		CHECK(bench->provider->ibv_query_gid(bench->context, 2, 0, &gid) == -1);
		CHECK(bench->provider->ibv_query_pkey(bench->context, 2, 0, &pkey) == -1);
	}
}

/*
 * Between start_poll and end_poll the caller may do anything, with the queue pair that completed too. The completion
 * that is shown has left the queue, and its receive has made room.
 */
static void test_between(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 2, &sge);
	struct bare client, server;
	struct ibv_cq_ex *cq;
	struct ibv_wc wc;

	make_end(&client, bench, IBV_QPT_RC, 0);
	make_end(&server, bench, IBV_QPT_RC, 0);
	bare_connect(&client, &server);
	cq = (struct ibv_cq_ex *)server.cq;
	for (uint64_t receive = 0; receive < BENCH_DEPTH; receive++)
		CHECK(!bare_recv(&server, receive, 4096, 8));
	for (int message = 0; message < 4; message++)
		CHECK(!bare_post(&client, &wr));
	wait_poll(cq);
	expect_next(cq, 0, IBV_WC_RECV);
	CHECK(!bare_recv(&server, 64, 4096, 8));
	CHECK(bare_recv(&server, 65, 4096, 8) == ENOMEM);
	CHECK(ibv_poll_cq(server.cq, 1, &wc) == 1 && wc.wr_id == 1);
	expect_next(cq, 0, IBV_WC_RECV);
	CHECK(!bench->provider->ibv_resize_cq(server.cq, 8));
	CHECK(!ibv_next_poll(cq));
	expect_next(cq, 2, IBV_WC_RECV);
	/* The last one is taken away with its queue pair. */
	CHECK(!bare_modify(&server, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	CHECK(ibv_next_poll(cq) == ENOENT);
	expect_next(cq, 2, IBV_WC_RECV);
	CHECK(!bench->provider->ibv_destroy_qp(server.qp));
	ibv_end_poll(cq);
	CHECK(!bench->provider->ibv_destroy_cq(server.cq));
	bare_destroy(&client);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	test_builders(&bench);
	test_built_datagram(&bench);
	test_solicited(&bench);
	test_regions(&bench);
	test_queries(&bench);
	test_resize(&bench);
	if (on_soft("misuse of builders"))
		test_builder_errors(&bench);
	test_overrun(&bench);
	if (on_soft("room for receives"))
		test_between(&bench);
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
