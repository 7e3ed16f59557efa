#include "soft/cm/calls.h"

#include <endian.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <string.h>

#include "soft/base/random.h"
#include "soft/objects/device.h"
#include "soft/wire/datagram.h"

static const struct sockaddr_in *in4(const struct sockaddr *address)
{
	return (const struct sockaddr_in *)(const void *)address;
}

static struct sockaddr_ib *ib(const struct sockaddr *address)
{
	return (struct sockaddr_ib *)(uintptr_t)address;
}

static const struct sockaddr_in6 *in6(const struct sockaddr *address)
{
	return (const struct sockaddr_in6 *)(const void *)address;
}

bool soft_address_is_ip(const struct sockaddr *address)
{
	return address && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

bool soft_address_is_known(const struct sockaddr *address)
{
	return soft_address_is_ip(address) || (address && address->sa_family == AF_IB);
}

socklen_t soft_address_length(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return sizeof(struct sockaddr_ib);
	}
}

bool soft_address_is_any(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return in4(address)->sin_addr.s_addr == htonl(INADDR_ANY);
	if (address->sa_family == AF_IB)
		return ib_addr_any(&ib(address)->sib_addr);
	return IN6_IS_ADDR_UNSPECIFIED(&in6(address)->sin6_addr);
}

bool soft_address_is_multicast(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(in4(address)->sin_addr.s_addr));
	if (address->sa_family == AF_IB)
		return false;
	return IN6_IS_ADDR_MULTICAST(&in6(address)->sin6_addr);
}

bool soft_address_is_absent_neighbour(const struct sockaddr *address)
{
	return address->sa_family == AF_INET &&
	       (ntohl(in4(address)->sin_addr.s_addr) & 0xffffff00) == 0xc0000200;
}

void soft_address_of_device(struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)(void *)address)->sin6_addr = in6addr_loopback;
}

/* RoCE v2 represents an IPv4 address by its mapped IPv6 form (IBTA annex A17). */
void soft_address_to_gid(const struct sockaddr *address, union ibv_gid *gid)
{
	if (!soft_gid_from_sockaddr(gid, address))
		memcpy(gid->raw, &ib(address)->sib_addr, sizeof(gid->raw));
}

uint64_t soft_address_source(const struct soft_cm *cm, const union ibv_gid *gid)
{
	return soft_secret_hash(cm->source_key, soft_gid_is_ipv4(gid) ? gid->global.interface_id : gid->global.subnet_prefix);
}

bool soft_address_is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	union ibv_gid gid_a, gid_b;

	soft_address_to_gid(a, &gid_a);
	soft_address_to_gid(b, &gid_b);
	return memcmp(&gid_a, &gid_b, sizeof(gid_a)) == 0;
}

bool soft_address_is_elsewhere(const struct soft_device *device, const struct sockaddr *address)
{
	union ibv_gid gid;

	if (!soft_device_reaches_hosts(device) || !soft_address_is_ip(address) || soft_address_is_multicast(address))
		return false;
	soft_address_to_gid(address, &gid);
	return !soft_device_owns(device, &gid);
}

bool soft_address_is_local(struct soft_device *device, const struct sockaddr *address)
{
	union ibv_gid gid;

	soft_address_to_gid(address, &gid);
	return soft_gid_table_ask(&device->gid_table, &gid, address->sa_family == AF_INET6 ? in6(address)->sin6_scope_id : 0);
}

bool soft_address_was_local(struct soft_device *device, const struct sockaddr *address)
{
	union ibv_gid gid;

	soft_address_to_gid(address, &gid);
	return soft_device_owns(device, &gid) || soft_address_is_local(device, address);
}

uint16_t soft_address_port(const struct sockaddr *address)
{
	if (address->sa_family == AF_IB) /* the low 16 bits of the service id */
		return (uint16_t)be64toh(ib(address)->sib_sid);
	return ntohs(address->sa_family == AF_INET ? in4(address)->sin_port : in6(address)->sin6_port);
}

void soft_address_set_port(struct sockaddr *address, uint16_t port)
{
	if (address->sa_family == AF_IB)
		ib(address)->sib_sid = htobe64((be64toh(ib(address)->sib_sid) & ~UINT64_C(0xffff)) | port);
	else if (address->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
}
