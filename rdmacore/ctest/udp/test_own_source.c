/*
 * Another host sends over IPv6 with the address of this host as source, which the kernel accepts. It sends to the port
 * of other hosts and to that of a block. Neither arrives. What this host sends, and what the other sends as itself,
 * does.
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/network.h"
#include "ctest/support/process.h"
#include "soft/host.h"
#include "soft/udp/internal.h"

#define PORT 7471
#define SENDER 61001 /* the port of another block */
#define ATTEMPTS 20000 /* of a millisecond */
#define FORGED 8 /* datagrams */
#define BYTES 64 /* of a packet that is not a probe, because probes come from other processes */

static int wire, interface;
static struct ether_header ethernet = {.ether_type = 0};

/* The other end of the wire. */
static void open_wire(void)
{
	struct ifreq near = {.ifr_name = "near"};

	wire = socket(AF_PACKET, SOCK_RAW, 0);
	interface = (int)if_nametoindex("far");
	ethernet.ether_type = htons(ETHERTYPE_IPV6);
	CHECK(wire >= 0 && interface && !ioctl(wire, SIOCGIFHWADDR, &near));
	memcpy(ethernet.ether_dhost, near.ifr_hwaddr.sa_data, sizeof(ethernet.ether_dhost));
	ethernet.ether_shost[0] = 2;
}

/* A datagram with those bytes, by the wire. */
static void send_by_wire(const char *source, uint16_t port, uint8_t byte)
{
	struct {
		struct ether_header ethernet;
		struct ip6_hdr ip;
		struct udphdr udp; /* without a checksum, as of a kernel's RoCE */
		uint8_t bytes[BYTES];
	} __attribute__((packed)) frame = {.ethernet = ethernet};
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = interface};

	frame.ip.ip6_flow = htonl(6 << 28);
	frame.ip.ip6_plen = frame.udp.len = htons(sizeof(frame.udp) + BYTES);
	frame.ip.ip6_nxt = IPPROTO_UDP;
	frame.ip.ip6_hlim = 64;
	CHECK(inet_pton(AF_INET6, source, &frame.ip.ip6_src) == 1);
	CHECK(inet_pton(AF_INET6, NETWORK_ADDRESS_6, &frame.ip.ip6_dst) == 1);
	frame.udp.source = htons(SENDER);
	frame.udp.dest = htons(port);
	memset(frame.bytes, byte, BYTES);
	CHECK(sendto(wire, &frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)) == sizeof(frame));
}

/* From this host, as its processes do. */
static void send_here(uint16_t port, uint8_t byte)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6};
	uint8_t bytes[BYTES];
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	CHECK(fd >= 0 && inet_pton(AF_INET6, NETWORK_ADDRESS_6, &address.sin6_addr) == 1);
	address.sin6_port = htons(SENDER);
	CHECK(!bind(fd, (struct sockaddr *)&address, sizeof(address)));
	address.sin6_port = htons(port);
	memset(bytes, byte, BYTES);
	CHECK(sendto(fd, bytes, BYTES, 0, (struct sockaddr *)&address, sizeof(address)) == BYTES);
	CHECK(!close(fd));
}

/* The byte of the next datagram. */
static uint8_t take_next(int fd)
{
	uint8_t bytes[2048];

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		ssize_t length = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (length > 0 && length % BYTES == 0)
			return bytes[0];
		if (length < 0)
			poll(NULL, 0, 1);
	}
	CHECK(!"a datagram");
	return 0;
}

/* The provider receives nothing meanwhile. */
static void test_port(struct soft_udp *udp, uint16_t port, bool from_others)
{
	struct soft_udp_socket *socket;
	union ibv_gid gid;
	int error = 0;

	CHECK(inet_pton(AF_INET6, NETWORK_ADDRESS_6, gid.raw) == 1);
	socket = soft_udp_open(udp, &gid, port, &error);
	CHECK(socket);
	bare_hold(&udp->receiving);
	for (int sent = 0; sent < FORGED; sent++) {
		send_by_wire(NETWORK_ADDRESS_6, port, 1);
		if (!from_others)
			send_by_wire(NETWORK_FAR_6, port, 2);
	}
	if (from_others) {
		send_by_wire(NETWORK_FAR_6, port, 3);
		CHECK(take_next(socket->source.fd) == 3);
	}
	send_here(port, 4);
	CHECK(take_next(socket->source.fd) == 4);
	bare_let_go(&udp->receiving);
}

int main(void)
{
	struct rdma_cm_id *listener;
	struct process process;
	struct soft_udp *udp;

	if (!network_of_own())
		return 0;
	open_wire();
	process = process_start(1);
	listener = process_listen(&process, PORT);
	udp = ((struct soft_host *)process.provider->host)->udp;
	test_port(udp, SOFT_WIRE_PORT, true);
	test_port(udp, SOFT_UDP_PORTS + SOFT_UDP_BLOCKS - 1, false);
	process_destroy(&process, listener);
	process_end(&process);
	CHECK(!close(wire));
	return 0;
}
