/*
 * The engine does no I/O. After the setup, messages of all kinds are sent over a lossy link packets, and over the
 * local link. Meanwhile the process makes no system call, allocates nothing, and reads no clock but the virtual one.
 *
 * The kernel forbids system calls: by a seccomp filter, all but exit kill the process. It also forbids the processor's
 * counter, a clock that needs no system call. This happens in a child. Its exit status shows whether it survived.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/sim_net.h"
#include "soft/objects/ah.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/mr.h"
#include "soft/objects/mw.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define SIZE 65536
#define DEPTH 8
#define PERCENT 10000 /* of a fault's probability */
/* How the child ends. */
#define FAILED 3
#define ALLOCATED 4
#define READ_CLOCK 5

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define ROUNDS (SANITIZED ? 10 : 50) /* observed operations take long in sanitizer builds */

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

/* All clocks that need no system call are read by these; for instructions of the processor see forbid_clock. */
#if !SANITIZED
static volatile int readings;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	readings++;
	return (int)syscall(SYS_clock_gettime, clock, time);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	readings++;
	return (int)syscall(SYS_gettimeofday, time, zone);
}

time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}
#else
static const int readings; /* sanitizers read clocks */
#endif

enum { RC, UC, UD, SERVICES };

static const enum ibv_qp_type services[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

struct side {
	struct sim_host *host;
	struct ibv_cq *cq;
	struct ibv_qp *qps[SERVICES];
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah; /* to the other side */
	char *memory;
};

struct world {
	struct sim_net net;
	struct side a, b;
};

static uint64_t forbidden_clock(struct soft_clock *clock)
{
	(void)clock;
	abort();
}

static void open_side(struct side *side, struct sim_host *host, const struct sim_host *other)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = other->address}};

	if (!host->device->link)
		attr.grh.dgid = host->device->gid_table.gids[0];
	side->host = host;
	side->memory = calloc(1, SIZE);
	CHECK(side->memory);
	side->cq = sim_cq(host, 8 * DEPTH);
	for (int service = 0; service < SERVICES; service++)
		side->qps[service] = sim_qp(host, services[service], side->cq, DEPTH);
	side->mr = soft_reg_mr(host->pd, side->memory, SIZE,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
	CHECK(side->mr);
	side->mw = soft_alloc_mw(host->pd, IBV_MW_TYPE_2);
	side->ah = soft_create_ah(host->pd, &attr);
	CHECK(side->mw && side->ah);
}

static void close_side(struct side *side)
{
	for (int service = 0; service < SERVICES; service++)
		CHECK(!soft_destroy_qp(side->qps[service]));
	CHECK(!soft_destroy_cq(side->cq));
	CHECK(!soft_destroy_ah(side->ah));
	CHECK(!soft_dealloc_mw(side->mw));
	CHECK(!soft_dereg_mr(side->mr));
	free(side->memory);
}

/* From here to watched no code may call CHECK, which prints by more system calls than write. */

static bool drain(struct world *world)
{
	struct ibv_wc wc;

	while (soft_timers_advance(&world->net.fabric.timers, UINT64_MAX))
		;
	while (soft_poll_cq(world->b.cq, 1, &wc) > 0)
		if (wc.status != IBV_WC_SUCCESS)
			return false;
	return true;
}

/* Post it, and wait for it. */
static bool perform(struct world *world, struct side *side, int service, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->send_flags |= IBV_SEND_SIGNALED;
	if (soft_post_send(side->qps[service], wr, &bad))
		return false;
	while (soft_poll_cq(side->cq, 1, &wc) == 0)
		if (!soft_timers_advance(&world->net.fabric.timers, UINT64_MAX))
			return false;
	return wc.status == IBV_WC_SUCCESS;
}

static bool transfer(struct world *world, int service, enum ibv_wr_opcode opcode, uint32_t key)
{
	struct side *a = &world->a, *b = &world->b;
	bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	bool word = atomic || opcode == IBV_WR_ATOMIC_WRITE;
	bool takes = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
		     opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_sge there = {(uintptr_t)b->memory, SIZE, b->mr->lkey};
	struct ibv_sge here = {(uintptr_t)a->memory, word ? 8 : service == UD ? 4000 : SIZE, a->mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &there, .num_sge = 1}, *bad;
	struct ibv_send_wr wr = {.sg_list = &here, .num_sge = 1, .opcode = opcode};

	if (atomic) {
		wr.wr.atomic.remote_addr = (uintptr_t)b->memory;
		wr.wr.atomic.rkey = b->mr->rkey;
	} else if (service == UD) {
		wr.wr.ud.ah = a->ah;
		wr.wr.ud.remote_qpn = b->qps[UD]->qp_num;
		wr.wr.ud.remote_qkey = SIM_QKEY;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)b->memory;
		wr.wr.rdma.rkey = b->mr->rkey;
	}
	if (opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = key;
	/* A lost message left its receive there, so there may be no room for more. */
	if (takes && soft_post_recv(b->qps[service], &receive, &bad) && service == RC)
		return false;
	return perform(world, a, service, &wr) && drain(world);
}

/* A window is bound, and its key ended by its owner. */
static bool use_window(struct world *world, struct side *side, uint32_t *key)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};

	*key = side->mw->rkey = ibv_inc_rkey(side->mw->rkey);
	wr.bind_mw.mw = side->mw;
	wr.bind_mw.rkey = *key;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = side->mr, .addr = (uintptr_t)side->memory,
							 .length = SIZE,
							 .mw_access_flags = IBV_ACCESS_REMOTE_READ};
	return perform(world, side, RC, &wr);
}

static bool exchange(struct world *world)
{
	static const struct {
		int service;
		enum ibv_wr_opcode opcode;
	} rows[] = {
		{RC, IBV_WR_SEND}, {RC, IBV_WR_SEND_WITH_IMM}, {RC, IBV_WR_RDMA_WRITE},
		{RC, IBV_WR_RDMA_WRITE_WITH_IMM}, {RC, IBV_WR_RDMA_READ}, {RC, IBV_WR_ATOMIC_FETCH_AND_ADD},
		{RC, IBV_WR_ATOMIC_CMP_AND_SWP}, {RC, IBV_WR_ATOMIC_WRITE}, {UC, IBV_WR_SEND},
		{UC, IBV_WR_RDMA_WRITE}, {UC, IBV_WR_RDMA_WRITE_WITH_IMM}, {UD, IBV_WR_SEND},
	};
	struct ibv_send_wr invalidate = {.opcode = IBV_WR_LOCAL_INV};
	uint32_t key;

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
		if (!transfer(world, rows[row].service, rows[row].opcode, 0))
			return false;
	if (!use_window(world, &world->a, &invalidate.invalidate_rkey) ||
	    !perform(world, &world->a, RC, &invalidate))
		return false;
	return use_window(world, &world->b, &key) && transfer(world, RC, IBV_WR_SEND_WITH_INV, key);
}

/* Only reads of the processor's own clock are neither: the C library's, too, which makes no system call for it. */
static void forbid_clock(void)
{
#if defined(__x86_64__)
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
#endif
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

static int watched(struct world *world)
{
	int before = allocations, read = readings;
	bool fine = true;

	if (!SANITIZED)
		forbid_clock();
	if (!SANITIZED && !forbid_system_calls())
		return FAILED;
	for (int round = 0; round < ROUNDS && fine; round++)
		fine = exchange(world);
	if (allocations != before)
		return ALLOCATED;
	if (readings != read)
		return READ_CLOCK;
	return fine ? 0 : FAILED;
}

/* The work of the child, and how it ends. */
static int watch_child(int (*work)(struct world *world), struct world *world)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child)
		syscall(SYS_exit, work(world));
	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

#if defined(__x86_64__) && !SANITIZED
static int read_processor_clock(struct world *world)
{
	(void)world;
	forbid_clock();
	return __builtin_ia32_rdtsc() ? 0 : FAILED;
}
#endif

/* The watches themselves work. */
static void test_watches(void)
{
	int before = allocations;
	void *volatile probe = malloc(1);

	free(probe);
	CHECK(allocations > before);
#if !SANITIZED
	before = readings;
	CHECK(time(NULL) && readings > before);
#if defined(__x86_64__)
	CHECK(WIFSIGNALED(watch_child(read_processor_clock, NULL)));
#endif
#endif
}

static void open_world(struct world *world, bool local)
{
	struct soft_packets_options options = {.seed = 2, .datagrams = 512, .icrc = true,
					   .delay = 3 * SOFT_MICROSECOND,
					   .acknowledge_delay = 2 * SOFT_MICROSECOND};
	struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 8, .retry = 7, .rnr_retry = 7,
				.rnr_timer = 1, .depth = 4,
				.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					  IBV_ACCESS_REMOTE_ATOMIC};
	struct sim_host *other = &world->net.hosts[!local];

	sim_net_open(&world->net, local ? 1 : 2, &options);
	world->net.fabric.wall.now = forbidden_clock;
	if (local)
		world->net.hosts[0].device->link = NULL;
	open_side(&world->a, &world->net.hosts[0], other);
	open_side(&world->b, other, &world->net.hosts[0]);
	for (int service = RC; service <= UC; service++)
		sim_connect(world->a.host, world->a.qps[service], other, world->b.qps[service], &path);
	sim_ready(world->a.qps[UD]);
	sim_ready(world->b.qps[UD]);
	if (local)
		return;
	sim_net_fault(&world->net, SOFT_FAULT_LOSE, 2 * PERCENT);
	sim_net_fault(&world->net, SOFT_FAULT_DUPLICATE, 2 * PERCENT);
	sim_net_fault(&world->net, SOFT_FAULT_REORDER, 2 * PERCENT);
	sim_net_fault(&world->net, SOFT_FAULT_CORRUPT, 2 * PERCENT);
}

static void test_engine(bool local)
{
	struct soft_packets_counters packets;
	struct world world;
	int status;

	open_world(&world, local);
	if (SANITIZED) {
		/* Sanitizers make system calls of their own. */
		CHECK(watched(&world) == 0);
	} else {
		status = watch_child(watched, &world);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			fprintf(stderr, "status 0x%x\n", status);
		CHECK(WIFEXITED(status)); /* SIGSYS: it made a system call; SIGSEGV: it read a clock */
		CHECK(WEXITSTATUS(status) == 0);
	}

	/* It was no idle run: the same here, where it can be counted. */
	for (int round = 0; round < ROUNDS; round++)
		CHECK(exchange(&world));
	packets = soft_packets_count(world.net.sim);
	CHECK(local || (packets.delivered > 5000 && packets.lost && packets.duplicated && packets.reordered &&
			packets.corrupted));
	close_side(&world.a);
	close_side(&world.b);
	sim_net_close(&world.net);
}

int main(void)
{
	watch_allocations();
	test_watches();
	test_engine(false);
	test_engine(true);
	return 0;
}
