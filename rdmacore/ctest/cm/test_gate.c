/*
 * Floods of requests under forged addresses. Hosts that do not answer get no further than a few requests do, and a host that
 * answers gets in.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/far.h"
#include "soft/cm/calls.h"

#define FORGED 4000
#define PLACES 64 /* of a program */
#define BACKLOG 8

static const uint8_t attacker_ip[4] = {198, 51, 100, 66}, good_ip[4] = {198, 51, 100, 9}, other_ip[4] = {198, 51, 100, 10};

static struct soft_half_open half_open(struct process *process)
{
	struct soft_cm *cm = far_cm(process);
	struct soft_half_open copy;

	soft_mutex_lock(&cm->lock);
	copy = cm->half_open;
	soft_mutex_unlock(&cm->lock);
	return copy;
}

static void arrive(struct process *process, const uint8_t ip[4], uint32_t id)
{
	struct soft_cm_message req = far_request(ip, id, far_port());

	far_arrive(process, ip, &req);
}

static void arrive_forged(struct process *process, uint32_t index)
{
	const uint8_t ip[4] = {10, (uint8_t)(index >> 16), (uint8_t)(index >> 8), (uint8_t)index};

	arrive(process, ip, index);
}

static uint32_t sent_of(enum soft_cm_attribute attribute, const uint8_t ip[4])
{
	uint32_t found = 0;

	for (uint32_t index = 0; index < far_sent_count(); index++)
		found += far_sent(index).attribute == attribute && (!ip || !memcmp(far_sent_to(index) + 12, ip, 4));
	return found;
}

/* Read requests until one is from that address; the number of those before it, which are accepted. */
static uint32_t read_until(struct process *process, const uint8_t ip[4])
{
	struct rdma_conn_param param = {.qp_num = 0x44, .responder_resources = 1, .initiator_depth = 1};

	for (uint32_t count = 0;; count++) {
		struct rdma_cm_event *event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		struct rdma_cm_id *id = event->id;
		bool found = !memcmp(&((struct sockaddr_in *)&id->route.addr.dst_addr)->sin_addr, ip, 4);

		CHECK(!process->provider->rdma_ack_cm_event(event));
		CHECK(!process->provider->rdma_accept(id, &param));
		if (found)
			return count;
	}
}

static void end(struct process *process, struct rdma_cm_id *listener)
{
	struct soft_cm *cm = far_cm(process);
	uint32_t place = 0;
	struct soft_id *id;

	far_answer_dreqs(NULL);
	process_destroy(process, listener);
	for (;;) {
		soft_mutex_lock(&cm->lock);
		id = soft_table_next(&cm->ids, &place, NULL);
		soft_mutex_unlock(&cm->lock);
		if (!id)
			break;
		process_destroy(process, &id->rdma);
	}
	process_end(process);
}

/*
 * The program gets a few of any number of forged requests. A host that answers gets in behind them, and from then on
 * at once.
 */
static void test_forged(void)
{
	struct process process = far_start(1);
	struct rdma_cm_id *listener = far_listen(&process, far_port());
	uint32_t questions;

	far_forget();
	far_answer_dreqs(good_ip);
	for (uint32_t index = 1; index <= FORGED; index++) {
		arrive_forged(&process, index);
		if (index == FORGED / 2)
			arrive(&process, good_ip, 7);
		if (index % 500 == 0) /* so that none is lost in the queue */
			FAR_WAIT(sent_of(SOFT_CM_DREQ, NULL) >= index - SOFT_UNPROVEN_MAX);
	}
	CHECK(read_until(&process, good_ip) <= SOFT_UNPROVEN_MAX);
	CHECK(half_open(&process).unproven == SOFT_UNPROVEN_MAX && half_open(&process).total == SOFT_UNPROVEN_MAX + 1);
	/* All other hosts get one question each. */
	questions = sent_of(SOFT_CM_DREQ, NULL);
	CHECK(questions == FORGED - SOFT_UNPROVEN_MAX + 1);
	CHECK(!sent_of(SOFT_CM_REJ, NULL) && sent_of(SOFT_CM_MRA, NULL) == SOFT_UNPROVEN_MAX + 1);
	/* It is known now. */
	arrive(&process, good_ip, 8);
	CHECK(!read_until(&process, good_ip));
	CHECK(sent_of(SOFT_CM_DREQ, NULL) == questions);
	end(&process, listener);
}

/* A host that does not answer is not asked each time, and a wrong answer proves nothing. */
static void test_one_source(void)
{
	struct process process = far_start(1);
	struct rdma_cm_id *listener = far_listen(&process, far_port());
	struct soft_cm_message drep = {.attribute = SOFT_CM_DREP};

	far_forget();
	for (uint32_t index = 1; index <= FORGED / 4; index++)
		arrive(&process, attacker_ip, index);
	FAR_WAIT(sent_of(SOFT_CM_DREQ, attacker_ip));
	arrive(&process, other_ip, 1);
	FAR_WAIT(sent_of(SOFT_CM_DREQ, other_ip) == 1);
	CHECK(sent_of(SOFT_CM_DREQ, attacker_ip) < FORGED / 40);
	for (uint32_t index = 0; index < far_sent_count(); index++) {
		struct soft_cm_message dreq = far_sent(index);

		if (dreq.attribute != SOFT_CM_DREQ)
			continue;
		drep.remote = dreq.local;
		drep.transaction = dreq.transaction ^ 1;
		far_arrive(&process, attacker_ip, &drep);
		/* The answer of one host is not another's. */
		drep.transaction = dreq.transaction;
		far_arrive(&process, memcmp(far_sent_to(index) + 12, other_ip, 4) ? other_ip : attacker_ip, &drep);
	}
	far_answer_dreqs(good_ip);
	arrive(&process, good_ip, 7);
	CHECK(read_until(&process, good_ip) == SOFT_UNPROVEN_MAX);
	CHECK(half_open(&process).total == SOFT_UNPROVEN_MAX + 1);
	end(&process, listener);
}

/* A request that another process passes on waits for the same answer, in the process that it is for. */
static void test_passed_on(void)
{
	struct process process = far_start(1), server = far_start(2);
	struct rdma_cm_id *listener = far_listen(&server, far_port());

	far_forget();
	arrive_forged(&process, 1);
	FAR_WAIT(half_open(&server).total == 1); /* it is known where they go */
	for (uint32_t index = 2; index <= FORGED / 4; index++)
		arrive_forged(&process, index);
	FAR_WAIT(sent_of(SOFT_CM_DREQ, NULL) == FORGED / 4 - SOFT_UNPROVEN_MAX);
	CHECK(half_open(&server).total == SOFT_UNPROVEN_MAX && !half_open(&process).total);
	far_answer_dreqs(good_ip);
	arrive(&process, good_ip, 7);
	CHECK(read_until(&server, good_ip) == SOFT_UNPROVEN_MAX);
	end(&server, listener);
	process_end(&process);
}

/* Numbers that other hosts choose do not make one bucket long. */
static void test_buckets(void)
{
	struct process process = far_start(1);
	struct rdma_cm_id *listener = far_listen(&process, far_port());
	struct soft_cm *cm = far_cm(&process);
	uint32_t longest = 0;

	for (uint32_t id = 1; id <= SOFT_UNPROVEN_MAX; id++) {
		struct soft_cm_message req = far_request(attacker_ip, id, far_port());

		req.guid = FAR_GUID ^ id;
		far_arrive(&process, attacker_ip, &req);
	}
	FAR_WAIT(half_open(&process).total == SOFT_UNPROVEN_MAX);
	soft_mutex_lock(&cm->lock);
	for (uint32_t bucket = 0; bucket < SOFT_PEER_BUCKETS; bucket++) {
		uint32_t length = 0;

		for (struct soft_id *id = LIST_FIRST(&cm->remote_ids[bucket]); id; id = LIST_NEXT(id, of_remote_id))
			length++;
		longest = length > longest ? length : longest;
	}
	soft_mutex_unlock(&cm->lock);
	CHECK(longest < SOFT_UNPROVEN_MAX / 2);
	end(&process, listener);
}

/* One host cannot fill the queue, and many hosts cannot keep a proven one out of it. */
static void test_queue(void)
{
	struct process process = far_start(1);
	struct rdma_cm_id *listener = far_listen(&process, far_port());
	struct soft_cm *cm = far_cm(&process);
	struct soft_cm_message dreq = {.attribute = SOFT_CM_DREQ, .remote = 5};

	far_forget();
	soft_mutex_lock(&cm->lock);
	arrive(&process, good_ip, 6); /* so that the queue waits for the lock */
	for (uint32_t index = 0; index < 3 * FORGED; index++)
		far_arrive(&process, attacker_ip, &dreq);
	arrive(&process, other_ip, 7);
	soft_mutex_unlock(&cm->lock);
	(void)read_until(&process, good_ip);
	CHECK(!read_until(&process, other_ip));
	far_answer_dreqs(good_ip);
	for (uint32_t index = 1; index <= SOFT_UNPROVEN_MAX; index++)
		arrive(&process, good_ip, index + 0x100);
	for (uint32_t index = 1; index <= SOFT_UNPROVEN_MAX; index++)
		CHECK(!read_until(&process, good_ip));
	FAR_WAIT(sent_of(SOFT_CM_DREQ, good_ip));

	soft_mutex_lock(&cm->lock);
	arrive(&process, good_ip, 8);
	for (uint32_t index = 0; index < 3 * FORGED; index++) {
		const uint8_t ip[4] = {10, 0, (uint8_t)(index >> 8), (uint8_t)index};

		far_arrive(&process, ip, &dreq);
	}
	arrive(&process, good_ip, 9);
	soft_mutex_unlock(&cm->lock);
	CHECK(!read_until(&process, good_ip) && !read_until(&process, good_ip));

	/* A proven host cannot keep others out. */
	soft_mutex_lock(&cm->lock);
	arrive(&process, good_ip, 10);
	for (uint32_t index = 0; index < 3 * FORGED; index++)
		far_arrive(&process, good_ip, &dreq);
	far_answer_dreqs(other_ip);
	arrive(&process, other_ip, 11);
	soft_mutex_unlock(&cm->lock);
	CHECK(!read_until(&process, good_ip) && !read_until(&process, other_ip));
	end(&process, listener);
}

/* The peer at that address answers the REP of each accepted request. */
static void answer_reps(struct process *process, const uint8_t ip[4], enum soft_cm_attribute attribute)
{
	for (uint32_t index = 0; index < far_sent_count(); index++) {
		struct soft_cm_message rep = far_sent(index), answer = {.attribute = attribute, .answered = SOFT_ANSWERED_REP};

		if (rep.attribute != SOFT_CM_REP || memcmp(far_sent_to(index) + 12, ip, 4) != 0)
			continue;
		answer.transaction = rep.transaction;
		answer.local = rep.remote;
		answer.remote = rep.local;
		answer.service_timeout = 20;
		far_arrive(process, ip, &answer);
	}
}

/* The REPs were sent long ago. */
static void age(struct process *process)
{
	struct soft_cm *cm = far_cm(process);
	struct soft_id *id;

	soft_mutex_lock(&cm->lock);
	TAILQ_FOREACH(id, &cm->half_open.lists[SOFT_HALF_OPEN_ACCEPTED].ids, half_open)
		id->accepted_at -= SOFT_UNANSWERED_TIME;
	soft_mutex_unlock(&cm->lock);
}

static void fill_places(struct process *process)
{
	far_forget();
	far_answer_dreqs(far_everybody);
	for (uint32_t id = 1; id <= PLACES; id++) {
		arrive(process, attacker_ip, id);
		CHECK(!read_until(process, attacker_ip));
	}
}

/*
 * A host that answers no REP, itself or under a forged address, has all slots of a program. Requests of another host
 * replace its requests, one each. It loses none while it is alone, within the first second, and below its share.
 */
static void test_places(void)
{
	struct process process = far_start(1);
	struct rdma_cm_id *listener = far_listen(&process, far_port());

	fill_places(&process);
	arrive(&process, good_ip, 1);
	CHECK(!read_until(&process, good_ip));
	age(&process);
	arrive(&process, attacker_ip, PLACES + 1);
	CHECK(!read_until(&process, attacker_ip));
	for (uint32_t id = 2; id < 5; id++) {
		arrive(&process, good_ip, id);
		process_expect(&process, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		CHECK(!read_until(&process, good_ip));
	}
	CHECK(half_open(&process).replaced == 3);
	for (uint32_t id = PLACES + 1 - 3; id >= SOFT_UNANSWERED_SHARE; id--) {
		const uint8_t ip[4] = {10, 0, 1, (uint8_t)id};

		arrive(&process, ip, id);
		process_expect(&process, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		CHECK(!read_until(&process, ip));
	}
	arrive(&process, other_ip, 1);
	CHECK(!read_until(&process, other_ip));
	end(&process, listener);
}

/* A program that has that many connections, or has answered by an MRA, keeps them. */
static void test_many_connections(enum soft_cm_attribute attribute)
{
	struct process process = far_start(1);
	struct rdma_cm_id *listener = far_listen(&process, far_port());

	fill_places(&process);
	answer_reps(&process, attacker_ip, attribute);
	for (uint32_t count = 0; attribute == SOFT_CM_RTU && count < PLACES; count++)
		process_expect(&process, RDMA_CM_EVENT_ESTABLISHED, 0);
	/* It is in the queue behind them. */
	arrive(&process, good_ip, 1);
	CHECK(!read_until(&process, good_ip));
	age(&process);
	arrive(&process, good_ip, 2);
	CHECK(!read_until(&process, good_ip));
	CHECK(!half_open(&process).replaced);
	end(&process, listener);
}

/* One host fills the backlog of a listener: another host's request comes into it, and the one that went is served when it is repeated. */
static void test_backlog(void)
{
	struct process process = far_start(1);
	struct rdma_cm_id *listener = far_listen(&process, far_port());

	far_forget();
	far_answer_dreqs(far_everybody);
	soft_id(listener)->backlog = BACKLOG;
	for (uint32_t id = 1; id <= 2 * BACKLOG; id++)
		arrive(&process, attacker_ip, id);
	FAR_WAIT(half_open(&process).requests == 2 * BACKLOG);
	for (uint32_t id = 1; id <= 2 * BACKLOG; id++)
		arrive(&process, attacker_ip, id);
	FAR_WAIT(half_open(&process).requests == 3 * BACKLOG);
	CHECK(half_open(&process).total == BACKLOG && !half_open(&process).replaced);
	arrive(&process, good_ip, 7);
	FAR_WAIT(half_open(&process).replaced == 1);
	CHECK(read_until(&process, good_ip) == BACKLOG - 1);
	CHECK(!sent_of(SOFT_CM_REJ, NULL));
	arrive(&process, attacker_ip, BACKLOG);
	CHECK(!read_until(&process, attacker_ip));
	end(&process, listener);
}

/* The provider is closed while requests that another process would get are in the queue. */
static void test_close(void)
{
	for (int round = 0; round < 10; round++) {
		struct process process = far_start(1);

		for (uint32_t index = 0; index < FORGED / 2; index++)
			arrive_forged(&process, index);
		process_end(&process);
	}
}

int main(void)
{
	test_close();
	test_forged();
	test_one_source();
	test_passed_on();
	test_buckets();
	test_queue();
	test_places();
	test_many_connections(SOFT_CM_RTU);
	test_many_connections(SOFT_CM_MRA);
	test_backlog();
	return 0;
}
