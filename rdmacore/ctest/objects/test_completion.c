/*
 * Time stamps and moderation of a completion queue, in virtual time: when each completion was added, and one event
 * for several.
 */
#include <poll.h>
#include <time.h>

#include "ctest/support/check.h"
#include "ctest/support/sim_net.h"
#include "soft/objects/context.h"
#include "soft/objects/cq.h"
#include "soft/objects/mr.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define DELAY (10 * SOFT_MICROSECOND)
#define PERIOD 50 /* microseconds */

/* Host 0 writes to host 1, and its completions go to a queue that is watched. */
struct watched {
	struct sim_net net;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *other_cq;
	struct ibv_qp *qp, *other;
	struct ibv_mr *mr;
	uint32_t rkey; /* of mr */
	uint8_t memory[64];
};

static uint64_t now(struct watched *watched)
{
	return watched->net.fabric.clock.now(&watched->net.fabric.clock);
}

static void open_watched(struct watched *watched, uint64_t wc_flags)
{
	struct soft_packets_options options = {.seed = 4, .datagrams = 64, .delay = DELAY};
	struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 14, .retry = 7, .rnr_retry = 7,
				.access = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_cq_init_attr_ex attr = {.cqe = 32, .wc_flags = wc_flags};
	struct sim_host *hosts = watched->net.hosts;

	sim_net_open(&watched->net, 2, &options);
	watched->channel = attr.channel = soft_create_comp_channel(hosts[0].context);
	CHECK(watched->channel);
	watched->cq = ibv_cq_ex_to_cq(verbs_get_ctx(hosts[0].context)->create_cq_ex(hosts[0].context, &attr));
	CHECK(watched->cq);
	watched->other_cq = sim_cq(&hosts[1], 16);
	watched->qp = sim_qp(&hosts[0], IBV_QPT_RC, watched->cq, 16);
	watched->other = sim_qp(&hosts[1], IBV_QPT_RC, watched->other_cq, 16);
	sim_connect(&hosts[0], watched->qp, &hosts[1], watched->other, &path);
	watched->mr = soft_reg_mr(hosts[1].pd, watched->memory, sizeof(watched->memory),
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(watched->mr);
	watched->rkey = watched->mr->rkey;
}

static void close_watched(struct watched *watched)
{
	CHECK(!soft_destroy_qp(watched->qp));
	CHECK(!soft_destroy_qp(watched->other));
	CHECK(!soft_destroy_cq(watched->cq));
	CHECK(!soft_destroy_cq(watched->other_cq));
	CHECK(!soft_destroy_comp_channel(watched->channel));
	CHECK(!soft_dereg_mr(watched->mr));
	sim_net_close(&watched->net);
}

/* A completion comes after a way there and a way back. */
static void post(struct watched *watched, uint64_t wr_id)
{
	uint64_t value = wr_id;
	struct ibv_sge sge = {(uintptr_t)&value, sizeof(value), 0};
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)watched->memory;
	wr.wr.rdma.rkey = watched->rkey;
	CHECK(!soft_post_send(watched->qp, &wr, &bad));
}

static void moderate(struct watched *watched, uint16_t count, uint16_t period, int result)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {count, period}};

	CHECK(ibv_modify_cq(watched->cq, &attr) == result);
}

static void run(struct watched *watched, uint64_t nanoseconds)
{
	sim_net_run(&watched->net, now(watched) + nanoseconds);
}

static bool has_event(struct watched *watched)
{
	struct pollfd readable = {.fd = watched->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (!poll(&readable, 1, 0))
		return false;
	CHECK(!soft_get_cq_event(watched->channel, &cq, &context) && cq == watched->cq);
	soft_ack_cq_events(cq, 1);
	return true;
}

static void test_stamps(void)
{
	struct ibv_poll_cq_attr attr = {0};
	struct watched watched;
	struct ibv_cq_ex *cq;
	uint64_t begin;

	open_watched(&watched, IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	cq = (struct ibv_cq_ex *)watched.cq;
	begin = now(&watched);
	for (uint64_t id = 0; id < 4; id++) {
		post(&watched, id);
		run(&watched, 5 * DELAY);
	}
	/* They keep their time when the queue gets other memory. */
	CHECK(!soft_resize_cq(watched.cq, 64));
	CHECK(!ibv_start_poll(cq, &attr));
	for (uint64_t id = 0; id < 4; id++) {
		uint64_t stamp = begin + id * 5 * DELAY + 2 * DELAY;

		CHECK(cq->wr_id == id && cq->status == IBV_WC_SUCCESS);
		CHECK(ibv_wc_read_completion_ts(cq) == stamp);
		CHECK(ibv_wc_read_completion_wallclock_ns(cq) == stamp);
		CHECK(ibv_next_poll(cq) == (id == 3 ? ENOENT : 0));
	}
	ibv_end_poll(cq);
	close_watched(&watched);
}

/* Dropping one queue pair's completions keeps those of others. */
static void test_stamps_stay(void)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct watched watched;
	struct ibv_cq_ex *cq;
	struct ibv_qp *third;
	struct ibv_recv_wr wr = {.wr_id = 9}, *bad;
	uint64_t begin;

	open_watched(&watched, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	cq = (struct ibv_cq_ex *)watched.cq;
	third = sim_qp(&watched.net.hosts[0], IBV_QPT_UD, watched.cq, 4);
	sim_ready(third);
	begin = now(&watched);
	post(&watched, 1);
	run(&watched, 3 * DELAY);
	CHECK(!soft_post_recv(third, &wr, &bad));
	CHECK(!soft_modify_qp(third, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	run(&watched, DELAY);
	CHECK(!soft_modify_qp(third, &reset, IBV_QP_STATE));
	CHECK(!ibv_start_poll(cq, &attr));
	CHECK(cq->wr_id == 1 && ibv_wc_read_completion_ts(cq) == begin + 2 * DELAY);
	CHECK(ibv_next_poll(cq) == ENOENT);
	ibv_end_poll(cq);
	CHECK(!soft_destroy_qp(third));
	close_watched(&watched);
}

static void test_moderation(void)
{
	struct watched watched;

	open_watched(&watched, IBV_WC_STANDARD_FLAGS);
	moderate(&watched, 3, PERIOD, 0);
	CHECK(!soft_req_notify_cq(watched.cq, 0));
	/* The third of them is an event, before the time is up. */
	for (uint64_t id = 0; id < 3; id++) {
		post(&watched, id);
		run(&watched, 2 * DELAY);
		CHECK(has_event(&watched) == (id == 2));
	}
	/* And the queue is not armed any more. */
	for (uint64_t id = 0; id < 5; id++)
		post(&watched, id);
	run(&watched, 10 * DELAY);
	CHECK(!has_event(&watched));

	/* One alone waits until the time is up, to the nanosecond. */
	CHECK(!soft_req_notify_cq(watched.cq, 0));
	post(&watched, 7);
	run(&watched, 2 * DELAY + PERIOD * SOFT_MICROSECOND - 1);
	CHECK(!has_event(&watched));
	run(&watched, 1);
	CHECK(has_event(&watched));

	/* If the limits change, waiting completions are reported at once. */
	CHECK(!soft_req_notify_cq(watched.cq, 0));
	post(&watched, 8);
	run(&watched, 2 * DELAY);
	CHECK(!has_event(&watched));
	moderate(&watched, 0, PERIOD, 0);
	CHECK(has_event(&watched));

	/* Off: each is an event. */
	CHECK(!soft_req_notify_cq(watched.cq, 0));
	post(&watched, 9);
	run(&watched, 2 * DELAY);
	CHECK(has_event(&watched));
	close_watched(&watched);
}

/* Only solicited completions count where only those are waited for; and attributes that there are not. */
static void test_moderation_solicited(void)
{
	struct ibv_modify_cq_attr unknown = {.attr_mask = IBV_CQ_ATTR_MODERATE << 1};
	struct watched watched;

	open_watched(&watched, IBV_WC_STANDARD_FLAGS);
	CHECK(ibv_modify_cq(watched.cq, &unknown) == EOPNOTSUPP);
	moderate(&watched, 1, PERIOD, 0);
	CHECK(!soft_req_notify_cq(watched.cq, 1));
	post(&watched, 1);
	run(&watched, 20 * DELAY);
	CHECK(!has_event(&watched));
	/* An error is, and a count of one waits for no other. */
	CHECK(!soft_dereg_mr(watched.mr));
	post(&watched, 2);
	run(&watched, 2 * DELAY);
	CHECK(has_event(&watched));
	watched.mr = soft_reg_mr(watched.net.hosts[1].pd, watched.memory, 8, 0);
	CHECK(watched.mr);
	close_watched(&watched);
}

/* The clock of the stamps can be read, and on a machine's own clock they are true. */
static void test_clock(void)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << 20};
	struct ibv_device_attr_ex attr;
	struct soft_clock wall;
	struct watched watched;
	struct timespec before, after;
	uint64_t epoch_now;

	open_watched(&watched, IBV_WC_STANDARD_FLAGS);
	CHECK(!ibv_query_rt_values_ex(watched.net.hosts[0].context, &values));
	CHECK(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK && !values.raw_clock.tv_sec);
	CHECK((uint64_t)values.raw_clock.tv_nsec == now(&watched));
	CHECK(!verbs_get_ctx(watched.net.hosts[0].context)
		       ->query_device_ex(watched.net.hosts[0].context, NULL, &attr, sizeof(attr)));
	CHECK(attr.hca_core_clock == 1000000 && attr.completion_timestamp_mask == UINT64_MAX);
	CHECK(attr.cq_mod_caps.max_cq_count == UINT16_MAX && attr.cq_mod_caps.max_cq_period == UINT16_MAX);
	close_watched(&watched);

	soft_clock_wall(&wall);
	clock_gettime(CLOCK_REALTIME, &before);
	epoch_now = wall.now(&wall) + soft_clock_epoch(&wall);
	clock_gettime(CLOCK_REALTIME, &after);
	/* The two clocks are read one after the other, with any delay of this machine in between. */
	CHECK(epoch_now / SOFT_SECOND + 60 >= (uint64_t)before.tv_sec &&
	      epoch_now / SOFT_SECOND <= (uint64_t)after.tv_sec + 60);
}

int main(void)
{
	test_stamps();
	test_stamps_stay();
	test_moderation();
	test_moderation_solicited();
	test_clock();
	return 0;
}
