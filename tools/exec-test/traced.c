/*
 * What trace.sh has "rdmarun trace" show, by the first argument. calls: each way to call, a refused call, a failed
 * completion, a child; the exit code is 3. exec: it executes itself with calls. die: a signal. flood: more calls than can
 * be read in time. cost: it prints nanoseconds of each call, which internal/bench compares with those without a trace.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "exec_test.h"

#define FLOOD 300000 /* calls of each thread */
#define THREADS 4

/* Requests and completions by the functions that are members of their queues. */
static void extended(struct endpoint *endpoint)
{
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 16, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(endpoint->context, &cq_attr);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = endpoint->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM,
	};
	struct endpoint other = *endpoint;
	struct ibv_poll_cq_attr none = {0};
	struct ibv_qp_ex *builder;
	int taken = 0, result;

	REQUIRE(cq);
	REQUIRE(other.qp = ibv_create_qp_ex(endpoint->context, &attr));
	builder = ibv_qp_to_qp_ex(other.qp);
	endpoint_connect(&other, &endpoint->gid, other.qp->qp_num);
	endpoint_expect(&other, endpoint->mr, endpoint->memory + 1024, 512);
	ibv_wr_start(builder);
	builder->wr_id = 77;
	builder->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(builder, htobe32(0x1234));
	ibv_wr_set_sge(builder, endpoint->mr->lkey, (uintptr_t)endpoint->memory, 33);
	REQUIRE(!ibv_wr_complete(builder));
	while (taken < 2) {
		result = ibv_start_poll(cq, &none);
		if (result == ENOENT)
			continue;
		do
			taken++;
		while (!(result = ibv_next_poll(cq)));
		REQUIRE(result == ENOENT);
		ibv_end_poll(cq);
	}
	REQUIRE(!ibv_destroy_qp(other.qp));
	REQUIRE(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

static void fail(struct endpoint *endpoint)
{
	struct ibv_sge from = {.addr = (uintptr_t)endpoint->memory, .length = 8, .lkey = endpoint->mr->lkey + 1};
	struct ibv_send_wr send = {.wr_id = 0x99, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_wc wc = {0};

	errno = 0;
	REQUIRE(!ibv_create_cq(endpoint->context, -1, NULL, NULL, 0) && errno == EINVAL);
	endpoint_post(endpoint, &send);
	while (!ibv_poll_cq(endpoint->cq, 1, &wc))
		;
	REQUIRE(wc.status == IBV_WC_LOC_PROT_ERR);
}

static void have_a_child(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct ibv_device **list;
		struct ibv_context *context = ibv_open_device(first_device(&list));

		_exit(context && ibv_alloc_pd(context) ? 0 : 1);
	}
	REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

static void *flood(void *argument)
{
	struct endpoint *endpoint = argument;

	for (int i = 0; i < FLOOD; i++)
		REQUIRE(!ibv_req_notify_cq(endpoint->cq, 0));
	return NULL;
}

#define BURST 2000 /* calls that have room in a ring */
#define BURSTS 20

static double nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;

	return (first > second) - (first < second);
}

/* The median of bursts, between which a ring is read. */
static void measure(const char *name, struct endpoint *endpoint, int calls, void (*call)(struct endpoint *endpoint))
{
	struct timespec pause = {0, 40000000};
	double times[BURSTS];

	for (int i = 0; i < BURSTS; i++) {
		double begun = nanoseconds();

		for (int j = 0; j < calls; j++)
			call(endpoint);
		times[i] = (nanoseconds() - begun) / calls;
		nanosleep(&pause, NULL);
	}
	qsort(times, BURSTS, sizeof(*times), by_value);
	printf("%s %.1f\n", name, times[BURSTS / 2]);
}

static void arm(struct endpoint *endpoint)
{
	REQUIRE(!ibv_req_notify_cq(endpoint->cq, 0));
}

static void poll_nothing(struct endpoint *endpoint)
{
	struct ibv_wc wc;

	REQUIRE(!ibv_poll_cq(endpoint->cq, 1, &wc));
}

/* A write to itself, which is complete when it is polled, or soon. */
static void write_and_poll(struct endpoint *endpoint)
{
	struct ibv_sge from = {.addr = (uintptr_t)endpoint->memory, .length = 64, .lkey = endpoint->mr->lkey};
	struct ibv_send_wr send = {
		.sg_list = &from,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {(uintptr_t)endpoint->memory + 2048, endpoint->mr->rkey},
	};

	endpoint_post(endpoint, &send);
	endpoint_complete(endpoint, 1);
}

static void allocate(struct endpoint *endpoint)
{
	struct ibv_mr *mr = ibv_reg_mr(endpoint->pd, endpoint->memory, 64, 0);

	REQUIRE(mr && !ibv_dereg_mr(mr));
}

static void connect_again(struct endpoint *endpoint)
{
	struct endpoint other = *endpoint;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.send_cq = endpoint->cq,
		.recv_cq = endpoint->cq,
	};

	REQUIRE(other.qp = ibv_create_qp(endpoint->pd, &attr));
	endpoint_connect(&other, &endpoint->gid, other.qp->qp_num);
	REQUIRE(!ibv_destroy_qp(other.qp));
}

static void cost(struct endpoint *endpoint)
{
	endpoint->mr = ibv_reg_mr(endpoint->pd, endpoint->memory, sizeof(endpoint->memory),
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	REQUIRE(endpoint->mr);
	for (int i = 0; i < BURST; i++)
		arm(endpoint);
	measure("req_notify_cq", endpoint, BURST, arm);
	measure("empty_poll", endpoint, BURST, poll_nothing);
	measure("write_and_poll", endpoint, BURST, write_and_poll);
	measure("reg_and_dereg", endpoint, BURST / 20, allocate);
	measure("queue_pair", endpoint, BURST / 20, connect_again);
}

int main(int count, char **arguments)
{
	static struct endpoint endpoint;
	pthread_t threads[THREADS];
	struct ibv_device **list;

	REQUIRE(count == 2);
	alarm(PATIENCE);
	endpoint_open(&endpoint, first_device(&list));
	if (!strcmp(arguments[1], "flood")) {
		for (int i = 0; i < THREADS; i++)
			REQUIRE(!pthread_create(&threads[i], NULL, flood, &endpoint));
		for (int i = 0; i < THREADS; i++)
			REQUIRE(!pthread_join(threads[i], NULL));
		return 0;
	}
	if (!strcmp(arguments[1], "cost")) {
		cost(&endpoint);
		return 0;
	}
	endpoint_transfer(&endpoint);
	if (!strcmp(arguments[1], "die"))
		raise(SIGSEGV);
	if (!strcmp(arguments[1], "exec")) {
		execl("/proc/self/exe", arguments[0], "calls", NULL);
		return 1;
	}
	extended(&endpoint);
	fail(&endpoint);
	have_a_child();
	return 3;
}
