/*
 * Extended reliable connections: domains, shared queues that requests name, initiators and targets and their handles,
 * over both links. Also requests that name an unknown queue, or one of another domain.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/sim_net.h"
#include "soft/base/clock.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/mr.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"
#include "soft/objects/srq.h"
#include "soft/objects/verbs.h"
#include "soft/objects/xrc.h"
#include "soft/qp/verbs.h"

#define SIZE 32768
#define RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define XRCD_ATTRIBUTES (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)

/* A shared queue as another process would have it: domain, memory and completion queue of its own. */
struct owner {
	struct sim_host *host;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t memory[SIZE];
};

/* Host a sends to host b; on the local link both are one. */
struct xrc {
	struct sim_net net;
	bool local;
	struct sim_host *a, *b;
	struct ibv_xrcd *domain;
	struct ibv_cq *cq;
	struct ibv_qp *initiator, *target;
	struct ibv_mr *mr;
	uint8_t memory[SIZE];
	struct owner first, second;
};

static struct ibv_xrcd *open_domain(struct ibv_context *context, int fd, int flags)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = XRCD_ATTRIBUTES, .fd = fd, .oflags = flags};

	return soft_open_xrcd(context, &attr);
}

static struct ibv_srq *make_srq(struct ibv_pd *pd, struct ibv_xrcd *domain, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 8, .max_sge = 1}, .srq_type = IBV_SRQT_XRC, .pd = pd, .xrcd = domain, .cq = cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_XRCD,
	};

	return soft_create_srq_ex(pd->context, &attr);
}

static void open_owner(struct owner *owner, struct sim_host *host, struct ibv_xrcd *domain)
{
	owner->host = host;
	owner->pd = soft_alloc_pd(host->context);
	owner->cq = sim_cq(host, 16);
	owner->srq = make_srq(owner->pd, domain, owner->cq);
	owner->mr = soft_reg_mr(owner->pd, owner->memory, SIZE, RIGHTS | IBV_ACCESS_LOCAL_WRITE);
	CHECK(owner->pd && owner->srq && owner->mr);
}

static void close_srq(struct owner *owner)
{
	if (owner->srq)
		CHECK(!soft_destroy_srq(owner->srq));
	owner->srq = NULL;
}

static void close_owner(struct owner *owner)
{
	close_srq(owner);
	CHECK(!soft_dereg_mr(owner->mr) && !soft_destroy_cq(owner->cq) && !soft_dealloc_pd(owner->pd));
}

static struct ibv_qp *make_target(struct ibv_xrcd *domain)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
	struct ibv_qp *qp = soft_create_qp_ex(domain->context, &attr);

	CHECK(qp && qp->qp_type == IBV_QPT_XRC_RECV && qp->qp_num);
	return qp;
}

static struct ibv_qp *open_target(struct ibv_xrcd *domain, uint32_t number)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = number, .xrcd = domain, .qp_type = IBV_QPT_XRC_RECV};

	return soft_open_qp(domain->context, &attr);
}

static void reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	CHECK(!soft_modify_qp(qp, &attr, IBV_QP_STATE));
}

static void connect_them(struct xrc *xrc)
{
	struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 12, .retry = 2, .rnr_retry = 1, .rnr_timer = 12,
				.depth = 4, .psn = {0xfffffe, 7}, .access = RIGHTS};

	reset(xrc->initiator);
	reset(xrc->target);
	sim_connect(xrc->a, xrc->initiator, xrc->b, xrc->target, &path);
}

static void open_xrc(struct xrc *xrc, bool local)
{
	struct soft_packets_options options = {.seed = 4, .datagrams = 256, .icrc = true, .delay = 10 * SOFT_MICROSECOND};

	memset(xrc, 0, sizeof(*xrc));
	xrc->local = local;
	sim_net_open(&xrc->net, local ? 1 : 2, &options);
	if (local)
		xrc->net.hosts[0].device->link = NULL;
	xrc->a = &xrc->net.hosts[0];
	xrc->b = &xrc->net.hosts[local ? 0 : 1];
	xrc->domain = open_domain(xrc->b->context, -1, O_CREAT);
	CHECK(xrc->domain);
	open_owner(&xrc->first, xrc->b, xrc->domain);
	open_owner(&xrc->second, xrc->b, xrc->domain);
	xrc->cq = sim_cq(xrc->a, 16);
	xrc->mr = soft_reg_mr(xrc->a->pd, xrc->memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
	xrc->initiator = sim_qp(xrc->a, IBV_QPT_XRC_SEND, xrc->cq, 8);
	xrc->target = make_target(xrc->domain);
	CHECK(!fcntl(xrc->b->context->async_fd, F_SETFL, O_NONBLOCK));
	for (uint32_t byte = 0; byte < SIZE; byte++)
		xrc->memory[byte] = (uint8_t)(byte * 31 >> 3);
	connect_them(xrc);
}

static void close_xrc(struct xrc *xrc)
{
	CHECK(!soft_destroy_qp(xrc->initiator) && !soft_destroy_qp(xrc->target));
	CHECK(soft_close_xrcd(xrc->domain) == EBUSY);
	close_owner(&xrc->first);
	close_owner(&xrc->second);
	CHECK(!soft_close_xrcd(xrc->domain) && !soft_dereg_mr(xrc->mr) && !soft_destroy_cq(xrc->cq));
	sim_net_close(&xrc->net);
}

static uint32_t number_of(struct ibv_srq *srq)
{
	uint32_t number;

	CHECK(!soft_get_srq_num(srq, &number) && number);
	return number;
}

static void receive(struct owner *owner, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)owner->memory, length, owner->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!soft_post_srq_recv(owner->srq, &wr, &bad));
}

/* Without waiting for it. */
static void post(struct xrc *xrc, enum ibv_wr_opcode opcode, uint32_t length, const struct ibv_mr *there, uint32_t srq)
{
	struct ibv_sge sge = {(uintptr_t)xrc->memory, length, xrc->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .imm_data = 0x12345678,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)there->addr;
		wr.wr.atomic.rkey = there->rkey;
		wr.wr.atomic.compare_add = 5;
	} else if (there) {
		wr.wr.rdma.remote_addr = (uintptr_t)there->addr;
		wr.wr.rdma.rkey = there->rkey;
	}
	wr.qp_type.xrc.remote_srqn = srq;
	CHECK(!soft_post_send(xrc->initiator, &wr, &bad));
}

static enum ibv_wc_status request(struct xrc *xrc, enum ibv_wr_opcode opcode, uint32_t length,
				  const struct ibv_mr *there, uint32_t srq)
{
	struct ibv_wc wc;

	post(xrc, opcode, length, there, srq);
	sim_net_run(&xrc->net, UINT64_MAX);
	CHECK(soft_poll_cq(xrc->cq, 1, &wc) == 1 && wc.qp_num == xrc->initiator->qp_num);
	return wc.status;
}

static void expect_receive(struct xrc *xrc, struct owner *owner, uint64_t wr_id, enum ibv_wc_opcode opcode, uint32_t length)
{
	struct ibv_wc wc;

	CHECK(soft_poll_cq(owner->cq, 1, &wc) == 1);
	CHECK(wc.wr_id == wr_id && wc.status == IBV_WC_SUCCESS && wc.opcode == opcode && wc.byte_len == length);
	CHECK(wc.qp_num == xrc->target->qp_num);
	CHECK(!memcmp(owner->memory, xrc->memory, length));
	memset(owner->memory, 0, length);
}

/* Every operation, of one packet and of several, for either queue over the one connection. */
static void test_traffic(struct xrc *xrc)
{
	static const uint32_t lengths[] = {0, 8, 1024, 1025, 5000};
	struct owner *owners[] = {&xrc->first, &xrc->second};

	for (size_t row = 0; row < 2 * sizeof(lengths) / sizeof(lengths[0]); row++) {
		struct owner *owner = owners[row % 2];
		uint32_t length = lengths[row / 2], srq = number_of(owner->srq);

		receive(owner, row, 5000);
		CHECK(request(xrc, IBV_WR_SEND, length, NULL, srq) == IBV_WC_SUCCESS);
		expect_receive(xrc, owner, row, IBV_WC_RECV, length);
		receive(owner, row, 5000);
		CHECK(request(xrc, IBV_WR_RDMA_WRITE_WITH_IMM, length, owner->mr, srq) == IBV_WC_SUCCESS);
		expect_receive(xrc, owner, row, IBV_WC_RECV_RDMA_WITH_IMM, length);
		CHECK(request(xrc, IBV_WR_RDMA_WRITE, length, owner->mr, srq) == IBV_WC_SUCCESS);
		CHECK(!memcmp(owner->memory, xrc->memory, length));
		memset(owner->memory, (int)row + 1, length);
		CHECK(request(xrc, IBV_WR_RDMA_READ, length, owner->mr, srq) == IBV_WC_SUCCESS);
		for (uint32_t byte = 0; byte < length; byte++)
			CHECK(xrc->memory[byte] == row + 1);
		CHECK(!soft_poll_cq(owner->cq, 1, &(struct ibv_wc){0}));
	}
	memset(xrc->first.memory, 0, 8);
	CHECK(request(xrc, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, xrc->first.mr, number_of(xrc->first.srq)) == IBV_WC_SUCCESS);
	CHECK(xrc->first.memory[0] == 5 && !xrc->memory[0]);
	/* A key is of the domain of the queue that the request names, and of no other. */
	CHECK(request(xrc, IBV_WR_RDMA_WRITE, 8, xrc->first.mr, number_of(xrc->second.srq)) == IBV_WC_REM_ACCESS_ERR);
	CHECK(xrc->first.memory[0] == 5);
	connect_them(xrc);
	/* No receive is posted there: one retry, and then the request fails. */
	CHECK(request(xrc, IBV_WR_SEND, 8, NULL, number_of(xrc->first.srq)) == IBV_WC_RNR_RETRY_EXC_ERR);
	connect_them(xrc);
}

static void drop_events(struct xrc *xrc)
{
	struct ibv_async_event event;

	while (!soft_get_async_event(xrc->b->context, &event))
		soft_ack_async_event(&event);
	CHECK(errno == EAGAIN);
}

static void expect_event(struct ibv_qp *qp, enum ibv_event_type type)
{
	struct ibv_async_event event;

	CHECK(!soft_get_async_event(qp->context, &event));
	CHECK(event.event_type == type && event.element.qp == qp);
	soft_ack_async_event(&event);
}

static void test_wrong_queue(struct xrc *xrc)
{
	struct ibv_srq_init_attr basic = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *plain = soft_create_srq(xrc->first.pd, &basic), *foreign;
	struct ibv_xrcd *other = open_domain(xrc->b->context, -1, O_CREAT);
	uint32_t wrong[4];

	drop_events(xrc);
	CHECK(plain && other && (foreign = make_srq(xrc->first.pd, other, xrc->first.cq)));
	wrong[0] = number_of(plain);
	wrong[1] = number_of(foreign);
	wrong[2] = 0;
	wrong[3] = number_of(xrc->first.srq) ^ 1;
	for (size_t row = 0; row < 4; row++)
		for (int opcode = 0; opcode < 2; opcode++) {
			CHECK(request(xrc, opcode ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, 3000, xrc->first.mr, wrong[row]) ==
			      IBV_WC_REM_INV_REQ_ERR);
			CHECK(soft_qp_state(soft_qp(xrc->target)->target_qp) == IBV_QPS_ERR);
			expect_event(xrc->target, IBV_EVENT_QP_REQ_ERR);
			connect_them(xrc);
		}
	CHECK(!soft_destroy_srq(plain) && !soft_destroy_srq(foreign) && !soft_close_xrcd(other));
}

/* A queue, or the target, ends while a part of a message has come for it. */
static void test_interrupted(struct xrc *xrc)
{
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .action = SOFT_FAULT_LOSE, .probability = 1000000,
				   .has_psn = true, .psn_first = 5, .psn_last = 40};
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_wc wc;
	uint32_t lost;
	int rule;

	if (xrc->local) /* there a message is whole */
		return;
	for (int round = 0; round < 3; round++) {
		if (!xrc->first.srq)
			CHECK((xrc->first.srq = make_srq(xrc->first.pd, xrc->domain, xrc->first.cq)));
		receive(&xrc->first, 77, SIZE);
		rule = soft_fault_add(&xrc->net.fabric.faults, &fault);
		post(xrc, IBV_WR_SEND, SIZE, NULL, number_of(xrc->first.srq));
		sim_net_run(&xrc->net, xrc->net.fabric.clock.now(&xrc->net.fabric.clock) + 20 * SOFT_MICROSECOND);
		CHECK(soft_qp(xrc->target)->target_qp->target->source);
		CHECK(!soft_fault_remove(&xrc->net.fabric.faults, rule, &lost) && lost);
		if (round == 1) {
			CHECK(!soft_modify_qp(xrc->target, &error, IBV_QP_STATE));
			CHECK(soft_poll_cq(xrc->first.cq, 1, &wc) == 1);
			CHECK(wc.wr_id == 77 && wc.status == IBV_WC_WR_FLUSH_ERR);
		} else {
			close_srq(&xrc->first);
		}
		if (round == 2) /* the same, with the queue that it was for gone */
			CHECK(!soft_modify_qp(xrc->target, &error, IBV_QP_STATE));
		CHECK(!soft_poll_cq(xrc->first.cq, 1, &wc));
		sim_net_run(&xrc->net, UINT64_MAX);
		CHECK(soft_poll_cq(xrc->cq, 1, &wc) == 1);
		CHECK(wc.status == (round ? IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_INV_REQ_ERR));
		CHECK(!soft_qp(xrc->target)->target_qp->target->source);
		if (!round)
			expect_event(xrc->target, IBV_EVENT_QP_REQ_ERR);
		connect_them(xrc);
	}
	CHECK((xrc->first.srq = make_srq(xrc->first.pd, xrc->domain, xrc->first.cq)));
}

/* The connection exists until its last handle is destroyed, and each handle gets its events. */
static void test_handles(struct xrc *xrc)
{
	struct ibv_context *context = soft_open_device(&xrc->b->device->ibv);
	uint32_t number = xrc->target->qp_num;
	struct ibv_xrcd *other = open_domain(xrc->b->context, -1, O_CREAT);
	struct ibv_qp *more = open_target(xrc->domain, number), *third = open_target(xrc->domain, number);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad;

	CHECK(context && more && third && more != xrc->target && more->qp_num == number && more->state == IBV_QPS_RTS);
	CHECK(!open_target(other, number) && errno == EINVAL);
	CHECK(!open_target(xrc->domain, number ^ 1) && errno == EINVAL);
	CHECK(!open_target(xrc->domain, xrc->initiator->qp_num) && errno == EINVAL);
	CHECK(!soft_query_qp(more, &attr, 0, &init) && attr.qp_state == IBV_QPS_RTS);
	CHECK(init.qp_type == IBV_QPT_XRC_RECV && !init.send_cq && !init.recv_cq && !init.srq);
	CHECK(attr.dest_qp_num == xrc->initiator->qp_num);
	CHECK(soft_post_send(more, &send, &bad) == EINVAL && soft_post_recv(more, &recv, &bad_recv) == EINVAL);

	CHECK(!soft_destroy_qp(xrc->target) && !soft_destroy_qp(third));
	xrc->target = more;
	receive(&xrc->first, 1, 8);
	CHECK(request(xrc, IBV_WR_SEND, 8, NULL, number_of(xrc->first.srq)) == IBV_WC_SUCCESS);
	expect_receive(xrc, &xrc->first, 1, IBV_WC_RECV, 8);
	CHECK((third = open_target(xrc->domain, number)));
	CHECK(request(xrc, IBV_WR_RDMA_WRITE, 8, xrc->mr, number_of(xrc->first.srq)) == IBV_WC_REM_ACCESS_ERR);
	for (int handle = 0; handle < 2; handle++) {
		struct ibv_async_event event;

		CHECK(!soft_get_async_event(more->context, &event) && event.event_type == IBV_EVENT_QP_ACCESS_ERR);
		CHECK(event.element.qp == more || event.element.qp == third);
		soft_ack_async_event(&event);
	}
	CHECK(!soft_destroy_qp(more) && !soft_destroy_qp(third));
	CHECK(!open_target(xrc->domain, number) && errno == EINVAL);
	xrc->target = make_target(xrc->domain);
	connect_them(xrc);
	CHECK(!soft_close_xrcd(other) && !soft_close_device(context));
}

/* Other queue pairs do not get packets of an extended connection, nor the other way round. */
static void test_mixed(struct xrc *xrc)
{
	struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 8, .retry = 1, .depth = 1, .access = RIGHTS};
	struct ibv_qp *plain = sim_qp(xrc->b, IBV_QPT_RC, xrc->second.cq, 4);
	struct ibv_qp *sender = sim_qp(xrc->b, IBV_QPT_XRC_SEND, xrc->second.cq, 4), *peers[] = {plain, sender};

	for (int row = 0; row < 2; row++) {
		reset(xrc->initiator);
		sim_connect(xrc->a, xrc->initiator, xrc->b, peers[row], &path);
		CHECK(request(xrc, IBV_WR_RDMA_WRITE, 8, xrc->first.mr, number_of(xrc->first.srq)) ==
		      IBV_WC_RETRY_EXC_ERR);
	}
	CHECK(!soft_destroy_qp(sender) && !soft_destroy_qp(plain));
	connect_them(xrc);
}

/* ibv_wr_post(3), where the queue is named by a call of its own. */
static void test_builder(struct xrc *xrc)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND, .send_cq = xrc->cq, .pd = xrc->a->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ,
		.cap = {.max_send_wr = 4, .max_send_sge = 1, .max_inline_data = 64, .max_recv_wr = 9, .max_recv_sge = 2}};
	struct ibv_qp *own = xrc->initiator, *qp = soft_create_qp_ex(xrc->a->context, &attr);
	struct ibv_qp_ex *builder;

	CHECK(qp && !attr.cap.max_recv_wr && !attr.cap.max_recv_sge && !qp->recv_cq);
	xrc->initiator = qp;
	connect_them(xrc);
	builder = soft_qp_to_qp_ex(qp);
	builder->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(builder);
	ibv_wr_send(builder);
	ibv_wr_set_sge(builder, xrc->mr->lkey, (uintptr_t)xrc->memory, 8);
	CHECK(ibv_wr_complete(builder) == EINVAL); /* without a shared queue */
	receive(&xrc->second, 9, 64);
	ibv_wr_start(builder);
	ibv_wr_send(builder);
	ibv_wr_set_xrc_srqn(builder, number_of(xrc->second.srq));
	ibv_wr_set_inline_data(builder, xrc->memory, 64);
	CHECK(!ibv_wr_complete(builder));
	sim_net_run(&xrc->net, UINT64_MAX);
	expect_receive(xrc, &xrc->second, 9, IBV_WC_RECV, 64);
	CHECK(soft_poll_cq(xrc->cq, 1, &(struct ibv_wc){0}) == 1 && !soft_destroy_qp(qp));
	xrc->initiator = own;
	connect_them(xrc);
}

/*
 * Programs give both ends the attributes of an RC queue pair (perftest -c XRC). Linux ignores those of the other half:
 * they have no effect and cause no error. Attributes of neither half are rejected.
 */
static void test_other_half(struct xrc *xrc)
{
	const int reads = IBV_QP_MAX_QP_RD_ATOMIC, retries = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	const int responds = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp_attr attr = {.max_dest_rd_atomic = 2, .min_rnr_timer = 5, .max_rd_atomic = 3, .retry_cnt = 4,
				   .rnr_retry = 5}, sends, receives;
	struct ibv_qp_init_attr init;

	CHECK(!soft_modify_qp(xrc->initiator, &attr, responds) && !soft_modify_qp(xrc->target, &attr, reads | retries));
	CHECK(!soft_query_qp(xrc->initiator, &sends, ~0, &init) && !soft_query_qp(xrc->target, &receives, ~0, &init));
	CHECK(!sends.max_dest_rd_atomic && !sends.min_rnr_timer);
	CHECK(!receives.max_rd_atomic && !receives.retry_cnt && !receives.rnr_retry);
	attr.max_dest_rd_atomic = 255; /* more than there may be */
	CHECK(!soft_modify_qp(xrc->initiator, &attr, responds));
	CHECK(soft_modify_qp(xrc->target, &attr, IBV_QP_MAX_DEST_RD_ATOMIC) == EINVAL);
	CHECK(soft_modify_qp(xrc->initiator, &attr, reads) == EINVAL);
	CHECK(soft_modify_qp(xrc->initiator, &attr, IBV_QP_QKEY) == EINVAL);
	CHECK(request(xrc, IBV_WR_RDMA_WRITE, 8, xrc->first.mr, number_of(xrc->first.srq)) == IBV_WC_SUCCESS);
}

static void test_domains(struct xrc *xrc)
{
	struct ibv_context *context = xrc->b->context;
	char name[] = "/tmp/xrc-XXXXXX";
	int file = mkstemp(name), again = open(name, O_RDONLY);
	struct ibv_xrcd *one = open_domain(context, file, O_CREAT), *two = open_domain(context, again, 0), *fresh;
	struct ibv_xrcd_init_attr some = {.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1};
	struct ibv_qp *qp;

	CHECK(one && two && one != two && soft_xrcd(one)->domain == soft_xrcd(two)->domain);
	CHECK(!open_domain(context, file, O_CREAT | O_EXCL) && errno == EINVAL);
	CHECK(!soft_open_xrcd(context, &some) && errno == EINVAL);
	CHECK(!open_domain(context, 1 << 20, O_CREAT) && errno == EBADF);
	qp = make_target(one);
	CHECK(soft_close_xrcd(one) == EBUSY && !soft_close_xrcd(two));
	CHECK((two = open_domain(context, again, 0)));
	CHECK(!soft_destroy_qp(qp) && !soft_close_xrcd(one) && !soft_close_xrcd(two));
	CHECK(!open_domain(context, file, 0) && errno == EAGAIN); /* no process has it any more */
	CHECK((one = open_domain(context, -1, O_CREAT)) && (fresh = open_domain(context, -1, O_CREAT)));
	CHECK(soft_xrcd(one)->domain != soft_xrcd(fresh)->domain);
	CHECK(!soft_close_xrcd(one) && !soft_close_xrcd(fresh));
	CHECK(!close(file) && !close(again) && !unlink(name));
}

static void test_refused(struct xrc *xrc)
{
	struct ibv_srq_init_attr_ex srq = {
		.attr = {.max_wr = 8, .max_sge = 1}, .srq_type = IBV_SRQT_XRC, .pd = xrc->first.pd, .xrcd = xrc->domain,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD};
	struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp_init_attr plain = {.qp_type = IBV_QPT_XRC_RECV, .send_cq = xrc->cq, .recv_cq = xrc->cq};
	struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM, .qp_num = xrc->target->qp_num};

	CHECK(!soft_create_srq_ex(xrc->b->context, &srq) && errno == EINVAL); /* no completion queue */
	srq.comp_mask |= IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
	srq.cq = xrc->first.cq;
	CHECK(!soft_create_srq_ex(xrc->b->context, &srq) && errno == EOPNOTSUPP);
	srq.srq_type = IBV_SRQT_TM;
	CHECK(!soft_create_srq_ex(xrc->b->context, &srq) && errno == EOPNOTSUPP);
	CHECK(!soft_create_qp_ex(xrc->b->context, &target) && errno == EINVAL);
	CHECK(!soft_create_qp(xrc->b->pd, &plain) && errno == EOPNOTSUPP);
	CHECK(!soft_open_qp(xrc->b->context, &open) && errno == EINVAL);
	CHECK(soft_destroy_cq(xrc->first.cq) == EBUSY && soft_dealloc_pd(xrc->first.pd) == EBUSY);
}

struct reader {
	struct xrc *xrc;
	_Atomic uint32_t key;
	atomic_bool stop;
	unsigned int done;
};

/*
 * WRITEs to a region that is registered and deregistered; one that finds none ends the connection, which is made
 * again.
 */
static void *write_on(void *argument)
{
	struct reader *reader = argument;
	struct xrc *xrc = reader->xrc;
	struct ibv_mr there = *xrc->first.mr;

	while (!reader->stop) {
		there.rkey = reader->key;
		if (request(xrc, IBV_WR_RDMA_WRITE, 4096, &there, number_of(xrc->first.srq)) == IBV_WC_SUCCESS)
			reader->done++;
		else
			connect_them(xrc);
	}
	return NULL;
}

/* After deregistration nothing is written to a region, although no queue pair is in its domain. */
static void test_deregister(struct xrc *xrc)
{
	struct reader reader = {.xrc = xrc};
	pthread_t thread;

	if (!xrc->local) /* the virtual network has one thread */
		return;
	CHECK(!pthread_create(&thread, NULL, write_on, &reader));
	for (int round = 0; round < 300; round++) {
		struct ibv_mr *mr = soft_reg_mr(xrc->first.pd, xrc->first.memory, SIZE, RIGHTS | IBV_ACCESS_LOCAL_WRITE);

		CHECK(mr);
		reader.key = mr->rkey;
		usleep(round % 8 ? 0 : 200);
		CHECK(!soft_dereg_mr(mr));
		memset(xrc->first.memory, round, 4096); /* of this thread alone, as the thread sanitizer sees */
		for (int byte = 0; byte < 4096; byte++)
			CHECK(xrc->first.memory[byte] == (uint8_t)round);
	}
	reader.stop = true;
	pthread_join(thread, NULL);
	connect_them(xrc);
	drop_events(xrc);
}

int main(void)
{
	static struct xrc xrc;

	for (int local = 0; local < 2; local++) {
		open_xrc(&xrc, local);
		test_traffic(&xrc);
		test_wrong_queue(&xrc);
		test_interrupted(&xrc);
		test_handles(&xrc);
		test_mixed(&xrc);
		test_builder(&xrc);
		test_other_half(&xrc);
		test_domains(&xrc);
		test_refused(&xrc);
		test_deregister(&xrc);
		close_xrc(&xrc);
	}
	return 0;
}
