/*
 * Connections with another host, which this test simulates: it passes management datagrams to the communication
 * manager like the link udp, and reads its answers.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/far.h"
#include "soft/cm/cm.h"
#include "soft/host.h"
#include "soft/objects/device.h"
#include "soft/wire/datagram.h"
#include "soft/wire/mad.h"

#define PEER_ID 0x1234
#define PATIENCE_US 20000000

static const uint8_t peer_ip[4] = {198, 51, 100, 9}, stranger_ip[4] = {198, 51, 100, 10};

static uint32_t heard; /* messages that the communication manager sent and this test has read */

static struct soft_cm_message request(uint32_t id, uint16_t port)
{
	struct soft_cm_message req = far_request(peer_ip, id, port);

	req.responder_resources = 3;
	req.initiator_depth = 2;
	req.private_data_len = 5;
	memcpy(req.private_data, "hello", 5);
	return req;
}

/* Whether it is the question whether a host receives (soft/cm/gate.c). */
static bool is_question(const struct soft_cm_message *message)
{
	return message->attribute == SOFT_CM_DREQ && !message->remote;
}

/* The next message that was sent; MRAs and questions are passed over. */
static struct soft_cm_message next(void)
{
	struct soft_cm_message message;

	do {
		FAR_WAIT(heard != far_sent_count());
		message = far_sent(heard++);
	} while (message.attribute == SOFT_CM_MRA || is_question(&message));
	return message;
}

static struct soft_cm_message answer(enum soft_cm_attribute attribute, const struct soft_cm_message *to)
{
	return (struct soft_cm_message){.attribute = attribute, .transaction = to->transaction, .local = PEER_ID, .remote = to->local};
}

/* From the request to both ends' disconnect. In between a third host sends messages as the peer, which are dropped. */
static void test_passive(struct process *process)
{
	struct soft_cm_message req = request(PEER_ID, far_port()), rep, rtu, dreq;
	struct rdma_conn_param param = {.qp_num = 0x22, .responder_resources = 1, .initiator_depth = 1};
	struct rdma_cm_event *event;
	struct rdma_cm_id *child;

	far_arrive(process, peer_ip, &req);
	event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	child = event->id;
	CHECK(!memcmp(event->param.conn.private_data, "hello", 5));
	CHECK(event->param.conn.qp_num == req.qp_num);
	CHECK(event->param.conn.initiator_depth == 3 && event->param.conn.responder_resources == 2);
	CHECK(!memcmp(&((struct sockaddr_in *)&child->route.addr.dst_addr)->sin_addr, peer_ip, 4));
	CHECK(!process->provider->rdma_ack_cm_event(event));
	CHECK(!process->provider->rdma_accept(child, &param));
	rep = next();
	CHECK(rep.attribute == SOFT_CM_REP && rep.transaction == 77 && rep.remote == PEER_ID && rep.qp_num == 0x22);

	rtu = answer(SOFT_CM_RTU, &rep);
	dreq = answer(SOFT_CM_DREQ, &rep);
	dreq.qp_num = 0x22;
	far_arrive(process, stranger_ip, &rtu);
	far_arrive(process, stranger_ip, &dreq);
	CHECK(next().attribute == SOFT_CM_DREP); /* to the third host, which has no connection */
	far_arrive(process, peer_ip, &rtu);
	event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(event->id == child);
	CHECK(!process->provider->rdma_ack_cm_event(event));
	far_arrive(process, peer_ip, &dreq);
	event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!process->provider->rdma_ack_cm_event(event));
	CHECK(!process->provider->rdma_disconnect(child));
	CHECK(next().attribute == SOFT_CM_DREP);
	CHECK(!process->provider->rdma_destroy_id(child));
}

/*
 * A third host has seen all packets of a connection. It sends a REJ (timeout) and one with both ids. It requests a
 * connection with the peer's FAR_GUID, queue pair and id, and answers without an id. The peer itself cannot end the
 * connection without its id.
 */
static void test_third_host(struct process *process)
{
	struct soft_cm_message req = request(PEER_ID + 9, far_port()), again, rep, rej, dreq, message;
	struct rdma_conn_param param = {.qp_num = 0x33, .responder_resources = 1, .initiator_depth = 1};
	struct rdma_cm_event *event;
	struct rdma_cm_id *child, *other;

	far_arrive(process, peer_ip, &req);
	event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	child = event->id;
	CHECK(!process->provider->rdma_ack_cm_event(event));
	CHECK(!process->provider->rdma_accept(child, &param));
	rep = next();
	message = answer(SOFT_CM_RTU, &rep);
	message.local = req.local;
	far_arrive(process, peer_ip, &message);
	event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(!process->provider->rdma_ack_cm_event(event));

	rej = answer(SOFT_CM_REJ, &rep);
	rej.local = req.local;
	rej.guid = FAR_GUID;
	rej.reason = SOFT_REJ_TIMEOUT;
	far_arrive(process, stranger_ip, &rej);
	rej.reason = SOFT_REJ_CONSUMER_DEFINED;
	far_arrive(process, stranger_ip, &rej);
	rej.local = 0;
	far_arrive(process, peer_ip, &rej);
	dreq = answer(SOFT_CM_DREQ, &rep);
	dreq.qp_num = 0x33;
	dreq.local = 0;
	far_arrive(process, peer_ip, &dreq);
	CHECK(next().attribute == SOFT_CM_DREP); /* of an unknown connection */

	/* The third host's own connection, which is independent of the peer's. */
	again = req;
	again.source = far_address(stranger_ip, 1000);
	far_arrive(process, stranger_ip, &again);
	event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	other = event->id;
	CHECK(other != child);
	CHECK(!process->provider->rdma_ack_cm_event(event));
	CHECK(!process->provider->rdma_reject(other, NULL, 0));
	CHECK(next().attribute == SOFT_CM_REJ); /* and no DREQ before it */
	CHECK(!process->provider->rdma_destroy_id(other));

	dreq.local = req.local;
	far_arrive(process, peer_ip, &dreq);
	event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(event->id == child);
	CHECK(!process->provider->rdma_ack_cm_event(event));
	CHECK(!process->provider->rdma_disconnect(child));
	CHECK(next().attribute == SOFT_CM_DREP);
	CHECK(!process->provider->rdma_destroy_id(child));
}

static void test_refused(struct process *process)
{
	struct soft_cm_message req = request(PEER_ID + 1, far_port() + 1), rej;

	far_arrive(process, peer_ip, &req);
	rej = next();
	CHECK(rej.attribute == SOFT_CM_REJ && rej.reason == SOFT_REJ_INVALID_SERVICE_ID && rej.remote == PEER_ID + 1);
	CHECK(rej.answered == SOFT_ANSWERED_REQ && rej.transaction == 77);
}

/* Requests that name another sender than their packet's, or an address of this host; and malformed messages. */
static void test_forged(struct process *process)
{
	struct soft_cm_message req = request(PEER_ID + 2, far_port() + 1);
	uint32_t before = far_sent_count();
	struct soft_management *management = &((struct soft_host *)process->provider->host)->device->management;
	uint8_t mad[SOFT_MAD];
	union ibv_gid from, to;

	far_arrive(process, stranger_ip, &req);
	far_arrive(process, far_own_ip, &req);
	req.source = far_address(far_own_ip, 1000);
	far_arrive(process, far_own_ip, &req);
	soft_gid_from_ipv4(&from, peer_ip);
	soft_gid_from_ipv4(&to, far_own_ip);
	memset(mad, 0xa5, sizeof(mad));
	management->receive(management, &from, &to, mad);
	test_refused(process); /* its answer shows that all earlier messages are processed */
	CHECK(far_sent_count() == before + 1);
}

static bool was_refused(void)
{
	while (heard != far_sent_count())
		if (far_sent(heard++).attribute == SOFT_CM_REJ)
			return true;
	return false;
}

/* Requests for which there is no room are lost, and accepted when they are repeated. */
static void test_flood(struct process *process)
{
	struct soft_cm_message req;
	struct rdma_cm_event *event;
	struct rdma_cm_id *child;

	for (uint32_t id = 1; id <= 3000; id++) {
		req = request(0x10000 + id, far_port());
		far_arrive(process, peer_ip, &req);
	}
	req = request(PEER_ID + 3, far_port() + 1);
	FAR_WAIT((far_arrive(process, peer_ip, &req), was_refused()));
	for (int count = 0; count < 100; count++) { /* more are there */
		event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		child = event->id;
		CHECK(!process->provider->rdma_ack_cm_event(event));
		CHECK(!process->provider->rdma_destroy_id(child));
	}
}

static struct soft_half_open half_open(struct process *process)
{
	struct soft_half_open copy;

	soft_mutex_lock(&far_cm(process)->lock);
	copy = far_cm(process)->half_open;
	soft_mutex_unlock(&far_cm(process)->lock);
	return copy;
}

/* So many are half open in the end: one that was counted may not have its place yet. */
static struct soft_half_open expect_half_open(struct process *process, uint32_t total)
{
	struct soft_half_open state;

	FAR_WAIT((state = half_open(process)).total == total);
	return state;
}

/* Send a request and wait until it has arrived, so that the queue loses none. */
static void flood_one(struct process *process, const uint8_t ip[4], uint32_t id)
{
	uint64_t before = half_open(process).requests;
	struct soft_cm_message req = request(id, far_port());

	req.source = far_address(ip, 1000);
	far_arrive(process, ip, &req);
	for (int waited = 0; half_open(process).requests == before; waited += 10) {
		CHECK(waited < PATIENCE_US);
		usleep(10);
	}
}

static void flood_forged(struct process *process, uint32_t count, uint32_t id)
{
	for (uint32_t index = 0; index < count; index++)
		flood_one(process, (uint8_t[4]){10, (uint8_t)(index >> 16), (uint8_t)(index >> 8), (uint8_t)index}, id + index);
}

static struct {
	struct rdma_cm_id *ids[2 * SOFT_HALF_OPEN_MAX];
	uint32_t count;
} accepted;

/* Read all events, and accept the requests; the number of ids that were given up for others, which are destroyed. */
static uint32_t accept_all(struct process *process, const uint8_t wanted[4], bool *found)
{
	struct rdma_conn_param param = {.qp_num = 0x44, .responder_resources = 1, .initiator_depth = 1};
	struct rdma_cm_event *event;
	uint32_t ended = 0;

	while (poll(&(struct pollfd){.fd = process->channel->fd, .events = POLLIN}, 1, 0) == 1) {
		struct rdma_cm_id *id;
		bool is_request;

		CHECK(!process->provider->rdma_get_cm_event(process->channel, &event));
		id = event->id;
		is_request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
		CHECK(is_request || event->event == RDMA_CM_EVENT_UNREACHABLE);
		CHECK(!process->provider->rdma_ack_cm_event(event));
		if (is_request) {
			*found |= !memcmp(&((struct sockaddr_in *)&id->route.addr.dst_addr)->sin_addr, wanted, 4);
			CHECK(!process->provider->rdma_accept(id, &param));
			CHECK(accepted.count < 2 * SOFT_HALF_OPEN_MAX);
			accepted.ids[accepted.count++] = id;
		} else {
			for (uint32_t index = 0; index < accepted.count; index++)
				if (accepted.ids[index] == id)
					accepted.ids[index] = NULL;
			CHECK(!process->provider->rdma_destroy_id(id));
			ended++;
		}
	}
	return ended;
}

static uint32_t answers(void)
{
	uint32_t count = 0;

	for (uint32_t index = 0; index < far_sent_count(); index++) {
		struct soft_cm_message message = far_sent(index);

		count += !is_question(&message);
	}
	return count;
}

/* One host gets half of what there is, any number of forged ones no more than all, and another host gets in. */
static void test_half_open(void)
{
	struct process started = far_start(2), *process = &started;
	struct rdma_cm_id *listener = far_listen(process, far_port());
	struct soft_half_open state;
	bool found = false;

	far_forget();
	heard = 0;
	for (uint32_t id = 1; id <= SOFT_HALF_OPEN_MAX / 2 + 100; id++)
		flood_one(process, peer_ip, id);
	state = expect_half_open(process, SOFT_HALF_OPEN_MAX / 2);
	CHECK(state.dropped == 100);

	flood_forged(process, SOFT_HALF_OPEN_MAX, 0x100000);
	flood_one(process, stranger_ip, PEER_ID);
	state = expect_half_open(process, SOFT_HALF_OPEN_MAX);
	CHECK(state.replaced >= SOFT_HALF_OPEN_MAX / 2 - 100);
	/* No more answers than requests came. */
	CHECK(answers() <= state.requests);
	CHECK(!accept_all(process, stranger_ip, &found) && found);
	CHECK(half_open(process).lists[SOFT_HALF_OPEN_ACCEPTED].count == SOFT_HALF_OPEN_MAX);

	/* None of them answers, and those that are replaced are reported. */
	found = false;
	flood_one(process, stranger_ip, PEER_ID + 1);
	(void)expect_half_open(process, SOFT_HALF_OPEN_MAX);
	CHECK(accept_all(process, stranger_ip, &found) == 1 && found);

	for (uint32_t index = 0; index < accepted.count; index++)
		if (accepted.ids[index])
			CHECK(!process->provider->rdma_destroy_id(accepted.ids[index]));
	(void)expect_half_open(process, 0);
	CHECK(!process->provider->rdma_destroy_id(listener));
	process_end(process);
}

int main(void)
{
	struct process started = far_start(1), *process = &started;
	struct rdma_cm_id *listener = far_listen(process, far_port());

	far_answer_dreqs(far_everybody);
	test_passive(process);
	test_third_host(process);
	test_refused(process);
	test_forged(process);
	test_flood(process);
	CHECK(!process->provider->rdma_destroy_id(listener));
	process_end(process);
	test_half_open();
	return 0;
}
