/*
 * Connections with another host, which this test plays: it gives the communication manager management datagrams as the
 * link udp does, and reads what it answers.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
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

#define PORT 7471
#define GUID UINT64_C(0x0200000000abcdef)
#define PEER_ID 0x1234
#define PEER_QP 0x11
#define SENT_MAX 65536
#define PATIENCE_US 20000000

static const uint8_t peer_ip[4] = {198, 51, 100, 9}, stranger_ip[4] = {198, 51, 100, 10}, own_ip[4] = {127, 0, 0, 1};

/* What the communication manager sent. */
static struct {
	uint8_t mads[SENT_MAX][SOFT_MAD];
	_Atomic uint32_t count;
	uint32_t read;
} sent;

/* Whether it was a DREQ for no connection, which all hosts of this test answer. */
static bool answer_dreq(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to, const uint8_t *mad)
{
	struct soft_cm_message dreq, drep = {.attribute = SOFT_CM_DREP};
	uint8_t bytes[SOFT_MAD];

	if (!soft_mad_decode(mad, &dreq) || dreq.attribute != SOFT_CM_DREQ || dreq.remote)
		return false;
	drep.transaction = dreq.transaction;
	drep.remote = dreq.local;
	soft_mad_encode(&drep, bytes);
	management->receive(management, to, from, bytes);
	return true;
}

static void note(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to, const uint8_t *mad)
{
	uint32_t index = atomic_load(&sent.count);

	if (answer_dreq(management, from, to, mad))
		return;
	CHECK(soft_gid_is_loopback(from) && !soft_gid_is_loopback(to));
	CHECK(index < SENT_MAX);
	memcpy(sent.mads[index], mad, SOFT_MAD);
	atomic_store(&sent.count, index + 1);
}

static struct soft_management *management_of(struct core_provider *provider)
{
	return &((struct soft_host *)provider->host)->device->management;
}

static struct core_provider *open_udp(void)
{
	struct core_options options = {.link = CORE_LINK_UDP};
	struct core_provider *provider;
	char why[512] = "";

	snprintf(options.fabric, sizeof(options.fabric), "hosts-%d", getpid());
	CHECK(!core_open("soft", &options, &provider, why, sizeof(why)));
	management_of(provider)->send = note;
	return provider;
}

static void arrive_from(struct core_provider *provider, const uint8_t ip[4], const struct soft_cm_message *message)
{
	union ibv_gid from, to;
	uint8_t mad[SOFT_MAD];

	soft_gid_from_ipv4(&from, ip);
	soft_gid_from_ipv4(&to, own_ip);
	soft_mad_encode(message, mad);
	management_of(provider)->receive(management_of(provider), &from, &to, mad);
}

static struct soft_cm_message request(uint32_t id, uint16_t port)
{
	return (struct soft_cm_message){
		.attribute = SOFT_CM_REQ,
		.transaction = 77,
		.local = id,
		.guid = GUID,
		.qp_num = PEER_QP + id,
		.starting_psn = 5,
		.port_space = RDMA_PS_TCP,
		.path = {.mtu = IBV_MTU_1024},
		.responder_resources = 3,
		.initiator_depth = 2,
		.source = far_address(peer_ip, 1000),
		.destination = far_address(own_ip, port),
		.private_data_len = 5,
		.private_data = "hello",
	};
}

/* The next message that was sent; MRAs are passed over. */
static struct soft_cm_message next(void)
{
	struct soft_cm_message message;

	do {
		for (int waited = 0; sent.read == atomic_load(&sent.count); waited += 1000) {
			CHECK(waited < PATIENCE_US);
			usleep(1000);
		}
		CHECK(soft_mad_decode(sent.mads[sent.read++], &message));
	} while (message.attribute == SOFT_CM_MRA);
	return message;
}

static struct soft_cm_message answer(enum soft_cm_attribute attribute, const struct soft_cm_message *to)
{
	return (struct soft_cm_message){.attribute = attribute, .transaction = to->transaction, .local = PEER_ID, .remote = to->local};
}

static struct rdma_cm_id *listener_on(struct core_provider *provider, struct rdma_event_channel *channel)
{
	struct sockaddr_storage address = far_address(own_ip, PORT);
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&address));
	CHECK(!provider->rdma_listen(id, 0));
	return id;
}

/* From the request to both ends' good-bye; in between somebody else speaks for the peer, and is not heard. */
static void test_passive(struct core_provider *provider, struct rdma_event_channel *channel)
{
	struct soft_cm_message req = request(PEER_ID, PORT), rep, rtu, dreq;
	struct rdma_conn_param param = {.qp_num = 0x22, .responder_resources = 1, .initiator_depth = 1};
	struct rdma_cm_event *event;
	struct rdma_cm_id *child;

	arrive_from(provider, peer_ip, &req);
	event = expect_event(provider, channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	child = event->id;
	CHECK(!memcmp(event->param.conn.private_data, "hello", 5));
	CHECK(event->param.conn.qp_num == req.qp_num);
	CHECK(event->param.conn.initiator_depth == 3 && event->param.conn.responder_resources == 2);
	CHECK(!memcmp(&((struct sockaddr_in *)&child->route.addr.dst_addr)->sin_addr, peer_ip, 4));
	CHECK(!provider->rdma_ack_cm_event(event));
	CHECK(!provider->rdma_accept(child, &param));
	rep = next();
	CHECK(rep.attribute == SOFT_CM_REP && rep.transaction == 77 && rep.remote == PEER_ID && rep.qp_num == 0x22);

	rtu = answer(SOFT_CM_RTU, &rep);
	dreq = answer(SOFT_CM_DREQ, &rep);
	dreq.qp_num = 0x22;
	arrive_from(provider, stranger_ip, &rtu);
	arrive_from(provider, stranger_ip, &dreq);
	CHECK(next().attribute == SOFT_CM_DREP); /* to the stranger, who has no connection */
	arrive_from(provider, peer_ip, &rtu);
	event = expect_event(provider, channel, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(event->id == child);
	CHECK(!provider->rdma_ack_cm_event(event));
	arrive_from(provider, peer_ip, &dreq);
	event = expect_event(provider, channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!provider->rdma_ack_cm_event(event));
	CHECK(!provider->rdma_disconnect(child));
	CHECK(next().attribute == SOFT_CM_DREP);
	CHECK(!provider->rdma_destroy_id(child));
}

/*
 * A stranger who has seen all of a connection says so, and knows none of it as its peer would: he sends a REJ for timeout and one
 * with both ids, asks for a connection with the peer's GUID, queue pair and id, and answers as who has no id.  The peer cannot
 * end it without the id that it has.
 */
static void test_third_host(struct core_provider *provider, struct rdma_event_channel *channel)
{
	struct soft_cm_message req = request(PEER_ID + 9, PORT), again, rep, rej, dreq, message;
	struct rdma_conn_param param = {.qp_num = 0x33, .responder_resources = 1, .initiator_depth = 1};
	struct rdma_cm_event *event;
	struct rdma_cm_id *child, *other;

	arrive_from(provider, peer_ip, &req);
	event = expect_event(provider, channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	child = event->id;
	CHECK(!provider->rdma_ack_cm_event(event));
	CHECK(!provider->rdma_accept(child, &param));
	rep = next();
	message = answer(SOFT_CM_RTU, &rep);
	message.local = req.local;
	arrive_from(provider, peer_ip, &message);
	event = expect_event(provider, channel, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(!provider->rdma_ack_cm_event(event));

	rej = answer(SOFT_CM_REJ, &rep);
	rej.local = req.local;
	rej.guid = GUID;
	rej.reason = SOFT_REJ_TIMEOUT;
	arrive_from(provider, stranger_ip, &rej);
	rej.reason = SOFT_REJ_CONSUMER_DEFINED;
	arrive_from(provider, stranger_ip, &rej);
	rej.local = 0;
	arrive_from(provider, peer_ip, &rej);
	dreq = answer(SOFT_CM_DREQ, &rep);
	dreq.qp_num = 0x33;
	dreq.local = 0;
	arrive_from(provider, peer_ip, &dreq);
	CHECK(next().attribute == SOFT_CM_DREP); /* of a connection that there is not */

	/* The stranger's own connection, which is none of the peer's. */
	again = req;
	again.source = far_address(stranger_ip, 1000);
	arrive_from(provider, stranger_ip, &again);
	event = expect_event(provider, channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	other = event->id;
	CHECK(other != child);
	CHECK(!provider->rdma_ack_cm_event(event));
	CHECK(!provider->rdma_reject(other, NULL, 0));
	CHECK(next().attribute == SOFT_CM_REJ); /* and no DREQ before it */
	CHECK(!provider->rdma_destroy_id(other));

	dreq.local = req.local;
	arrive_from(provider, peer_ip, &dreq);
	event = expect_event(provider, channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(event->id == child);
	CHECK(!provider->rdma_ack_cm_event(event));
	CHECK(!provider->rdma_disconnect(child));
	CHECK(next().attribute == SOFT_CM_DREP);
	CHECK(!provider->rdma_destroy_id(child));
}

static void test_refused(struct core_provider *provider)
{
	struct soft_cm_message req = request(PEER_ID + 1, PORT + 1), rej;

	arrive_from(provider, peer_ip, &req);
	rej = next();
	CHECK(rej.attribute == SOFT_CM_REJ && rej.reason == SOFT_REJ_INVALID_SERVICE_ID && rej.remote == PEER_ID + 1);
	CHECK(rej.answered == SOFT_ANSWERED_REQ && rej.transaction == 77);
}

/* A request that names another sender than its packet, or one of this host's own addresses, and what is no message. */
static void test_forged(struct core_provider *provider)
{
	struct soft_cm_message req = request(PEER_ID + 2, PORT + 1);
	uint32_t before = atomic_load(&sent.count);
	uint8_t mad[SOFT_MAD];
	union ibv_gid from, to;

	arrive_from(provider, stranger_ip, &req);
	arrive_from(provider, own_ip, &req);
	req.source = far_address(own_ip, 1000);
	arrive_from(provider, own_ip, &req);
	soft_gid_from_ipv4(&from, peer_ip);
	soft_gid_from_ipv4(&to, own_ip);
	memset(mad, 0xa5, sizeof(mad));
	management_of(provider)->receive(management_of(provider), &from, &to, mad);
	test_refused(provider); /* by its answer those before it are dealt with */
	CHECK(atomic_load(&sent.count) == before + 1);
}

static bool was_refused(void)
{
	struct soft_cm_message message;

	while (sent.read != atomic_load(&sent.count)) {
		CHECK(soft_mad_decode(sent.mads[sent.read++], &message));
		if (message.attribute == SOFT_CM_REJ)
			return true;
	}
	return false;
}

/* What there is no room for is lost, and served when it is repeated. */
static void test_flood(struct core_provider *provider, struct rdma_event_channel *channel)
{
	struct soft_cm_message req;
	struct rdma_cm_event *event;
	struct rdma_cm_id *child;

	for (uint32_t id = 1; id <= 3000; id++) {
		req = request(0x10000 + id, PORT);
		arrive_from(provider, peer_ip, &req);
	}
	req = request(PEER_ID + 3, PORT + 1);
	for (int waited = 0; !was_refused(); waited += 1000) {
		CHECK(waited < PATIENCE_US);
		arrive_from(provider, peer_ip, &req);
		usleep(1000);
	}
	for (int heard = 0; heard < 100; heard++) { /* more are there */
		event = expect_event(provider, channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		child = event->id;
		CHECK(!provider->rdma_ack_cm_event(event));
		CHECK(!provider->rdma_destroy_id(child));
	}
}

static struct soft_cm *cm_of(struct core_provider *provider)
{
	return ((struct soft_host *)provider->host)->cm;
}

static struct soft_half_open half_open(struct core_provider *provider)
{
	struct soft_half_open copy;

	soft_mutex_lock(&cm_of(provider)->lock);
	copy = cm_of(provider)->half_open;
	soft_mutex_unlock(&cm_of(provider)->lock);
	return copy;
}

/* So many are half open in the end: one that was counted may not have its place yet. */
static struct soft_half_open expect_half_open(struct core_provider *provider, uint32_t total)
{
	struct soft_half_open state = half_open(provider);

	for (int waited = 0; state.total != total; waited += 1000) {
		CHECK(waited < PATIENCE_US);
		usleep(1000);
		state = half_open(provider);
	}
	return state;
}

/* A request whose arrival is waited for, so that none is lost in the queue. */
static void flood_one(struct core_provider *provider, const uint8_t ip[4], uint32_t id)
{
	uint64_t before = half_open(provider).requests;
	struct soft_cm_message req = request(id, PORT);

	req.source = far_address(ip, 1000);
	arrive_from(provider, ip, &req);
	for (int waited = 0; half_open(provider).requests == before; waited += 10) {
		CHECK(waited < PATIENCE_US);
		usleep(10);
	}
}

static void flood_forged(struct core_provider *provider, uint32_t count, uint32_t id)
{
	for (uint32_t index = 0; index < count; index++)
		flood_one(provider, (uint8_t[4]){10, (uint8_t)(index >> 16), (uint8_t)(index >> 8), (uint8_t)index}, id + index);
}

static struct {
	struct rdma_cm_id *ids[2 * SOFT_HALF_OPEN_MAX];
	uint32_t count;
} accepted;

/* Read all events, and accept the requests; the number of ids that were given up for others, which are destroyed. */
static uint32_t accept_all(struct core_provider *provider, struct rdma_event_channel *channel, const uint8_t wanted[4], bool *found)
{
	struct rdma_conn_param param = {.qp_num = 0x44, .responder_resources = 1, .initiator_depth = 1};
	struct rdma_cm_event *event;
	uint32_t ended = 0;

	while (poll(&(struct pollfd){.fd = channel->fd, .events = POLLIN}, 1, 0) == 1) {
		struct rdma_cm_id *id;
		bool is_request;

		CHECK(!provider->rdma_get_cm_event(channel, &event));
		id = event->id;
		is_request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
		CHECK(is_request || event->event == RDMA_CM_EVENT_UNREACHABLE);
		CHECK(!provider->rdma_ack_cm_event(event));
		if (is_request) {
			*found |= !memcmp(&((struct sockaddr_in *)&id->route.addr.dst_addr)->sin_addr, wanted, 4);
			CHECK(!provider->rdma_accept(id, &param));
			CHECK(accepted.count < 2 * SOFT_HALF_OPEN_MAX);
			accepted.ids[accepted.count++] = id;
		} else {
			for (uint32_t index = 0; index < accepted.count; index++)
				if (accepted.ids[index] == id)
					accepted.ids[index] = NULL;
			CHECK(!provider->rdma_destroy_id(id));
			ended++;
		}
	}
	return ended;
}

/* One host gets half of what there is, any number of forged ones no more than all, and another host gets in. */
static void test_half_open(void)
{
	struct core_provider *provider = open_udp();
	struct rdma_event_channel *channel = create_channel(provider);
	struct rdma_cm_id *listener = listener_on(provider, channel);
	struct soft_half_open state;
	bool found = false;

	atomic_store(&sent.count, 0);
	sent.read = 0;
	for (uint32_t id = 1; id <= SOFT_HALF_OPEN_MAX / 2 + 100; id++)
		flood_one(provider, peer_ip, id);
	state = expect_half_open(provider, SOFT_HALF_OPEN_MAX / 2);
	CHECK(state.dropped == 100);

	flood_forged(provider, SOFT_HALF_OPEN_MAX, 0x100000);
	flood_one(provider, stranger_ip, PEER_ID);
	state = expect_half_open(provider, SOFT_HALF_OPEN_MAX);
	CHECK(state.replaced >= SOFT_HALF_OPEN_MAX / 2 - 100);
	/* No more answers than requests came. */
	CHECK(atomic_load(&sent.count) <= state.requests);
	CHECK(!accept_all(provider, channel, stranger_ip, &found) && found);
	CHECK(half_open(provider).lists[SOFT_HALF_OPEN_ACCEPTED].count == SOFT_HALF_OPEN_MAX);

	/* None of them answers, and those that are replaced are reported. */
	found = false;
	flood_one(provider, stranger_ip, PEER_ID + 1);
	(void)expect_half_open(provider, SOFT_HALF_OPEN_MAX);
	CHECK(accept_all(provider, channel, stranger_ip, &found) == 1 && found);

	for (uint32_t index = 0; index < accepted.count; index++)
		if (accepted.ids[index])
			CHECK(!provider->rdma_destroy_id(accepted.ids[index]));
	(void)expect_half_open(provider, 0);
	CHECK(!provider->rdma_destroy_id(listener));
	provider->rdma_destroy_event_channel(channel);
	close_provider(provider);
}

int main(void)
{
	struct core_provider *provider = open_udp();
	struct rdma_event_channel *channel = create_channel(provider);
	struct rdma_cm_id *listener = listener_on(provider, channel);

	test_passive(provider, channel);
	test_third_host(provider, channel);
	test_refused(provider);
	test_forged(provider);
	test_flood(provider, channel);
	CHECK(!provider->rdma_destroy_id(listener));
	provider->rdma_destroy_event_channel(channel);
	close_provider(provider);
	test_half_open();
	return 0;
}
