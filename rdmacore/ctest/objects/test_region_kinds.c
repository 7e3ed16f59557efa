/*
 * Regions of on-demand, implicit, null and device memory: what they give access to, and what a peer cannot do with an
 * invalid address.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "provider/newer.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/mr.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define ALL_RIGHTS                                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define FILL 0xc3
#define PAGES 4
#define MESSAGE (48u << 20) /* more than one piece of what null regions write to */

static size_t page;

/* Both ends of a connection of its own, for one request. */
struct link {
	struct ibv_qp *a, *b;
};

static struct link connect_pair(struct wire *wire)
{
	struct sim_path path = {.mtu = IBV_MTU_4096, .timeout = 14, .retry = 7, .depth = 1, .access = ALL_RIGHTS};
	struct link link = {sim_qp(wire->a.host, IBV_QPT_RC, wire->a.cq, 1),
			    sim_qp(wire->b.host, IBV_QPT_RC, wire->b.cq, 1)};

	sim_connect(wire->a.host, link.a, wire->b.host, link.b, &path);
	return link;
}

static void disconnect(struct link *link)
{
	CHECK(!soft_destroy_qp(link->a) && !soft_destroy_qp(link->b));
}

static struct ibv_wc completion_of(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	CHECK(ibv_poll_cq(cq, 1, &wc) == 1);
	return wc;
}

/* One request from side a, with that list, to that address of side b. */
static enum ibv_wc_status request(struct wire *wire, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t address,
				  uint32_t key)
{
	bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct link link = connect_pair(wire);
	enum ibv_wc_status status;

	wr.wr.rdma.remote_addr = address;
	wr.wr.rdma.rkey = key;
	if (atomic) {
		wr.wr.atomic.remote_addr = address;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = key;
	}
	CHECK(!soft_post_send(link.a, &wr, &bad));
	sim_net_run(&wire->net, UINT64_MAX);
	status = completion_of(wire->a.cq).status;
	disconnect(&link);
	return status;
}

static enum ibv_wc_status reach(struct wire *wire, enum ibv_wr_opcode opcode, uint64_t address, uint32_t key)
{
	struct ibv_sge sge = {(uintptr_t)wire->a.memory, 8, wire->a.mr->lkey};

	return request(wire, opcode, sge, address, key);
}

/* A message of 8 bytes from one list to the other: the status at the sender, and in *received at the receiver. */
static enum ibv_wc_status message(struct wire *wire, struct ibv_sge from, struct ibv_sge to,
				  enum ibv_wc_status *received)
{
	struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED}, *bad_send;
	struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1}, *bad;
	struct link link = connect_pair(wire);
	enum ibv_wc_status status;

	CHECK(!soft_post_recv(link.b, &receive, &bad));
	CHECK(!soft_post_send(link.a, &send, &bad_send));
	sim_net_run(&wire->net, UINT64_MAX);
	status = completion_of(wire->a.cq).status;
	if (received)
		*received = completion_of(wire->b.cq).status;
	disconnect(&link);
	while (ibv_poll_cq(wire->b.cq, 1, &(struct ibv_wc){0}) == 1)
		; /* the flushed range */
	return status;
}

static char *map(void *address, size_t pages)
{
	char *memory = mmap(address, pages * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | (address ? MAP_FIXED : 0), -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

/* Pages go and come back while the region stays. */
static void test_on_demand(struct wire *wire)
{
	char *memory = map(NULL, PAGES), *hole = memory + page;
	struct ibv_mr *mr = soft_reg_mr(wire->b.host->pd, memory, PAGES * page, ALL_RIGHTS | IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *own = soft_reg_mr(wire->a.host->pd, memory, PAGES * page, ALL_RIGHTS | IBV_ACCESS_ON_DEMAND);
	struct ibv_sge here = {(uintptr_t)wire->a.memory, 8, wire->a.mr->lkey};
	struct ibv_sge gone = {(uintptr_t)hole, 8, 0}, there = {(uintptr_t)wire->b.memory, 8, wire->b.mr->lkey};
	enum ibv_wc_status received;

	CHECK(mr && own && mr->length == PAGES * page);
	memset(wire->a.memory, 1, 8);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, (uintptr_t)hole - 4, mr->rkey) == IBV_WC_SUCCESS);
	CHECK(!memcmp(hole - 4, wire->a.memory, 8));

	CHECK(!munmap(hole, page));
	for (uint64_t offset = 0; offset < 8; offset += 7) {
		uint64_t address = (uintptr_t)hole - 7 + offset; /* its last byte, and its first, is in the hole */

		CHECK(reach(wire, IBV_WR_RDMA_WRITE, address, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
		CHECK(reach(wire, IBV_WR_RDMA_READ, address, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	}
	CHECK(reach(wire, IBV_WR_RDMA_READ, (uintptr_t)hole + page - 1, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(reach(wire, IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)hole, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, (uintptr_t)hole + page, mr->rkey) == IBV_WC_SUCCESS);
	gone.lkey = own->lkey;
	CHECK(request(wire, IBV_WR_RDMA_WRITE, gone, there.addr, there.lkey) == IBV_WC_LOC_PROT_ERR);
	CHECK(request(wire, IBV_WR_RDMA_READ, gone, there.addr, there.lkey) == IBV_WC_LOC_PROT_ERR);
	CHECK(message(wire, gone, there, NULL) == IBV_WC_LOC_PROT_ERR);
	gone.lkey = mr->lkey;
	CHECK(message(wire, here, gone, &received) == IBV_WC_REM_OP_ERR && received == IBV_WC_LOC_PROT_ERR);

	map(hole, 1);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, (uintptr_t)hole, mr->rkey) == IBV_WC_SUCCESS && hole[7] == 1);
	CHECK(message(wire, here, gone, &received) == IBV_WC_SUCCESS && received == IBV_WC_SUCCESS);

	/* The processor's rights are the device's. */
	CHECK(!mprotect(hole, page, PROT_READ));
	CHECK(reach(wire, IBV_WR_RDMA_READ, (uintptr_t)hole, mr->rkey) == IBV_WC_SUCCESS);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, (uintptr_t)hole, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(reach(wire, IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)hole, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!mprotect(hole, page, PROT_NONE));
	CHECK(reach(wire, IBV_WR_RDMA_READ, (uintptr_t)hole, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!soft_dereg_mr(mr) && !soft_dereg_mr(own) && !munmap(memory, PAGES * page));
}

/* Every address is in the region, and those that lead nowhere are refused. */
static void test_implicit(struct wire *wire)
{
	struct ibv_mr *mr = soft_reg_mr(wire->b.host->pd, NULL, SIZE_MAX, ALL_RIGHTS | IBV_ACCESS_ON_DEMAND);
	char *memory = map(NULL, 1);
	const uint64_t wild[] = {0, 1, page, (uintptr_t)memory, UINT64_C(1) << 47, UINT64_C(1) << 63,
				 UINT64_C(0xffff800000000000), UINT64_C(0xffffffffff600000), UINT64_MAX - 4096,
				 UINT64_MAX - 8, UINT64_MAX - 7, UINT64_MAX};

	CHECK(mr && mr->length == SIZE_MAX && !mr->addr);
	memset(wire->a.memory, 2, 8);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, (uintptr_t)memory, mr->rkey) == IBV_WC_SUCCESS && memory[7] == 2);
	CHECK(reach(wire, IBV_WR_RDMA_READ, (uintptr_t)wire->b.memory, mr->rkey) == IBV_WC_SUCCESS);
	CHECK(!munmap(memory, page));
	for (size_t row = 0; row < sizeof(wild) / sizeof(wild[0]); row++) {
		CHECK(reach(wire, IBV_WR_RDMA_WRITE, wild[row], mr->rkey) == IBV_WC_REM_ACCESS_ERR);
		CHECK(reach(wire, IBV_WR_RDMA_READ, wild[row], mr->rkey) == IBV_WC_REM_ACCESS_ERR);
		if (wild[row] % 8 == 0)
			CHECK(reach(wire, IBV_WR_ATOMIC_FETCH_AND_ADD, wild[row], mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	}
	CHECK(!soft_dereg_mr(mr));
}

/* Zeros, whatever was written, at any address, while a null region is left. */
static void test_null(struct wire *wire)
{
	struct ibv_mr *mr = soft_alloc_null_mr(wire->a.host->pd), *other = soft_alloc_null_mr(wire->b.host->pd);
	static const char zeros[8];
	char *memory = map(NULL, MESSAGE / page);
	struct ibv_mr *large = soft_reg_mr(wire->b.host->pd, memory, MESSAGE, ALL_RIGHTS);
	struct ibv_sge there = {(uintptr_t)wire->b.memory, 8, wire->b.mr->lkey};
	struct ibv_sge here = {(uintptr_t)wire->a.memory, 8, wire->a.mr->lkey}, nothing = {12345, 8, 0};
	enum ibv_wc_status received;

	CHECK(mr && other && large && mr->lkey && !mr->rkey && mr->lkey != other->lkey);
	nothing.lkey = mr->lkey;
	for (int round = 0; round < 2; round++) {
		memset(wire->b.memory, FILL, 16);
		CHECK(request(wire, IBV_WR_RDMA_READ, nothing, there.addr, there.lkey) == IBV_WC_SUCCESS);
		CHECK(request(wire, IBV_WR_RDMA_WRITE, nothing, there.addr, there.lkey) == IBV_WC_SUCCESS);
		CHECK(!memcmp(wire->b.memory, zeros, 8) && wire->b.memory[8] == FILL);
	}
	nothing.length = MESSAGE;
	nothing.addr = UINT64_MAX - MESSAGE;
	memset(memory, FILL, MESSAGE);
	CHECK(request(wire, IBV_WR_RDMA_READ, nothing, (uintptr_t)memory, large->rkey) == IBV_WC_SUCCESS);
	CHECK(request(wire, IBV_WR_RDMA_WRITE, nothing, (uintptr_t)memory, large->rkey) == IBV_WC_SUCCESS);
	for (size_t byte = 0; byte < MESSAGE; byte += page - 1)
		CHECK(!memory[byte]);
	nothing = (struct ibv_sge){0, 8, mr->lkey};
	CHECK(request(wire, IBV_WR_ATOMIC_FETCH_AND_ADD, nothing, there.addr, there.lkey) == IBV_WC_SUCCESS);
	CHECK(wire->b.memory[0] == 1);

	nothing.lkey = other->lkey;
	CHECK(message(wire, here, nothing, &received) == IBV_WC_SUCCESS && received == IBV_WC_SUCCESS);
	/* It has no rkey, and no other rights. */
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, 0, other->lkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(reach(wire, IBV_WR_RDMA_READ, 0, other->lkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(soft_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_RIGHTS) == IBV_REREG_MR_ERR_INPUT);
	CHECK(!soft_dereg_mr(mr));
	CHECK(message(wire, here, nothing, &received) == IBV_WC_SUCCESS);
	CHECK(!soft_dereg_mr(other) && !soft_dereg_mr(large) && !munmap(memory, MESSAGE));
	CHECK((mr = soft_alloc_null_mr(wire->a.host->pd)) && !soft_dereg_mr(mr));
}

static struct ibv_dm *alloc_dm(struct wire *wire, size_t length, uint32_t alignment)
{
	struct ibv_alloc_dm_attr attr = {.length = length, .log_align_req = alignment};

	return soft_alloc_dm(wire->b.host->context, &attr);
}

static void test_device_memory(struct wire *wire)
{
	const unsigned int access = ALL_RIGHTS | IBV_ACCESS_ZERO_BASED;
	struct ibv_pd *pd = wire->b.host->pd;
	struct ibv_dm *dm = alloc_dm(wire, 100, 6), *other;
	struct ibv_alloc_dm_attr unknown = {.length = 8, .comp_mask = 1};
	char text[100], back[100];
	struct ibv_mr *mr;

	CHECK(dm && dm->context == wire->b.host->context);
	memset(back, 1, sizeof(back));
	memset(text, 0, sizeof(text));
	CHECK(!ibv_memcpy_from_dm(back, dm, 0, 100) && !memcmp(back, text, 100)); /* not visible to earlier users */
	memset(text, 'x', sizeof(text));
	CHECK(!ibv_memcpy_to_dm(dm, 4, text, 96) && !ibv_memcpy_from_dm(back, dm, 0, 100));
	CHECK(!back[3] && !memcmp(back + 4, text, 96));
	CHECK(!ibv_memcpy_to_dm(dm, 100, text, 0));
	for (int row = 0; row < 6; row++) {
		const struct { uint64_t offset; size_t length; } rows[] = {
			{1, 4}, {4, 3}, {104, 0}, {4, 100}, {UINT64_MAX - 3, 8}, {8, SIZE_MAX - 3}};

		CHECK(ibv_memcpy_to_dm(dm, rows[row].offset, text, rows[row].length) == EFAULT);
		CHECK(ibv_memcpy_from_dm(back, dm, rows[row].offset, rows[row].length) == EFAULT);
		if (row > 1)
			CHECK(!soft_reg_dm_mr(pd, dm, rows[row].offset, rows[row].length, access) && errno == EINVAL);
	}
	CHECK(!soft_reg_dm_mr(pd, dm, 0, 100, ALL_RIGHTS) && errno == EINVAL);
	CHECK(!soft_reg_dm_mr(pd, dm, 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);

	mr = soft_reg_dm_mr(pd, dm, 8, 80, access);
	CHECK(mr && soft_free_dm(dm) == EBUSY);
	memset(wire->a.memory, 3, 8);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, 72, mr->rkey) == IBV_WC_SUCCESS);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, 73, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(reach(wire, IBV_WR_RDMA_WRITE, UINT64_MAX - 7, mr->rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(reach(wire, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, mr->rkey) == IBV_WC_SUCCESS);
	CHECK(!ibv_memcpy_from_dm(back, dm, 0, 100));
	CHECK(back[79] == 'x' && back[80] == 3 && back[87] == 3 && back[88] == 'x' && back[16] == 'x' + 1);
	CHECK(soft_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_RIGHTS) == IBV_REREG_MR_ERR_INPUT);
	CHECK(!soft_dereg_mr(mr) && !soft_free_dm(dm));

	/* All memory of the device, alignment counted; and all of it again afterwards. */
	for (int round = 0; round < 2; round++) {
		CHECK(!alloc_dm(wire, SOFT_DEVICE_MEMORY + 1, 0) && errno == ENOMEM);
		CHECK(!alloc_dm(wire, SIZE_MAX, 0) && errno == ENOMEM);
		CHECK((dm = alloc_dm(wire, SOFT_DEVICE_MEMORY / 2, 0)));
		CHECK((other = alloc_dm(wire, 4, 19)) && !alloc_dm(wire, 4, 0) && errno == ENOMEM);
		CHECK(!soft_free_dm(dm) && !soft_free_dm(other));
	}
	CHECK(!alloc_dm(wire, 0, 0) && errno == EINVAL);
	CHECK(!alloc_dm(wire, 4, 21) && errno == EINVAL);
	CHECK(!alloc_dm(wire, 4, UINT32_MAX) && errno == EINVAL);
	CHECK(!soft_alloc_dm(wire->b.host->context, &unknown) && errno == EINVAL);
}

static int advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, struct ibv_sge sge, uint32_t flags)
{
	return soft_advise_mr(pd, advice, flags, &sge, 1);
}

static void test_advise(struct wire *wire)
{
	const enum ibv_advise_mr_advice read = IBV_ADVISE_MR_ADVICE_PREFETCH;
	const enum ibv_advise_mr_advice write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const enum ibv_advise_mr_advice present = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	const uint32_t wait = IBV_ADVISE_MR_FLAG_FLUSH;
	struct ibv_pd *pd = wire->b.host->pd, *other = soft_alloc_pd(wire->b.host->context);
	char *memory = map(NULL, PAGES);
	struct ibv_mr *mr = soft_reg_mr(pd, memory, PAGES * page, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *readable = soft_reg_mr(pd, memory, page, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge all = {(uintptr_t)memory, (uint32_t)(PAGES * page), mr->lkey}, wrong = all;
	struct ibv_sge plain = {(uintptr_t)wire->b.memory, 8, wire->b.mr->lkey};
	unsigned char resident[PAGES];

	CHECK(other && readable);
	CHECK(!advise(pd, present, all, wait) && !mincore(memory, PAGES * page, resident) && !(resident[1] & 1));
	CHECK(!advise(pd, write, all, wait) && !mincore(memory, PAGES * page, resident));
	for (int index = 0; index < PAGES; index++)
		CHECK(resident[index] & 1);
	CHECK(!advise(pd, read, all, 0) && !advise(pd, write, all, 0) && !advise(pd, read, all, wait));
	CHECK(advise(pd, present + 1, all, wait) == EOPNOTSUPP);
	CHECK(advise(pd, read, all, 2) == EINVAL && soft_advise_mr(pd, read, wait, &all, 0) == EINVAL);
	wrong.length++;
	CHECK(advise(pd, read, wrong, wait) == EFAULT && advise(pd, read, wrong, 0) == EFAULT);
	wrong = (struct ibv_sge){all.addr - 1, 8, mr->lkey};
	CHECK(advise(pd, read, wrong, wait) == EFAULT);
	wrong = (struct ibv_sge){all.addr, 8, mr->lkey ^ 1};
	CHECK(advise(pd, read, wrong, wait) == ENOENT);
	wrong.lkey = 0;
	CHECK(advise(pd, read, wrong, wait) == ENOENT);
	CHECK(advise(other, read, all, wait) == EPERM && advise(pd, read, plain, wait) == EINVAL);
	wrong.lkey = readable->lkey;
	CHECK(!advise(pd, read, wrong, wait) && advise(pd, write, wrong, wait) == EPERM);
	CHECK(!munmap(memory + page, page));
	CHECK(advise(pd, read, all, wait) == EFAULT && !advise(pd, read, all, 0));
	CHECK(!soft_dereg_mr(mr) && !soft_dereg_mr(readable) && !soft_dealloc_pd(other));
	CHECK(!munmap(memory, page) && !munmap(memory + 2 * page, 2 * page));
}

/* Hints are taken; what would have no meaning is not. */
static void test_access(struct wire *wire)
{
	const int rows[] = {IBV_ACCESS_HUGETLB, IBV_ACCESS_RELAXED_ORDERING, IBV_ACCESS_ON_DEMAND,
			    IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING};
	struct ibv_device_attr_ex attr;
	struct ibv_mr *mr;

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		mr = soft_reg_mr(wire->b.host->pd, wire->b.memory, WIRE_SIZE, ALL_RIGHTS | rows[row]);
		CHECK(mr && reach(wire, IBV_WR_RDMA_WRITE, (uintptr_t)wire->b.memory, mr->rkey) == IBV_WC_SUCCESS);
		CHECK(!soft_dereg_mr(mr));
	}
	CHECK(!soft_reg_mr(wire->b.host->pd, wire->b.memory, 8, IBV_ACCESS_ON_DEMAND | CORE_ACCESS_FLUSH_GLOBAL) &&
	      errno == EOPNOTSUPP);
	CHECK(!soft_query_device_ex(wire->b.host->context, NULL, &attr, sizeof(attr)));
	CHECK(attr.max_dm_size == SOFT_DEVICE_MEMORY);
	CHECK(attr.odp_caps.general_caps == (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT));
	/* A kernel that does not populate pages. */
	wire->b.host->device->on_demand = false;
	CHECK(!soft_reg_mr(wire->b.host->pd, wire->b.memory, 8, IBV_ACCESS_ON_DEMAND) && errno == EOPNOTSUPP);
	CHECK(!soft_query_device_ex(wire->b.host->context, NULL, &attr, sizeof(attr)) && !attr.odp_caps.general_caps);
	wire->b.host->device->on_demand = true;
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	for (int local = 0; local < 2; local++) {
		struct wire wire;

		wire_open_on(&wire, local, IBV_QPT_RC, 4);
		test_on_demand(&wire);
		test_implicit(&wire);
		test_null(&wire);
		test_device_memory(&wire);
		test_advise(&wire);
		test_access(&wire);
		wire_close(&wire);
	}
	return 0;
}
