/*
 * Completion queues at their limits: how many completions there is room for, and what happens to a queue pair that
 * finds none. Also which completions raise an event, and what prevents the destruction of a queue.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "soft/objects/ah.h"
#include "soft/objects/context.h"
#include "soft/objects/cq.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define ROOM 4
#define ALL_EVENTS 8

/* Side b's, or side a's, queue gets that much room. */
static void shrink(struct side *side)
{
	CHECK(!soft_resize_cq(side->cq, ROOM));
	CHECK(side->cq->cqe == ROOM);
}

/* The async events of the host that are there now. */
static uint32_t events_of(struct sim_host *host, enum ibv_event_type types[ALL_EVENTS])
{
	struct pollfd readable = {.fd = host->context->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	uint32_t count = 0;

	while (poll(&readable, 1, 0) == 1) {
		CHECK(!soft_get_async_event(host->context, &event));
		soft_ack_async_event(&event);
		CHECK(count < ALL_EVENTS);
		types[count++] = event.event_type;
	}
	return count;
}

static void expect_overrun(struct sim_host *host)
{
	enum ibv_event_type types[ALL_EVENTS];

	/* Each once, however many completions are lost; in no order, where two threads lose them. */
	CHECK(events_of(host, types) == 2);
	CHECK(types[0] != types[1]);
	for (int event = 0; event < 2; event++)
		CHECK(types[event] == IBV_EVENT_CQ_ERR || types[event] == IBV_EVENT_QP_FATAL);
}

static void expect_successes(struct side *side, int count)
{
	struct ibv_wc wc;

	while (count--)
		wire_completion(side, IBV_WC_SUCCESS);
	CHECK(soft_poll_cq(side->cq, 1, &wc) == 0);
}

/* The queue can be filled again and again; one more completion ends the queue pair. */
static void test_sender(bool local)
{
	enum ibv_event_type types[ALL_EVENTS];
	struct wire wire;

	wire_open_on(&wire, local, IBV_QPT_RC, 4);
	shrink(&wire.a);
	for (int round = 0; round < 3; round++) {
		for (int request = 0; request < ROOM; request++)
			wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
		sim_net_run(&wire.net, UINT64_MAX);
		CHECK(!soft_resize_cq(wire.a.cq, ROOM));
		CHECK(soft_resize_cq(wire.a.cq, ROOM - 1) == EINVAL);
		/* The queue is full with completions after the first one was polled. */
		wire_completion(&wire.a, IBV_WC_SUCCESS);
		wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
		sim_net_run(&wire.net, UINT64_MAX);
		expect_successes(&wire.a, ROOM);
		CHECK(events_of(wire.a.host, types) == 0);
	}
	for (int request = 0; request < ROOM + 3; request++)
		wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
	sim_net_run(&wire.net, UINT64_MAX);
	expect_overrun(wire.a.host);
	CHECK(soft_qp_state(soft_qp(wire.a.qp)) == IBV_QPS_ERR);
	expect_successes(&wire.a, ROOM);
	wire_close(&wire);
}

/* The same for receives, for messages of one packet and of several; the sender gets an error (IBTA 10.10.2.2). */
static void test_receiver(bool local, uint32_t length)
{
	enum ibv_event_type types[ALL_EVENTS];
	struct wire wire;

	wire_open_on(&wire, local, IBV_QPT_RC, 4);
	shrink(&wire.b);
	for (int message = 0; message < ROOM + 3; message++)
		wire_receive(&wire.b, 4096);
	for (int message = 0; message < ROOM + 1; message++) {
		wire_post(&wire.a, &wire.b, IBV_WR_SEND, length);
		sim_net_run(&wire.net, wire.net.fabric.clock.now(&wire.net.fabric.clock) + SOFT_MILLISECOND);
	}
	if (length > 8) { /* unread events are dropped with their objects */
		CHECK(!soft_destroy_qp(wire.b.qp) && !soft_destroy_cq(wire.b.cq));
		CHECK(events_of(wire.b.host, types) == 0);
		wire.b.cq = sim_cq(wire.b.host, 1); /* for wire_close */
		wire.b.qp = sim_qp(wire.b.host, IBV_QPT_RC, wire.b.cq, 1);
		wire_close(&wire);
		return;
	}
	expect_overrun(wire.b.host);
	CHECK(soft_qp_state(soft_qp(wire.b.qp)) == IBV_QPS_ERR);
	expect_successes(&wire.b, ROOM);
	wire_close(&wire);
}

/* After a failed send the queue pair is in SQE; if the completion is lost, too, it cannot return to RTS. */
static void test_unreliable_sender(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_sge wrong;
	struct ibv_ah *ah;
	struct wire wire;

	wire_open(&wire, IBV_QPT_UD, 4);
	shrink(&wire.a);
	attr.grh.dgid = wire.b.host->address;
	ah = soft_create_ah(wire.a.host->pd, &attr);
	CHECK(ah);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qkey = SIM_QKEY;
	for (int request = 0; request < ROOM; request++)
		CHECK(!soft_post_send(wire.a.qp, &wr, &bad));
	wrong = (struct ibv_sge){(uintptr_t)wire.a.memory, 8, wire.a.mr->lkey ^ 1};
	wr.sg_list = &wrong;
	wr.num_sge = 1;
	CHECK(!soft_post_send(wire.a.qp, &wr, &bad));
	expect_overrun(wire.a.host);
	CHECK(soft_qp_state(soft_qp(wire.a.qp)) == IBV_QPS_ERR);
	expect_successes(&wire.a, ROOM);
	CHECK(!soft_destroy_ah(ah));
	wire_close(&wire);
}

struct poster {
	struct wire *wire;
	struct side *from, *to;
	_Atomic int *waiting;
};

static void *post_too_much(void *argument)
{
	struct poster *poster = argument;

	atomic_fetch_sub(poster->waiting, 1);
	while (atomic_load(poster->waiting))
		sched_yield();
	for (int request = 0; request < WIRE_DEPTH; request++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

		wr.send_flags = poster->from == &poster->wire->a ? IBV_SEND_SIGNALED : 0;
		CHECK(!soft_post_send(poster->from->qp, &wr, &bad));
	}
	return NULL;
}

/* Both halves of a queue pair find no room at the same time, each under its own lock: one event. */
static void test_both_halves(void)
{
	for (int round = 0; round < 20; round++) {
		_Atomic int waiting = 2;
		struct poster posters[2];
		pthread_t threads[2];
		struct wire wire;

		wire_open_local(&wire, IBV_QPT_RC);
		shrink(&wire.a);
		for (int receive = 0; receive < WIRE_DEPTH; receive++) {
			wire_receive(&wire.a, 8);
			wire_receive(&wire.b, 8);
		}
		for (int way = 0; way < 2; way++) {
			posters[way] = (struct poster){&wire, way ? &wire.b : &wire.a, way ? &wire.a : &wire.b,
						       &waiting};
			CHECK(!pthread_create(&threads[way], NULL, post_too_much, &posters[way]));
		}
		for (int way = 0; way < 2; way++)
			CHECK(!pthread_join(threads[way], NULL));
		expect_overrun(wire.a.host);
		CHECK(soft_qp_state(soft_qp(wire.a.qp)) == IBV_QPS_ERR);
		wire_close(&wire);
	}
}

/* --- room for receives ------------------------------------------------------------------------ */

/*
 * A receive makes room when its completion is polled, even if the queue was resized or polled in the other way
 * meanwhile. It makes none after its queue pair was reset.
 */
static void test_room(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_poll_cq_attr poll_attr = {0}, unknown = {.comp_mask = 1};
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_qp_attr change = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_init_attr init = {.cap = {.max_recv_wr = 8}, .qp_type = IBV_QPT_RC};
	struct soft_qp *qp;
	struct ibv_cq_ex *extended;
	struct ibv_wc wcs[8];
	struct wire wire;

	wire_open(&wire, IBV_QPT_RC, 4);
	extended = verbs_get_ctx(wire.a.host->context)->create_cq_ex(wire.a.host->context, &attr);
	CHECK(extended);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(extended);
	qp = soft_qp(soft_create_qp(wire.a.host->pd, &init));
	CHECK(qp);
	for (int round = 0; round < 3; round++) {
		change.qp_state = IBV_QPS_INIT;
		CHECK(!soft_modify_qp(&qp->ibv, &change, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
								 IBV_QP_ACCESS_FLAGS));
		for (int receive = 0; receive < 8; receive++)
			CHECK(!soft_post_recv(&qp->ibv, &wr, &bad));
		CHECK(soft_post_recv(&qp->ibv, &wr, &bad) == ENOMEM && bad == &wr);
		change.qp_state = IBV_QPS_ERR;
		CHECK(!soft_modify_qp(&qp->ibv, &change, IBV_QP_STATE));
		CHECK(!soft_resize_cq(init.recv_cq, 16 << round));
		if (round == 0) {
			CHECK(soft_poll_cq(init.recv_cq, 3, wcs) == 3);
		} else if (round == 1) {
			CHECK(ibv_start_poll(extended, &unknown) == EINVAL);
			CHECK(!ibv_start_poll(extended, &poll_attr));
			CHECK(!ibv_next_poll(extended) && !ibv_next_poll(extended));
			ibv_end_poll(extended);
		}
		for (int receive = 0; round < 2 && receive < 3; receive++)
			CHECK(!soft_post_recv(&qp->ibv, &wr, &bad));
		CHECK(soft_post_recv(&qp->ibv, &wr, &bad) == ENOMEM);
		if (round == 2) /* they are not polled any more */
			break;
		change.qp_state = IBV_QPS_RESET;
		CHECK(!soft_modify_qp(&qp->ibv, &change, IBV_QP_STATE));
	}
	CHECK(soft_poll_cq(init.recv_cq, -1, wcs) < 0);
	CHECK(!soft_destroy_qp(&qp->ibv));
	/* They remain after their queue pair and its memory are freed. */
	CHECK(soft_poll_cq(init.recv_cq, 8, wcs) == 8);
	CHECK(!soft_destroy_cq(init.recv_cq));
	wire_close(&wire);
}

/* --- events ----------------------------------------------------------------------------------- */

enum what { PLAIN, SOLICITED, FAILED };

static const struct {
	int armed[2]; /* solicited_only of each ibv_req_notify_cq; -1: not at all */
	enum what what; /* the completion that comes */
	uint32_t length;
	bool event;
} notifications[] = {
	{{-1, -1}, SOLICITED, 8, false},
	{{0, -1}, PLAIN, 8, true}, {{0, -1}, SOLICITED, 8, true}, {{0, -1}, FAILED, 8, true},
	{{1, -1}, PLAIN, 8, false}, {{1, -1}, SOLICITED, 8, true}, {{1, -1}, FAILED, 8, true},
	{{1, -1}, PLAIN, 4096, false}, {{1, -1}, SOLICITED, 4096, true},
	/* A second call does not reduce what was armed (ibv_req_notify_cq(3)). */
	{{0, 1}, PLAIN, 8, true}, {{1, 0}, PLAIN, 8, true}, {{1, 1}, PLAIN, 8, false},
};

/* Side b's queue has a channel from now on, and its queue pair is a new one. */
static struct ibv_comp_channel *watch(struct wire *wire)
{
	struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 10, .retry = 3, .depth = 4};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_comp_channel *channel = soft_create_comp_channel(wire->b.host->context);

	CHECK(channel);
	CHECK(!soft_destroy_qp(wire->b.qp) && !soft_destroy_cq(wire->b.cq));
	CHECK(!soft_create_cq(wire->b.host->context, 64, NULL, channel, 1) && errno == EINVAL);
	wire->b.cq = soft_create_cq(wire->b.host->context, 64, channel, channel, 0);
	CHECK(wire->b.cq);
	wire->b.qp = sim_qp(wire->b.host, IBV_QPT_RC, wire->b.cq, WIRE_DEPTH);
	CHECK(!soft_modify_qp(wire->a.qp, &reset, IBV_QP_STATE));
	sim_connect(wire->a.host, wire->a.qp, wire->b.host, wire->b.qp, &path);
	return channel;
}

static void make_completion(struct wire *wire, enum what what, uint32_t length)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_sge sge = {(uintptr_t)wire->a.memory, length, wire->a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = what == SOLICITED ? IBV_SEND_SOLICITED : 0}, *bad;

	wire_receive(&wire->b, 4096);
	if (what == FAILED)
		CHECK(!soft_modify_qp(wire->b.qp, &error, IBV_QP_STATE));
	else
		CHECK(!soft_post_send(wire->a.qp, &wr, &bad));
	sim_net_run(&wire->net, UINT64_MAX);
}

/* An object in use is not destroyed; an event that was not taken is dropped with its queue. */
static void check_destroy(struct wire *wire, struct ibv_comp_channel *channel)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
	bool event = poll(&readable, 1, 0) == 1;
	struct ibv_cq *cq;
	void *context;

	CHECK(soft_destroy_cq(wire->b.cq) == EBUSY);
	CHECK(!soft_destroy_qp(wire->b.qp));
	CHECK(soft_destroy_comp_channel(channel) == EBUSY);
	if (event) {
		CHECK(!soft_get_cq_event(channel, &cq, &context));
		CHECK(cq == wire->b.cq && context == channel);
		soft_ack_cq_events(cq, 1);
	}
	soft_cq_notify(soft_cq(wire->b.cq));
	CHECK(poll(&readable, 1, 0) == 1);
	CHECK(!soft_destroy_cq(wire->b.cq));
	CHECK(poll(&readable, 1, 0) == 0);
	CHECK(!soft_destroy_comp_channel(channel));
}

static void test_notifications(bool local)
{
	for (size_t row = 0; row < sizeof(notifications) / sizeof(notifications[0]); row++) {
		struct ibv_comp_channel *channel;
		struct pollfd readable = {.events = POLLIN};
		struct wire wire;

		wire_open_on(&wire, local, IBV_QPT_RC, 4);
		channel = watch(&wire);
		readable.fd = channel->fd;
		for (int call = 0; call < 2; call++)
			if (notifications[row].armed[call] >= 0)
				CHECK(!soft_req_notify_cq(wire.b.cq, notifications[row].armed[call]));
		make_completion(&wire, notifications[row].what, notifications[row].length);
		CHECK((poll(&readable, 1, 0) == 1) == notifications[row].event);
		check_destroy(&wire, channel);
		wire.b.cq = sim_cq(wire.b.host, 1); /* for wire_close */
		wire.b.qp = sim_qp(wire.b.host, IBV_QPT_RC, wire.b.cq, 1);
		wire_close(&wire);
	}
}

int main(void)
{
	for (int local = 0; local < 2; local++) {
		test_sender(local);
		test_receiver(local, 8);
		test_receiver(local, 2000);
		test_notifications(local);
	}
	test_unreliable_sender();
	test_both_halves();
	test_room();
	return 0;
}
