/* The network around the host, one of the test's own: neighbours that answer, late, or never; addresses and interfaces that come and go. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/network.h"
#include "soft/wire/address.h"
#include "soft/wire/datagram.h"

#define SHORT_MS 300
#define NOBODY 65534 /* a user that only root can become */
#define LONG_MS 100000 /* more than the test has */

static struct core_provider *open_udp(void)
{
	struct core_options options = {.link = CORE_LINK_UDP};
	struct core_provider *provider;
	char why[512] = "";

	snprintf(options.fabric, sizeof(options.fabric), "network-%d", getpid());
	CHECK(!core_open("soft", &options, &provider, why, sizeof(why)));
	return provider;
}

static struct sockaddr_storage address_of(const char *text)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};
	struct sockaddr_in *ipv4 = (void *)&address;
	struct sockaddr_in6 *ipv6 = (void *)&address;

	if (inet_pton(AF_INET, text, &ipv4->sin_addr) != 1) {
		address.ss_family = AF_INET6;
		CHECK(inet_pton(AF_INET6, text, &ipv6->sin6_addr) == 1);
	}
	ipv4->sin_port = htons(7471);
	return address;
}

/* The kernel resolves until its timeout, and then the id may resolve again. */
static void expect_absent(struct setup *setup, const char *text)
{
	struct sockaddr_storage address = address_of(text);
	struct rdma_cm_id *id;

	CHECK(!setup->provider->rdma_create_id(setup->active, &id, NULL, RDMA_PS_TCP));
	for (int time = 0; time < 2; time++) {
		CHECK(!setup->provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, SHORT_MS));
		expect_status(setup, setup->active, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
		CHECK(!id->verbs);
	}
	CHECK(!setup->provider->rdma_destroy_id(id));
}

/* later: a command after which there is an answer; NULL: there is one. */
static void expect_present(struct setup *setup, const char *text, const char *later)
{
	struct sockaddr_storage address = address_of(text);
	struct rdma_cm_id *id;

	CHECK(!setup->provider->rdma_create_id(setup->active, &id, NULL, RDMA_PS_TCP));
	CHECK(!setup->provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, LONG_MS));
	if (later) {
		expect_silence(setup->active);
		CHECK(!system(later));
	}
	expect_and_acknowledge(setup->provider, setup->active, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(id->verbs);
	CHECK(!setup->provider->rdma_destroy_id(id));
}

#define HARDWARE " lladdr 02:00:00:00:00:09 dev near"

static void test_neighbours(struct setup *setup)
{
	expect_absent(setup, NETWORK_FAR);
	expect_absent(setup, NETWORK_FAR_6);
	expect_present(setup, NETWORK_FAR, "ip neighbour replace " NETWORK_FAR HARDWARE);
	expect_present(setup, NETWORK_FAR_6, "ip neighbour replace " NETWORK_FAR_6 HARDWARE);
	expect_present(setup, NETWORK_FAR, NULL);
	expect_present(setup, NETWORK_FAR_6, NULL);
}

/* The gateway must answer, not the destination. */
static void test_gateway(struct setup *setup)
{
	CHECK(!system("ip route add 203.0.113.0/25 via 192.0.2.8 && ip route add 203.0.113.128/25 via " NETWORK_FAR " && "
		      "ip route add 198.51.100.0/25 via inet6 2001:db8::8 && "
		      "ip route add 198.51.100.128/25 via inet6 " NETWORK_FAR_6));
	expect_absent(setup, "203.0.113.1");
	expect_present(setup, "203.0.113.129", NULL);
	expect_absent(setup, "198.51.100.1");
	expect_present(setup, "198.51.100.129", NULL);
}

/* On an interface without neighbours none must answer. */
static void test_silent_interface(struct setup *setup)
{
	CHECK(!system("ip link add still type veth peer name deaf && ip link set still arp off up && ip link set deaf up && ip address add 10.0.0.1/24 dev still"));
	expect_present(setup, "10.0.0.2", NULL);
}

/* The port for other hosts belongs to another user, whom the error names. */
static void test_port_of_another(struct setup *setup, uid_t user, const char *named)
{
	struct sockaddr_storage own = address_of(NETWORK_ADDRESS), other = address_of(NETWORK_FAR);
	struct rdma_addrinfo info = {.ai_family = AF_INET, .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC,
				     .ai_dst_len = sizeof(struct sockaddr_in), .ai_dst_addr = (struct sockaddr *)&other};
	int fd, ready[2], end[2], status;
	struct rdma_cm_id *id, *ep;
	char byte = 0;
	pid_t child;

	CHECK(!pipe(ready) && !pipe(end));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		close(end[1]);
		((struct sockaddr_in *)&own)->sin_port = htons(SOFT_WIRE_PORT);
		if (user && setresuid(user, user, user))
			_exit(EPERM);
		if ((fd = socket(AF_INET, SOCK_DGRAM, 0)) < 0 ||
		    bind(fd, (struct sockaddr *)&own, sizeof(struct sockaddr_in)) || write(ready[1], &byte, 1) != 1)
			_exit(1);
		_exit(read(end[0], &byte, 1) ? 1 : 0);
	}
	close(end[0]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == EPERM);
		fprintf(stderr, "left out: no other user can be had without root\n");
		close(ready[0]);
		close(end[1]);
		return;
	}
	CHECK(!setup->provider->rdma_create_id(setup->active, &id, NULL, RDMA_PS_TCP));
	core_forget_refusal(setup->provider);
	REFUSED(setup->provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&other, LONG_MS), EADDRINUSE);
	CHECK(strstr(core_refusal(setup->provider), named));
	/* Its own clean-up must not clear the sentence. */
	core_forget_refusal(setup->provider);
	REFUSED(setup->provider->rdma_create_ep(&ep, &info, NULL, NULL), EADDRINUSE);
	CHECK(strstr(core_refusal(setup->provider), named));
	close(end[1]);
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(!setup->provider->rdma_destroy_id(id));
	close(ready[0]);
}

/* Until that event has come; others may come before it. */
static void expect_async(struct setup *setup, struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event;

	do {
		CHECK(!setup->provider->ibv_get_async_event(context, &event));
		CHECK(event.event_type == IBV_EVENT_GID_CHANGE || event.event_type == IBV_EVENT_PORT_ERR ||
		      event.event_type == IBV_EVENT_PORT_ACTIVE);
		CHECK(event.element.port_num == 1);
		setup->provider->ibv_ack_async_event(&event);
	} while (event.event_type != type);
}

#define LOOKS 100 /* of which one falls between two changes of the table */

/* The index of a GID that is shown; -1 when it is not. The table and each of its entries say the same. */
static int index_of(struct setup *setup, struct ibv_context *context, const char *text)
{
	struct sockaddr_storage address = address_of(text);
	struct ibv_gid_entry entries[256];
	union ibv_gid wanted, shown;
	ssize_t count, entry;
	int index;

	CHECK(soft_gid_from_sockaddr(&wanted, (struct sockaddr *)&address));
	for (int look = 0; look < LOOKS; look++) {
		count = setup->provider->_ibv_query_gid_table(context, entries, 256, 0, sizeof(entries[0]));
		CHECK(count > 0);
		index = -1;
		for (entry = 0; entry < count; entry++) {
			if (setup->provider->ibv_query_gid(context, 1, (int)entries[entry].gid_index, &shown) ||
			    memcmp(&shown, &entries[entry].gid, sizeof(shown)))
				break; /* the kernel has changed an address since */
			if (!memcmp(&shown, &wanted, sizeof(shown)))
				index = (int)entries[entry].gid_index;
		}
		if (entry == count)
			return index;
	}
	CHECK(!"the table and its entries differ each time");
	return -1;
}

/* Until it is so: events of the kernel come one by one, and are seen in one look or in several. */
static void expect_index(struct setup *setup, struct ibv_context *context, const char *text, int index)
{
	while (index_of(setup, context, text) != index)
		expect_async(setup, context, IBV_EVENT_GID_CHANGE);
}

static void test_addresses(struct setup *setup, struct ibv_context *context)
{
	int index;

	CHECK(index_of(setup, context, "192.0.2.50") < 0);
	CHECK(!system("ip address add 192.0.2.50/24 dev near"));
	do {
		expect_async(setup, context, IBV_EVENT_GID_CHANGE);
		index = index_of(setup, context, "192.0.2.50");
	} while (index < 0);
	CHECK(!system("ip address delete 192.0.2.50/24 dev near"));
	expect_index(setup, context, "192.0.2.50", -1);
	CHECK(!system("ip address add 192.0.2.50/24 dev near"));
	expect_index(setup, context, "192.0.2.50", index);
}

static enum ibv_port_state state_of(struct setup *setup, struct ibv_context *context)
{
	struct ibv_port_attr attr = {0};

	CHECK(!setup->provider->ibv_query_port(context, 1, (void *)&attr));
	return attr.state;
}

static void test_port(struct setup *setup, struct ibv_context *context)
{
	CHECK(!system("ip link delete still"));
	CHECK(state_of(setup, context) == IBV_PORT_ACTIVE);
	CHECK(!system("ip link set near down"));
	expect_async(setup, context, IBV_EVENT_PORT_ERR);
	CHECK(state_of(setup, context) == IBV_PORT_DOWN);
	CHECK(!system("ip link set near up"));
	expect_async(setup, context, IBV_EVENT_PORT_ACTIVE);
	CHECK(state_of(setup, context) == IBV_PORT_ACTIVE);
}

static struct rdma_cm_id *listener_at(struct setup *setup, const char *text)
{
	struct sockaddr_storage address = address_of(text);
	struct rdma_cm_id *id;

	CHECK(!setup->provider->rdma_create_id(setup->active, &id, NULL, RDMA_PS_TCP));
	CHECK(!setup->provider->rdma_bind_addr(id, (struct sockaddr *)&address));
	CHECK(!setup->provider->rdma_listen(id, 1));
	return id;
}

/* Ids with the vanished address get the event, and no others: the device has other addresses. */
static void test_interface(struct setup *setup, struct ibv_context *context)
{
	struct rdma_cm_id *here = listener_at(setup, "127.0.0.1"), *there = listener_at(setup, NETWORK_ADDRESS);
	struct rdma_cm_event *event;

	CHECK(!system("ip link delete near"));
	event = expect_event(setup->provider, setup->active, RDMA_CM_EVENT_DEVICE_REMOVAL);
	CHECK(event->id == there);
	CHECK(!setup->provider->rdma_ack_cm_event(event));
	expect_async(setup, context, IBV_EVENT_PORT_ERR);
	expect_index(setup, context, NETWORK_ADDRESS, -1);
	expect_silence(setup->active);
	CHECK(!setup->provider->rdma_destroy_id(there));
	CHECK(!setup->provider->rdma_destroy_id(here));
}

int main(void)
{
	struct ibv_context **devices;
	struct setup setup = {0};
	int count;

	if (!network_of_own())
		return 0;
	setup.provider = open_udp();
	setup.active = create_channel(setup.provider);
	test_port_of_another(&setup, 0, "of this user");
	test_port_of_another(&setup, NOBODY, "is user 65534's");
	test_neighbours(&setup);
	test_gateway(&setup);
	test_silent_interface(&setup);
	core_select(setup.provider);
	devices = setup.provider->rdma_get_devices(&count);
	CHECK(devices && count == 1);
	test_addresses(&setup, devices[0]);
	test_port(&setup, devices[0]);
	test_interface(&setup, devices[0]);
	setup.provider->rdma_free_devices(devices);
	setup.provider->rdma_destroy_event_channel(setup.active);
	close_provider(setup.provider);
	return 0;
}
