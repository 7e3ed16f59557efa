/*
 * Keys and ranges at each edge, over the local link and the link packets: the right status, and no other byte
 * changes. A rejected request ends the connection, so each row has its own.
 */
#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "provider/newer.h"
#include "soft/objects/cq.h"
#include "soft/objects/mr.h"
#include "soft/objects/mw.h"
#include "soft/objects/qp.h"
#include "soft/qp/verbs.h"

#define FIRST 1024 /* of the region, in the memory of side b */
#define SIZE 4096
#define FILL 0xc3
#define ALL_RIGHTS                                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* Side b's memory has a region, or a window, with that and no more. */
struct target {
	struct wire wire;
	struct ibv_mr *mr;
	struct ibv_mw *mw; /* NULL: the region itself */
	uint32_t key;
};

static void drain(struct wire *wire)
{
	sim_net_run(&wire->net, UINT64_MAX);
}

/* A type 2 window is valid only for that queue pair of side b. */
static void bind_window(struct target *target, struct ibv_qp *qp, enum ibv_mw_type type)
{
	struct side *b = &target->wire.b;
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;

	target->mw = soft_alloc_mw(b->host->pd, type);
	CHECK(target->mw);
	wr.bind_mw.mw = target->mw;
	wr.bind_mw.rkey = target->key = ibv_inc_rkey(target->mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = b->mr, .addr = (uintptr_t)b->memory + FIRST, .length = SIZE,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};
	CHECK(!soft_post_send(qp, &wr, &bad));
	wire_completion(b, IBV_WC_SUCCESS);
}

static void open_target(struct target *target, bool local, bool window, enum ibv_qp_type type)
{
	struct side *b = &target->wire.b;

	*target = (struct target){0};
	wire_open_on(&target->wire, local, type, 4);
	memset(b->memory, FILL, WIRE_SIZE);
	target->mr = soft_reg_mr(b->host->pd, b->memory + FIRST, SIZE,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(target->mr);
	target->key = target->mr->rkey;
	if (window)
		bind_window(target, b->qp, IBV_MW_TYPE_2);
}

static void close_target(struct target *target)
{
	if (target->mw)
		CHECK(!soft_dealloc_mw(target->mw));
	CHECK(!soft_dereg_mr(target->mr));
	wire_close(&target->wire);
}

/* In side b's memory, at most that many bytes at that offset have changed. */
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
	drain(&target->wire);
}

/* FLUSH is in test_placement.c. */
static const enum ibv_wr_opcode opcodes[] = {
	IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
	IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_WRITE,
};

#define OPCODES (sizeof(opcodes) / sizeof(opcodes[0]))

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
	/* An empty range may be anywhere: IBTA 9.7.5.2.6. */
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
	for (size_t operation = 0; operation < OPCODES; operation++)
		for (size_t row = 0; row < sizeof(ranges) / sizeof(ranges[0]); row++)
			for (int variant = 0; variant < 4; variant++)
				if (ranges[row].word == is_word(opcodes[operation]))
					check_range(opcodes[operation], &ranges[row], variant & 1,
						    variant & 2);
}

/* --- keys ------------------------------------------------------------------------------------- */

enum wrong_key {
	NO_KEY, NEIGHBOUR, UNKNOWN, ALL_ONES, DEREGISTERED, OTHER_DOMAIN, WITHOUT_RIGHT, FREE_WINDOW,
	ANOTHERS_WINDOW, BOUND_WINDOW /* valid for others, not for its own lists */, WRONG_KEYS
};

static int right_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_READ:
		return IBV_ACCESS_REMOTE_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_ACCESS_REMOTE_ATOMIC;
	default:
		return IBV_ACCESS_REMOTE_WRITE;
	}
}

/* A queue pair of side b that is ready, and connected to none. */
static struct ibv_qp *make_stranger(struct target *target)
{
	struct sim_path path = {.mtu = IBV_MTU_1024, .depth = 4};
	struct ibv_qp *qp = sim_qp(target->wire.b.host, IBV_QPT_RC, target->wire.b.cq, 4);

	sim_connect_to(qp, target->wire.a.host, 77, &path, 0, 0);
	return qp;
}

static void check_wrong_key(enum wrong_key wrong, enum ibv_wr_opcode opcode, bool local)
{
	struct ibv_qp *stranger;
	struct target target;
	struct ibv_pd *other;
	struct ibv_mr *mr;
	uint8_t *first;
	uint32_t key;

	open_target(&target, local, false, IBV_QPT_RC);
	first = target.wire.b.memory + FIRST;
	other = soft_alloc_pd(target.wire.b.host->context);
	CHECK(other);
	stranger = make_stranger(&target);
	mr = soft_reg_mr(wrong == OTHER_DOMAIN ? other : target.wire.b.host->pd, first, SIZE,
			 ALL_RIGHTS & ~(wrong == WITHOUT_RIGHT ? right_of(opcode) : 0));
	CHECK(mr);
	key = wrong == NO_KEY	? 0 :
	      wrong == NEIGHBOUR ? mr->rkey ^ 0x80 :
	      wrong == UNKNOWN	? mr->rkey + (0x1000 << 8) :
	      wrong == ALL_ONES	? UINT32_MAX :
				  mr->rkey;
	if (wrong == DEREGISTERED)
		CHECK(!soft_dereg_mr(mr));
	if (wrong == FREE_WINDOW) {
		target.mw = soft_alloc_mw(target.wire.b.host->pd, IBV_MW_TYPE_2);
		CHECK(target.mw);
		key = target.mw->rkey;
	} else if (wrong == ANOTHERS_WINDOW) {
		bind_window(&target, stranger, IBV_MW_TYPE_2);
		key = target.key;
	}
	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wire_receive(&target.wire.b, 0);
	post(&target, opcode, (uintptr_t)first, 8, key);
	wire_completion(&target.wire.a, IBV_WC_REM_ACCESS_ERR);
	check_changed(&target, 0, 0);
	for (uint32_t byte = 0; opcode == IBV_WR_RDMA_READ && byte < 8; byte++)
		CHECK(target.wire.a.memory[byte] == (uint8_t)(byte * 31 >> 3)); /* sim_wire.c */
	if (wrong != DEREGISTERED)
		CHECK(!soft_dereg_mr(mr));
	CHECK(!soft_destroy_qp(stranger));
	CHECK(!soft_dealloc_pd(other));
	close_target(&target);
}

static void test_keys(bool local)
{
	for (size_t row = 0; row < OPCODES; row++)
		for (int wrong = NO_KEY; wrong < BOUND_WINDOW; wrong++)
			check_wrong_key((enum wrong_key)wrong, opcodes[row], local);
}

/* --- one's own memory ------------------------------------------------------------------------- */

/* As a source, as a READ's sink, and as a receive: outside of registered memory nothing is sent or written. */
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
				drain(&target.wire);
				wire_completion(&target.wire.b,
						rows[row].fine ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
			} else {
				CHECK(!soft_post_recv(target.wire.b.qp, &receive, &bad_receive));
				wire_post(&target.wire.a, &target.wire.b, IBV_WR_SEND, rows[row].length);
				drain(&target.wire);
				wire_completion(&target.wire.b,
						rows[row].fine ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
				wire_completion(&target.wire.a,
						rows[row].fine ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
			}
			/* If it comes in several packets, those before the one that does not fit may be written. */
			check_changed(&target, FIRST, way ? SIZE : 0);
			close_target(&target);
		}
	}
}

/* The ways in which side b uses its own memory, and what its key must let it do. */
static const struct {
	enum ibv_wr_opcode opcode;
	bool receives, writes;
} ways[] = {
	{IBV_WR_SEND, false, false}, {IBV_WR_RDMA_WRITE, false, false}, {IBV_WR_RDMA_READ, false, true},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, false, true}, {IBV_WR_ATOMIC_WRITE, false, false},
	{IBV_WR_SEND, true, true},
};

static void check_own_key(enum wrong_key wrong, size_t way, bool local)
{
	struct ibv_send_wr wr = {.num_sge = 1, .opcode = ways[way].opcode,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_recv_wr receive = {.num_sge = 1}, *bad_receive;
	bool fine = wrong == WITHOUT_RIGHT && !ways[way].writes;
	struct target target;
	struct ibv_pd *other;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct side *a, *b;

	open_target(&target, local, false, IBV_QPT_RC);
	a = &target.wire.a;
	b = &target.wire.b;
	if (wrong == BOUND_WINDOW)
		bind_window(&target, b->qp, IBV_MW_TYPE_1);
	other = soft_alloc_pd(b->host->context);
	CHECK(other);
	mr = soft_reg_mr(wrong == OTHER_DOMAIN ? other : b->host->pd, b->memory + FIRST, SIZE,
			 wrong == WITHOUT_RIGHT ? 0 : ALL_RIGHTS);
	CHECK(mr);
	sge = (struct ibv_sge){(uintptr_t)b->memory + FIRST, 8,
			       wrong == NO_KEY	     ? 0 :
			       wrong == NEIGHBOUR   ? mr->lkey ^ 0x80 :
			       wrong == UNKNOWN     ? mr->lkey + (0x1000 << 8) :
			       wrong == ALL_ONES    ? UINT32_MAX :
			       wrong == BOUND_WINDOW ? target.key :
						      mr->lkey};
	if (wrong == DEREGISTERED)
		CHECK(!soft_dereg_mr(mr));
	wr.sg_list = receive.sg_list = &sge;
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)a->memory;
		wr.wr.atomic.rkey = a->mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)a->memory;
		wr.wr.rdma.rkey = a->mr->rkey;
	}
	if (ways[way].receives) {
		CHECK(!soft_post_recv(b->qp, &receive, &bad_receive));
		wire_post(a, b, IBV_WR_SEND, 8);
	} else {
		wire_receive(a, 64);
		CHECK(!soft_post_send(b->qp, &wr, &bad));
	}
	drain(&target.wire);
	wire_completion(b, fine ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
	if (ways[way].receives)
		wire_completion(a, IBV_WC_REM_OP_ERR);
	check_changed(&target, 0, 0);
	if (wrong != DEREGISTERED)
		CHECK(!soft_dereg_mr(mr));
	CHECK(!soft_dealloc_pd(other));
	close_target(&target);
}

static void test_own_keys(bool local)
{
	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (int wrong = NO_KEY; wrong < WRONG_KEYS; wrong++)
			if (wrong != FREE_WINDOW && wrong != ANOTHERS_WINDOW)
				check_own_key((enum wrong_key)wrong, way, local);
}

/* An entry of no bytes is of no memory, whatever its key is; in front, between, and behind. */
static void test_empty_entries(bool local)
{
	struct target target;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_recv_wr receive = {0}, *bad_receive;
	struct ibv_sge from[4], to[4];

	open_target(&target, local, false, IBV_QPT_RC);
	for (int entry = 0; entry < 4; entry++) {
		uint32_t length = entry % 2 ? 4 : 0, key = entry % 2 ? 0 : 0xbad;

		from[entry] = (struct ibv_sge){length ? (uintptr_t)target.wire.a.memory : 0, length,
					       key ? key : target.wire.a.mr->lkey};
		to[entry] = (struct ibv_sge){length ? (uintptr_t)target.wire.b.memory + FIRST : 0, length,
					     key ? key : target.mr->lkey};
	}
	wr.sg_list = from;
	receive.sg_list = to;
	wr.num_sge = receive.num_sge = 4;
	CHECK(!soft_post_recv(target.wire.b.qp, &receive, &bad_receive));
	CHECK(!soft_post_send(target.wire.a.qp, &wr, &bad));
	drain(&target.wire);
	wire_completion(&target.wire.a, IBV_WC_SUCCESS);
	CHECK(wire_completion(&target.wire.b, IBV_WC_SUCCESS).byte_len == 8);
	check_changed(&target, FIRST, 4);
	close_target(&target);
}

/* Registrations that fail (ibv_reg_mr(3)): remote rights to write need the local one. */
static void test_registration(void)
{
	static _Alignas(4096) uint8_t memory[64];
	const struct {
		void *address;
		size_t length;
		uint64_t iova;
		int access, error;
	} rows[] = {
		{memory, 64, 0, 0, 0},
		{memory, 64, 0, IBV_ACCESS_REMOTE_READ, 0},
		{memory, 64, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL},
		{memory, 64, 0, IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
		{memory, 64, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, 0},
		{memory, 64, 0, CORE_ACCESS_FLUSH_PERSISTENT, EOPNOTSUPP},
		{memory, 64, 0, 1 << 19, EOPNOTSUPP},
		{memory, SIZE_MAX, 0, 0, EINVAL},
		{memory, 8192, UINT64_MAX - 4095, 0, EINVAL},
		/* Pages are translated whole. */
		{memory, 64, 1, 0, EINVAL},
		{memory + 1, 63, 0, 0, EINVAL},
		{memory + 1, 63, 0x7001, 0, 0},
	};
	struct wire wire;

	wire_open_local(&wire, IBV_QPT_RC);
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct ibv_mr *mr = soft_reg_mr_iova(wire.a.host->pd, rows[row].address, rows[row].length,
						     rows[row].iova, rows[row].access);

		CHECK(rows[row].error ? !mr && errno == rows[row].error : !!mr);
		CHECK(!mr || !soft_dereg_mr(mr));
	}
	wire_close(&wire);
}

int main(void)
{
	test_registration();
	test_ranges();
	for (int local = 0; local < 2; local++) {
		test_keys(local);
		test_own_memory(local);
		test_own_keys(local);
		test_empty_entries(local);
	}
	return 0;
}
