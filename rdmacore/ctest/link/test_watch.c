/*
 * Three that share the port of other hosts, one of which takes nothing: it gets nothing either, until it takes packets again.
 * Packets come from this host, from ports that the kernel would spread over all three.
 */
#include <arpa/inet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/network.h"
#include "ctest/support/process.h"
#include "soft/host.h"
#include "soft/link/udp_pass.h"

#define PORT 7471
#define SHARERS 3
#define PORTS 64
#define ATTEMPTS 20000 /* of some milliseconds */

static struct process sharers[SHARERS];
static struct rdma_cm_id *listeners[SHARERS];

static struct soft_udp *udp_of(int sharer)
{
	return ((struct soft_host *)sharers[sharer].provider->host)->udp;
}

static union ibv_gid address_of(bool ipv6)
{
	union ibv_gid gid;
	uint8_t address[4];

	if (ipv6) {
		CHECK(inet_pton(AF_INET6, NETWORK_ADDRESS_6, gid.raw) == 1);
	} else {
		CHECK(inet_pton(AF_INET, NETWORK_ADDRESS, address) == 1);
		soft_gid_from_ipv4(&gid, address);
	}
	return gid;
}

static int descriptor_of(int sharer, bool ipv6)
{
	union ibv_gid gid = address_of(ipv6);
	int error = 0;
	struct soft_udp_socket *socket = soft_udp_open(udp_of(sharer), &gid, SOFT_WIRE_PORT, &error);

	CHECK(socket);
	return socket->source.fd;
}

/* From another port each: a byte that is no packet. */
static void send_from_all(bool ipv6)
{
	union ibv_gid gid = address_of(ipv6);
	union soft_udp_address to;

	soft_gid_to_sockaddr(&gid, SOFT_WIRE_PORT, &to.any);
	for (int port = 0; port < PORTS; port++) {
		int fd = socket(to.any.sa_family, SOCK_DGRAM, 0);

		CHECK(fd >= 0 && sendto(fd, "", 1, 0, &to.any, soft_udp_length(&to)) == 1 && !close(fd));
	}
}

static bool gets_nothing(int fd, bool ipv6)
{
	uint8_t bytes[2048];
	int waiting = 0;

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0)
		;
	send_from_all(ipv6);
	CHECK(!ioctl(fd, FIONREAD, &waiting));
	return !waiting;
}

static uint64_t dropped_by(int sharer)
{
	return atomic_load(&udp_of(sharer)->counters.dropped);
}

static void test_stopped(int sharer, bool ipv6)
{
	int fd = descriptor_of(sharer, ipv6), attempt = 0;
	uint64_t before;

	bare_hold(&udp_of(sharer)->receiving);
	while (!gets_nothing(fd, ipv6)) {
		CHECK(++attempt < ATTEMPTS);
		usleep(1000);
	}
	bare_let_go(&udp_of(sharer)->receiving);
	before = dropped_by(sharer);
	for (attempt = 0; dropped_by(sharer) == before; usleep(1000)) {
		CHECK(++attempt < ATTEMPTS);
		send_from_all(ipv6);
	}
}

/* A probe of another form, or from elsewhere, is none, and no answer goes out for an answer. */
static void test_no_probes(void)
{
	struct soft_udp *udp = udp_of(0);
	struct soft_udp_socket *socket;
	struct soft_udp_came came = {.source.port = 5, .segment = SOFT_UDP_PROBE};
	uint8_t bytes[SOFT_UDP_PROBE] = {0x52, 0x44, 0x4d, 0x70}, own[4], far[4];

	CHECK(inet_pton(AF_INET, NETWORK_ADDRESS, own) == 1 && inet_pton(AF_INET, NETWORK_FAR, far) == 1);
	soft_gid_from_ipv4(&came.source.address, own);
	socket = soft_udp_find(udp, &came.source.address, SOFT_WIRE_PORT);
	soft_lock_take(&udp->receiving);
	CHECK(soft_udp_watch_answer(udp, socket, &came, bytes));
	bytes[0] ^= 1;
	CHECK(!soft_udp_watch_answer(udp, socket, &came, bytes));
	bytes[0] ^= 1;
	bytes[23] = 1; /* an answer */
	CHECK(!soft_udp_watch_answer(udp, socket, &came, bytes));
	bytes[23] = 0;
	soft_gid_from_ipv4(&came.source.address, far);
	CHECK(!soft_udp_watch_answer(udp, socket, &came, bytes));
	soft_lock_release(&udp->receiving);
}

int main(void)
{
	if (!network_of_own())
		return 0;
	for (int sharer = 0; sharer < SHARERS; sharer++) {
		sharers[sharer] = process_start((uint64_t)sharer + 1);
		listeners[sharer] = process_listen(&sharers[sharer], (uint16_t)(PORT + sharer));
	}
	test_no_probes();
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		for (int sharer = 0; sharer < SHARERS; sharer++)
			(void)descriptor_of(sharer, ipv6); /* each has a socket before one is stopped */
		for (int sharer = 0; sharer < SHARERS; sharer++)
			test_stopped(sharer, ipv6);
	}
	for (int sharer = 0; sharer < SHARERS; sharer++) {
		process_destroy(&sharers[sharer], listeners[sharer]);
		process_end(&sharers[sharer]);
	}
	return 0;
}
