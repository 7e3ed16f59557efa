/*
 * Instructions of a message on the local link, with its poll: exact, so that a test can compare them. A child executes
 * messages, and its parent counts single steps.
 *
 * Prints one line for each row: name, value, unit.
 */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "ctest/support/bare.h"
#include "ctest/support/check.h"

#define LENGTH 64
#define FEW 8
#define MANY 24 /* the difference counts: what the marks themselves take is in both */

/* Messages from one end to the other, each with its polls. Everything but that is done before. */
static void exchange(struct bare *from, struct bare *to, enum ibv_wr_opcode opcode, int count)
{
	struct bench *bench = from->bench;
	struct ibv_sge source = bench_sge(bench, 0, LENGTH), target = bench_sge(bench, LENGTH, LENGTH);
	struct ibv_recv_wr recv = {.sg_list = &target, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = {
		.sg_list = &source, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {target.addr, bench->mr->rkey},
	}, *bad;
	struct ibv_wc wc;
	int failed = 0;

	for (int n = 0; n < count; n++) {
		if (opcode == IBV_WR_SEND)
			failed |= ibv_post_recv(to->qp, &recv, &bad_recv);
		failed |= ibv_post_send(from->qp, &wr, &bad);
		failed |= ibv_poll_cq(from->cq, 1, &wc) - 1;
		if (opcode == IBV_WR_SEND)
			failed |= ibv_poll_cq(to->cq, 1, &wc) - 1;
	}
	CHECK(!failed && wc.status == IBV_WC_SUCCESS);
}

/* The child: messages between two signals to itself. */
static void execute(enum ibv_wr_opcode opcode, int count)
{
	struct core_provider *provider = open_provider();
	struct bench bench;
	struct bare ends[2];

	bench_open(&bench, provider);
	for (int end = 0; end < 2; end++)
		bare_create(&ends[end], &bench, IBV_QPT_RC, NULL);
	bare_connect(&ends[0], &ends[1]);
	exchange(&ends[0], &ends[1], opcode, 100); /* the first ones take other ways */
	CHECK(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	raise(SIGUSR1);
	exchange(&ends[0], &ends[1], opcode, count);
	raise(SIGUSR2);
	for (int end = 0; end < 2; end++)
		bare_destroy(&ends[end]);
	bench_close(&bench);
	close_provider(provider);
}

/* The instructions of a child until its second signal. */
static double steps(enum ibv_wr_opcode opcode, int count)
{
	pid_t child = fork();
	double steps = 0;
	int status;

	CHECK(child >= 0);
	if (!child) {
		alarm(60);
		execute(opcode, count);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGUSR1);
	for (;; steps++) {
		CHECK(!ptrace(PTRACE_SINGLESTEP, child, NULL, NULL));
		CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGUSR2)
			break;
	}
	CHECK(!ptrace(PTRACE_CONT, child, NULL, NULL));
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	return steps;
}

static void row(const char *name, enum ibv_wr_opcode opcode)
{
	report(name, (steps(opcode, MANY) - steps(opcode, FEW)) / (MANY - FEW), "instructions");
}

int main(void)
{
	row("instructions-write-64B", IBV_WR_RDMA_WRITE);
	row("instructions-send-64B", IBV_WR_SEND);
	return 0;
}
