/* What the kernel of the host knows of addresses: interfaces, routes, and their MTU. */
#include "soft/objects/gid.h"

#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "soft/wire/datagram.h"

/*
 * IFF_LOWER_UP of <linux/if.h>, which cannot be included together with <net/if.h>: there is a carrier. IFF_RUNNING
 * follows it up to a second later (net/core/link_watch.c, linkwatch_schedule_work).
 */
#define CARRIER (1u << 16)

bool soft_gid_of_interface(const struct ifaddrs *interface, union ibv_gid *gid)
{
	return interface->ifa_addr && (interface->ifa_flags & IFF_UP) && soft_gid_from_sockaddr(gid, interface->ifa_addr);
}

/*
 * What rdma_rxe subtracts from an interface's MTU (RXE_MAX_HDR_LENGTH): IPv6, UDP, BTH, RETH and ICRC. It is the same
 * for all packets, so that both ends of a path compute the same payload. Atomics have longer headers and no payload. A
 * message in one packet of full payload with immediate data has 4 bytes more. This matters only on an interface without
 * such a reserve in its MTU.
 */
#define HEADERS 80

static enum ibv_mtu payload_of(int packet)
{
	enum ibv_mtu payload = IBV_MTU_256;

	while (payload < IBV_MTU_4096 && (256 << payload) + HEADERS <= packet)
		payload++;
	return payload;
}

/* The MTU of an interface in bytes; 0: unknown. */
static int mtu_of(int fd, const char *name)
{
	struct ifreq request = {0};

	if (strlen(name) >= sizeof(request.ifr_name))
		return 0;
	memcpy(request.ifr_name, name, strlen(name));
	return ioctl(fd, SIOCGIFMTU, &request) ? 0 : request.ifr_mtu;
}

enum ibv_mtu soft_gid_host_mtu(void)
{
	struct ifaddrs *interfaces, *interface;
	union ibv_gid gid;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), least = INT_MAX;

	if (fd < 0 || getifaddrs(&interfaces))
		interfaces = NULL;
	for (interface = interfaces; interface; interface = interface->ifa_next) {
		int bytes = 0;

		if (!(interface->ifa_flags & IFF_LOOPBACK) && interface->ifa_flags & (IFF_RUNNING | CARRIER) &&
		    soft_gid_of_interface(interface, &gid))
			bytes = mtu_of(fd, interface->ifa_name);
		if (bytes && bytes < least)
			least = bytes;
	}
	if (interfaces)
		freeifaddrs(interfaces);
	if (fd >= 0)
		close(fd);
	return payload_of(least);
}

uint32_t soft_gid_host_interface(const union ibv_gid *gid)
{
	struct ifaddrs *interfaces, *interface;
	union ibv_gid other;
	uint32_t index = 0;

	if (getifaddrs(&interfaces))
		return 0;
	for (interface = interfaces; interface && !index; interface = interface->ifa_next)
		if (soft_gid_of_interface(interface, &other) && memcmp(&other, gid, sizeof(other)) == 0)
			index = if_nametoindex(interface->ifa_name);
	freeifaddrs(interfaces);
	return index;
}

/*
 * Ask the kernel: a socket can be bound to an address of the host, of a group or of a broadcast, and to no other. It
 * cannot be connected to a broadcast address without SO_BROADCAST.
 */
bool soft_gid_host_has(const union ibv_gid *gid, uint32_t interface)
{
	struct sockaddr_storage address;
	struct sockaddr *any = (struct sockaddr *)&address;
	struct sockaddr_in *ipv4 = (void *)&address;
	struct sockaddr_in6 *ipv6 = (void *)&address;
	bool found;
	int fd;

	soft_gid_to_sockaddr(gid, 0, any);
	fd = socket(any->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (any->sa_family == AF_INET) {
		found = ipv4->sin_addr.s_addr && bind(fd, any, sizeof(*ipv4)) == 0;
		ipv4->sin_port = htons(SOFT_WIRE_PORT);
		found = found && connect(fd, any, sizeof(*ipv4)) == 0;
	} else {
		ipv6->sin6_scope_id = interface;
		found = bind(fd, any, sizeof(*ipv6)) == 0;
	}
	close(fd);
	return found;
}

bool soft_gid_route(const struct sockaddr *destination, struct sockaddr *source, enum ibv_mtu *mtu)
{
	bool ipv4 = destination->sa_family == AF_INET, found;
	int fd = socket(destination->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), bytes = 0;
	socklen_t length = soft_sockaddr_length(destination), size = sizeof(bytes);
	struct sockaddr_in6 to;

	if (fd < 0)
		return false;
	memcpy(&to, destination, length);
	/* connect(2) looks up the route and sends nothing. To port 0 it would fail. */
	to.sin6_port = htons(SOFT_WIRE_PORT);
	found = connect(fd, (struct sockaddr *)&to, length) == 0 && (!source || getsockname(fd, source, &length) == 0) &&
		getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_MTU : IPV6_MTU, &bytes, &size) == 0;
	*mtu = payload_of(bytes);
	close(fd);
	return found;
}
