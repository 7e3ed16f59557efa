/*
 * Each status of a work completion: what causes it, or why nothing does. A status that is new, or named twice,
 * fails.
 */
#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "soft/objects/ah.h"
#include "soft/objects/cq.h"
#include "soft/objects/mw.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define STATUSES (IBV_WC_TM_RNDV_INCOMPLETE + 1)
#define ALWAYS 1000000

static void succeed(struct wire *wire)
{
	wire_post(&wire->a, &wire->b, IBV_WR_RDMA_WRITE, 8);
}

/* The receiver's status is "too long", the sender's "rejected". */
static void send_too_much(struct wire *wire)
{
	wire_receive(&wire->b, 7);
	wire_post(&wire->a, &wire->b, IBV_WR_SEND, 8);
}

/* An address handle of another protection domain. */
static void use_foreign_handle(struct wire *wire)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = wire->b.host->address}};
	struct ibv_pd *pd = soft_alloc_pd(wire->a.host->context);
	struct ibv_ah *ah = soft_create_ah(pd, &attr);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

	CHECK(pd && ah);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = wire->b.qp->qp_num;
	wr.wr.ud.remote_qkey = SIM_QKEY;
	CHECK(!soft_post_send(wire->a.qp, &wr, &bad));
	CHECK(!soft_destroy_ah(ah));
	CHECK(!soft_dealloc_pd(pd));
}

static void use_wrong_local_key(struct wire *wire)
{
	struct ibv_sge sge = {(uintptr_t)wire->a.memory, 8, wire->a.mr->lkey ^ 1};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	CHECK(!soft_post_send(wire->a.qp, &wr, &bad));
}

static void fail_first(struct wire *wire)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	CHECK(!soft_modify_qp(wire->a.qp, &attr, IBV_QP_STATE));
	wire_post(&wire->a, &wire->b, IBV_WR_RDMA_WRITE, 8);
}

static void invalidate_region(struct wire *wire)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = wire->a.mr->rkey}, *bad;

	CHECK(!soft_post_send(wire->a.qp, &wr, &bad));
}

/* The response is longer than requested. */
static void answer_wrongly(struct wire *wire)
{
	uint8_t bytes[9] = {0};
	struct soft_packet packet = {
		.opcode = SOFT_RDMA_READ_RESPONSE_ONLY, .psn = 0xfffffe, .syndrome = SOFT_ACK,
		.length = sizeof(bytes), .num_segments = 1, .segments = {{bytes, sizeof(bytes)}},
	};

	wire_post(&wire->a, &wire->b, IBV_WR_RDMA_READ, 8);
	wire_forge(wire, &wire->a, &packet);
}

static void use_wrong_remote_key(struct wire *wire)
{
	struct ibv_sge sge = {(uintptr_t)wire->a.memory, 8, wire->a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)wire->b.memory;
	wr.wr.rdma.rkey = wire->b.mr->rkey ^ 1;
	CHECK(!soft_post_send(wire->a.qp, &wr, &bad));
}

static void post_bad_receive(struct wire *wire)
{
	struct ibv_sge sge = {(uintptr_t)wire->b.memory, 8, wire->b.mr->lkey ^ 1};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!soft_post_recv(wire->b.qp, &wr, &bad));
	wire_post(&wire->a, &wire->b, IBV_WR_SEND, 8);
}

static void cut(struct wire *wire)
{
	sim_net_fault(&wire->net, SOFT_FAULT_LOSE, ALWAYS);
	wire_post(&wire->a, &wire->b, IBV_WR_RDMA_WRITE, 8);
}

static void send_to_nobody(struct wire *wire)
{
	wire_post(&wire->a, &wire->b, IBV_WR_SEND, 8);
}

static const struct {
	enum ibv_wc_status status;
	void (*make)(struct wire *wire); /* NULL: nothing causes it */
	bool at_receiver;
	enum ibv_qp_type type;
	enum ibv_wc_status other; /* status of the other side's completion; SUCCESS: it has none */
	const char *why; /* why nothing causes it */
} rows[] = {
	{IBV_WC_SUCCESS, succeed, false, IBV_QPT_RC, IBV_WC_SUCCESS, NULL},
	{IBV_WC_LOC_LEN_ERR, send_too_much, true, IBV_QPT_RC, IBV_WC_REM_INV_REQ_ERR, NULL},
	{IBV_WC_LOC_QP_OP_ERR, use_foreign_handle, false, IBV_QPT_UD, IBV_WC_SUCCESS, NULL},
	{IBV_WC_LOC_PROT_ERR, use_wrong_local_key, false, IBV_QPT_RC, IBV_WC_SUCCESS, NULL},
	{IBV_WC_WR_FLUSH_ERR, fail_first, false, IBV_QPT_RC, IBV_WC_SUCCESS, NULL},
	{IBV_WC_MW_BIND_ERR, invalidate_region, false, IBV_QPT_RC, IBV_WC_SUCCESS, NULL},
	{IBV_WC_BAD_RESP_ERR, answer_wrongly, false, IBV_QPT_RC, IBV_WC_SUCCESS, NULL},
	{IBV_WC_REM_INV_REQ_ERR, send_too_much, false, IBV_QPT_RC, IBV_WC_LOC_LEN_ERR, NULL},
	{IBV_WC_REM_ACCESS_ERR, use_wrong_remote_key, false, IBV_QPT_RC, IBV_WC_SUCCESS, NULL},
	{IBV_WC_REM_OP_ERR, post_bad_receive, false, IBV_QPT_RC, IBV_WC_LOC_PROT_ERR, NULL},
	{IBV_WC_RETRY_EXC_ERR, cut, false, IBV_QPT_RC, IBV_WC_SUCCESS, NULL},
	{IBV_WC_RNR_RETRY_EXC_ERR, send_to_nobody, false, IBV_QPT_RC, IBV_WC_SUCCESS, NULL},
	{.status = IBV_WC_LOC_EEC_OP_ERR, .why = "of reliable datagrams"},
	{.status = IBV_WC_LOC_RDD_VIOL_ERR, .why = "of reliable datagrams"},
	{.status = IBV_WC_REM_INV_RD_REQ_ERR, .why = "of reliable datagrams"},
	{.status = IBV_WC_REM_ABORT_ERR, .why = "of reliable datagrams"},
	{.status = IBV_WC_INV_EECN_ERR, .why = "of reliable datagrams"},
	{.status = IBV_WC_INV_EEC_STATE_ERR, .why = "of reliable datagrams"},
	{.status = IBV_WC_RESP_TIMEOUT_ERR, .why = "of reliable datagrams"},
	{.status = IBV_WC_LOC_ACCESS_ERR, .why = "no receive has memory that is looked at for a WRITE"},
	{.status = IBV_WC_FATAL_ERR, .why = "for what a device's own failure leaves unsaid"},
	{.status = IBV_WC_GENERAL_ERR, .why = "for transport errors without a name"},
	{.status = IBV_WC_TM_ERR, .why = "no tag matching"},
	{.status = IBV_WC_TM_RNDV_INCOMPLETE, .why = "no tag matching"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void run(size_t row)
{
	struct wire wire;
	struct side *side, *other;
	struct ibv_wc wc;

	wire_open(&wire, rows[row].type, 8);
	side = rows[row].at_receiver ? &wire.b : &wire.a;
	other = rows[row].at_receiver ? &wire.a : &wire.b;
	rows[row].make(&wire);
	sim_net_run(&wire.net, UINT64_MAX);
	wire_completion(side, rows[row].status);
	if (rows[row].other != IBV_WC_SUCCESS)
		wire_completion(other, rows[row].other);
	CHECK(soft_poll_cq(side->cq, 1, &wc) == 0 && soft_poll_cq(other->cq, 1, &wc) == 0);
	wire_close(&wire);
}

int main(void)
{
	int named[STATUSES] = {0};

	for (size_t row = 0; row < ROWS; row++) {
		CHECK(!rows[row].make == !!rows[row].why);
		named[rows[row].status]++;
		if (rows[row].make)
			run(row);
	}
	for (int status = 0; status < STATUSES; status++)
		CHECK(named[status] == 1);
	return 0;
}
