/* Addresses and ports of ids.  Each port space has ports of its own, apart from those of sockets. */
#include "soft_cm.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "soft_device.h"
#include "soft_fabric.h"

/* net.ipv4.ip_local_port_range as Linux ships it */
#define FIRST_EPHEMERAL 32768
#define LAST_EPHEMERAL 60999
#define FIRST_UNPRIVILEGED 1024

static const struct sockaddr_in *in4(const struct sockaddr *address)
{
	return (const struct sockaddr_in *)(const void *)address;
}

static const struct sockaddr_in6 *in6(const struct sockaddr *address)
{
	return (const struct sockaddr_in6 *)(const void *)address;
}

socklen_t soft_address_length(const struct sockaddr *address)
{
	return address->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
					       sizeof(struct sockaddr_in6);
}

bool soft_address_is_any(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return in4(address)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&in6(address)->sin6_addr);
}

/* RoCE v2 names an IPv4 address by its mapped form (IBTA annex A17). */
void soft_address_to_gid(const struct sockaddr *address, union ibv_gid *gid)
{
	if (address->sa_family == AF_INET) {
		memset(gid, 0, sizeof(*gid));
		gid->raw[10] = 0xff;
		gid->raw[11] = 0xff;
		memcpy(&gid->raw[12], &in4(address)->sin_addr, 4);
	} else {
		memcpy(gid->raw, &in6(address)->sin6_addr, sizeof(gid->raw));
	}
}

bool soft_address_is_local(const struct soft_cm *cm, const struct sockaddr *address)
{
	union ibv_gid gid;

	soft_address_to_gid(address, &gid);
	return soft_device_owns(cm->device, &gid);
}

uint16_t soft_address_port(const struct sockaddr *address)
{
	return ntohs(address->sa_family == AF_INET ? in4(address)->sin_port : in6(address)->sin6_port);
}

void soft_address_set_port(struct sockaddr *address, uint16_t port)
{
	if (address->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
}

static struct soft_id **bucket_of(struct soft_cm *cm, int port_space, uint16_t port)
{
	return &cm->ports[((unsigned int)port_space * 31 + port) % SOFT_PORT_BUCKETS];
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	union ibv_gid gid_a, gid_b;

	soft_address_to_gid(a, &gid_a);
	soft_address_to_gid(b, &gid_b);
	return memcmp(&gid_a, &gid_b, sizeof(gid_a)) == 0;
}

/* As cma_check_port of Linux: a wildcard conflict is EADDRNOTAVAIL, the same address EADDRINUSE. */
static int check_port(struct soft_id *id, const struct sockaddr *address, uint16_t port)
{
	struct soft_id *other = *bucket_of(id->cm, id->rdma.ps, port);

	for (; other; other = other->port_next) {
		const struct sockaddr *bound = &other->rdma.route.addr.src_addr;

		if (other->port != port || other->rdma.ps != id->rdma.ps)
			continue;
		if (soft_address_is_any(address) || soft_address_is_any(bound))
			return EADDRNOTAVAIL;
		if (same_address(address, bound))
			return EADDRINUSE;
	}
	return 0;
}

static int choose_port(struct soft_id *id, const struct sockaddr *address, uint16_t *port)
{
	const unsigned int range = LAST_EPHEMERAL - FIRST_EPHEMERAL + 1;
	unsigned int start = (unsigned int)(soft_fabric_random(id->cm->fabric) % range);

	for (unsigned int step = 0; step < range; step++) {
		*port = (uint16_t)(FIRST_EPHEMERAL + (start + step) % range);
		if (!check_port(id, address, *port))
			return 0;
	}
	return EADDRNOTAVAIL;
}

int soft_port_bind(struct soft_id *id, const struct sockaddr *address)
{
	struct sockaddr *source = &id->rdma.route.addr.src_addr;
	uint16_t port = soft_address_port(address);
	struct soft_id **bucket;
	int error;

	if (port && port < FIRST_UNPRIVILEGED && geteuid() != 0)
		return EACCES;
	error = port ? check_port(id, address, port) : choose_port(id, address, &port);
	if (error)
		return error;
	memcpy(source, address, soft_address_length(address));
	soft_address_set_port(source, port);
	id->port = port;
	bucket = bucket_of(id->cm, id->rdma.ps, port);
	id->port_next = *bucket;
	*bucket = id;
	return 0;
}

void soft_port_release(struct soft_id *id)
{
	struct soft_id **link;

	if (!id->port)
		return;
	for (link = bucket_of(id->cm, id->rdma.ps, id->port); *link != id; link = &(*link)->port_next)
		;
	*link = id->port_next;
	id->port = 0;
}

struct soft_id *soft_port_find_listener(struct soft_cm *cm, int port_space,
					const struct sockaddr *destination)
{
	uint16_t port = soft_address_port(destination);
	struct soft_id *id, *wildcard = NULL;

	for (id = *bucket_of(cm, port_space, port); id; id = id->port_next) {
		const struct sockaddr *bound = &id->rdma.route.addr.src_addr;

		if (id->port != port || (int)id->rdma.ps != port_space ||
		    id->state != SOFT_ID_LISTEN)
			continue;
		if (same_address(bound, destination))
			return id;
		if (soft_address_is_any(bound) && (bound->sa_family == destination->sa_family ||
						   bound->sa_family == AF_INET6))
			wildcard = id;
	}
	return wildcard;
}
