/*
 * Messages in parts, and wrong ones. Parts are in the wrong order, of the wrong length, or longer or shorter than
 * announced. Keys become invalid half way (IBTA 9.7.4.1). Also which datagrams are accepted at all.
 */
#include <sys/mman.h>

#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "soft/engine/calls.h"
#include "soft/engine/segment.h"
#include "soft/link/calls.h"
#include "soft/objects/context.h"
#include "soft/objects/cq.h"
#include "soft/objects/mr.h"
#include "soft/objects/qp.h"
#include "soft/objects/srq.h"
#include "soft/qp/verbs.h"

#define FIRST_PSN 0xfffffe /* sim_wire.c: what side b expects */
#define MTU 1024
#define FILL 0xc3
#define PARTS 3
#define RECEIVED (-1) /* no completion */

static uint8_t bytes[2 * MTU];

static struct soft_packet part(struct wire *wire, uint8_t opcode, uint32_t psn, uint32_t length, uint32_t total)
{
	return (struct soft_packet){
		.opcode = opcode, .psn = psn & SOFT_PSN_MASK, .acknowledge = true, .rkey = wire->b.mr->rkey,
		.remote_address = (uintptr_t)wire->b.memory, .length = length, .message_length = total,
		.num_segments = length ? 1 : 0, .segments = {{bytes, length}},
	};
}

static void open_wire(struct wire *wire, enum ibv_qp_type type)
{
	wire_open(wire, type, 4);
	memset(bytes, 1, sizeof(bytes));
	memset(wire->b.memory, FILL, WIRE_SIZE);
}

/* --- parts ------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	struct {
		uint8_t opcode;
		uint32_t length, total;
	} parts[PARTS];
	enum soft_syndrome syndrome; /* of the answer to the last of them; the others are right */
	int status; /* of the receive that the message took, or RECEIVED */
} rows[] = {
	{"a WRITE", {{SOFT_RDMA_WRITE_FIRST, MTU, 2 * MTU}, {SOFT_RDMA_WRITE_LAST, MTU, 0}}, SOFT_ACK, RECEIVED},
	{"a SEND", {{SOFT_SEND_FIRST, MTU, 0}, {SOFT_SEND_MIDDLE, MTU, 0}, {SOFT_SEND_LAST, 1, 0}}, SOFT_ACK,
	 IBV_WC_SUCCESS},
	{"a WRITE longer than it says", {{SOFT_RDMA_WRITE_FIRST, MTU, 2 * MTU - 1}, {SOFT_RDMA_WRITE_LAST, MTU, 0}},
	 SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a WRITE shorter than it says", {{SOFT_RDMA_WRITE_FIRST, MTU, 3 * MTU}, {SOFT_RDMA_WRITE_LAST, MTU, 0}},
	 SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a WRITE that goes on", {{SOFT_RDMA_WRITE_FIRST, MTU, 2 * MTU}, {SOFT_RDMA_WRITE_MIDDLE, MTU, 0}},
	 SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a WRITE of nothing in parts", {{SOFT_RDMA_WRITE_FIRST, MTU, 0}}, SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a short first", {{SOFT_SEND_FIRST, MTU - 1, 0}}, SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a long first", {{SOFT_SEND_FIRST, MTU + 1, 0}}, SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a short middle", {{SOFT_SEND_FIRST, MTU, 0}, {SOFT_SEND_MIDDLE, MTU - 1, 0}}, SOFT_NAK_INVALID_REQUEST,
	 IBV_WC_REM_INV_REQ_ERR},
	{"an empty last", {{SOFT_SEND_FIRST, MTU, 0}, {SOFT_SEND_LAST, 0, 0}}, SOFT_NAK_INVALID_REQUEST,
	 IBV_WC_REM_INV_REQ_ERR},
	{"a long last", {{SOFT_SEND_FIRST, MTU, 0}, {SOFT_SEND_LAST, MTU + 1, 0}}, SOFT_NAK_INVALID_REQUEST,
	 IBV_WC_REM_INV_REQ_ERR},
	{"a long only", {{SOFT_SEND_ONLY, MTU + 1, 0}}, SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"an only of another length", {{SOFT_RDMA_WRITE_ONLY, 8, 9}}, SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a READ of too much", {{SOFT_RDMA_READ_REQUEST, SOFT_MAX_MESSAGE + 1, SOFT_MAX_MESSAGE + 1}},
	 SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a WRITE of too much", {{SOFT_RDMA_WRITE_FIRST, MTU, SOFT_MAX_MESSAGE + 1}}, SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a middle alone", {{SOFT_SEND_MIDDLE, MTU, 0}}, SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a last alone", {{SOFT_RDMA_WRITE_LAST, 8, 0}}, SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a first in a message", {{SOFT_SEND_FIRST, MTU, 0}, {SOFT_SEND_FIRST, MTU, 0}}, SOFT_NAK_INVALID_REQUEST,
	 IBV_WC_REM_INV_REQ_ERR},
	{"an only in a message", {{SOFT_SEND_FIRST, MTU, 0}, {SOFT_SEND_ONLY, 8, 0}}, SOFT_NAK_INVALID_REQUEST,
	 IBV_WC_REM_INV_REQ_ERR},
	{"a READ in a message", {{SOFT_SEND_FIRST, MTU, 0}, {SOFT_RDMA_READ_REQUEST, 8, 8}},
	 SOFT_NAK_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR},
	{"the end of another", {{SOFT_SEND_FIRST, MTU, 0}, {SOFT_RDMA_WRITE_LAST, 8, 0}}, SOFT_NAK_INVALID_REQUEST,
	 IBV_WC_REM_INV_REQ_ERR},
	{"the end of another", {{SOFT_RDMA_WRITE_FIRST, MTU, 2 * MTU}, {SOFT_SEND_LAST, MTU, 0}},
	 SOFT_NAK_INVALID_REQUEST, RECEIVED},
	{"a WRITE beyond the region", {{SOFT_RDMA_WRITE_FIRST, MTU, WIRE_SIZE + 1}}, SOFT_NAK_REMOTE_ACCESS, RECEIVED},
	{"a key that is none, at the end", {{SOFT_SEND_FIRST, MTU, 0}, {SOFT_SEND_LAST_INVALIDATE, 8, 0}},
	 SOFT_NAK_REMOTE_ACCESS, IBV_WC_REM_INV_REQ_ERR},
};

static void check_row(size_t row)
{
	struct soft_packet response;
	struct wire wire;
	int place = 0, last = 0;

	/* SEND_FIRST is 0. */
	while (last + 1 < PARTS && (rows[row].parts[last + 1].opcode || rows[row].parts[last + 1].length))
		last++;
	open_wire(&wire, IBV_QPT_RC);
	for (int receive = 0; receive < 2; receive++)
		wire_receive(&wire.b, 4 * MTU);
	for (; place <= last; place++) {
		struct soft_packet packet = part(&wire, rows[row].parts[place].opcode,
						 FIRST_PSN + (uint32_t)place, rows[row].parts[place].length,
						 rows[row].parts[place].total);
		enum soft_syndrome expected = place == last ? rows[row].syndrome : SOFT_ACK;

		packet.immediate = wire.b.mr->rkey; /* SEND_LAST_INVALIDATE with a key that is no window's */
		if (!wire_answer(&wire.b, &packet, &response) || response.syndrome != expected)
			fprintf(stderr, "%s: part %d: 0x%x\n", rows[row].name, place, response.syndrome);
		CHECK(response.syndrome == expected && response.psn == packet.psn);
	}
	soft_qp_enter_error(soft_qp(wire.b.qp));
	if (rows[row].status != RECEIVED)
		wire_completion(&wire.b, (enum ibv_wc_status)rows[row].status);
	CHECK(soft_qp_state(soft_qp(wire.b.qp)) == (rows[row].syndrome == SOFT_ACK ? IBV_QPS_RTS : IBV_QPS_ERR));
	for (int left = rows[row].status == RECEIVED ? 0 : 1; rows[row].syndrome != SOFT_ACK && left < 2; left++)
		wire_completion(&wire.b, IBV_WC_WR_FLUSH_ERR);
	for (uint32_t byte = (uint32_t)(last + 1) * MTU; byte < WIRE_SIZE; byte++)
		CHECK(wire.b.memory[byte] == FILL);
	if (last == 0 && rows[row].syndrome != SOFT_ACK)
		CHECK(wire.b.memory[0] == FILL);
	wire_close(&wire);
}

/* A SEND does not contain its length: the packet that makes it longer than the maximum is rejected. */
static void test_endless_send(void)
{
	struct ibv_sge list[SOFT_MAX_SGE];
	struct ibv_recv_wr wr = {.sg_list = list, .num_sge = SOFT_MAX_SGE}, *bad;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {.max_recv_wr = 1, .max_recv_sge = SOFT_MAX_SGE}};
	struct sim_path path = {.mtu = IBV_MTU_1024, .psn = {FIRST_PSN, 0}, .depth = 1};
	const size_t length = SOFT_MAX_MESSAGE / SOFT_MAX_SGE * 2; /* all entries together hold two of the longest */
	char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct soft_packet packet, response;
	struct wire wire;
	struct ibv_mr *mr;

	CHECK(memory != MAP_FAILED);
	open_wire(&wire, IBV_QPT_RC);
	CHECK(!soft_destroy_qp(wire.b.qp));
	init.send_cq = init.recv_cq = wire.b.cq;
	wire.b.qp = soft_create_qp(wire.b.host->pd, &init);
	CHECK(wire.b.qp);
	sim_connect_to(wire.b.qp, wire.a.host, wire.a.qp->qp_num, &path, 0, FIRST_PSN);
	mr = soft_reg_mr(wire.b.host->pd, memory, length, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	for (int entry = 0; entry < SOFT_MAX_SGE; entry++)
		list[entry] = (struct ibv_sge){(uintptr_t)memory, (uint32_t)length, mr->lkey};
	CHECK(!soft_post_recv(wire.b.qp, &wr, &bad));
	packet = part(&wire, SOFT_SEND_FIRST, FIRST_PSN, MTU, 0);
	CHECK(wire_answer(&wire.b, &packet, &response) && response.syndrome == SOFT_ACK);
	/* As after two million packets. */
	soft_qp(wire.b.qp)->segmentation->assembly.offset = SOFT_MAX_MESSAGE - MTU;
	packet = part(&wire, SOFT_SEND_MIDDLE, FIRST_PSN + 1, MTU, 0);
	CHECK(wire_answer(&wire.b, &packet, &response) && response.syndrome == SOFT_ACK);
	packet = part(&wire, SOFT_SEND_LAST, FIRST_PSN + 2, 1, 0);
	CHECK(wire_answer(&wire.b, &packet, &response) && response.syndrome == SOFT_NAK_INVALID_REQUEST);
	wire_completion(&wire.b, IBV_WC_LOC_LEN_ERR);
	CHECK(!soft_dereg_mr(mr));
	munmap(memory, length);
	wire_close(&wire);
}

/* The memory of the key is deregistered, or gets smaller, while the message arrives: no further byte is written. */
static void test_key_goes(void)
{
	for (int way = 0; way < 3; way++) {
		struct soft_packet packet, response;
		struct wire wire;
		struct ibv_mr *mr;

		open_wire(&wire, IBV_QPT_RC);
		mr = soft_reg_mr(wire.b.host->pd, wire.b.memory, 2 * MTU,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		CHECK(mr);
		packet = part(&wire, SOFT_RDMA_WRITE_FIRST, FIRST_PSN, MTU, 2 * MTU);
		packet.rkey = mr->rkey;
		CHECK(wire_answer(&wire.b, &packet, &response) && response.syndrome == SOFT_ACK);
		if (way == 0)
			CHECK(!soft_dereg_mr(mr));
		else if (way == 1)
			CHECK(!soft_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, wire.b.memory, MTU, 0));
		else
			CHECK(!soft_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
		packet = part(&wire, SOFT_RDMA_WRITE_LAST, FIRST_PSN + 1, MTU, 0);
		CHECK(wire_answer(&wire.b, &packet, &response));
		CHECK(response.syndrome == SOFT_NAK_REMOTE_ACCESS);
		CHECK(wire.b.memory[MTU - 1] == 1 && wire.b.memory[MTU] == FILL);
		if (way)
			CHECK(!soft_dereg_mr(mr));
		wire_close(&wire);
	}
}

/* Over an unreliable connection a message that is not whole is dropped, and its receive is for the next one. */
static void test_unreliable(void)
{
	static const struct {
		uint8_t opcode;
		int psn; /* after the first that is sent */
		uint32_t length;
	} parts[] = {
		{SOFT_SEND_FIRST, 0, MTU}, {SOFT_SEND_LAST, 2, MTU}, /* the middle is lost */
		{SOFT_SEND_FIRST, 3, MTU}, {SOFT_SEND_FIRST, 4, MTU}, /* so is the rest of this one */
		{SOFT_SEND_ONLY, 5, 7}, /* and of that; this one is whole */
	};
	struct soft_packet response;
	struct wire wire;

	open_wire(&wire, IBV_QPT_UC);
	wire_receive(&wire.b, 4 * MTU);
	for (size_t place = 0; place < sizeof(parts) / sizeof(parts[0]); place++) {
		struct soft_packet packet = part(&wire, SOFT_UNRELIABLE_CONNECTION | parts[place].opcode,
						 FIRST_PSN + (uint32_t)parts[place].psn, parts[place].length, 0);

		CHECK(!wire_answer(&wire.b, &packet, &response));
	}
	CHECK(wire_completion(&wire.b, IBV_WC_SUCCESS).byte_len == 7);
	CHECK(soft_qp_state(soft_qp(wire.b.qp)) == IBV_QPS_RTS);
	wire_close(&wire);
}

/* --- a receive of a shared queue --------------------------------------------------------------- */

/* Side b gets a queue pair that takes its receives from a shared queue, in which there are two. */
static struct ibv_srq *open_shared(struct wire *wire, enum ibv_qp_type type)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = soft_create_srq(wire->b.host->pd, &srq_attr);
	struct ibv_qp_init_attr init = {.qp_type = type, .send_cq = wire->b.cq, .recv_cq = wire->b.cq, .srq = srq};
	struct sim_path path = {.mtu = IBV_MTU_1024, .psn = {FIRST_PSN, 0}, .depth = 1, .access = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_sge sge = {(uintptr_t)wire->b.memory, 4 * MTU, wire->b.mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(srq);
	CHECK(!soft_destroy_qp(wire->b.qp));
	wire->b.qp = soft_create_qp(wire->b.host->pd, &init);
	CHECK(wire->b.qp);
	sim_connect_to(wire->b.qp, wire->a.host, wire->a.qp->qp_num, &path, 0, FIRST_PSN);
	for (wr.wr_id = 1; wr.wr_id <= 2; wr.wr_id++)
		CHECK(!soft_post_srq_recv(srq, &wr, &bad));
	return srq;
}

static void close_shared(struct wire *wire, struct ibv_srq *srq)
{
	enum ibv_qp_type type = wire->b.qp->qp_type;

	CHECK(!soft_destroy_qp(wire->b.qp));
	CHECK(!soft_destroy_srq(srq));
	wire->b.qp = sim_qp(wire->b.host, type, wire->b.cq, 1); /* for wire_close */
	wire_close(wire);
}

/*
 * A message that took a receive from a shared queue and is not complete. Over an unreliable connection the next
 * message uses the receive; when the queue pair fails, it is flushed, and no other queue pair gets it.
 */
static void test_shared_receive(bool reliable)
{
	uint8_t service = reliable ? SOFT_RELIABLE_CONNECTION : SOFT_UNRELIABLE_CONNECTION;
	enum ibv_qp_type type = reliable ? IBV_QPT_RC : IBV_QPT_UC;
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct soft_packet packet, response;
	struct ibv_async_event event;
	struct ibv_srq *srq;
	struct wire wire;
	struct ibv_wc wc;

	open_wire(&wire, type);
	srq = open_shared(&wire, type);
	packet = part(&wire, service | SOFT_SEND_FIRST, FIRST_PSN, MTU, 0);
	wire_answer(&wire.b, &packet, &response);
	if (!reliable) {
		packet = part(&wire, service | SOFT_SEND_ONLY, FIRST_PSN + 1, 5, 0);
		wire_answer(&wire.b, &packet, &response);
		wc = wire_completion(&wire.b, IBV_WC_SUCCESS);
		CHECK(wc.wr_id == 1 && wc.byte_len == 5);
		packet = part(&wire, service | SOFT_SEND_FIRST, FIRST_PSN + 2, MTU, 0);
		wire_answer(&wire.b, &packet, &response);
	}
	CHECK(!soft_modify_qp(wire.b.qp, &error, IBV_QP_STATE));
	CHECK(wire_completion(&wire.b, IBV_WC_WR_FLUSH_ERR).wr_id == (reliable ? 1 : 2));
	CHECK(soft_poll_cq(wire.b.cq, 1, &wc) == 0);
	CHECK(!soft_get_async_event(wire.b.host->context, &event));
	CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
	soft_ack_async_event(&event);
	close_shared(&wire, srq);
}

/*
 * A WRITE that is rejected at its last packet, which has taken a receive: the receive completes, and no other queue
 * pair gets it.
 */
static void test_shared_receive_of_write(void)
{
	struct soft_packet packet, response;
	struct ibv_srq *srq;
	struct wire wire;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	open_wire(&wire, IBV_QPT_RC);
	srq = open_shared(&wire, IBV_QPT_RC);
	mr = soft_reg_mr(wire.b.host->pd, wire.b.memory, 2 * MTU, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr);
	packet = part(&wire, SOFT_RDMA_WRITE_FIRST, FIRST_PSN, MTU, 2 * MTU);
	packet.rkey = mr->rkey;
	CHECK(wire_answer(&wire.b, &packet, &response) && response.syndrome == SOFT_ACK);
	CHECK(!soft_dereg_mr(mr));
	packet = part(&wire, SOFT_RDMA_WRITE_LAST_IMMEDIATE, FIRST_PSN + 1, MTU, 0);
	CHECK(wire_answer(&wire.b, &packet, &response) && response.syndrome == SOFT_NAK_REMOTE_ACCESS);
	CHECK(wire_completion(&wire.b, IBV_WC_WR_FLUSH_ERR).wr_id == 1);
	CHECK(soft_poll_cq(wire.b.cq, 1, &wc) == 0 && wire.b.memory[MTU] == FILL);
	close_shared(&wire, srq);
}

/* --- datagrams that are let through ------------------------------------------------------------ */

#define IP 20
#define UDP 8

static const struct {
	const char *name;
	size_t place; /* of the changed byte */
	uint8_t byte;
	bool executed;
} changes[] = {
	{"nothing", 1, 0, true},
	{"the sender's address", 15, 99, false},
	{"the port", IP + 3, 1, false},
	{"the service", IP + UDP, SOFT_UNRELIABLE_CONNECTION | SOFT_RDMA_WRITE_ONLY, false},
	{"a limited member of the partition", IP + UDP + 2, 0x7f, true},
	{"another partition", IP + UDP + 3, 0xfe, false},
	{"a partition without the highest bits", IP + UDP + 2, 0x3f, false},
	{"the queue pair", IP + UDP + 7, 0, false},
};

static void test_let_through(void)
{
	for (size_t row = 0; row < sizeof(changes) / sizeof(changes[0]); row++) {
		uint8_t datagram[WIRE_DATAGRAM];
		struct soft_packet packet;
		struct wire wire;
		size_t length;

		open_wire(&wire, IBV_QPT_RC);
		packet = part(&wire, SOFT_RDMA_WRITE_ONLY, FIRST_PSN, 8, 8);
		length = wire_datagram(&wire, &wire.b, &packet, datagram);
		if (changes[row].place == IP + UDP + 7)
			datagram[changes[row].place] ^= 1;
		else
			datagram[changes[row].place] = changes[row].byte;
		soft_link_receive(wire.b.host->device, false, SOFT_NO_QPN, datagram, length);
		if ((wire.b.memory[0] == 1) != changes[row].executed)
			fprintf(stderr, "%s\n", changes[row].name);
		CHECK((wire.b.memory[0] == 1) == changes[row].executed);
		wire_close(&wire);
	}
}

/* An answer of another queue pair is dropped. */
static void test_answer_of_another(void)
{
	struct soft_packet packet = {.opcode = SOFT_ACKNOWLEDGE, .syndrome = SOFT_ACK, .psn = FIRST_PSN};
	uint8_t datagram[WIRE_DATAGRAM];
	struct ibv_wc wc;
	struct wire wire;
	size_t length;

	open_wire(&wire, IBV_QPT_RC);
	wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
	length = wire_datagram(&wire, &wire.a, &packet, datagram);
	datagram[15] ^= 0x40;
	soft_link_receive(wire.a.host->device, false, SOFT_NO_QPN, datagram, length);
	CHECK(soft_poll_cq(wire.a.cq, 1, &wc) == 0);
	datagram[15] ^= 0x40;
	soft_link_receive(wire.a.host->device, false, SOFT_NO_QPN, datagram, length);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	wire_close(&wire);
}

/* A queue pair that rejects a request is in ERR at once, and its receives are flushed. */
static void test_rejects_in_err(void)
{
	struct soft_packet packet;
	struct wire wire;

	open_wire(&wire, IBV_QPT_RC);
	wire_receive(&wire.b, 8);
	packet = part(&wire, SOFT_RDMA_WRITE_ONLY, FIRST_PSN, 8, 8);
	packet.rkey ^= 1;
	wire_forge(&wire, &wire.b, &packet);
	CHECK(soft_qp_state(soft_qp(wire.b.qp)) == IBV_QPS_ERR);
	wire_completion(&wire.b, IBV_WC_WR_FLUSH_ERR);
	wire_close(&wire);
}

/*
 * A request that asks for an acknowledgement comes, and the program answers it: whether the acknowledgement is sent
 * with the answer.
 */
static bool request_and_answer(struct soft_qp *qp)
{
	struct soft_packet response;
	bool joins;

	qp->segmentation->ack_pending = true;
	soft_ack_delay_request(qp->segmentation);
	joins = soft_ack_is_piggybacked(qp);
	if (joins)
		CHECK(soft_assembly_acknowledge(qp, &response) && !qp->segmentation->ack_pending);
	else
		CHECK(soft_ack_waits(qp, false));
	return joins;
}

/* How many acknowledgements go with answers before one does not. */
static int joined(struct soft_qp *qp)
{
	int count = 0;

	while (request_and_answer(qp))
		count++;
	return count;
}

/*
 * Tries find out whether the peer waits for acknowledgements. They are rare if it does; if it does not, it gets few
 * acknowledgements.
 */
static void test_ack_delay(void)
{
	struct soft_packet response;
	struct wire wire;
	struct soft_qp *qp;
	int first, late;

	open_wire(&wire, IBV_QPT_RC);
	qp = soft_qp(wire.b.qp);
	soft_lock_take(&qp->responder.lock);
	CHECK(!soft_ack_is_piggybacked(qp) && !soft_ack_waits(qp, false) && !soft_ack_waits(qp, true));
	first = joined(qp);
	CHECK(first > 0);
	/* It has waited without success and is due; the next try comes later. */
	CHECK(!soft_ack_waits(qp, true) && soft_assembly_acknowledge(qp, &response));
	CHECK(joined(qp) > first);
	/* The next request comes without it. */
	CHECK(!request_and_answer(qp));
	for (late = 2; !request_and_answer(qp); late++)
		CHECK(late < 100);
	CHECK(late > 8);
	CHECK(joined(qp) == 0);
	/* A repeated request means that the peer waits. */
	CHECK(soft_ack_waits(qp, false));
	soft_ack_delay_end(qp->segmentation);
	CHECK(!soft_ack_waits(qp, false) && soft_assembly_acknowledge(qp, &response));
	CHECK(joined(qp) == first);
	soft_lock_release(&qp->responder.lock);
	wire_close(&wire);
}

int main(void)
{
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
		check_row(row);
	test_endless_send();
	test_key_goes();
	test_unreliable();
	test_shared_receive(false);
	test_shared_receive(true);
	test_shared_receive_of_write();
	test_let_through();
	test_answer_of_another();
	test_rejects_in_err();
	test_ack_delay();
	return 0;
}
