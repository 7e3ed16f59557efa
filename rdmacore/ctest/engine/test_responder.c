/*
 * The responder alone, packet by packet: the headers of answers, requests that are rejected without a change of
 * memory, and packets that are ignored. For queue pairs of the local link, and of a link with an MTU.
 */
#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "provider/newer.h"
#include "soft/engine/calls.h"
#include "soft/objects/mr.h"
#include "soft/objects/qp.h"

#define FIRST_PSN 0xfffffe /* sim_wire.c: what side b expects */
#define RNR_TIMER 12
#define FILL 0xc3
#define MTU 1024u
#define OLD_KEY (500 << 8 | 1) /* of a slot that was never used */

static void open_wire(struct wire *wire, bool local, enum ibv_qp_type type)
{
	wire_open_on(wire, local, type, 4);
	memset(wire->b.memory, FILL, WIRE_SIZE);
}

/* Eight bytes to, or from, the begin of side b's memory. */
static struct soft_packet request(struct wire *wire, uint8_t opcode, uint32_t psn)
{
	static uint64_t word = 1;

	return (struct soft_packet){
		.opcode = opcode, .psn = psn & SOFT_PSN_MASK, .acknowledge = true,
		.rkey = wire->b.mr->rkey, .remote_address = (uintptr_t)wire->b.memory,
		.length = 8, .message_length = 8, .operand = 1,
		.num_segments = 1, .segments = {{&word, sizeof(word)}},
	};
}

/* --- headers of answers ------------------------------------------------------------------------- */

/* One packet after the other: MSN counts the messages that were executed, once (IBTA 9.7.7.1). */
static const struct {
	uint8_t opcode;
	int psn; /* before, or after, the one that is expected */
	uint8_t answer, syndrome;
	uint32_t msn;
	bool receive; /* post one first */
} exchanges[] = {
	{SOFT_RDMA_WRITE_ONLY, 0, SOFT_ACKNOWLEDGE, SOFT_ACK, 1, false},
	{SOFT_SEND_ONLY, 0, SOFT_ACKNOWLEDGE, SOFT_RNR_NAK | RNR_TIMER, 1, false},
	{SOFT_SEND_ONLY, 0, SOFT_ACKNOWLEDGE, SOFT_ACK, 2, true},
	{SOFT_SEND_ONLY, -1, SOFT_ACKNOWLEDGE, SOFT_ACK, 2, false},
	{SOFT_RDMA_READ_REQUEST, 0, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 3, false},
	{SOFT_RDMA_READ_REQUEST, -1, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 3, false},
	{SOFT_FETCH_ADD, 0, SOFT_ATOMIC_ACKNOWLEDGE, SOFT_ACK, 4, false},
	{SOFT_FETCH_ADD, -1, SOFT_ATOMIC_ACKNOWLEDGE, SOFT_ACK, 4, false},
	{SOFT_COMPARE_SWAP, 0, SOFT_ATOMIC_ACKNOWLEDGE, SOFT_ACK, 5, false},
	{SOFT_FETCH_ADD, -2, SOFT_ATOMIC_ACKNOWLEDGE, SOFT_ACK, 5, false},
	{SOFT_ATOMIC_WRITE, 0, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 6, false},
	{SOFT_ATOMIC_WRITE, -1, SOFT_RDMA_READ_RESPONSE_ONLY, SOFT_ACK, 6, false},
	{SOFT_RDMA_WRITE_ONLY_IMMEDIATE, 0, SOFT_ACKNOWLEDGE, SOFT_RNR_NAK | RNR_TIMER, 6, false},
	{SOFT_RDMA_WRITE_ONLY_IMMEDIATE, 0, SOFT_ACKNOWLEDGE, SOFT_ACK, 7, true},
};

static void test_answers(bool local)
{
	uint32_t expected = FIRST_PSN, first_value = 0;
	struct soft_packet response;
	struct wire wire;

	open_wire(&wire, local, IBV_QPT_RC);
	for (size_t row = 0; row < sizeof(exchanges) / sizeof(exchanges[0]); row++) {
		struct soft_packet packet = request(&wire, exchanges[row].opcode,
						    expected + (uint32_t)exchanges[row].psn);
		bool nak = exchanges[row].syndrome != SOFT_ACK;
		/* A duplicate without an answer of its own gets the newest one. */
		bool newest = exchanges[row].answer == SOFT_ACKNOWLEDGE && exchanges[row].psn < 0;

		if (exchanges[row].receive)
			wire_receive(&wire.b, 64);
		CHECK(wire_answer(&wire.b, &packet, &response));
		CHECK(response.opcode == exchanges[row].answer && response.syndrome == exchanges[row].syndrome);
		CHECK(response.msn == exchanges[row].msn);
		CHECK(response.psn == (newest ? (expected - 1) & SOFT_PSN_MASK : packet.psn));
		if (exchanges[row].opcode == SOFT_FETCH_ADD && exchanges[row].psn == 0)
			first_value = (uint32_t)response.operand;
		else if (exchanges[row].opcode == SOFT_FETCH_ADD)
			CHECK((uint32_t)response.operand == first_value);
		if (!nak && exchanges[row].psn == 0)
			expected = (expected + 1) & SOFT_PSN_MASK;
	}
	wire_close(&wire);
}

/* --- rejected requests -------------------------------------------------------------------------- */

struct change {
	const char *name;
	uint8_t opcode;
	enum soft_syndrome syndrome;
	uint32_t length; /* 0: 8 */
	uint32_t key; /* with has_key */
	bool has_key;
	uint8_t placement, selectivity; /* FLUSH */
};

static const struct change changes[] = {
	{"half a word", SOFT_ATOMIC_WRITE, SOFT_NAK_INVALID_REQUEST, .length = 4},
	{"two words", SOFT_ATOMIC_WRITE, SOFT_NAK_INVALID_REQUEST, .length = 16},
	{"no placement", SOFT_FLUSH, SOFT_NAK_INVALID_REQUEST, .placement = 0},
	{"unknown placement", SOFT_FLUSH, SOFT_NAK_INVALID_REQUEST, .placement = CORE_FLUSH_GLOBAL | 4},
	{"unknown selectivity", SOFT_FLUSH, SOFT_NAK_INVALID_REQUEST, .placement = CORE_FLUSH_GLOBAL,
	 .selectivity = CORE_FLUSH_MR + 1},
	{"a region of no key", SOFT_FLUSH, SOFT_NAK_REMOTE_ACCESS, .placement = CORE_FLUSH_GLOBAL,
	 .selectivity = CORE_FLUSH_MR, .has_key = true},
	{"a region of a key that never was", SOFT_FLUSH, SOFT_NAK_REMOTE_ACCESS,
	 .placement = CORE_FLUSH_GLOBAL, .selectivity = CORE_FLUSH_MR, .has_key = true, .key = OLD_KEY},
	{"a region of no key at all", SOFT_FLUSH, SOFT_NAK_REMOTE_ACCESS, .placement = CORE_FLUSH_GLOBAL,
	 .selectivity = CORE_FLUSH_MR, .has_key = true, .key = UINT32_MAX},
	{"an answer", SOFT_ACKNOWLEDGE, SOFT_NAK_INVALID_REQUEST, .placement = 0},
};

/* Allow all requests to side b's queue pair. */
static void allow(struct wire *wire, unsigned int access)
{
	soft_qp(wire->b.qp)->attr.qp_access_flags = access;
}

static void expect_refused(struct wire *wire, const struct soft_packet *packet, enum soft_syndrome syndrome,
			   const char *name)
{
	struct soft_packet response;
	bool answers = wire_answer(&wire->b, packet, &response);

	if (!answers || response.syndrome != syndrome)
		fprintf(stderr, "%s: syndrome 0x%x\n", name, answers ? response.syndrome : 0);
	CHECK(answers && response.opcode == SOFT_ACKNOWLEDGE && response.syndrome == syndrome);
	CHECK(response.psn == packet->psn && response.msn == 0);
	for (uint32_t byte = 0; byte < WIRE_SIZE; byte++)
		CHECK(wire->b.memory[byte] == FILL);
	/* And it is the last word. */
	CHECK(!wire_answer(&wire->b, packet, &response));
	soft_qp_enter_error(soft_qp(wire->b.qp));
	CHECK(soft_qp_state(soft_qp(wire->b.qp)) == IBV_QPS_ERR);
}

static void test_refused(bool local)
{
	for (size_t row = 0; row < sizeof(changes) / sizeof(changes[0]); row++) {
		struct soft_packet packet;
		struct wire wire;

		open_wire(&wire, local, IBV_QPT_RC);
		allow(&wire, IBV_ACCESS_REMOTE_WRITE | CORE_ACCESS_FLUSH_GLOBAL);
		packet = request(&wire, changes[row].opcode, FIRST_PSN);
		if (changes[row].length)
			packet.length = packet.segments[0].length = changes[row].length;
		if (changes[row].has_key)
			packet.rkey = changes[row].key;
		packet.placement = changes[row].placement;
		packet.selectivity = changes[row].selectivity;
		expect_refused(&wire, &packet, changes[row].syndrome, changes[row].name);
		wire_close(&wire);
	}
}

static const uint8_t responding[] = {SOFT_RDMA_READ_REQUEST, SOFT_COMPARE_SWAP, SOFT_FETCH_ADD,
				     SOFT_ATOMIC_WRITE, SOFT_FLUSH};

/* Without responder resources, READs are rejected (IBTA 9.7.4.1.3). */
static void test_no_resources(bool local)
{
	for (size_t row = 0; row < sizeof(responding); row++) {
		struct soft_packet packet;
		struct wire wire;

		open_wire(&wire, local, IBV_QPT_RC);
		allow(&wire, ~0u);
		soft_qp(wire.b.qp)->attr.max_dest_rd_atomic = 0;
		packet = request(&wire, responding[row], FIRST_PSN);
		packet.placement = CORE_FLUSH_GLOBAL;
		expect_refused(&wire, &packet, SOFT_NAK_INVALID_REQUEST, "no resources");
		wire_close(&wire);
	}
}

/* A word with an aligned address, in memory that is not aligned. */
static void test_crooked_memory(bool local)
{
	static const uint8_t opcodes[] = {SOFT_COMPARE_SWAP, SOFT_FETCH_ADD, SOFT_ATOMIC_WRITE};

	for (size_t row = 0; row < sizeof(opcodes); row++) {
		struct soft_packet packet;
		struct ibv_mr *crooked;
		struct wire wire;

		open_wire(&wire, local, IBV_QPT_RC);
		crooked = soft_reg_mr(wire.b.host->pd, wire.b.memory + 4, 64,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED);
		CHECK(crooked);
		packet = request(&wire, opcodes[row], FIRST_PSN);
		packet.remote_address = 0;
		packet.rkey = crooked->rkey;
		expect_refused(&wire, &packet, SOFT_NAK_INVALID_REQUEST, "crooked memory");
		CHECK(!soft_dereg_mr(crooked));
		wire_close(&wire);
	}
}

/* --- repeated requests -------------------------------------------------------------------------- */

/* The packets of a READ's answer: how many, each with the next number. */
static uint32_t read_again(struct side *b, struct soft_packet packet, uint32_t from, uint32_t packets)
{
	struct soft_packet response;
	uint32_t count = 0;

	packet.psn = (packet.psn + from) & SOFT_PSN_MASK;
	packet.remote_address += (uint64_t)from * MTU;
	packet.length = (uint64_t)packets * MTU;
	for (bool more = wire_answer(b, &packet, &response); more; count++) {
		CHECK(response.psn == ((packet.psn + count) & SOFT_PSN_MASK) && response.msn == 1);
		CHECK(response.length == MTU);
		CHECK(response.opcode == (packets == 1	       ? SOFT_RDMA_READ_RESPONSE_ONLY :
					  count == 0	       ? SOFT_RDMA_READ_RESPONSE_FIRST :
					  count + 1 == packets ? SOFT_RDMA_READ_RESPONSE_LAST :
								 SOFT_RDMA_READ_RESPONSE_MIDDLE));
		CHECK((uintptr_t)response.segments[0].address == packet.remote_address + count * MTU);
		soft_lock_take(&soft_qp(b->qp)->responder.lock);
		more = soft_assembly_stream(soft_qp(b->qp), &response);
		soft_lock_release(&soft_qp(b->qp)->responder.lock);
	}
	return count;
}

/*
 * All of a READ, its end, its middle. Executed requests are answered again (IBTA 9.7.5.1.3). A range beyond the first
 * request is rejected. Memory that was deregistered since is no error.
 */
static void test_read_again(void)
{
	struct soft_packet packet;
	struct wire wire;
	struct ibv_mr *mr;

	open_wire(&wire, false, IBV_QPT_RC);
	mr = soft_reg_mr(wire.b.host->pd, wire.b.memory, 3 * MTU, IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	packet = request(&wire, SOFT_RDMA_READ_REQUEST, FIRST_PSN);
	packet.rkey = mr->rkey;
	CHECK(read_again(&wire.b, packet, 0, 3) == 3);
	CHECK(read_again(&wire.b, packet, 0, 3) == 3);
	CHECK(read_again(&wire.b, packet, 1, 2) == 2);
	CHECK(read_again(&wire.b, packet, 1, 1) == 1);
	CHECK(read_again(&wire.b, packet, 2, 2) == 0);
	CHECK(!soft_dereg_mr(mr));
	CHECK(read_again(&wire.b, packet, 0, 3) == 0);
	CHECK(!soft_qp(wire.b.qp)->responder.failed);
	wire_close(&wire);
}

/* Packets after a message without a receive are repeated with it, so no NAK for a gap is sent. */
static void test_behind_rnr(void)
{
	struct soft_packet packet, response;
	struct wire wire;

	open_wire(&wire, false, IBV_QPT_RC);
	packet = request(&wire, SOFT_SEND_ONLY, FIRST_PSN);
	CHECK(wire_answer(&wire.b, &packet, &response) && response.syndrome == (SOFT_RNR_NAK | RNR_TIMER));
	packet.psn++;
	CHECK(!wire_answer(&wire.b, &packet, &response));
	packet.psn = FIRST_PSN;
	wire_receive(&wire.b, 64);
	CHECK(wire_answer(&wire.b, &packet, &response) && response.syndrome == SOFT_ACK);
	packet.psn = FIRST_PSN + 5;
	packet.psn &= SOFT_PSN_MASK;
	CHECK(wire_answer(&wire.b, &packet, &response) && response.syndrome == SOFT_NAK_SEQUENCE);
	CHECK(response.psn == FIRST_PSN + 1);
	wire_close(&wire);
}

/* --- ignored packets ---------------------------------------------------------------------------- */

/* Before RTR and in ERR, and of another service: no answer, nothing written, no receive used. */
static void test_dropped(bool local)
{
	static const struct {
		enum ibv_qp_state state;
		enum soft_service service;
		bool executed;
	} rows[] = {
		{IBV_QPS_RESET, SOFT_RELIABLE_CONNECTION, false},
		{IBV_QPS_INIT, SOFT_RELIABLE_CONNECTION, false},
		{IBV_QPS_RTR, SOFT_RELIABLE_CONNECTION, true},
		{IBV_QPS_RTS, SOFT_RELIABLE_CONNECTION, true},
		{IBV_QPS_SQD, SOFT_RELIABLE_CONNECTION, true},
		{IBV_QPS_ERR, SOFT_RELIABLE_CONNECTION, false},
		{IBV_QPS_RTS, SOFT_UNRELIABLE_CONNECTION, false},
		{IBV_QPS_RTS, SOFT_UNRELIABLE_DATAGRAM, false},
	};

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct soft_packet packet, response;
		struct soft_qp *qp;
		struct wire wire;

		open_wire(&wire, local, IBV_QPT_RC);
		qp = soft_qp(wire.b.qp);
		wire_receive(&wire.b, 64);
		atomic_store(&qp->state, rows[row].state);
		packet = request(&wire, rows[row].service | SOFT_SEND_ONLY, FIRST_PSN);
		CHECK(wire_answer(&wire.b, &packet, &response) == rows[row].executed);
		CHECK((wire.b.memory[0] == FILL) == !rows[row].executed);
		CHECK(qp->receive.consumed == rows[row].executed);
		atomic_store(&qp->state, IBV_QPS_RTS);
		wire_close(&wire);
	}
}

int main(void)
{
	for (int local = 0; local < 2; local++) {
		test_answers(local);
		test_refused(local);
		test_no_resources(local);
		test_crooked_memory(local);
		test_dropped(local);
	}
	test_read_again();
	test_behind_rnr();
	return 0;
}
