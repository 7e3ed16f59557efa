#include "soft/wire/address.h"

#include <arpa/inet.h>
#include <string.h>

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool soft_gid_is_ipv4(const union ibv_gid *gid)
{
	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

bool soft_gid_is_loopback(const union ibv_gid *gid)
{
	return soft_gid_is_ipv4(gid) && gid->raw[sizeof(mapped)] == 127;
}

bool soft_gid_is_this_host_only(const union ibv_gid *gid)
{
	return soft_gid_is_loopback(gid) || memcmp(gid->raw, &in6addr_loopback, sizeof(gid->raw)) == 0;
}

bool soft_gid_is_multicast(const union ibv_gid *gid)
{
	/* RoCE v2 over IPv4: the mapped address of 224.0.0.0/4. */
	return gid->raw[0] == 0xff || (soft_gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xe);
}

void soft_gid_from_ipv4(union ibv_gid *gid, const uint8_t *address)
{
	memcpy(gid->raw, mapped, sizeof(mapped));
	memcpy(&gid->raw[sizeof(mapped)], address, 4);
}

bool soft_gid_from_sockaddr(union ibv_gid *gid, const struct sockaddr *address)
{
	const struct sockaddr_in *ipv4 = (const void *)address;
	const struct sockaddr_in6 *ipv6 = (const void *)address;

	switch (address->sa_family) {
	case AF_INET:
		soft_gid_from_ipv4(gid, (const uint8_t *)&ipv4->sin_addr);
		return true;
	case AF_INET6:
		memcpy(gid->raw, &ipv6->sin6_addr, sizeof(gid->raw));
		return true;
	default:
		return false;
	}
}

void soft_gid_to_sockaddr(const union ibv_gid *gid, uint16_t port, struct sockaddr *address)
{
	struct sockaddr_in *ipv4 = (void *)address;
	struct sockaddr_in6 *ipv6 = (void *)address;

	if (soft_gid_is_ipv4(gid)) {
		*ipv4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
		memcpy(&ipv4->sin_addr, &gid->raw[sizeof(mapped)], sizeof(ipv4->sin_addr));
		return;
	}
	*ipv6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
	memcpy(&ipv6->sin6_addr, gid->raw, sizeof(ipv6->sin6_addr));
}
