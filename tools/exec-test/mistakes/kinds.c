/* No mistakes, with kinds of regions and queues that "rdmarun check" knows by other calls than ibv_reg_mr(3). */
#include <rdma/rdma_verbs.h>

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

/* Receives end with their shared receive queue, and the next queue may have the same memory. */
void shared_twice(struct endpoint *e)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = own_address};
	struct rdma_cm_id *id;
	struct ibv_mr *mr;

	REQUIRE(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_bind_addr(id, (struct sockaddr *)&address));
	for (int i = 0; i < 3; i++) {
		struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
		struct ibv_sge part = segment(e, 0, 64);
		struct ibv_recv_wr receive = {.sg_list = &part, .num_sge = 1}, *bad;

		REQUIRE(!rdma_create_srq(id, NULL, &attr));
		REQUIRE(mr = ibv_reg_mr(id->srq->pd, e->memory, 64, IBV_ACCESS_LOCAL_WRITE));
		part.lkey = mr->lkey;
		REQUIRE(!ibv_post_srq_recv(id->srq, &receive, &bad));
		rdma_destroy_srq(id);
		REQUIRE(!ibv_dereg_mr(mr));
	}
	REQUIRE(!rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}
