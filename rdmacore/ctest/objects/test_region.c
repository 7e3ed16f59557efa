/* Memory regions: by which addresses and under which keys they are reached, before and after they are changed. */
#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "soft/objects/mr.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"
#include "soft/qp/verbs.h"

#define ALL_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define SIZE 4096
#define IOVA UINT64_C(0x100000)
#define FILL 0xc3

/* A WRITE, or a READ, of 8 bytes over a connection of its own; what changes is in side b's memory. */
static enum ibv_wc_status reach(struct wire *wire, enum ibv_wr_opcode opcode, uint64_t address, uint32_t key)
{
	struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 10, .depth = 1,
				.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	struct ibv_qp *a = sim_qp(wire->a.host, IBV_QPT_RC, wire->a.cq, 1);
	struct ibv_qp *b = sim_qp(wire->b.host, IBV_QPT_RC, wire->b.cq, 1);
	struct ibv_sge sge = {(uintptr_t)wire->a.memory, 8, wire->a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;

	sim_connect(wire->a.host, a, wire->b.host, b, &path);
	memset(wire->b.memory, FILL, WIRE_SIZE);
	memset(wire->a.memory, 1, 8);
	wr.wr.rdma.remote_addr = address;
	wr.wr.rdma.rkey = key;
	CHECK(!soft_post_send(a, &wr, &bad));
	sim_net_run(&wire->net, UINT64_MAX);
	CHECK(ibv_poll_cq(wire->a.cq, 1, &wc) == 1);
	CHECK(!soft_destroy_qp(a) && !soft_destroy_qp(b));
	return wc.status;
}

/* Exactly the 8 bytes there were written. */
static bool is_written(const struct wire *wire, uint32_t first)
{
	for (uint32_t byte = 0; byte < WIRE_SIZE; byte++)
		if (wire->b.memory[byte] != (byte - first < 8 ? 1 : FILL))
			return false;
	return true;
}

/* Another address for the memory there, at the same place of a page. */
static uint64_t iova_of(const struct wire *wire, uint32_t offset)
{
	return IOVA | ((uintptr_t)(wire->b.memory + offset) & 0xfff);
}

static struct ibv_mr *register_at(struct wire *wire, uint32_t offset, int access)
{
	struct ibv_mr *mr = soft_reg_mr_iova(wire->b.host->pd, wire->b.memory + offset, SIZE,
					     iova_of(wire, offset), access);

	CHECK(mr && mr->lkey == mr->rkey && mr->length == SIZE);
	return mr;
}

/* Rights and translation change independently, and the rest stays (ibv_rereg_mr(3)). */
static void test_change(struct wire *wire)
{
	uint64_t iova = iova_of(wire, 64);
	struct ibv_mr *mr = register_at(wire, 64, ALL_RIGHTS);
	uint8_t *moved = wire->b.memory + 2 * SIZE;
	uint32_t key = mr->rkey;

	CHECK(reach(wire, IBV_WR_RDMA_WRITE, iova + 8, key) == IBV_WC_SUCCESS && is_written(wire, 72));
	CHECK(!soft_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
	CHECK(mr->rkey == key);
	CHECK(reach(wire, IBV_WR_RDMA_READ, iova + 8, key) == IBV_WC_SUCCESS && wire->a.memory[0] == FILL);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, iova + 8, key) == IBV_WC_REM_ACCESS_ERR && is_written(wire, WIRE_SIZE));
	CHECK(!soft_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, moved, 8, 0));
	CHECK(mr->addr == moved && mr->length == 8);
	CHECK(reach(wire, IBV_WR_RDMA_READ, iova + 8, key) == IBV_WC_REM_ACCESS_ERR);
	CHECK(reach(wire, IBV_WR_RDMA_READ, (uintptr_t)moved, key) == IBV_WC_SUCCESS);
	CHECK(reach(wire, IBV_WR_RDMA_READ, (uintptr_t)moved + 1, key) == IBV_WC_REM_ACCESS_ERR);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, (uintptr_t)moved, key) == IBV_WC_REM_ACCESS_ERR);
	CHECK(is_written(wire, WIRE_SIZE));
	CHECK(!soft_dereg_mr(mr));
}

static void test_domain(struct wire *wire)
{
	uint64_t iova = iova_of(wire, 0);
	struct ibv_pd *other = soft_alloc_pd(wire->b.host->context);
	struct ibv_mr *mr = register_at(wire, 0, ALL_RIGHTS);

	CHECK(other);
	CHECK(!soft_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0) && mr->pd == other);
	CHECK(soft_dealloc_pd(other) == EBUSY);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, iova, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(is_written(wire, WIRE_SIZE));
	CHECK(!soft_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, wire->b.host->pd, NULL, 0, 0));
	CHECK(!soft_dealloc_pd(other));
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, iova, mr->rkey) == IBV_WC_SUCCESS && is_written(wire, 0));
	CHECK(!soft_dereg_mr(mr));
}

/* A rejected change leaves the region as it was. */
static void test_refused(struct wire *wire)
{
	uint64_t iova = iova_of(wire, 0);
	const struct {
		int flags, access, result;
		size_t length;
	} rows[] = {
		{0, 0, IBV_REREG_MR_ERR_INPUT, 0}, {1 << 5, 0, IBV_REREG_MR_ERR_INPUT, 0},
		{IBV_REREG_MR_CHANGE_ACCESS, IBV_ACCESS_REMOTE_WRITE, IBV_REREG_MR_ERR_INPUT, 0},
		{IBV_REREG_MR_CHANGE_TRANSLATION, 0, IBV_REREG_MR_ERR_INPUT, 0},
		{IBV_REREG_MR_CHANGE_TRANSLATION, 0, IBV_REREG_MR_ERR_INPUT, SIZE_MAX},
	};
	struct ibv_mr *mr = register_at(wire, 0, ALL_RIGHTS);

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		CHECK(soft_rereg_mr(mr, rows[row].flags, NULL, wire->b.memory, rows[row].length,
				    rows[row].access) == rows[row].result);
		CHECK(reach(wire, IBV_WR_RDMA_WRITE, iova, mr->rkey) == IBV_WC_SUCCESS && is_written(wire, 0));
	}
	CHECK(!soft_dereg_mr(mr));
}

/* Addresses from 0 on. */
static void test_zero_based(struct wire *wire)
{
	uint64_t iova = iova_of(wire, 64);
	struct ibv_mr *mr = register_at(wire, 64, ALL_RIGHTS | IBV_ACCESS_ZERO_BASED);

	CHECK(reach(wire, IBV_WR_RDMA_WRITE, 0, mr->rkey) == IBV_WC_SUCCESS && is_written(wire, 64));
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, SIZE - 8, mr->rkey) == IBV_WC_SUCCESS &&
	      is_written(wire, 64 + SIZE - 8));
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, SIZE - 7, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, iova, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(is_written(wire, WIRE_SIZE));
	CHECK(!soft_dereg_mr(mr));
}

/* A key that ended is wrong for long, however many are made after it. */
static void test_stale(struct wire *wire)
{
	uint64_t iova = iova_of(wire, 0);
	struct ibv_mr *mr = register_at(wire, 0, ALL_RIGHTS);
	uint32_t stale = mr->rkey;

	CHECK(!soft_dereg_mr(mr));
	for (int round = 0; round < 3000; round++) {
		mr = register_at(wire, 0, ALL_RIGHTS);
		CHECK(mr->rkey >> 8 != stale >> 8);
		if (round % 1000 == 0)
			CHECK(reach(wire, IBV_WR_RDMA_WRITE, iova, stale) == IBV_WC_REM_ACCESS_ERR);
		CHECK(!soft_dereg_mr(mr));
	}
}

int main(void)
{
	for (int local = 0; local < 2; local++) {
		struct wire wire;

		wire_open_on(&wire, local, IBV_QPT_RC, 4);
		test_change(&wire);
		test_domain(&wire);
		test_refused(&wire);
		test_zero_based(&wire);
		test_stale(&wire);
		wire_close(&wire);
	}
	return 0;
}
