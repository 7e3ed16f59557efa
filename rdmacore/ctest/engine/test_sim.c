/* Single cases of the transport over the packets link: what exactly goes over it, and when. */
#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "soft/engine/segment.h"
#include "soft/objects/ah.h"
#include "soft/objects/cq.h"
#include "soft/objects/multicast.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define ALWAYS 1000000
#define MTU 1024

static uint64_t sent(struct wire *wire)
{
	return soft_packets_count(wire->net.sim).sent;
}

/* Ten packets and one ACK; ten messages of one packet, and one ACK for all of them. */
static void test_coalesced(void)
{
	struct wire wire;

	wire_open(&wire, IBV_QPT_RC, 1);
	memset(wire.b.memory, 0, WIRE_SIZE);
	wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 10 * MTU - 5);
	sim_net_run(&wire.net, UINT64_MAX);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(sent(&wire) == 11);
	CHECK(!memcmp(wire.a.memory, wire.b.memory, 10 * MTU - 5) && !wire.b.memory[10 * MTU - 5]);
	for (int message = 0; message < 10; message++)
		wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
	sim_net_run(&wire.net, UINT64_MAX);
	for (int message = 0; message < 10; message++)
		wire_completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(sent(&wire) == 22);
	CHECK(soft_qp(wire.b.qp)->responder.msn == 11); /* messages, not packets */
	wire_close(&wire);
}

/* No more than the window is on its way, however much there is to send. */
static void test_window(void)
{
	struct wire wire;

	wire_open(&wire, IBV_QPT_RC, 10);
	for (int message = 0; message < 4; message++)
		wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 60 * MTU);
	CHECK(sent(&wire) == SOFT_WINDOW_MAX);
	sim_net_run(&wire.net, UINT64_MAX);
	for (int message = 0; message < 4; message++)
		wire_completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(soft_packets_count(wire.net.sim).lost == 0 && !memcmp(wire.a.memory, wire.b.memory, 60 * MTU));
	wire_close(&wire);
}

/* IBTA tables 45 and 9.9.2.1.1: from the fifth on each is twice the one before the last; 4.096 us * 2^code. */
static void test_timers(void)
{
	static const uint64_t first[] = {655360, 10, 20, 30, 40};

	for (uint8_t code = 0; code < 32; code++) {
		CHECK(soft_rnr_timer(code) == (code < 5 ? first[code] * SOFT_MICROSECOND :
							  2 * soft_rnr_timer(code - 2)));
		CHECK(soft_ack_timeout(code) == (code ? UINT64_C(4096) * (UINT64_C(1) << code) : 0));
	}
}

/* The third of ten packets is lost: one NAK for the gap, and everything from the third on again. */
static void test_gap(void)
{
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .directed = true, .probability = ALWAYS,
				   .skip = 2, .count = 1};
	struct wire wire;

	wire_open(&wire, IBV_QPT_RC, 2);
	CHECK(soft_fault_add(&wire.net.fabric.faults, &fault) >= 0);
	memset(wire.b.memory, 0, WIRE_SIZE);
	wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 10 * MTU);
	sim_net_run(&wire.net, UINT64_MAX);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(!memcmp(wire.a.memory, wire.b.memory, 10 * MTU));
	CHECK(sent(&wire) == 10 + 1 + 8 + 1);
	/* A loss halves what may be on its way, and each answer gives one back. */
	CHECK(soft_qp(wire.a.qp)->segmentation->window < SOFT_WINDOW_MAX &&
	      soft_qp(wire.a.qp)->segmentation->window >= SOFT_WINDOW_MAX / 2);
	for (int message = 0; message < SOFT_WINDOW_MAX / 2; message++) {
		wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
		sim_net_run(&wire.net, UINT64_MAX);
		wire_completion(&wire.a, IBV_WC_SUCCESS);
	}
	CHECK(soft_qp(wire.a.qp)->segmentation->window == SOFT_WINDOW_MAX);
	wire_close(&wire);
}

/* The third of ten packets of a READ response is lost: the rest is requested again. */
static void test_read_again(void)
{
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .directed = true, .probability = ALWAYS,
				   .skip = 3, .count = 1};
	struct wire wire;

	wire_open(&wire, IBV_QPT_RC, 3);
	CHECK(soft_fault_add(&wire.net.fabric.faults, &fault) >= 0);
	memset(wire.a.memory, 0, WIRE_SIZE);
	wire_post(&wire.a, &wire.b, IBV_WR_RDMA_READ, 10 * MTU);
	/* At once, and not when the ACK timer of 4.2 ms is over. */
	sim_net_run(&wire.net, wire.net.fabric.clock.now(&wire.net.fabric.clock) + SOFT_MILLISECOND);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(!memcmp(wire.a.memory, wire.b.memory, 10 * MTU) && !wire.a.memory[10 * MTU + 2]);
	CHECK(sent(&wire) == 1 + 10 + 1 + 8);
	wire_close(&wire);
}

static void limit_window(struct wire *wire, uint32_t packets)
{
	struct soft_segmentation *segmentation = soft_qp(wire->a.qp)->segmentation;

	segmentation->window = segmentation->window_limit = segmentation->read_limit = packets;
}

/* A READ of more than the window is requested in parts, two at once if the peer allows two, and never more. */
static void test_read_in_parts(uint32_t depth)
{
	const uint32_t window = 8, packets = 61, at_once = depth == 1 ? window / 2 : window;
	struct soft_segmentation *segmentation;
	struct soft_requester *requester;
	struct wire wire;
	uint32_t psn, most = 0;

	wire_open(&wire, IBV_QPT_RC, 3);
	limit_window(&wire, window);
	soft_qp(wire.a.qp)->attr.max_rd_atomic = (uint8_t)depth;
	segmentation = soft_qp(wire.a.qp)->segmentation;
	requester = &soft_qp(wire.a.qp)->requester;
	psn = requester->psn;
	memset(wire.a.memory, 0, WIRE_SIZE);
	wire_post(&wire.a, &wire.b, IBV_WR_RDMA_READ, packets * MTU - 5);
	while (!requester->completed) {
		uint32_t asked = (segmentation->next_unsent_psn - psn - segmentation->answered) & SOFT_PSN_MASK;

		most = asked > most ? asked : most;
		CHECK(requester->responding <= depth);
		sim_net_run(&wire.net, wire.net.fabric.clock.now(&wire.net.fabric.clock) + SOFT_MICROSECOND);
	}
	CHECK(most == at_once && !requester->responding && requester->psn == ((psn + packets) & SOFT_PSN_MASK));
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(!memcmp(wire.a.memory, wire.b.memory, packets * MTU - 5) && !wire.a.memory[packets * MTU - 5]);
	/* A request for each part, which is a message to the responder. */
	CHECK(sent(&wire) == packets + 16 && soft_qp(wire.b.qp)->responder.msn == 16);
	wire_close(&wire);
}

/* READs in parts between WRITEs, of which a tenth of the packets is lost or comes twice. */
static void test_parts_are_lost(uint64_t seed)
{
	const uint32_t lengths[] = {37 * MTU + 1, 9 * MTU, 16 * MTU - 1};
	struct ibv_sge sge;
	struct ibv_send_wr write = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				    .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE}, *bad;
	struct wire wire;

	wire_open(&wire, IBV_QPT_RC, seed);
	write.wr.rdma.remote_addr = (uintptr_t)wire.b.memory;
	write.wr.rdma.rkey = wire.b.mr->rkey;
	limit_window(&wire, 6);
	soft_qp(wire.a.qp)->requester.retries = soft_qp(wire.a.qp)->requester.retries_left = 7;
	sim_net_fault(&wire.net, seed % 3 ? SOFT_FAULT_LOSE : SOFT_FAULT_DUPLICATE, ALWAYS / 10);
	for (size_t read = 0; read < sizeof(lengths) / sizeof(lengths[0]); read++) {
		memset(wire.a.memory, 0, WIRE_SIZE);
		wire_post(&wire.a, &wire.b, IBV_WR_RDMA_READ, lengths[read]);
		wire_post(&wire.a, &wire.b, IBV_WR_RDMA_READ, lengths[read] / 2);
		/* Send data that the READs have fetched. */
		sge = (struct ibv_sge){(uintptr_t)wire.a.memory, lengths[read] / 3, wire.a.mr->lkey};
		CHECK(!soft_post_send(wire.a.qp, &write, &bad));
		sim_net_run(&wire.net, UINT64_MAX);
		for (int request = 0; request < 3; request++)
			wire_completion(&wire.a, IBV_WC_SUCCESS);
		CHECK(!memcmp(wire.a.memory, wire.b.memory, lengths[read]) && !wire.a.memory[lengths[read] + 7]);
		CHECK(!soft_qp(wire.a.qp)->requester.responding);
	}
	wire_close(&wire);
}

/* No receive: 0.64 ms later once more, and then no more; to the microsecond. */
static void test_not_ready(void)
{
	struct wire wire;
	uint64_t begin;

	wire_open(&wire, IBV_QPT_RC, 4);
	begin = wire.net.fabric.clock.now(&wire.net.fabric.clock);
	wire_post(&wire.a, &wire.b, IBV_WR_SEND, 3 * MTU);
	sim_net_run(&wire.net, begin + 679 * SOFT_MICROSECOND);
	CHECK(soft_qp_state(soft_qp(wire.a.qp)) == IBV_QPS_RTS);
	sim_net_run(&wire.net, begin + 680 * SOFT_MICROSECOND);
	wire_completion(&wire.a, IBV_WC_RNR_RETRY_EXC_ERR);
	wire_close(&wire);
}

/* No packet arrives: after 4 timeouts of 4.194304 ms the request fails. */
static void test_cut(void)
{
	struct wire wire;
	uint64_t begin, wait = 4 * soft_ack_timeout(10);

	wire_open(&wire, IBV_QPT_RC, 5);
	begin = wire.net.fabric.clock.now(&wire.net.fabric.clock);
	sim_net_fault(&wire.net, SOFT_FAULT_LOSE, ALWAYS);
	wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
	sim_net_run(&wire.net, begin + wait - 1);
	CHECK(soft_qp_state(soft_qp(wire.a.qp)) == IBV_QPS_RTS);
	sim_net_run(&wire.net, begin + wait);
	wire_completion(&wire.a, IBV_WC_RETRY_EXC_ERR);
	CHECK(sent(&wire) == 4);
	wire_close(&wire);
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

/* Annex A17.4.5.2: all 40 bytes, as they were on the wire. */
static void check_ipv6_header(const uint8_t *grh, const union ibv_gid *to)
{
	/* UDP 8, BTH 12, DETH 8, immediate 4, 4093 bytes in words, ICRC 4 */
	static const uint16_t length = 8 + 12 + 8 + 4 + 4096 + 4;
	static const uint8_t expected[24] = {
		0x60, 0, 0, 0, length >> 8, length & 0xff, 17, 9, /* version, length, UDP, hops */
		0x20, 1, 0xd, 0xb8, [23] = 1, /* from the first host */
	};

	CHECK(!memcmp(grh, expected, sizeof(expected)));
	CHECK(!memcmp(grh + sizeof(expected), to->raw, sizeof(to->raw)));
}

/* A datagram, its header, and the path back from the header; by IPv4 and by IPv6, and to a group. */
static void test_datagram(uint64_t seed)
{
	static const union ibv_gid group4 = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 5}};
	static const union ibv_gid group6 = {.raw = {0xff, 0x0e, [15] = 5}};
	const union ibv_gid *group = seed % 2 ? &group6 : &group4;
	struct ibv_ah_attr back;
	struct wire wire;
	struct ibv_wc wc;

	wire_open(&wire, IBV_QPT_UD, seed);
	CHECK(!soft_attach_mcast(wire.b.qp, group, 0));
	for (int way = 0; way < 2; way++) {
		wire_receive(&wire.b, 4096 + SOFT_GRH);
		send_datagram(&wire.a, way ? group : &wire.b.host->address,
			      way ? 0xffffff : wire.b.qp->qp_num, 4093);
		sim_net_run(&wire.net, UINT64_MAX);
		wire_completion(&wire.a, IBV_WC_SUCCESS);
		wc = wire_completion(&wire.b, IBV_WC_SUCCESS);
		CHECK(wc.byte_len == 4093 + SOFT_GRH && wc.src_qp == wire.a.qp->qp_num);
		CHECK(wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM) && wc.imm_data == 99);
		CHECK(!memcmp(wire.b.memory + SOFT_GRH, wire.a.memory, 4093));
		if (seed % 2)
			check_ipv6_header(wire.b.memory, way ? group : &wire.b.host->address);
		CHECK(!soft_init_ah_from_wc(wire.b.host->context, 1, &wc,
					    (struct ibv_grh *)(void *)wire.b.memory, &back));
		CHECK(!memcmp(&back.grh.dgid, &wire.a.host->address, sizeof(back.grh.dgid)));
	}
	CHECK(!soft_detach_mcast(wire.b.qp, group, 0));
	wire_close(&wire);
}

/* A changed bit drops the packet, and has no other effect. */
static void test_corrupt(void)
{
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .directed = true, .probability = ALWAYS,
				   .action = SOFT_FAULT_CORRUPT, .count = 1};
	struct wire wire;

	wire_open(&wire, IBV_QPT_RC, 6);
	CHECK(soft_fault_add(&wire.net.fabric.faults, &fault) >= 0);
	wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
	sim_net_run(&wire.net, UINT64_MAX);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(soft_packets_count(wire.net.sim).dropped == 1 && sent(&wire) == 3);
	wire_close(&wire);
}

int main(void)
{
	test_coalesced();
	test_window();
	test_timers();
	test_gap();
	test_read_again();
	test_read_in_parts(1);
	test_read_in_parts(4);
	for (uint64_t seed = 1; seed <= 50; seed++)
		test_parts_are_lost(seed);
	test_not_ready();
	test_cut();
	test_datagram(8);
	test_datagram(9);
	test_corrupt();
	return 0;
}
