/* Packets between two queue pairs keep their order, and what a fault does to one of them delays none between two others. */
#include <string.h>

#include "ctest/support/check.h"
#include "ctest/support/sides.h"
#include "ctest/support/sim_wire.h"
#include "soft/base/fabric.h"
#include "soft/host.h"
#include "soft/objects/cq.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define LATE (1000 * SOFT_SECOND) /* more than either clock has in this test */
#define SOON (100 * SOFT_MICROSECOND)

/* The first SEND of any queue pair. */
static const struct soft_fault first_send = {.traffic = SOFT_FAULT_DATA, .operations = 1u << SOFT_SEND_ONLY, .action = SOFT_FAULT_DELAY,
					     .probability = 1000000, .count = 1};

static void delay_first_send(struct soft_faults *faults, uint64_t delay)
{
	struct soft_fault fault = first_send;

	fault.delay = delay;
	CHECK(soft_fault_add(faults, &fault) >= 0);
}

static int completions(struct ibv_cq *cq)
{
	struct ibv_wc wc[4];

	return soft_poll_cq(cq, 4, wc);
}

/* Unreliable connections, which repeat nothing. */
static void test_packets(void)
{
	struct sim_path path = {.mtu = IBV_MTU_1024};
	struct wire wire;
	struct side other[2];
	uint64_t began;

	wire_open(&wire, IBV_QPT_UC, 2);
	for (int side = 0; side < 2; side++) {
		other[side] = side ? wire.b : wire.a;
		other[side].cq = sim_cq(other[side].host, 4 * WIRE_DEPTH);
		other[side].qp = sim_qp(other[side].host, IBV_QPT_UC, other[side].cq, WIRE_DEPTH);
	}
	sim_connect(other[0].host, other[0].qp, other[1].host, other[1].qp, &path);
	for (int message = 0; message < 2; message++) {
		wire_receive(&wire.b, 100);
		wire_receive(&other[1], 100);
	}
	delay_first_send(&wire.net.fabric.faults, 10 * SOON);
	began = wire.net.fabric.clock.now(&wire.net.fabric.clock);
	for (int message = 0; message < 2; message++) {
		wire_post(&wire.a, &wire.b, IBV_WR_SEND, 100);
		wire_post(&other[0], &other[1], IBV_WR_SEND, 100);
	}
	sim_net_run(&wire.net, began + SOON);
	CHECK(completions(other[1].cq) == 2);
	CHECK(completions(wire.b.cq) == 0); /* the second waits for the first */
	sim_net_run(&wire.net, began + 20 * SOON);
	CHECK(completions(wire.b.cq) == 2);
	for (int side = 0; side < 2; side++) {
		CHECK(!soft_destroy_qp(other[side].qp));
		CHECK(!soft_destroy_cq(other[side].cq));
	}
	wire_close(&wire);
}

/* The same of sockets; the fault is of the side that sends, or of the one that receives. */
static void test_udp(int faulty)
{
	struct bare other[2];
	struct sides sides;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	sides_open(&sides, IBV_QPT_UC);
	for (int side = 0; side < 2; side++)
		bare_create(&other[side], &sides.benches[side], IBV_QPT_UC, NULL);
	bare_connect(&other[0], &other[1]);
	CHECK(!bare_recv(&sides.ends[1], 2, 0, 100));
	CHECK(!bare_recv(&other[1], 3, 0, 100));
	delay_first_send(&sides_host(&sides, faulty)->fabric.faults, LATE);
	sge = bench_sge(&sides.benches[0], 0, 100);
	wr = bench_wr(IBV_WR_SEND, 1, &sge);
	CHECK(!bare_post(&sides.ends[0], &wr));
	expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
	CHECK(!bare_post(&other[0], &wr));
	expect_wc(&other[1], 3, IBV_WC_SUCCESS);
	expect_no_wc(&sides.ends[1]);
	for (int side = 0; side < 2; side++)
		bare_destroy(&other[side]);
	sides_close(&sides);
}

int main(void)
{
	test_packets();
	test_udp(0);
	test_udp(1);
	return 0;
}
