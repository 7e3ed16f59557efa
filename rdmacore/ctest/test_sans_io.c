/*
 * The engine does no I/O: with everything set up, messages of all kinds go over a lossy sim link, and while they
 * do the process makes no system call, allocates nothing, and reads no clock but the virtual one.
 *
 * System calls are forbidden by the kernel (a seccomp filter: all but exit kill the process), in a child, which
 * tells by its exit whether it lived.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../soft_cq.h"
#include "../soft_cq_create.h"
#include "../soft_mr.h"
#include "../soft_post.h"
#include "../soft_qp.h"
#include "../soft_qp_create.h"
#include "check.h"
#include "sim_net.h"

#define SIZE 65536
#define DEPTH 8
#define ROUNDS 50
#define PERCENT 10000 /* of a fault's probability */
/* How the child ends. */
#define FAILED 3
#define ALLOCATED 4

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static volatile int allocations;

#if SANITIZED
int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *, size_t),
					      void (*freed)(const volatile void *));

static void count_allocation(const volatile void *memory, size_t size)
{
	(void)memory;
	(void)size;
	allocations++;
}

static void ignore_free(const volatile void *memory)
{
	(void)memory;
}

static void watch_allocations(void)
{
	CHECK(__sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_free) > 0);
}
#else
/* The C library's functions under their other names; these are found before them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allocations++;
	return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	allocations++;
	return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	allocations++;
	return __libc_memalign(alignment, size);
}

static void watch_allocations(void)
{
}
#endif

struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory;
};

static uint64_t forbidden_clock(struct soft_clock *clock)
{
	(void)clock;
	abort();
}

static void open_side(struct side *side, struct sim_host *host)
{
	side->memory = calloc(1, SIZE);
	CHECK(side->memory);
	side->cq = sim_cq(host, 4 * DEPTH);
	side->qp = sim_qp(host, IBV_QPT_RC, side->cq, DEPTH);
	side->mr = soft_reg_mr(host->pd, side->memory, SIZE,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(side->mr);
}

static void close_side(struct side *side)
{
	CHECK(!soft_destroy_qp(side->qp));
	CHECK(!soft_destroy_cq(side->cq));
	CHECK(!soft_dereg_mr(side->mr));
	free(side->memory);
}

/* Nothing in here may call CHECK, which prints by way of more than write. */
static bool exchange(struct sim_net *net, struct side *a, struct side *b)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct ibv_sge there = {(uintptr_t)b->memory, SIZE, b->mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &there, .num_sge = 1}, *bad_receive;
	struct ibv_wc wc;

	for (size_t row = 0; row < sizeof(opcodes) / sizeof(opcodes[0]); row++) {
		bool atomic = opcodes[row] == IBV_WR_ATOMIC_FETCH_AND_ADD;
		struct ibv_sge here = {(uintptr_t)a->memory, atomic ? 8 : SIZE, a->mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &here, .num_sge = 1, .opcode = opcodes[row],
					 .send_flags = IBV_SEND_SIGNALED}, *bad;

		wr.wr.rdma.remote_addr = (uintptr_t)b->memory;
		wr.wr.rdma.rkey = b->mr->rkey;
		if (atomic) {
			wr.wr.atomic.remote_addr = (uintptr_t)b->memory;
			wr.wr.atomic.rkey = b->mr->rkey;
		}
		if ((wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) &&
		    soft_post_recv(b->qp, &receive, &bad_receive))
			return false;
		if (soft_post_send(a->qp, &wr, &bad))
			return false;
		while (soft_poll_cq(a->cq, 1, &wc) == 0)
			if (!soft_timers_advance(&net->fabric.timers, UINT64_MAX))
				return false;
		if (wc.status != IBV_WC_SUCCESS)
			return false;
		while (soft_poll_cq(b->cq, 1, &wc) > 0)
			if (wc.status != IBV_WC_SUCCESS)
				return false;
		while (soft_timers_advance(&net->fabric.timers, UINT64_MAX))
			;
	}
	return true;
}

/* Also where a container has a filter of its own already. */
static bool forbid_system_calls(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int watched(struct sim_net *net, struct side *a, struct side *b)
{
	int before = allocations;
	bool fine = true;

	if (!SANITIZED && !forbid_system_calls())
		return FAILED;
	for (int round = 0; round < ROUNDS && fine; round++)
		fine = exchange(net, a, b);
	if (allocations != before)
		return ALLOCATED;
	return fine ? 0 : FAILED;
}

int main(void)
{
	struct soft_sim_options options = {.seed = 2, .datagrams = 512, .icrc = true,
					   .delay = 3 * SOFT_MICROSECOND,
					   .acknowledge_delay = 2 * SOFT_MICROSECOND};
	struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 8, .retry = 7, .rnr_retry = 7,
				.rnr_timer = 1, .depth = 4,
				.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					  IBV_ACCESS_REMOTE_ATOMIC};
	struct soft_sim_counters packets;
	struct side a, b;
	struct sim_net net;
	void *volatile probe;
	int status;
	pid_t child;

	watch_allocations();
	sim_net_open(&net, 2, &options);
	net.fabric.wall.now = forbidden_clock;
	open_side(&a, &net.hosts[0]);
	open_side(&b, &net.hosts[1]);
	sim_connect(&net.hosts[0], a.qp, &net.hosts[1], b.qp, &path);
	sim_net_fault(&net, SOFT_FAULT_LOSE, 2 * PERCENT);
	sim_net_fault(&net, SOFT_FAULT_DUPLICATE, 2 * PERCENT);
	sim_net_fault(&net, SOFT_FAULT_REORDER, 2 * PERCENT);
	sim_net_fault(&net, SOFT_FAULT_CORRUPT, 2 * PERCENT);
	/* The watch itself works. */
	status = allocations;
	probe = malloc(1);
	free(probe);
	CHECK(allocations > status);

	if (SANITIZED) {
		/* Sanitizers make system calls of their own. */
		CHECK(watched(&net, &a, &b) == 0);
	} else {
		child = fork();
		CHECK(child >= 0);
		if (!child)
			syscall(SYS_exit, watched(&net, &a, &b));
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(WIFEXITED(status)); /* SIGSYS: it made a system call */
		CHECK(WEXITSTATUS(status) == 0);
	}

	/* It was no idle run: the same here, where it can be counted. */
	for (int round = 0; round < ROUNDS; round++)
		CHECK(exchange(&net, &a, &b));
	packets = soft_sim_count(net.sim);
	CHECK(packets.delivered > 10000 && packets.lost && packets.duplicated && packets.reordered &&
	      packets.corrupted);
	close_side(&a);
	close_side(&b);
	sim_net_close(&net);
	return 0;
}
