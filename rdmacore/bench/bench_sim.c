/*
 * The engine over the link packets on one thread: packets a second, each cut from a message, encoded, transferred,
 * decoded and stored, acknowledgements included. The ICRC is off.
 *
 * Prints one line for each row: name, value, unit.
 */

#include "bench.h"
#include "ctest/support/check.h"
#include "ctest/support/sim_net.h"
#include "soft/objects/cq.h"
#include "soft/objects/mr.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define ROUNDS 9
#define MESSAGES 20000
#define LENGTH 8192 /* eight packets */
#define DEPTH 16

static void write_all(struct sim_net *net, struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *from,
		      struct ibv_mr *to)
{
	struct ibv_sge sge = {(uintptr_t)from->addr, LENGTH, from->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;
	int posted = 0, done = 0;

	wr.wr.rdma.remote_addr = (uintptr_t)to->addr;
	wr.wr.rdma.rkey = to->rkey;
	while (done < MESSAGES) {
		for (; posted < MESSAGES && posted - done < DEPTH; posted++)
			CHECK(!soft_post_send(qp, &wr, &bad));
		while (soft_poll_cq(cq, 1, &wc) == 0)
			CHECK(soft_timers_advance(&net->fabric.timers, UINT64_MAX));
		CHECK(wc.status == IBV_WC_SUCCESS);
		done++;
	}
}

int main(void)
{
	struct soft_packets_options options = {.seed = 2, .datagrams = 512, .delay = SOFT_MICROSECOND,
					   .acknowledge_delay = SOFT_MICROSECOND};
	struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 14, .retry = 7, .rnr_retry = 7, .depth = 1,
				.access = IBV_ACCESS_REMOTE_WRITE};
	static char source[LENGTH], target[LENGTH];
	double rates[ROUNDS];
	struct ibv_cq *cqs[2];
	struct ibv_qp *qps[2];
	struct ibv_mr *from, *to;
	struct sim_net net;

	sim_net_open(&net, 2, &options);
	for (int end = 0; end < 2; end++) {
		cqs[end] = sim_cq(&net.hosts[end], 4 * DEPTH);
		qps[end] = sim_qp(&net.hosts[end], IBV_QPT_RC, cqs[end], DEPTH);
	}
	from = soft_reg_mr(net.hosts[0].pd, source, LENGTH, 0);
	to = soft_reg_mr(net.hosts[1].pd, target, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(from && to);
	sim_connect(&net.hosts[0], qps[0], &net.hosts[1], qps[1], &path);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t before = soft_packets_count(net.sim).delivered;
		double begin = now();

		write_all(&net, qps[0], cqs[0], from, to);
		rates[round] = (double)(soft_packets_count(net.sim).delivered - before) / (now() - begin) * 1e9;
	}
	report("sim-packets", median(rates, ROUNDS), "/s");
	CHECK(!soft_dereg_mr(from) && !soft_dereg_mr(to));
	for (int end = 0; end < 2; end++)
		CHECK(!soft_destroy_qp(qps[end]) && !soft_destroy_cq(cqs[end]));
	sim_net_close(&net);
	return 0;
}
