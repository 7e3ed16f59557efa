/*
 * Keys and ranges at every edge, over the local link and over the sim link: the right status, and not one byte
 * that is not meant changes.  What is refused ends a connection, so each row has one of its own.
 */
#include "../soft_cq.h"
#include "../soft_mr.h"
#include "../soft_mw.h"
#include "../soft_post.h"
#include "../soft_qp.h"
#include "check.h"
#include "sim_wire.h"

#define FIRST 1024 /* of the region, in the memory of side b */
#define SIZE 4096
#define FILL 0xc3

/* Side b's memory has a region, or a window, with that and no more. */
struct target {
	struct wire wire;
	struct ibv_mr *mr;
	struct ibv_mw *mw; /* NULL: the region itself */
	uint32_t key;
};

static void settle(struct wire *wire)
{
	sim_net_run(&wire->net, UINT64_MAX);
}

static void bind_window(struct target *target)
{
	struct side *b = &target->wire.b;
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;

	target->mw = soft_alloc_mw(b->host->pd, IBV_MW_TYPE_2);
	CHECK(target->mw);
	wr.bind_mw.mw = target->mw;
	wr.bind_mw.rkey = target->key = ibv_inc_rkey(target->mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = b->mr, .addr = (uintptr_t)b->memory + FIRST, .length = SIZE,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};
	CHECK(!soft_post_send(b->qp, &wr, &bad));
	wire_completion(b, IBV_WC_SUCCESS);
}

static void open_target(struct target *target, bool local, bool window, enum ibv_qp_type type)
{
	struct side *b = &target->wire.b;

	*target = (struct target){0};
	if (local)
		wire_open_local(&target->wire, type);
	else
		wire_open(&target->wire, type, 4);
	memset(b->memory, FILL, WIRE_SIZE);
	target->mr = soft_reg_mr(b->host->pd, b->memory + FIRST, SIZE,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(target->mr);
	target->key = target->mr->rkey;
	if (window)
		bind_window(target);
}

static void close_target(struct target *target)
{
	if (target->mw)
		CHECK(!soft_dealloc_mw(target->mw));
	CHECK(!soft_dereg_mr(target->mr));
	wire_close(&target->wire);
}

/* Of side b's memory nothing but that many bytes there may have changed. */
static void check_changed(const struct target *target, uint64_t first, uint64_t length)
{
	for (uint64_t byte = 0; byte < WIRE_SIZE; byte++)
		CHECK(target->wire.b.memory[byte] == FILL || (byte >= first && byte - first < length));
}

static bool is_word(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	       opcode == IBV_WR_ATOMIC_WRITE;
}

static void post(struct target *target, enum ibv_wr_opcode opcode, uint64_t address, uint32_t length,
		 uint32_t key)
{
	struct side *a = &target->wire.a;
	struct ibv_sge sge = {(uintptr_t)a->memory, length, a->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = address;
		wr.wr.atomic.rkey = key;
		wr.wr.atomic.compare_add = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ?
						   1 : UINT64_C(0xc3c3c3c3c3c3c3c3);
		wr.wr.atomic.swap = 2;
	} else {
		wr.wr.rdma.remote_addr = address;
		wr.wr.rdma.rkey = key;
	}
	CHECK(!soft_post_send(a->qp, &wr, &bad));
	settle(&target->wire);
}

/* --- ranges ----------------------------------------------------------------------------------- */

struct range {
	uint64_t offset; /* from the region's first byte, or an address */
	uint32_t length;
	bool absolute, word; /* word: for the operations on one */
	enum ibv_wc_status status;
};

static const struct range ranges[] = {
	{0, SIZE, false, false, IBV_WC_SUCCESS},
	{0, 1, false, false, IBV_WC_SUCCESS},
	{SIZE - 1, 1, false, false, IBV_WC_SUCCESS},
	{0, SIZE + 1, false, false, IBV_WC_REM_ACCESS_ERR},
	{1, SIZE, false, false, IBV_WC_REM_ACCESS_ERR},
	{SIZE - 1, 2, false, false, IBV_WC_REM_ACCESS_ERR},
	{SIZE, 1, false, false, IBV_WC_REM_ACCESS_ERR},
	{UINT64_MAX, 1, false, false, IBV_WC_REM_ACCESS_ERR}, /* the byte before it */
	{UINT64_MAX, SIZE, false, false, IBV_WC_REM_ACCESS_ERR},
	{UINT64_MAX, SIZE + 2, false, false, IBV_WC_REM_ACCESS_ERR},
	/* Addresses that wrap. */
	{UINT64_MAX, 2, true, false, IBV_WC_REM_ACCESS_ERR},
	{UINT64_MAX - SIZE + 1, SIZE, true, false, IBV_WC_REM_ACCESS_ERR},
	{UINT64_MAX - 10, WIRE_SIZE, true, false, IBV_WC_REM_ACCESS_ERR},
	{0, 1, true, false, IBV_WC_REM_ACCESS_ERR},
	/* Nothing is nowhere: IBTA 9.7.5.2.6. */
	{0, 0, true, false, IBV_WC_SUCCESS},
	{UINT64_MAX, 0, true, false, IBV_WC_SUCCESS},
	{0, 8, false, true, IBV_WC_SUCCESS},
	{SIZE - 8, 8, false, true, IBV_WC_SUCCESS},
	{SIZE, 8, false, true, IBV_WC_REM_ACCESS_ERR},
	{UINT64_MAX - 7, 8, false, true, IBV_WC_REM_ACCESS_ERR},
	{SIZE - 4, 8, false, true, IBV_WC_REM_INV_REQ_ERR},
	{1, 8, false, true, IBV_WC_REM_INV_REQ_ERR},
	{UINT64_MAX - 7, 8, true, true, IBV_WC_REM_ACCESS_ERR},
	{UINT64_MAX, 8, true, true, IBV_WC_REM_INV_REQ_ERR},
	{0, 8, true, true, IBV_WC_REM_ACCESS_ERR},
};

static void check_range(enum ibv_wr_opcode opcode, const struct range *range, bool local, bool window)
{
	bool writes = opcode != IBV_WR_RDMA_READ && range->status == IBV_WC_SUCCESS && range->length;
	struct target target;
	uint64_t address;

	open_target(&target, local, window, IBV_QPT_RC);
	address = range->offset + (range->absolute ? 0 : (uintptr_t)target.wire.b.memory + FIRST);
	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wire_receive(&target.wire.b, 0);
	post(&target, opcode, address, range->length, target.key);
	wire_completion(&target.wire.a, range->status);
	check_changed(&target, FIRST + range->offset, writes ? range->length : 0);
	if (writes)
		CHECK(target.wire.b.memory[FIRST + range->offset] != FILL);
	if (opcode == IBV_WR_RDMA_READ)
		CHECK((target.wire.a.memory[0] == FILL) == (range->status == IBV_WC_SUCCESS && range->length));
	close_target(&target);
}

static void test_ranges(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_WRITE,
	};

	for (size_t operation = 0; operation < sizeof(opcodes) / sizeof(opcodes[0]); operation++)
		for (size_t row = 0; row < sizeof(ranges) / sizeof(ranges[0]); row++)
			for (int variant = 0; variant < 4; variant++)
				if (ranges[row].word == is_word(opcodes[operation]))
					check_range(opcodes[operation], &ranges[row], variant & 1,
						    variant & 2);
}

/* --- keys ------------------------------------------------------------------------------------- */

enum wrong_key { NO_KEY, NEIGHBOUR, UNKNOWN, ALL_ONES, DEREGISTERED, OTHER_DOMAIN, WITHOUT_RIGHT, WRONG_KEYS };

static void check_wrong_key(enum wrong_key wrong, bool local)
{
	struct target target;
	struct ibv_pd *other;
	struct ibv_mr *mr;
	uint8_t *first;
	uint32_t key;

	open_target(&target, local, false, IBV_QPT_RC);
	first = target.wire.b.memory + FIRST;
	other = soft_alloc_pd(target.wire.b.host->context);
	CHECK(other);
	mr = soft_reg_mr(wrong == OTHER_DOMAIN ? other : target.wire.b.host->pd, first, SIZE,
			 IBV_ACCESS_LOCAL_WRITE |
				 (wrong == WITHOUT_RIGHT ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE));
	CHECK(mr);
	key = wrong == NO_KEY	? 0 :
	      wrong == NEIGHBOUR ? mr->rkey ^ 0x80 :
	      wrong == UNKNOWN	? mr->rkey + (0x1000 << 8) :
	      wrong == ALL_ONES	? UINT32_MAX :
				  mr->rkey;
	if (wrong == DEREGISTERED)
		CHECK(!soft_dereg_mr(mr));
	post(&target, IBV_WR_RDMA_WRITE, (uintptr_t)first, 64, key);
	wire_completion(&target.wire.a, IBV_WC_REM_ACCESS_ERR);
	check_changed(&target, 0, 0);
	if (wrong != DEREGISTERED)
		CHECK(!soft_dereg_mr(mr));
	CHECK(!soft_dealloc_pd(other));
	close_target(&target);
}

/* --- one's own memory ------------------------------------------------------------------------- */

/* As a source, as a READ's sink, and as a receive: beyond what is registered, nothing is sent or written. */
static void test_own_memory(bool local)
{
	static const struct {
		uint64_t offset;
		uint32_t length;
		bool fine;
	} rows[] = {
		{0, SIZE, true}, {SIZE - 1, 1, true}, {0, SIZE + 1, false}, {SIZE, 1, false},
		{UINT64_MAX, 2, false}, {SIZE - 8, 16, false},
	};

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		for (int way = 0; way < 3; way++) {
			struct ibv_send_wr wr = {.num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
			struct ibv_recv_wr receive = {.num_sge = 1}, *bad_receive;
			struct target target;
			struct ibv_sge sge;

			open_target(&target, local, false, IBV_QPT_RC);
			sge = (struct ibv_sge){(uintptr_t)target.wire.b.memory + FIRST + rows[row].offset,
					       rows[row].length, target.mr->lkey};
			wr.sg_list = receive.sg_list = &sge;
			wr.opcode = way == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
			wr.wr.rdma.remote_addr = (uintptr_t)target.wire.a.memory;
			wr.wr.rdma.rkey = target.wire.a.mr->rkey;
			if (way < 2) {
				CHECK(!soft_post_send(target.wire.b.qp, &wr, &bad));
				settle(&target.wire);
				wire_completion(&target.wire.b,
						rows[row].fine ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
			} else {
				CHECK(!soft_post_recv(target.wire.b.qp, &receive, &bad_receive));
				wire_post(&target.wire.a, &target.wire.b, IBV_WR_SEND, rows[row].length);
				settle(&target.wire);
				wire_completion(&target.wire.b,
						rows[row].fine ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
				wire_completion(&target.wire.a,
						rows[row].fine ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
			}
			/* What comes in several packets may be there up to the one that does not fit. */
			check_changed(&target, FIRST, way ? SIZE : 0);
			close_target(&target);
		}
	}
}

int main(void)
{
	test_ranges();
	for (int local = 0; local < 2; local++) {
		for (int wrong = NO_KEY; wrong < WRONG_KEYS; wrong++)
			check_wrong_key((enum wrong_key)wrong, local);
		test_own_memory(local);
	}
	return 0;
}
