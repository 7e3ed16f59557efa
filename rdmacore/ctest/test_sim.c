/* Single cases of the transport over the sim link: what exactly goes over it, and when. */
#include "../soft_ah.h"
#include "../soft_cq.h"
#include "../soft_device.h"
#include "../soft_mr.h"
#include "../soft_multicast.h"
#include "../soft_qp.h"
#include "check.h"
#include "sim_net.h"

#define SIZE 65536
#define DEPTH 16
#define ALWAYS 1000000
#define MTU 1024

struct side {
	struct sim_host *host;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
};

struct wire {
	struct sim_net net;
	struct side a, b;
};

static void open_side(struct side *side, struct sim_host *host, enum ibv_qp_type type)
{
	side->host = host;
	side->memory = malloc(SIZE);
	CHECK(side->memory);
	for (uint32_t byte = 0; byte < SIZE; byte++)
		side->memory[byte] = (uint8_t)(byte * 31 >> 3);
	side->cq = sim_cq(host, 4 * DEPTH);
	side->qp = sim_qp(host, type, side->cq, DEPTH);
	side->mr = soft_reg_mr(host->pd, side->memory, SIZE,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ);
	CHECK(side->mr);
}

static void open_wire(struct wire *wire, enum ibv_qp_type type, uint64_t seed)
{
	struct soft_sim_options options = {.seed = seed, .datagrams = 256, .icrc = true,
					   .delay = 10 * SOFT_MICROSECOND,
					   .acknowledge_delay = 5 * SOFT_MICROSECOND};
	struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 10, .retry = 3, .rnr_retry = 1,
				.rnr_timer = 12, .depth = 4, .psn = {0xfffffe, 7},
				.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

	sim_net_open(&wire->net, 2, &options);
	open_side(&wire->a, &wire->net.hosts[0], type);
	open_side(&wire->b, &wire->net.hosts[1], type);
	if (type == IBV_QPT_UD) {
		sim_ready(wire->a.qp);
		sim_ready(wire->b.qp);
	} else {
		sim_connect(wire->a.host, wire->a.qp, wire->b.host, wire->b.qp, &path);
	}
}

static void close_wire(struct wire *wire)
{
	struct side *sides[] = {&wire->a, &wire->b};

	for (int side = 0; side < 2; side++) {
		CHECK(!soft_destroy_qp(sides[side]->qp));
		CHECK(!soft_destroy_cq(sides[side]->cq));
		CHECK(!soft_dereg_mr(sides[side]->mr));
		free(sides[side]->memory);
	}
	sim_net_close(&wire->net);
}

static void post(struct side *from, const struct side *to, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)from->memory, length, from->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)to->memory;
	wr.wr.rdma.rkey = to->mr->rkey;
	CHECK(!soft_post_send(from->qp, &wr, &bad));
}

static void receive(struct side *side, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)side->memory, length, side->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!soft_post_recv(side->qp, &wr, &bad));
}

static struct ibv_wc completion(struct side *side, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	CHECK(soft_poll_cq(side->cq, 1, &wc) == 1);
	CHECK(wc.status == status);
	return wc;
}

static uint64_t sent(struct wire *wire)
{
	return soft_sim_count(wire->net.sim).sent;
}

/* Ten packets and one ACK; ten messages of one packet, and one ACK for all of them. */
static void test_coalesced(void)
{
	struct wire wire;

	open_wire(&wire, IBV_QPT_RC, 1);
	memset(wire.b.memory, 0, SIZE);
	post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 10 * MTU - 5);
	sim_net_run(&wire.net, UINT64_MAX);
	completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(sent(&wire) == 11);
	CHECK(!memcmp(wire.a.memory, wire.b.memory, 10 * MTU - 5) && !wire.b.memory[10 * MTU - 5]);
	for (int message = 0; message < 10; message++)
		post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
	sim_net_run(&wire.net, UINT64_MAX);
	for (int message = 0; message < 10; message++)
		completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(sent(&wire) == 22);
	close_wire(&wire);
}

/* The third of ten packets is lost: one NAK for the gap, and everything from the third on again. */
static void test_gap(void)
{
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .directed = true, .probability = ALWAYS,
				   .skip = 2, .count = 1};
	struct wire wire;

	open_wire(&wire, IBV_QPT_RC, 2);
	CHECK(soft_fault_add(&wire.net.fabric.faults, &fault) >= 0);
	memset(wire.b.memory, 0, SIZE);
	post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 10 * MTU);
	sim_net_run(&wire.net, UINT64_MAX);
	completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(!memcmp(wire.a.memory, wire.b.memory, 10 * MTU));
	CHECK(sent(&wire) == 10 + 1 + 8 + 1);
	close_wire(&wire);
}

/* The third of ten packets of a READ's answer is lost: the rest of it is asked for again. */
static void test_read_again(void)
{
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .directed = true, .probability = ALWAYS,
				   .skip = 3, .count = 1};
	struct wire wire;

	open_wire(&wire, IBV_QPT_RC, 3);
	CHECK(soft_fault_add(&wire.net.fabric.faults, &fault) >= 0);
	memset(wire.a.memory, 0, SIZE);
	post(&wire.a, &wire.b, IBV_WR_RDMA_READ, 10 * MTU);
	sim_net_run(&wire.net, UINT64_MAX);
	completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(!memcmp(wire.a.memory, wire.b.memory, 10 * MTU) && !wire.a.memory[10 * MTU + 2]);
	CHECK(sent(&wire) == 1 + 10 + 1 + 8);
	close_wire(&wire);
}

/* No receive: 0.64 ms later once more, and then no more; to the microsecond. */
static void test_not_ready(void)
{
	struct wire wire;
	uint64_t begin;

	open_wire(&wire, IBV_QPT_RC, 4);
	begin = wire.net.fabric.clock.now(&wire.net.fabric.clock);
	post(&wire.a, &wire.b, IBV_WR_SEND, 3 * MTU);
	sim_net_run(&wire.net, begin + 679 * SOFT_MICROSECOND);
	CHECK(soft_qp_state(soft_qp(wire.a.qp)) == IBV_QPS_RTS);
	sim_net_run(&wire.net, begin + 680 * SOFT_MICROSECOND);
	completion(&wire.a, IBV_WC_RNR_RETRY_EXC_ERR);
	close_wire(&wire);
}

/* Nobody hears us: after 4 timeouts of 4.194304 ms it is over. */
static void test_cut(void)
{
	struct wire wire;
	uint64_t begin, wait = 4 * soft_ack_timeout(10);

	open_wire(&wire, IBV_QPT_RC, 5);
	begin = wire.net.fabric.clock.now(&wire.net.fabric.clock);
	sim_net_fault(&wire.net, SOFT_FAULT_LOSE, ALWAYS);
	post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
	sim_net_run(&wire.net, begin + wait - 1);
	CHECK(soft_qp_state(soft_qp(wire.a.qp)) == IBV_QPS_RTS);
	sim_net_run(&wire.net, begin + wait);
	completion(&wire.a, IBV_WC_RETRY_EXC_ERR);
	CHECK(sent(&wire) == 4);
	close_wire(&wire);
}

static void send_datagram(struct side *from, const union ibv_gid *to, uint32_t number, uint32_t length)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *to, .hop_limit = 9}};
	struct ibv_ah *ah = soft_create_ah(from->host->pd, &attr);
	struct ibv_sge sge = {(uintptr_t)from->memory, length, from->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
				 .imm_data = 99, .send_flags = IBV_SEND_SIGNALED}, *bad;

	CHECK(ah);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = number;
	wr.wr.ud.remote_qkey = SIM_QKEY;
	CHECK(!soft_post_send(from->qp, &wr, &bad));
	CHECK(!soft_destroy_ah(ah));
}

/* A datagram, its header, and the way back that the header tells; by IPv4 and by IPv6, and to a group. */
static void test_datagram(uint64_t seed)
{
	static const union ibv_gid group4 = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 5}};
	static const union ibv_gid group6 = {.raw = {0xff, 0x0e, [15] = 5}};
	const union ibv_gid *group = seed % 2 ? &group6 : &group4;
	struct ibv_ah_attr back;
	struct wire wire;
	struct ibv_wc wc;

	open_wire(&wire, IBV_QPT_UD, seed);
	CHECK(!soft_attach_mcast(wire.b.qp, group, 0));
	for (int way = 0; way < 2; way++) {
		receive(&wire.b, 4096 + SOFT_GRH);
		send_datagram(&wire.a, way ? group : &wire.b.host->address,
			      way ? 0xffffff : wire.b.qp->qp_num, 4093);
		sim_net_run(&wire.net, UINT64_MAX);
		completion(&wire.a, IBV_WC_SUCCESS);
		wc = completion(&wire.b, IBV_WC_SUCCESS);
		CHECK(wc.byte_len == 4093 + SOFT_GRH && wc.src_qp == wire.a.qp->qp_num);
		CHECK(wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM) && wc.imm_data == 99);
		CHECK(!memcmp(wire.b.memory + SOFT_GRH, wire.a.memory, 4093));
		CHECK(!soft_init_ah_from_wc(wire.b.host->context, 1, &wc,
					    (struct ibv_grh *)(void *)wire.b.memory, &back));
		CHECK(!memcmp(&back.grh.dgid, &wire.a.host->address, sizeof(back.grh.dgid)));
	}
	CHECK(!soft_detach_mcast(wire.b.qp, group, 0));
	close_wire(&wire);
}

/* A bit that changes on the way is the end of the packet, and of nothing else. */
static void test_corrupt(void)
{
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .directed = true, .probability = ALWAYS,
				   .action = SOFT_FAULT_CORRUPT, .count = 1};
	struct wire wire;

	open_wire(&wire, IBV_QPT_RC, 6);
	CHECK(soft_fault_add(&wire.net.fabric.faults, &fault) >= 0);
	post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
	sim_net_run(&wire.net, UINT64_MAX);
	completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(soft_sim_count(wire.net.sim).dropped == 1 && sent(&wire) == 3);
	close_wire(&wire);
}

int main(void)
{
	test_coalesced();
	test_gap();
	test_read_again();
	test_not_ready();
	test_cut();
	test_datagram(8);
	test_datagram(9);
	test_corrupt();
	return 0;
}
