/* Mistakes with regions, and with the memory of requests. */
#include <sys/mman.h>

#include "mistakes.h"

/* https://github.com/kvcache-ai/Mooncake/issues/2017: requests used memory beyond the device's max_mr_size. */
void outside_region(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 4000, 128);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	ibv_post_send(e->qp, &send, &bad); /* finding: outside_region */
}

/* https://github.com/linux-rdma/perftest/issues/308: receives of a shared queue were longer than the region. */
void outside_region__receive(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, sizeof(e->memory) + 64);
	struct ibv_recv_wr receive = {.sg_list = &part, .num_sge = 1}, *bad;

	REQUIRE(!ibv_post_recv(e->qp, &receive, &bad)); /* finding: outside_region__receive */
}

/* https://github.com/uccl-project/uccl/pull/1040: local memory was given with its rkey, not its lkey. */
void unknown_key(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 8);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	part.lkey += 0x10000;
	ibv_post_send(e->qp, &send, &bad); /* finding: unknown_key */
}

/* https://github.com/alibaba/yalantinglibs/pull/985: a buffer was sent with 0 as its lkey. */
void unknown_key__unset(struct endpoint *e)
{
	struct ibv_sge part = {.addr = (uintptr_t)e->memory, .length = 8};
	struct ibv_recv_wr receive = {.sg_list = &part, .num_sge = 1}, *bad;

	REQUIRE(!ibv_post_recv(e->qp, &receive, &bad)); /* finding: unknown_key__unset */
}

/* https://github.com/ofiwg/libfabric/pull/12287: queued operations were posted after their region had gone. */
void region_gone(struct endpoint *e)
{
	static char more[64];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, more, sizeof(more), 0);
	struct ibv_sge part = {.addr = (uintptr_t)more, .length = sizeof(more)};
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	REQUIRE(mr);
	part.lkey = mr->lkey;
	REQUIRE(!ibv_dereg_mr(mr));
	ibv_post_send(e->qp, &send, &bad); /* finding: region_gone */
}

/* https://github.com/dingodb/DingoCache/pull/153: a cache deregistered regions of requests about to be posted. */
void region_gone__receive(struct endpoint *e)
{
	static char more[64];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, more, sizeof(more), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge part = {.addr = (uintptr_t)more, .length = sizeof(more)};
	struct ibv_recv_wr receive = {.sg_list = &part, .num_sge = 1}, *bad;

	REQUIRE(mr);
	part.lkey = mr->lkey;
	REQUIRE(!ibv_dereg_mr(mr));
	REQUIRE(!ibv_post_recv(e->qp, &receive, &bad)); /* finding: region_gone__receive */
}

/* https://github.com/chimera-nas/libevpl/pull/89: a key came from another device's protection domain. */
void wrong_pd(struct endpoint *e)
{
	static char more[64];
	struct ibv_pd *pd = ibv_alloc_pd(e->context);
	struct ibv_mr *mr = ibv_reg_mr(pd, more, sizeof(more), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge part = {.addr = (uintptr_t)more, .length = sizeof(more)};
	struct ibv_recv_wr receive = {.sg_list = &part, .num_sge = 1}, *bad;

	REQUIRE(mr);
	part.lkey = mr->lkey;
	REQUIRE(!ibv_post_recv(e->qp, &receive, &bad)); /* finding: wrong_pd */
	REQUIRE(!ibv_destroy_qp(e->qp));
	e->qp = NULL;
	REQUIRE(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
}

/* https://github.com/pmem/rpma/pull/349: memory for receives was registered without IBV_ACCESS_LOCAL_WRITE. */
void region_read_only(struct endpoint *e)
{
	static char more[64];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, more, sizeof(more), 0);
	struct ibv_sge part = {.addr = (uintptr_t)more, .length = sizeof(more)};
	struct ibv_recv_wr receive = {.sg_list = &part, .num_sge = 1}, *bad;

	REQUIRE(mr);
	part.lkey = mr->lkey;
	REQUIRE(!ibv_post_recv(e->qp, &receive, &bad)); /* finding: region_read_only */
	REQUIRE(!ibv_destroy_qp(e->qp));
	e->qp = NULL;
	REQUIRE(!ibv_dereg_mr(mr));
}

/* https://github.com/ofiwg/libfabric/pull/11150: memory for RDMA READ was registered without local write access. */
void region_read_only__read(struct endpoint *e)
{
	static char more[64];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, more, sizeof(more), IBV_ACCESS_REMOTE_READ);
	struct ibv_sge part = {.addr = (uintptr_t)more, .length = 8};
	struct ibv_send_wr read = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	REQUIRE(mr);
	part.lkey = mr->lkey;
	read.wr.rdma.remote_addr = (uintptr_t)more + 32;
	read.wr.rdma.rkey = mr->rkey;
	REQUIRE(!ibv_post_send(e->qp, &read, &bad)); /* finding: region_read_only__read */
	poll_one(e->cq, &wc);
	REQUIRE(wc.status != IBV_WC_SUCCESS && !ibv_dereg_mr(mr));
}

/* https://github.com/aws/aws-ofi-nccl/pull/921: NCCL's abort deregisters memory of requests in flight. */
void region_in_use(struct endpoint *e)
{
	static char more[64];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, more, sizeof(more), IBV_ACCESS_LOCAL_WRITE);

	REQUIRE(mr);
	endpoint_expect(e, mr, more, sizeof(more));
	REQUIRE(!ibv_dereg_mr(mr)); /* finding: region_in_use */
}

void region_in_use__rereg(struct endpoint *e)
{
	static char more[64];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, more, sizeof(more), IBV_ACCESS_LOCAL_WRITE);

	REQUIRE(mr);
	endpoint_expect(e, mr, more, sizeof(more));
	REQUIRE(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0)); /* finding: region_in_use__rereg */
	REQUIRE(!ibv_destroy_qp(e->qp) && !ibv_dereg_mr(mr));
	e->qp = NULL;
}

/* https://github.com/linux-rdma/perftest/issues/208: all receives of a queue pair went to the same memory. */
void receive_overlap(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 64);
	struct ibv_recv_wr receive = {.sg_list = &part, .num_sge = 1}, *bad;

	REQUIRE(!ibv_post_recv(e->qp, &receive, &bad));
	part.addr += 32;
	REQUIRE(!ibv_post_recv(e->qp, &receive, &bad)); /* finding: receive_overlap */
}

/* https://github.com/jcarreira/cirrus-kv/issues/34: reads that were in flight together wrote to the same memory. */
void receive_overlap__read(struct endpoint *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->memory, sizeof(e->memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	struct ibv_sge part = segment(e, 32, 64);
	struct ibv_send_wr read = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	REQUIRE(mr);
	read.wr.rdma.remote_addr = part.addr + 512;
	read.wr.rdma.rkey = mr->rkey;
	endpoint_expect(e, e->mr, e->memory, 64);
	REQUIRE(!ibv_post_send(e->qp, &read, &bad)); /* finding: receive_overlap__read */
	endpoint_complete(e, 1);
	REQUIRE(!ibv_dereg_mr(mr));
}

/* https://github.com/meta-pytorch/torchcomms/pull/4038: data was forwarded while a READ of it was in flight. */
void sent_too_early(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 64);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	endpoint_expect(e, e->mr, e->memory, 64);
	REQUIRE(!ibv_post_send(e->qp, &send, &bad)); /* finding: sent_too_early */
	endpoint_complete(e, 2);
}

/* A message of the endpoint to itself that is not inline, from the beginning of its memory. */
static struct ibv_send_wr message(struct ibv_sge *part, unsigned int flags)
{
	return (struct ibv_send_wr){.sg_list = part, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags};
}

/* https://github.com/kvcache-ai/Mooncake/pull/1567: one send buffer was overwritten while the device still read it. */
void changed_in_flight(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 64);
	struct ibv_send_wr send = message(&part, IBV_SEND_SIGNALED), *bad;

	endpoint_expect(e, e->mr, e->memory + 1024, 64);
	REQUIRE(!ibv_post_send(e->qp, &send, &bad)); /* finding: changed_in_flight */
	strcpy(e->memory, "the next message");
	endpoint_complete(e, 2);
}

void changed_in_flight__unsignaled(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 64);
	struct ibv_send_wr send = message(&part, 0), *bad;
	struct ibv_send_wr last = message(&part, IBV_SEND_SIGNALED);

	endpoint_expect(e, e->mr, e->memory + 1024, 64);
	endpoint_expect(e, e->mr, e->memory + 2048, 64);
	REQUIRE(!ibv_post_send(e->qp, &send, &bad)); /* finding: changed_in_flight__unsignaled */
	strcpy(e->memory, "the next message");
	REQUIRE(!ibv_post_send(e->qp, &last, &bad));
	endpoint_complete(e, 3);
}

void changed_in_flight__list(struct endpoint *e)
{
	struct ibv_sge parts[2] = {segment(e, 0, 64), segment(e, 64, 64)};
	struct ibv_send_wr list[2] = {message(&parts[0], IBV_SEND_SIGNALED), message(&parts[1], IBV_SEND_SIGNALED)}, *bad;

	list[0].next = &list[1];
	list[1].wr_id = 1;
	endpoint_expect(e, e->mr, e->memory + 1024, 64);
	endpoint_expect(e, e->mr, e->memory + 2048, 64);
	REQUIRE(!ibv_post_send(e->qp, list, &bad)); /* finding: changed_in_flight__list */
	e->memory[127]++;
	endpoint_complete(e, 4);
}

void changed_in_flight__long(struct endpoint *e)
{
	static char from[1 << 20], to[1 << 20];
	struct ibv_mr *from_mr = ibv_reg_mr(e->pd, from, sizeof(from), 0);
	struct ibv_mr *to_mr = ibv_reg_mr(e->pd, to, sizeof(to), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge part = {.addr = (uintptr_t)from, .length = sizeof(from)};
	struct ibv_send_wr send = message(&part, IBV_SEND_SIGNALED), *bad;

	REQUIRE(from_mr && to_mr);
	part.lkey = from_mr->lkey;
	endpoint_expect(e, to_mr, to, sizeof(to));
	REQUIRE(!ibv_post_send(e->qp, &send, &bad)); /* finding: changed_in_flight__long */
	memset(from + sizeof(from) / 2, 1, sizeof(from) / 2);
	endpoint_complete(e, 2);
	REQUIRE(!ibv_dereg_mr(from_mr) && !ibv_dereg_mr(to_mr));
}

void changed_in_flight__builder(struct endpoint *e)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct endpoint other = *e;
	struct ibv_qp_ex *qp;

	REQUIRE(other.qp = ibv_create_qp_ex(e->context, &attr));
	REQUIRE(qp = ibv_qp_to_qp_ex(other.qp));
	endpoint_connect(&other, &e->gid, other.qp->qp_num);
	endpoint_expect(&other, e->mr, e->memory + 1024, 64);
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, e->mr->lkey, (uintptr_t)e->memory, 64);
	REQUIRE(!ibv_wr_complete(qp)); /* finding: changed_in_flight__builder */
	strcpy(e->memory, "the next message");
	endpoint_complete(&other, 2);
	REQUIRE(!ibv_destroy_qp(other.qp));
}

/* https://github.com/meta-pytorch/torchcomms/pull/4167: buffers were released while requests still used them. */
void freed_in_use(struct endpoint *e)
{
	char *more = malloc(512);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, more, 512, IBV_ACCESS_LOCAL_WRITE);

	REQUIRE(mr);
	endpoint_expect(e, mr, more, 512);
	free(more); /* finding: freed_in_use */
	REQUIRE(!ibv_destroy_qp(e->qp) && !ibv_dereg_mr(mr));
	e->qp = NULL;
}

void freed_in_use__munmap(struct endpoint *e)
{
	char *more = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, more, 8192, IBV_ACCESS_LOCAL_WRITE);

	REQUIRE(more != MAP_FAILED && mr);
	endpoint_expect(e, mr, more + 4096, 64);
	REQUIRE(!munmap(more, 8192)); /* finding: freed_in_use__munmap */
	REQUIRE(!ibv_destroy_qp(e->qp) && !ibv_dereg_mr(mr));
	e->qp = NULL;
}

/* https://github.com/ofiwg/libfabric/pull/6241: memory was deregistered only after it was freed. */
void freed_registered(struct endpoint *e)
{
	char *more = malloc(512);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, more, 512, IBV_ACCESS_LOCAL_WRITE);

	REQUIRE(mr);
	free(more); /* finding: freed_registered */
	REQUIRE(!ibv_dereg_mr(mr));
}

/* https://github.com/ai-dynamo/nixl/issues/2139: a tensor grew, and a cache kept the region of its old memory. */
void freed_registered__realloc(struct endpoint *e)
{
	char *more = malloc(512), *longer;
	struct ibv_mr *mr = ibv_reg_mr(e->pd, more, 512, IBV_ACCESS_LOCAL_WRITE);

	REQUIRE(mr);
	longer = realloc(more, 1 << 20); /* finding: freed_registered__realloc */
	REQUIRE(longer && !ibv_dereg_mr(mr));
	free(longer);
}

/* https://github.com/ROCm/mori/pull/424: a SEND was inline on a queue pair without inline capacity. */
void inline_too_long(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 4096);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
	struct ibv_send_wr *bad;

	REQUIRE(ibv_post_send(e->qp, &send, &bad)); /* finding: inline_too_long */
}

/* https://github.com/meta-pytorch/monarch/pull/3696: each operation registered the same memory again. */
void registered_again(struct endpoint *e)
{
	static char more[64];

	for (int i = 0; i < 100; i++) {
		struct ibv_mr *mr = ibv_reg_mr(e->pd, more, sizeof(more), 0); /* finding: registered_again */

		REQUIRE(mr && !ibv_dereg_mr(mr));
	}
}
