/* Mistakes with requests, completions and their queues. */
#include "mistakes.h"

/* https://github.com/ofiwg/libfabric/pull/4474: a change made all sends of a queue pair unsignaled. */
void all_unsignaled(struct endpoint *e)
{
	static char more[64];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, more, sizeof(more), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_sge part = segment(e, 0, 8);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
	int result = 0;

	REQUIRE(mr);
	send.wr.rdma.remote_addr = (uintptr_t)more;
	send.wr.rdma.rkey = mr->rkey;
	for (int i = 0; i < 1000 && !result; i++)
		result = ibv_post_send(e->qp, &send, &bad); /* finding: all_unsignaled */
	REQUIRE(result == ENOMEM && !ibv_dereg_mr(mr));
}

/* More requests than a queue for 16 has room for: rdma_rxe makes it for 31, and does not report this. */
#define BEYOND 40

/* https://github.com/kvcache-ai/Mooncake/pull/1803: half of the receives failed, which only made a log line. */
void post_ignored(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 8);
	struct ibv_recv_wr receive = {.sg_list = &part, .num_sge = 1}, *bad;

	for (receive.wr_id = 0; receive.wr_id < BEYOND; receive.wr_id++) {
		part.addr += 8;
		ibv_post_recv(e->qp, &receive, &bad); /* finding: post_ignored */
	}
}

/* https://github.com/uiuc-hpc/lci/issues/24: a send queue filled, and nothing looked at the results of the posts. */
void post_ignored__send(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 8);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	for (send.wr_id = 0; send.wr_id < BEYOND; send.wr_id++)
		ibv_post_send(e->qp, &send, &bad); /* finding: post_ignored__send */
	REQUIRE(!ibv_modify_qp(e->qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
}

/* Take up to count completions of failed requests in one poll of the other kind: how many there were. */
static int poll_extended(struct ibv_cq_ex *cq, int count)
{
	struct ibv_poll_cq_attr attr = {0};
	int taken = 0, result = ibv_start_poll(cq, &attr);

	if (result == ENOENT)
		return 0;
	while (!result) {
		REQUIRE(cq->status == IBV_WC_WR_FLUSH_ERR);
		if (++taken == count)
			break;
		result = ibv_next_poll(cq);
	}
	ibv_end_poll(cq);
	return taken;
}

/* The completions that one poll takes are more than a record of a trace has. All of them leave the queue. */
void long_poll(struct endpoint *e)
{
	enum { REQUESTS = 200, ROUNDS = 3 };
	struct ibv_cq_init_attr_ex queue = {.cqe = REQUESTS, .wc_flags = IBV_WC_EX_WITH_QP_NUM};
	struct ibv_cq_ex *extended = ibv_create_cq_ex(e->context, &queue);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(extended);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = REQUESTS, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct endpoint others[ROUNDS];
	struct ibv_recv_wr receive = {0}, *bad;
	struct ibv_wc completions[REQUESTS];

	REQUIRE(extended);
	for (int round = 0; round < ROUNDS; round++) {
		struct endpoint *other = &others[round];
		int taken = 0, count;

		*other = *e;
		REQUIRE((other->qp = ibv_create_qp(e->pd, &attr)));
		endpoint_connect(other, &e->gid, e->qp->qp_num);
		for (int i = 0; i < REQUESTS; i++)
			REQUIRE(!ibv_post_recv(other->qp, &receive, &bad));
		REQUIRE(!ibv_modify_qp(other->qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
		for (; taken < REQUESTS; taken += count) {
			count = round ? ibv_poll_cq(cq, REQUESTS - taken, completions) :
					poll_extended(extended, REQUESTS - taken);
			REQUIRE(count >= 0);
		}
	}
	for (int i = 0; i < ROUNDS; i++)
		REQUIRE(!ibv_destroy_qp(others[i].qp));
	REQUIRE(!ibv_destroy_cq(cq));
}

/* https://github.com/open-mpi/ompi/pull/2692: a completion queue overran in large jobs. */
void queue_overrun(struct endpoint *e)
{
	struct ibv_cq *cq = ibv_create_cq(e->context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct endpoint other = *e;
	struct ibv_recv_wr receive = {0}, *bad;

	REQUIRE(cq && (other.qp = ibv_create_qp(e->pd, &attr)));
	endpoint_connect(&other, &e->gid, e->qp->qp_num);
	for (int i = 0; i <= cq->cqe; i++)
		REQUIRE(!ibv_post_recv(other.qp, &receive, &bad)); /* finding: queue_overrun */
	REQUIRE(!ibv_destroy_qp(other.qp) && !ibv_destroy_cq(cq));
}

/* https://github.com/ROCm/rccl/pull/1374: a shared completion queue had too few entries for the requests. */
void queue_overrun__shared(struct endpoint *e)
{
	struct ibv_cq *cq = ibv_create_cq(e->context, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct endpoint others[4];
	struct ibv_recv_wr receive = {0}, *bad;

	for (int i = 0; i < 4; i++) {
		others[i] = *e;
		REQUIRE(cq && (others[i].qp = ibv_create_qp(e->pd, &attr)));
		endpoint_connect(&others[i], &e->gid, e->qp->qp_num);
		for (int count = 0; count < 16; count++)
			REQUIRE(!ibv_post_recv(others[i].qp, &receive, &bad)); /* finding: queue_overrun__shared */
	}
	for (int i = 0; i < 4; i++)
		REQUIRE(!ibv_destroy_qp(others[i].qp));
	REQUIRE(!ibv_destroy_cq(cq));
}

/* https://github.com/ofiwg/libfabric/pull/7961: nothing polled before the queue pair was destroyed. */
void completion_unseen(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 8);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

	send.wr.rdma.remote_addr = part.addr + 64;
	send.wr.rdma.rkey = e->mr->rkey;
	endpoint_post(e, &send);
	REQUIRE(!ibv_destroy_qp(e->qp)); /* finding: completion_unseen */
	e->qp = NULL;
}

/* https://github.com/apache/brpc/pull/3425: the queue for receives was armed and not polled again. */
void wakeup_lost(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 8);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_cq *cq;
	void *context;

	endpoint_expect(e, e->mr, e->memory + 64, 8);
	REQUIRE(!ibv_req_notify_cq(e->cq, 0));
	endpoint_post(e, &send);
	REQUIRE(!ibv_get_cq_event(e->channel, &cq, &context)); /* finding: wakeup_lost */
	endpoint_complete(e, 2);
	ibv_ack_cq_events(e->cq, 1);
}

/* https://github.com/ml-explore/mlx/pull/3152: the status of completions was never looked at. */
void failure_ignored(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 8);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	send.wr.rdma.remote_addr = part.addr;
	send.wr.rdma.rkey = e->mr->rkey + 1;
	REQUIRE(!ibv_post_send(e->qp, &send, &bad));
	poll_one(e->cq, &wc);
	REQUIRE(wc.status != IBV_WC_SUCCESS);
	REQUIRE(!ibv_post_send(e->qp, &send, &bad)); /* finding: failure_ignored */
	poll_one(e->cq, &wc);
}

/* https://github.com/ydb-platform/nbs/issues/4533: a receive was posted again after one had failed. */
void failure_ignored__receive(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 8);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr receive = {.sg_list = &part, .num_sge = 1}, *again;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	send.wr.rdma.remote_addr = part.addr;
	send.wr.rdma.rkey = e->mr->rkey + 1;
	REQUIRE(!ibv_post_send(e->qp, &send, &bad));
	poll_one(e->cq, &wc);
	REQUIRE(!ibv_post_recv(e->qp, &receive, &again)); /* finding: failure_ignored__receive */
}
