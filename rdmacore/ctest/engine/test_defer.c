/*
 * No call copies forever: a call does a part of a send queue, the timers' thread does the rest, and due timers run in
 * between. In virtual time, and then with the thread.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "soft/base/fabric.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"

#define LENGTH (UINT64_C(64) << 20)
#define MESSAGES 20 /* a call does most of them, but not all */

struct drain {
	struct bench bench;
	struct bare from, to;
	char *memory;
	struct ibv_mr *mr;
};

static struct soft_timers *timers_of(const struct drain *drain)
{
	return &soft_qp_device(soft_qp(drain->from.qp))->fabric->timers;
}

static uint32_t sent(const struct drain *drain)
{
	struct soft_requester *requester = &soft_qp(drain->from.qp)->requester;
	uint32_t count;

	soft_lock_take(&requester->lock);
	count = requester->transmitted;
	soft_lock_release(&requester->lock);
	return count;
}

static void move(const struct drain *drain, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	CHECK(!drain->bench.provider->ibv_modify_qp(drain->from.qp, &attr, IBV_QP_STATE));
}

static struct core_provider *open_soft(bool virtual)
{
	struct core_options options = {.virtual_clock = virtual, .seeded = true, .seed = 7};
	struct core_provider *provider;
	char why[512] = "";

	CHECK(!core_open("soft", &options, &provider, why, sizeof(why)));
	core_select(provider);
	return provider;
}

/* Post what takes seconds to copy, and have it sent. */
static void begin(struct drain *drain, struct core_provider *provider)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	bench_open(&drain->bench, provider);
	bare_create(&drain->from, &drain->bench, IBV_QPT_RC, NULL);
	bare_create(&drain->to, &drain->bench, IBV_QPT_RC, NULL);
	bare_connect(&drain->from, &drain->to);
	drain->memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(drain->memory != MAP_FAILED);
	drain->mr = provider->ibv_reg_mr(drain->bench.pd, drain->memory, LENGTH, BENCH_ACCESS);
	CHECK(drain->mr);
	move(drain, IBV_QPS_SQD);
	sge = (struct ibv_sge){(uintptr_t)drain->memory, LENGTH, drain->mr->lkey};
	for (uint64_t n = 0; n < MESSAGES; n++) {
		wr = bench_wr(IBV_WR_RDMA_WRITE, n, &sge);
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr.rdma.remote_addr = sge.addr;
		wr.wr.rdma.rkey = drain->mr->rkey;
		CHECK(!bare_post(&drain->from, &wr));
	}
	CHECK(sent(drain) == 0);
	move(drain, IBV_QPS_RTS);
	CHECK(sent(drain) > 0);
}

static void end(struct drain *drain)
{
	bare_destroy(&drain->from);
	bare_destroy(&drain->to);
	CHECK(!drain->bench.provider->ibv_dereg_mr(drain->mr));
	munmap(drain->memory, LENGTH);
	bench_close(&drain->bench);
}

static unsigned int expired;

static void count(struct soft_timer *timer)
{
	(void)timer;
	expired++;
}

/* The rest comes in turns, behind timers that are due, and all of it, in order. */
static void test_turns(void)
{
	struct core_provider *provider = open_soft(true);
	struct drain drain = {0};
	struct soft_timer other;
	uint32_t before;

	begin(&drain, provider);
	before = sent(&drain);
	CHECK(before < MESSAGES);
	CHECK(!soft_timer_register(timers_of(&drain), &other, count));
	for (unsigned int turn = 1; sent(&drain) < MESSAGES; turn++) {
		CHECK(!soft_timer_arm(timers_of(&drain), &other, 0));
		CHECK(soft_timers_advance(timers_of(&drain), 0));
		CHECK(expired == turn && sent(&drain) == before);
		CHECK(soft_timers_advance(timers_of(&drain), 0));
		CHECK(sent(&drain) == ++before);
	}
	soft_timer_unregister(timers_of(&drain), &other);
	for (uint64_t n = 0; n < MESSAGES; n++)
		expect_wc(&drain.from, n, IBV_WC_SUCCESS);
	end(&drain);
	close_provider(provider);
}

/* Requests that are not sent yet end with their queue pair. */
static void test_end(bool reset)
{
	struct core_provider *provider = open_soft(false);
	struct drain drain = {0};

	begin(&drain, provider);
	if (reset) {
		move(&drain, IBV_QPS_RESET);
		CHECK(sent(&drain) == 0);
	}
	end(&drain);
	close_provider(provider);
}

/* The thread does all of it by itself. */
static void test_thread(void)
{
	struct core_provider *provider = open_soft(false);
	struct drain drain = {0};

	begin(&drain, provider);
	for (uint64_t n = 0; n < MESSAGES; n++)
		expect_wc(&drain.from, n, IBV_WC_SUCCESS);
	end(&drain);
	close_provider(provider);
}

int main(void)
{
	if (!on_soft("what soft is made of"))
		return 0;
	test_turns();
	test_end(false);
	test_end(true);
	test_thread();
	return 0;
}
