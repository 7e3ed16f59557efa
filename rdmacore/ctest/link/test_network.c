/* The network around the host, one of the test's own: neighbours that answer, late, or never. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/network.h"

#define SHORT_MS 300
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

/* The kernel asks for all of its time, and then the id may ask again. */
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

/* It is not the destination that has to answer, but who takes packets to it. */
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

/* Where nobody is asked nobody has to answer. */
static void test_silent_interface(struct setup *setup)
{
	CHECK(!system("ip link add still type veth peer name deaf && ip link set still arp off up && ip link set deaf up && ip address add 10.0.0.1/24 dev still"));
	expect_present(setup, "10.0.0.2", NULL);
}

int main(void)
{
	struct setup setup = {0};

	if (!network_of_own())
		return 0;
	setup.provider = open_udp();
	setup.active = create_channel(setup.provider);
	test_neighbours(&setup);
	test_gateway(&setup);
	test_silent_interface(&setup);
	setup.provider->rdma_destroy_event_channel(setup.active);
	close_provider(setup.provider);
	return 0;
}
