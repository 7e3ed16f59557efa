/* No mistakes, with kinds of regions that "rdmarun check" knows by other calls than ibv_reg_mr(3). */
#include "mistakes.h"

/* Receives a message of 64 bytes into an address of a region. */
static void transfer_to(struct endpoint *e, struct ibv_mr *mr, void *address)
{
	struct ibv_sge part = segment(e, 1024, 64);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	endpoint_expect(e, mr, address, 64);
	REQUIRE(!ibv_post_send(e->qp, &send, &bad));
	endpoint_complete(e, 2);
}

/* Each object gets a name of its own, also if the next one has the same address. */
void device_memory(struct endpoint *e)
{
	for (int i = 0; i < 3; i++) {
		struct ibv_dm *dm = ibv_alloc_dm(e->context, &(struct ibv_alloc_dm_attr){.length = 64});
		struct ibv_mr *mr;

		REQUIRE(dm);
		REQUIRE(mr = ibv_reg_dm_mr(e->pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE));
		transfer_to(e, mr, NULL);
		REQUIRE(!ibv_dereg_mr(mr) && !ibv_free_dm(dm));
	}
}

/* A null region discards what is received, so two receives may have the same address. */
void null_region(struct endpoint *e)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(e->pd);

	REQUIRE(mr);
	endpoint_expect(e, mr, e->memory, 64);
	transfer_to(e, mr, e->memory);
	transfer_to(e, e->mr, e->memory + 2048); /* the message is for the receive that is left */
	REQUIRE(!ibv_dereg_mr(mr));
}

/* A region is used after each change of it. */
void changed_region(struct endpoint *e)
{
	static char first[64], second[128];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, first, sizeof(first), 0);

	REQUIRE(mr);
	REQUIRE(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
	transfer_to(e, mr, first);
	REQUIRE(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, second, sizeof(second), 0));
	transfer_to(e, mr, second + 64);
	REQUIRE(!ibv_dereg_mr(mr));
}
