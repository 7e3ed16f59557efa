/*
 * The requester alone: how it handles each answer, right, wrong, late or forged. Nothing that it sends arrives; the
 * answers are forged.
 */
#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "provider/newer.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/mr.h"
#include "soft/objects/qp.h"
#include "soft/qp/verbs.h"

#define PSN 0xfffffe /* sim_wire.c: of side a's first request */
#define ALWAYS 1000000
#define FILL 0xc3
#define NOTHING (-1) /* the answer is ignored, and the request still waits */

static void open_deaf(struct wire *wire)
{
	wire_open(wire, IBV_QPT_RC, 4);
	sim_net_fault(&wire->net, SOFT_FAULT_LOSE, ALWAYS);
	memset(wire->a.memory, FILL, WIRE_SIZE);
}

/* Of 8 bytes, at the begin of the memory of both sides. */
static void post(struct wire *wire, enum ibv_wr_opcode opcode, uint32_t lkey)
{
	bool operands = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_sge sge = {(uintptr_t)wire->a.memory, 8, lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	if (operands) {
		wr.wr.atomic.remote_addr = (uintptr_t)wire->b.memory;
		wr.wr.atomic.rkey = wire->b.mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)wire->b.memory;
		wr.wr.rdma.rkey = wire->b.mr->rkey;
	}
	CHECK(!soft_post_send(wire->a.qp, &wr, &bad));
}

static void forge(struct wire *wire, uint8_t opcode, int psn, uint8_t syndrome, uint32_t length)
{
	uint8_t bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	struct soft_packet packet = {
		.opcode = opcode, .psn = (uint32_t)(PSN + psn) & SOFT_PSN_MASK, .syndrome = syndrome,
		.operand = 5, .length = length, .num_segments = length ? 1 : 0, .segments = {{bytes, length}},
	};

	wire_forge(wire, &wire->a, &packet);
}

static bool is_untouched(const struct wire *wire, uint32_t from)
{
	for (uint32_t byte = from; byte < WIRE_SIZE; byte++)
		if (wire->a.memory[byte] != FILL)
			return false;
	return true;
}

/* --- answers ---------------------------------------------------------------------------------- */

static const struct {
	enum ibv_wr_opcode asked;
	uint8_t opcode, syndrome;
	int psn; /* from that of the request */
	uint32_t length;
	int status; /* enum ibv_wc_status, or NOTHING */
} answers[] = {
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_ACK, 0, 0, IBV_WC_SUCCESS},
	/* With credits, as adapters send them that use them (IBTA 9.7.7.2), and of a kind that is reserved. */
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, 0x00, 0, 0, IBV_WC_SUCCESS},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, 0x0f, 0, 0, IBV_WC_SUCCESS},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, 0x1e, 0, 0, IBV_WC_SUCCESS},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, 0x40, 0, 0, IBV_WC_BAD_RESP_ERR},
	/* Before and after it: of an older request, and of none. */
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_ACK, -1, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_ACK, 1, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_ACK, 100, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_ACK, 0x7fffff, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_ACK, 0x800000, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_NAK_SEQUENCE, 1, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_NAK_SEQUENCE, 0x7fffff, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_NAK_SEQUENCE, 0x800000, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_NAK_REMOTE_ACCESS, 0x800000, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_NAK_REMOTE_ACCESS, -1, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_NAK_REMOTE_ACCESS, 1, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_NAK_SEQUENCE, -1, 0, NOTHING},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_RNR_NAK | 1, -1, 0, NOTHING},
	{IBV_WR_RDMA_READ, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, -1, 8, NOTHING},
	{IBV_WR_RDMA_READ, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 1, 8, NOTHING},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, SOFT_ATOMIC_ACKNOWLEDGE, SOFT_ACK, -1, 0, NOTHING},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, SOFT_ATOMIC_ACKNOWLEDGE, SOFT_ACK, 1, 0, NOTHING},
	/* Refusals (IBTA table 46). */
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_NAK_INVALID_REQUEST, 0, 0, IBV_WC_REM_INV_REQ_ERR},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_NAK_REMOTE_ACCESS, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, SOFT_NAK_REMOTE_OPERATIONAL, 0, 0, IBV_WC_REM_OP_ERR},
	{IBV_WR_RDMA_READ, SOFT_ACKNOWLEDGE, SOFT_NAK_REMOTE_ACCESS, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{IBV_WR_RDMA_WRITE, SOFT_ACKNOWLEDGE, 0x7f, 0, 0, IBV_WC_BAD_RESP_ERR},
	/* Right and wrong answers; an ACK alone does not answer a READ. */
	{IBV_WR_RDMA_WRITE, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 0, 8, IBV_WC_BAD_RESP_ERR},
	{IBV_WR_RDMA_WRITE, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 0, 0, IBV_WC_BAD_RESP_ERR},
	{IBV_WR_RDMA_WRITE, SOFT_ATOMIC_ACKNOWLEDGE, SOFT_ACK, 0, 0, IBV_WC_BAD_RESP_ERR},
	{IBV_WR_RDMA_READ, SOFT_ACKNOWLEDGE, SOFT_ACK, 0, 0, NOTHING},
	{IBV_WR_RDMA_READ, SOFT_ATOMIC_ACKNOWLEDGE, SOFT_ACK, 0, 0, IBV_WC_BAD_RESP_ERR},
	{IBV_WR_RDMA_READ, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 0, 8, IBV_WC_SUCCESS},
	{IBV_WR_RDMA_READ, SOFT_RDMA_READ_RESPONSE_LAST, SOFT_ACK, 0, 8, IBV_WC_SUCCESS},
	{IBV_WR_RDMA_READ, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 0, 7, IBV_WC_BAD_RESP_ERR},
	{IBV_WR_RDMA_READ, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 0, 9, IBV_WC_BAD_RESP_ERR},
	{IBV_WR_RDMA_READ, SOFT_RDMA_READ_RESPONSE_FIRST, SOFT_ACK, 0, 8, IBV_WC_BAD_RESP_ERR},
	{IBV_WR_RDMA_READ, SOFT_RDMA_READ_RESPONSE_MIDDLE, SOFT_ACK, 0, 8, IBV_WC_BAD_RESP_ERR},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, SOFT_ATOMIC_ACKNOWLEDGE, SOFT_ACK, 0, 0, IBV_WC_SUCCESS},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 0, 8, IBV_WC_BAD_RESP_ERR},
	{IBV_WR_ATOMIC_WRITE, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 0, 0, IBV_WC_SUCCESS},
	{IBV_WR_ATOMIC_WRITE, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 0, 8, IBV_WC_BAD_RESP_ERR},
	{IBV_WR_ATOMIC_WRITE, SOFT_ATOMIC_ACKNOWLEDGE, SOFT_ACK, 0, 0, IBV_WC_BAD_RESP_ERR},
};

static void test_answers(void)
{
	for (size_t row = 0; row < sizeof(answers) / sizeof(answers[0]); row++) {
		bool brings = answers[row].status == IBV_WC_SUCCESS &&
			      (answers[row].asked == IBV_WR_RDMA_READ ||
			       answers[row].asked == IBV_WR_ATOMIC_FETCH_AND_ADD);
		struct soft_requester *requester;
		int status = NOTHING;
		struct wire wire;
		struct ibv_wc wc;

		open_deaf(&wire);
		requester = &soft_qp(wire.a.qp)->requester;
		post(&wire, answers[row].asked, wire.a.mr->lkey);
		forge(&wire, answers[row].opcode, answers[row].psn, answers[row].syndrome, answers[row].length);
		if (soft_poll_cq(wire.a.cq, 1, &wc) == 1)
			status = wc.status;
		if (status != answers[row].status)
			fprintf(stderr, "row %zu: status %d\n", row, status);
		CHECK(status == answers[row].status);
		if (status == NOTHING) {
			/* A READ is requested again after its answer was lost. Nothing else is sent. */
			bool lost = answers[row].asked == IBV_WR_RDMA_READ && answers[row].psn == 0;

			CHECK(requester->wait == SOFT_WAIT_ACK && requester->posted == 1);
			CHECK(soft_packets_count(wire.net.sim).sent == 1u + lost);
		}
		CHECK(soft_qp_state(soft_qp(wire.a.qp)) ==
		      (status <= IBV_WC_SUCCESS ? IBV_QPS_RTS : IBV_QPS_ERR));
		CHECK(is_untouched(&wire, brings ? 8 : 0) && is_untouched(&wire, 0) == !brings);
		wire_close(&wire);
	}
}

/* --- memory that is taken away while the answer is on its way ---------------------------------- */

static void test_memory_goes(void)
{
	static const struct {
		enum ibv_wr_opcode asked;
		uint8_t opcode;
		uint32_t length;
	} rows[] = {
		{IBV_WR_RDMA_READ, SOFT_RDMA_READ_RESPONSE_ONLY, 8},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, SOFT_ATOMIC_ACKNOWLEDGE, 0},
	};

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		for (int way = 0; way < 3; way++) {
			struct ibv_mr *mr;
			struct wire wire;

			open_deaf(&wire);
			mr = soft_reg_mr(wire.a.host->pd, wire.a.memory, 64, IBV_ACCESS_LOCAL_WRITE);
			CHECK(mr);
			post(&wire, rows[row].asked, mr->lkey);
			if (way == 0) /* the right to write there */
				CHECK(!soft_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
			else if (way == 1) /* most of the range */
				CHECK(!soft_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
						     wire.a.memory, 7, 0));
			else
				CHECK(!soft_dereg_mr(mr));
			forge(&wire, rows[row].opcode, 0, SOFT_ACK, rows[row].length);
			wire_completion(&wire.a, IBV_WC_LOC_PROT_ERR);
			CHECK(is_untouched(&wire, 0));
			if (way != 2)
				CHECK(!soft_dereg_mr(mr));
			wire_close(&wire);
		}
	}
}

/* --- timers and their counts ------------------------------------------------------------------ */

/* Each answer gives the retries back: one RNR retry is enough for three messages that wait once each. */
static void test_retries_come_back(void)
{
	struct wire wire;

	wire_open(&wire, IBV_QPT_RC, 4);
	for (int message = 0; message < 3; message++) {
		wire_post(&wire.a, &wire.b, IBV_WR_SEND, 8);
		sim_net_run(&wire.net, wire.net.fabric.clock.now(&wire.net.fabric.clock) + 100 * SOFT_MICROSECOND);
		CHECK(soft_qp(wire.a.qp)->requester.wait == SOFT_WAIT_RNR);
		wire_receive(&wire.b, 8);
		sim_net_run(&wire.net, UINT64_MAX);
		wire_completion(&wire.a, IBV_WC_SUCCESS);
		wire_completion(&wire.b, IBV_WC_SUCCESS);
	}
	wire_close(&wire);
}

/* Each answer restarts the ACK timer (IBTA 9.9.2.1.1), to the nanosecond. */
static void test_timer_begins_anew(void)
{
	const uint64_t timeout = soft_ack_timeout(10), later = 24 * SOFT_MICROSECOND;
	/* The third packet: behind the first WRITE and its ACK. */
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .directed = true, .probability = ALWAYS,
				   .skip = 2, .count = 1};
	uint64_t begin, answered;
	struct wire wire;

	wire_open(&wire, IBV_QPT_RC, 4);
	begin = wire.net.fabric.clock.now(&wire.net.fabric.clock);
	answered = begin + 25 * SOFT_MICROSECOND; /* there, what an ACK waits, and back */
	CHECK(soft_fault_add(&wire.net.fabric.faults, &fault) >= 0);
	wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
	sim_net_run(&wire.net, begin + later);
	wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8); /* this one is lost */
	sim_net_run(&wire.net, answered);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	sim_net_run(&wire.net, answered + timeout - 1);
	CHECK(soft_packets_count(wire.net.sim).sent == 3);
	sim_net_run(&wire.net, answered + timeout);
	CHECK(soft_packets_count(wire.net.sim).sent == 4);
	sim_net_run(&wire.net, UINT64_MAX);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	wire_close(&wire);
}

/* --- the send queue --------------------------------------------------------------------------- */

/* Completions are in order, also that of a request that cannot be sent. */
static void test_errors_wait_their_turn(void)
{
	struct wire wire;
	struct ibv_wc wc;

	wire_open(&wire, IBV_QPT_RC, 4);
	post(&wire, IBV_WR_RDMA_READ, wire.a.mr->lkey);
	post(&wire, IBV_WR_RDMA_WRITE, wire.a.mr->lkey ^ 1);
	CHECK(soft_poll_cq(wire.a.cq, 1, &wc) == 0);
	sim_net_run(&wire.net, UINT64_MAX);
	CHECK(wire_completion(&wire.a, IBV_WC_SUCCESS).opcode == IBV_WC_RDMA_READ);
	wire_completion(&wire.a, IBV_WC_LOC_PROT_ERR);
	wire_close(&wire);
}

/* Inline data is that of the time of posting, also when it is sent again. */
static void test_inline(void)
{
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .directed = true, .probability = ALWAYS,
				   .count = 1};
	struct ibv_sge sges[2];
	struct ibv_send_wr wr = {.sg_list = sges, .num_sge = 2, .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}, *bad;
	struct wire wire;

	wire_open(&wire, IBV_QPT_RC, 4);
	CHECK(soft_fault_add(&wire.net.fabric.faults, &fault) >= 0);
	memset(wire.a.memory, 1, 64);
	memset(wire.a.memory + 100, 2, 64);
	/* Keys are not looked at (ibv_post_send(3)). */
	sges[0] = (struct ibv_sge){(uintptr_t)wire.a.memory, 64, 0};
	sges[1] = (struct ibv_sge){(uintptr_t)wire.a.memory + 100, 64, 0};
	wr.wr.rdma.remote_addr = (uintptr_t)wire.b.memory;
	wr.wr.rdma.rkey = wire.b.mr->rkey;
	CHECK(!soft_post_send(wire.a.qp, &wr, &bad));
	memset(wire.a.memory, FILL, 200);
	sim_net_run(&wire.net, UINT64_MAX);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	for (int byte = 0; byte < 128; byte++)
		CHECK(wire.b.memory[byte] == (byte < 64 ? 1 : 2));
	/* The queue pair allows 128 bytes, and a READ has no data of its own. */
	sges[1].length = 65;
	CHECK(soft_post_send(wire.a.qp, &wr, &bad) == EINVAL && bad == &wr);
	sges[1].length = 1;
	wr.opcode = IBV_WR_RDMA_READ;
	CHECK(soft_post_send(wire.a.qp, &wr, &bad) == EINVAL && bad == &wr);
	wire_close(&wire);
}

/* The maximum number of requests; *bad is the first one without room, and those before it are sent. */
static void test_full(void)
{
	struct ibv_send_wr wrs[WIRE_DEPTH + 1], *bad = NULL;
	struct ibv_wc wc;
	struct wire wire;

	open_deaf(&wire);
	for (int index = 0; index <= WIRE_DEPTH; index++)
		wrs[index] = (struct ibv_send_wr){.wr_id = (uint64_t)index, .opcode = IBV_WR_SEND,
						  .next = index < WIRE_DEPTH ? &wrs[index + 1] : NULL};
	CHECK(soft_post_send(wire.a.qp, wrs, &bad) == ENOMEM && bad == &wrs[WIRE_DEPTH]);
	CHECK(soft_packets_count(wire.net.sim).sent == WIRE_DEPTH);
	sim_net_run(&wire.net, UINT64_MAX); /* no answer */
	for (uint64_t id = 0; id < WIRE_DEPTH; id++) {
		CHECK(soft_poll_cq(wire.a.cq, 1, &wc) == 1 && wc.wr_id == id);
		CHECK(wc.status == (id ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR));
	}
	CHECK(soft_poll_cq(wire.a.cq, 1, &wc) == 0);
	wire_close(&wire);
}

/* A queue pair that may have none outstanding sends none (IBTA 10.8.2, initiator depth). */
static void test_no_depth(void)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
						     IBV_WR_ATOMIC_WRITE};

	for (size_t row = 0; row < sizeof(opcodes) / sizeof(opcodes[0]); row++) {
		struct wire wire;

		wire_open(&wire, IBV_QPT_RC, 4);
		soft_qp(wire.a.qp)->attr.max_rd_atomic = 0;
		post(&wire, opcodes[row], wire.a.mr->lkey);
		sim_net_run(&wire.net, UINT64_MAX);
		wire_completion(&wire.a, IBV_WC_LOC_QP_OP_ERR);
		CHECK(soft_packets_count(wire.net.sim).sent == 0);
		wire_close(&wire);
	}
}

/* The receiver's completion has the service level of the sender's path, where both are of one device. */
static void test_service_level(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
	struct wire wire;

	wire_open_local(&wire, IBV_QPT_RC);
	attr.ah_attr = soft_qp(wire.a.qp)->attr.ah_attr;
	attr.ah_attr.grh.dgid = wire.a.host->device->gid_table.gids[0];
	attr.ah_attr.sl = 5;
	CHECK(!soft_modify_qp(wire.a.qp, &attr, IBV_QP_STATE));
	CHECK(!soft_modify_qp(wire.a.qp, &attr, IBV_QP_AV));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!soft_modify_qp(wire.a.qp, &attr, IBV_QP_STATE));
	wire_receive(&wire.b, 64);
	wire_post(&wire.a, &wire.b, IBV_WR_SEND, 8);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(wire_completion(&wire.b, IBV_WC_SUCCESS).sl == 5);
	/* A path to another address does not lead to a queue pair here. */
	attr.qp_state = IBV_QPS_SQD;
	CHECK(!soft_modify_qp(wire.a.qp, &attr, IBV_QP_STATE));
	attr.ah_attr.grh.dgid.raw[13] ^= 0x63;
	CHECK(!soft_modify_qp(wire.a.qp, &attr, IBV_QP_AV));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!soft_modify_qp(wire.a.qp, &attr, IBV_QP_STATE));
	wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
	sim_net_run(&wire.net, UINT64_MAX);
	wire_completion(&wire.a, IBV_WC_RETRY_EXC_ERR);
	wire_close(&wire);
}

int main(void)
{
	test_no_depth();
	test_service_level();
	test_errors_wait_their_turn();
	test_inline();
	test_full();
	test_answers();
	test_memory_goes();
	test_retries_come_back();
	test_timer_begins_anew();
	return 0;
}
