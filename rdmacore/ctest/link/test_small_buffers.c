/* Long messages over sockets that hold little, which are smaller here than any host makes them. */
#include <stdlib.h>
#include <string.h>

#include "ctest/support/check.h"
#include "ctest/support/sides.h"
#include "soft/engine/segment.h"
#include "soft/objects/qp.h"

#define BUFFER (32 << 10)
#define LENGTH (16u << 20)

struct region {
	char *memory;
	struct ibv_mr *mr;
};

static struct region region_of(struct sides *sides, int side)
{
	struct region region = {.memory = malloc(LENGTH)};

	CHECK(region.memory);
	region.mr = sides->providers[side]->ibv_reg_mr(sides->benches[side].pd, region.memory, LENGTH, BENCH_ACCESS);
	CHECK(region.mr);
	return region;
}

/* A READ is requested in parts that the socket's buffer holds, and data is written in windows that it holds. */
static void test_long(enum ibv_wr_opcode opcode)
{
	struct soft_segmentation *segmentation;
	struct region here, there;
	struct ibv_send_wr wr;
	struct sides sides;
	struct ibv_sge sge;

	sides_open_with(&sides, IBV_QPT_RC, BUFFER);
	segmentation = soft_qp(sides.ends[0].qp)->segmentation;
	CHECK(segmentation->read_limit * segmentation->mtu < 2 * BUFFER);
	here = region_of(&sides, 0);
	there = region_of(&sides, 1);
	sides_fill(opcode == IBV_WR_RDMA_READ ? there.memory : here.memory, LENGTH, 5);
	memset(opcode == IBV_WR_RDMA_READ ? here.memory : there.memory, 0, LENGTH);
	sge = (struct ibv_sge){(uintptr_t)here.memory, LENGTH, here.mr->lkey};
	wr = bench_wr(opcode, 1, &sge);
	wr.wr.rdma.remote_addr = (uintptr_t)there.memory;
	wr.wr.rdma.rkey = there.mr->rkey;
	CHECK(!bare_post(&sides.ends[0], &wr));
	expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
	/* A peer that was only written to has no completion: its memory is the program's again once its region has gone. */
	CHECK(!sides.providers[0]->ibv_dereg_mr(here.mr));
	CHECK(!sides.providers[1]->ibv_dereg_mr(there.mr));
	CHECK(!memcmp(here.memory, there.memory, LENGTH));
	free(here.memory);
	free(there.memory);
	sides_close(&sides);
}

int main(void)
{
	test_long(IBV_WR_RDMA_READ);
	test_long(IBV_WR_RDMA_WRITE);
	return 0;
}
