/* Mistakes with the lifetime of objects, with processes and threads. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

#include "mistakes.h"

/* https://github.com/linux-rdma/perftest/pull/77: the protection domain was deallocated before its last region. */
void destroy_busy(struct endpoint *e)
{
	REQUIRE(ibv_dealloc_pd(e->pd)); /* finding: destroy_busy */
}

/* https://github.com/ska-sa/spead2/pull/134: the wrong order of destruction left a completion queue. */
void destroy_busy__queue(struct endpoint *e)
{
	REQUIRE(ibv_destroy_cq(e->cq)); /* finding: destroy_busy__queue */
}

/* https://github.com/kvcache-ai/Mooncake/pull/1903: a thread posted to a queue pair that another one had destroyed. */
void used_after_destroy(struct endpoint *e)
{
	struct ibv_cq *cq = ibv_create_cq(e->context, 4, NULL, NULL, 0);

	REQUIRE(cq && !ibv_destroy_cq(cq));
	ibv_ack_cq_events(cq, 0); /* finding: used_after_destroy */
}

/* https://github.com/apache/brpc/issues/2609: a completion channel was created at the start and never destroyed. */
void object_left(struct endpoint *e)
{
	REQUIRE(ibv_create_comp_channel(e->context)); /* finding: object_left */
}

/* https://github.com/valkey-io/valkey/pull/3557: an event channel stayed when its identifier was not created. */
void object_left__channel(struct endpoint *e)
{
	(void)e;
	REQUIRE(rdma_create_event_channel()); /* finding: object_left__channel */
}

#define DEPTH 16
/*
 * Two threads post until so many of their posts have met, each with another post of the other thread. A few of them are
 * at the same time, also if the threads share a processor: one loses it within a post.
 */
#define MEETINGS 100
#define TIMEOUT 30 /* seconds */

struct thread {
	struct endpoint of;
	struct thread *other;
	pthread_barrier_t *begin;
	atomic_int *outstanding, *meetings;
	_Atomic uint32_t posts;
	_Atomic bool posting;
	uint32_t met; /* the other's post */
};

static struct ibv_send_wr empty_write(void)
{
	return (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
}

static void poll_some(struct thread *thread)
{
	struct ibv_wc wc[DEPTH];
	int polled = ibv_poll_cq(thread->of.cq, DEPTH, wc);

	REQUIRE(polled >= 0);
	atomic_fetch_sub(thread->outstanding, polled);
}

static void begin_post(struct thread *thread)
{
	uint32_t others = atomic_load(&thread->other->posts);

	atomic_fetch_add(&thread->posts, 1);
	atomic_store(&thread->posting, true);
	if (atomic_load(&thread->other->posting) && others != thread->met) {
		thread->met = others;
		atomic_fetch_add(thread->meetings, 1);
	}
}

/* Returns whether to go on. */
static bool end_post(struct thread *thread, time_t end)
{
	atomic_store(&thread->posting, false);
	atomic_fetch_add(thread->outstanding, 1);
	return atomic_load(thread->meetings) < MEETINGS && time(NULL) < end;
}

static void *post_to_one(void *argument)
{
	struct thread *thread = argument;
	struct ibv_send_wr write = empty_write(), *bad;
	time_t end = time(NULL) + TIMEOUT;

	pthread_barrier_wait(thread->begin);
	do {
		begin_post(thread);
		while (ibv_post_send(thread->of.qp, &write, &bad)) /* finding: single_threaded */
			poll_some(thread);
	} while (end_post(thread, end));
	return NULL;
}

static void *post_to_own(void *argument)
{
	struct thread *thread = argument;
	struct ibv_send_wr write = empty_write(), *bad;
	time_t end = time(NULL) + TIMEOUT;

	pthread_barrier_wait(thread->begin);
	do {
		begin_post(thread);
		while (ibv_post_send(thread->of.qp, &write, &bad)) /* finding: single_threaded__domain */
			poll_some(thread);
	} while (end_post(thread, end));
	return NULL;
}

/* Two threads use queue pairs of one thread domain at the same time: the same one, or one each. */
static void in_two_threads(struct endpoint *e, void *(*run)(void *), int queue_pairs)
{
	struct ibv_td *td = ibv_alloc_td(e->context, &(struct ibv_td_init_attr){0});
	struct ibv_parent_domain_init_attr parts = {.pd = e->pd, .td = td};
	struct ibv_pd *domain = ibv_alloc_parent_domain(e->context, &parts);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	atomic_int outstanding = 0, meetings = 0;
	pthread_barrier_t begin;
	struct thread threads[2];
	pthread_t other;

	REQUIRE(td && domain && !pthread_barrier_init(&begin, NULL, 2));
	for (int i = 0; i < 2; i++) {
		threads[i] = (struct thread){.of = *e, .other = &threads[!i], .begin = &begin,
					     .outstanding = &outstanding, .meetings = &meetings};
		threads[i].of.qp = i < queue_pairs ? ibv_create_qp(domain, &attr) : threads[0].of.qp;
		REQUIRE(threads[i].of.qp);
		if (i < queue_pairs)
			endpoint_connect(&threads[i].of, &e->gid, threads[i].of.qp->qp_num);
	}
	REQUIRE(!pthread_create(&other, NULL, run, &threads[1]));
	run(&threads[0]);
	REQUIRE(!pthread_join(other, NULL));
	while (outstanding)
		poll_some(&threads[0]);
	for (int i = 0; i < queue_pairs; i++)
		REQUIRE(!ibv_destroy_qp(threads[i].of.qp));
	REQUIRE(!ibv_dealloc_pd(domain) && !ibv_dealloc_td(td));
}

/* https://github.com/ofiwg/libfabric/pull/4083: two threads used a queue with MLX5_SINGLE_THREADED set. */
void single_threaded(struct endpoint *e)
{
	in_two_threads(e, post_to_one, 1);
}

/* https://github.com/openucx/ucx/issues/2464: threads shared a doorbell register without a lock. */
void single_threaded__domain(struct endpoint *e)
{
	in_two_threads(e, post_to_own, 2);
}

static struct endpoint *in_handler;

static void on_signal(int number)
{
	struct ibv_sge part = segment(in_handler, 0, 8);
	struct ibv_recv_wr receive = {.sg_list = &part, .num_sge = 1}, *bad;

	(void)number;
	ibv_post_recv(in_handler->qp, &receive, &bad); /* finding: in_signal_handler */
}

/* https://github.com/kvcache-ai/Mooncake/pull/840: a signal handler freed all objects and could hang. */
void in_signal_handler(struct endpoint *e)
{
	in_handler = e;
	REQUIRE(signal(SIGUSR1, on_signal) == SIG_DFL);
	REQUIRE(!raise(SIGUSR1));
	REQUIRE(signal(SIGUSR1, SIG_DFL) == on_signal);
}

/* https://github.com/ceph/ceph/pull/13740: ibv_fork_init was not called, though the daemons fork. */
void fork_unsafe(struct endpoint *e)
{
	pid_t child = fork(); /* finding: fork_unsafe */
	int status;

	(void)e;
	if (!child)
		_exit(0);
	REQUIRE(waitpid(child, &status, 0) == child);
}

/* Not a mistake: a process that a signal ends cannot destroy its objects. */
void killed(struct endpoint *e)
{
	pid_t child;
	int status;

	REQUIRE(!ibv_fork_init());
	child = fork();
	REQUIRE(child >= 0);
	if (!child) {
		REQUIRE(rdma_create_event_channel());
		raise(SIGTERM);
	}
	REQUIRE(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	(void)e;
}

/* The same child by _exit(2), which has left the object. */
void object_left__child(struct endpoint *e)
{
	pid_t child;
	int status;

	REQUIRE(!ibv_fork_init());
	child = fork();
	REQUIRE(child >= 0);
	if (!child) {
		REQUIRE(rdma_create_event_channel()); /* finding: object_left__child */
		_exit(0);
	}
	REQUIRE(waitpid(child, &status, 0) == child && !status);
	(void)e;
}
