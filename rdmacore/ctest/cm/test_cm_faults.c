/*
 * Messages of the connection manager that are lost, delayed, duplicated and reordered, on soft with a virtual clock.
 * Checks the events of both sides, and their times to the millisecond.
 */
#include <poll.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"

#define PORT 7041

enum { REQ = 0x10, MRA = 0x11, REJ = 0x12, REP = 0x13, RTU = 0x14, DREQ = 0x15, DREP = 0x16,
       PATH_RECORD = 0x35, ARP = 0x806 };

#define ALWAYS 1000000
#define MILLISECOND UINT64_C(1000000)

static struct core_address loopback(void)
{
	struct sockaddr_storage storage = local_address(0);
	struct core_address address;

	core_address_from_sockaddr(&address, (struct sockaddr *)&storage);
	return address;
}

static int add_fault(struct core_provider *provider, uint32_t attribute, uint32_t action, uint32_t count,
		     uint64_t delay)
{
	struct core_fault fault = {.from = loopback(), .to = loopback(), .traffic = CORE_FAULT_CM,
				   .attribute = attribute, .action = action, .count = count,
				   .delay = delay, .probability = ALWAYS};
	int rule = core_fault_add(provider, &fault);

	CHECK(rule >= 0);
	return rule;
}

static uint32_t heal(struct core_provider *provider, int rule)
{
	uint32_t done;

	CHECK(!core_fault_remove(provider, rule, &done));
	return done;
}

static bool readable(struct rdma_event_channel *channel)
{
	struct pollfd descriptor = {.fd = channel->fd, .events = POLLIN};

	return poll(&descriptor, 1, 0) == 1;
}

/* Let time pass until channel has an event: milliseconds since began. */
static uint64_t wait_for(struct core_provider *provider, struct rdma_event_channel *channel,
			 uint64_t began)
{
	while (!readable(channel))
		CHECK(core_clock_advance(provider, UINT64_MAX) == 1);
	return (core_clock_now(provider) - began) / MILLISECOND;
}

/* The next event, at that many milliseconds after began. */
static void expect_at(struct setup *setup, struct rdma_event_channel *channel,
		      enum rdma_cm_event_type type, int status, uint64_t began, uint64_t milliseconds)
{
	uint64_t took = wait_for(setup->provider, channel, began);

	if (took != milliseconds)
		fprintf(stderr, "event %d after %lu ms\n", type, took);
	CHECK(took == milliseconds);
	expect_status(setup, channel, type, status);
}

static uint64_t now(struct setup *setup)
{
	return core_clock_now(setup->provider);
}

static void test_lost_request(struct core_provider *provider)
{
	int rule = add_fault(provider, REQ, CORE_FAULT_LOSE, 0, 0);
	struct setup setup = connecting(provider, PORT);

	/* 16 of them, 6144 ms each: 2 packet lifetimes and the peer's time for an answer. */
	expect_at(&setup, setup.active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, now(&setup), 16 * 6144);
	CHECK(heal(provider, rule) == 16);
	expect_silence(setup.passive);
	finish(&setup);
}

static void test_lost_answers(struct core_provider *provider)
{
	int rule = add_fault(provider, REP, CORE_FAULT_LOSE, 0, 0);
	struct setup setup = requested(provider, PORT);
	uint64_t began = now(&setup);

	/* The passive side gives up its REP, and the active side, which was asked to wait for 67.6 s, its REQ. */
	CHECK(!accept_request(&setup));
	expect_at(&setup, setup.passive, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, began, 16 * 4096);
	heal(provider, rule);
	finish(&setup);

	rule = add_fault(provider, RTU, CORE_FAULT_LOSE, 0, 0);
	setup = requested(provider, PORT);
	CHECK(!accept_request(&setup));
	expect_status(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	began = now(&setup);
	CHECK(!setup.provider->rdma_establish(setup.client));
	/* Each MRA to the REP asked to wait for 67.6 s. */
	expect_at(&setup, setup.passive, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, began, 16 * 67584);
	expect_silence(setup.active); /* for it, the connection exists */
	CHECK(heal(provider, rule) == 16);
	finish(&setup);
}

/* A request without an answer: a client waits for 18 minutes after its request was delivered. */
static void test_held_request(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);

	expect_at(&setup, setup.active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, now(&setup), 16 * 67584);
	REFUSED(provider->rdma_connect(setup.client, NULL), EINVAL);
	finish(&setup);
}

static void test_lost_goodbyes(struct core_provider *provider)
{
	int rule = add_fault(provider, DREQ, CORE_FAULT_LOSE, 0, 0);
	struct setup setup = requested(provider, PORT);
	uint64_t began;

	establish(&setup);
	began = now(&setup);
	CHECK(!provider->rdma_disconnect(setup.client));
	expect_at(&setup, setup.active, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT, began, 16 * 6144);
	expect_at(&setup, setup.active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, began, 16 * 6144 + 2048);
	expect_silence(setup.passive); /* a cut raises no event by itself */
	heal(provider, rule);
	finish(&setup);

	rule = add_fault(provider, DREP, CORE_FAULT_LOSE, 1, 0);
	setup = requested(provider, PORT);
	establish(&setup);
	CHECK(!provider->rdma_disconnect(setup.client));
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	began = now(&setup);
	CHECK(!provider->rdma_disconnect(setup.child));
	/* After the id is destroyed, each DREQ for it is answered; an id after its timewait would not answer. */
	destroy_id(&setup, &setup.child);
	expect_at(&setup, setup.active, RDMA_CM_EVENT_DISCONNECTED, 0, began, 6144);
	heal(provider, rule);
	finish(&setup);
}

static void test_late(struct core_provider *provider)
{
	int rule = add_fault(provider, REP, CORE_FAULT_DELAY, 1, 5000 * MILLISECOND);
	struct setup setup = requested(provider, PORT);
	uint64_t began = now(&setup);

	/* The copy that is sent after 4096 ms arrives first; the late one is a duplicate. */
	CHECK(!accept_request(&setup));
	expect_at(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, began, 4096);
	CHECK(heal(provider, rule) == 1);
	CHECK(!provider->rdma_establish(setup.client));
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	while (now(&setup) < began + 6000 * MILLISECOND)
		core_clock_advance(provider, began + 6000 * MILLISECOND);
	expect_silence(setup.active);
	expect_silence(setup.passive);
	finish(&setup);
}

/* Each message twice, or a REP repeated after a while: no event is duplicated. */
static void test_doubled(struct core_provider *provider)
{
	for (uint64_t delay = 0; delay <= 50 * MILLISECOND; delay += 50 * MILLISECOND) {
		int rule = add_fault(provider, delay ? REP : 0, CORE_FAULT_DUPLICATE, 0, delay);
		struct setup setup = requested(provider, PORT);

		establish(&setup);
		CHECK(!provider->rdma_disconnect(setup.child));
		expect_status(&setup, setup.active, RDMA_CM_EVENT_DISCONNECTED, 0);
		CHECK(!provider->rdma_disconnect(setup.client));
		expect_status(&setup, setup.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
		wait_for(provider, setup.active, now(&setup));
		expect_status(&setup, setup.active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		wait_for(provider, setup.passive, now(&setup));
		expect_status(&setup, setup.passive, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		expect_silence(setup.active);
		expect_silence(setup.passive);
		CHECK(heal(provider, rule) >= (delay ? 1 : 7));
		finish(&setup);
	}
}

/* RTU reordered with DREQ: the passive side is disconnected before it was established. */
static void test_reordered(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);
	int rule;

	CHECK(!accept_request(&setup));
	expect_status(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	rule = add_fault(provider, RTU, CORE_FAULT_REORDER, 1, 0);
	CHECK(!provider->rdma_establish(setup.client));
	expect_silence(setup.passive);
	CHECK(!provider->rdma_disconnect(setup.client));
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	expect_silence(setup.passive); /* the RTU that came after it is of no use */
	CHECK(heal(provider, rule) == 1);
	finish(&setup);

	/* Without a following message, it is delivered at the limit. */
	setup = requested(provider, PORT);
	CHECK(!accept_request(&setup));
	expect_status(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	rule = add_fault(provider, RTU, CORE_FAULT_REORDER, 1, 0);
	CHECK(!provider->rdma_establish(setup.client));
	expect_at(&setup, setup.passive, RDMA_CM_EVENT_ESTABLISHED, 0, now(&setup), 100);
	heal(provider, rule);
	finish(&setup);
}

/* Destroyed before its answer: the peer learns it from a REJ that names neither side's new id. */
static void test_leaving_with_losses(struct core_provider *provider)
{
	int rule = add_fault(provider, MRA, CORE_FAULT_LOSE, 0, 0);
	struct setup setup = requested(provider, PORT);

	destroy_id(&setup, &setup.client);
	REFUSED(accept_request(&setup), EINVAL);
	heal(provider, rule);
	finish(&setup);

	/* An RTU and a REJ cross: the client is rejected after it was established. */
	setup = requested(provider, PORT);
	rule = add_fault(provider, RTU, CORE_FAULT_LOSE, 0, 0);
	CHECK(!accept_request(&setup));
	expect_status(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	CHECK(!provider->rdma_establish(setup.client));
	destroy_id(&setup, &setup.child);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	heal(provider, rule);
	finish(&setup);
}

static void test_questions(struct core_provider *provider)
{
	struct sockaddr_storage address = local_address(PORT);
	struct setup setup = {.provider = provider};
	uint64_t began;
	int rule;

	setup.passive = create_channel(provider);
	setup.active = create_channel(provider);
	CHECK(!provider->rdma_create_id(setup.active, &setup.client, NULL, RDMA_PS_TCP));
	rule = add_fault(provider, ARP, CORE_FAULT_LOSE, 1, 0);
	began = now(&setup);
	CHECK(!provider->rdma_resolve_addr(setup.client, NULL, (struct sockaddr *)&address, 700));
	REFUSED(provider->rdma_resolve_addr(setup.client, NULL, (struct sockaddr *)&address, 700), EINVAL);
	expect_at(&setup, setup.active, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, began, 700);
	CHECK(heal(provider, rule) == 1);
	/* After the error the same call may be made again. */
	rule = add_fault(provider, ARP, CORE_FAULT_DELAY, 1, 300 * MILLISECOND);
	CHECK(!provider->rdma_resolve_addr(setup.client, NULL, (struct sockaddr *)&address, 700));
	expect_at(&setup, setup.active, RDMA_CM_EVENT_ADDR_RESOLVED, 0, began, 1000);
	heal(provider, rule);
	rule = add_fault(provider, PATH_RECORD, CORE_FAULT_LOSE, 1, 0);
	CHECK(!provider->rdma_resolve_route(setup.client, 200));
	expect_at(&setup, setup.active, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, began, 1200);
	CHECK(!provider->rdma_resolve_route(setup.client, 200));
	expect_status(&setup, setup.active, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	heal(provider, rule);
	/* A rule about all messages does not apply to queries. */
	rule = add_fault(provider, 0, CORE_FAULT_LOSE, 0, 0);
	destroy_id(&setup, &setup.client);
	setup.client = resolved_client(provider, setup.active, PORT);
	CHECK(heal(provider, rule) == 0);
	finish(&setup);
}

/* Requests beyond the backlog are dropped without a word, and come again. */
static void test_backlog_retry(struct core_provider *provider)
{
	struct setup setup = connecting(provider, PORT);
	struct rdma_cm_id *others[2];
	uint64_t began = now(&setup);

	for (int other = 0; other < 2; other++) {
		struct rdma_conn_param param = usual_param();

		others[other] = resolved_client(provider, setup.active, PORT);
		CHECK(!provider->rdma_connect(others[other], &param));
	}
	take_request(&setup);
	CHECK(wait_for(provider, setup.passive, began) == 0); /* the second */
	{
		struct rdma_cm_event *event =
			expect_event(provider, setup.passive, RDMA_CM_EVENT_CONNECT_REQUEST);
		struct rdma_cm_id *child = event->id;

		CHECK(!provider->rdma_ack_cm_event(event));
		CHECK(!provider->rdma_destroy_id(child));
	}
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	CHECK(wait_for(provider, setup.passive, began) == 6144); /* the third, sent again */
	for (int other = 0; other < 2; other++)
		CHECK(!provider->rdma_destroy_id(others[other]));
	finish(&setup);
}

/* As many requests as come at once are kept if the user sets no limit: none must be repeated. */
static void test_crowd(struct core_provider *provider)
{
	enum { CLIENTS = 3000 };
	struct rdma_event_channel *passive = create_channel(provider), *active = create_channel(provider);
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_cm_id **clients = calloc(CLIENTS, sizeof(*clients)), *listener;

	CHECK(clients);
	CHECK(!provider->rdma_create_id(passive, &listener, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(listener, (struct sockaddr *)&address));
	CHECK(!provider->rdma_listen(listener, 0));
	for (uint32_t client = 0; client < CLIENTS; client++) {
		struct rdma_conn_param param = usual_param();

		param.qp_num = client + 1;
		clients[client] = resolved_client(provider, active, PORT);
		CHECK(!provider->rdma_connect(clients[client], &param));
	}
	for (uint32_t client = 0; client < CLIENTS; client++) {
		struct rdma_cm_event *event;
		struct rdma_cm_id *child;

		event = expect_event(provider, passive, RDMA_CM_EVENT_CONNECT_REQUEST);
		child = event->id;
		CHECK(event->param.conn.qp_num == client + 1);
		CHECK(!provider->rdma_ack_cm_event(event));
		CHECK(!provider->rdma_destroy_id(child));
		expect_and_acknowledge(provider, active, RDMA_CM_EVENT_REJECTED);
		CHECK(!provider->rdma_destroy_id(clients[client]));
	}
	CHECK(!provider->rdma_destroy_id(listener));
	provider->rdma_destroy_event_channel(passive);
	provider->rdma_destroy_event_channel(active);
	free(clients);
}

static void test_refused_rules(struct core_provider *provider)
{
	struct core_fault fault = {.from = loopback(), .to = loopback(), .traffic = CORE_FAULT_DATA,
				   .action = CORE_FAULT_DELAY, .probability = ALWAYS};

	CHECK(core_fault_add(provider, &fault) == -EINVAL); /* data is lost or is not */
	fault.traffic = CORE_FAULT_CM;
	fault.action = CORE_FAULT_REORDER + 1;
	CHECK(core_fault_add(provider, &fault) == -EINVAL);
}

int main(void)
{
	struct core_options options = {.virtual_clock = true, .seeded = true, .seed = 7};
	struct core_provider *provider;
	char why[512] = "";

	if (!on_soft("faults"))
		return 0;
	CHECK(!core_open("soft", &options, &provider, why, sizeof(why)));
	core_select(provider);
	test_lost_request(provider);
	test_lost_answers(provider);
	test_held_request(provider);
	test_lost_goodbyes(provider);
	test_late(provider);
	test_doubled(provider);
	test_reordered(provider);
	test_leaving_with_losses(provider);
	test_questions(provider);
	test_backlog_retry(provider);
	test_crowd(provider);
	test_refused_rules(provider);
	close_provider(provider);
	return 0;
}
