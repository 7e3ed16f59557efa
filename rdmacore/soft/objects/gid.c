#include "soft/objects/gid.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "soft/wire/datagram.h"

static const union ibv_gid loopback_gids[SOFT_GIDS] = {
	{.raw = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}},
	{.raw = {[15] = 1}},
};

static bool is_same(const union ibv_gid *a, const union ibv_gid *b)
{
	return memcmp(a->raw, b->raw, sizeof(a->raw)) == 0;
}

static bool is_in_table(const struct soft_gid_table *table, const union ibv_gid *gid)
{
	uint32_t count = soft_gid_count(table), index = 0;

	while (index < count && !is_same(&table->gids[index], gid))
		index++;
	return index < count;
}

/* table->lock is held, or nobody has the table yet. */
static void append(struct soft_gid_table *table, const union ibv_gid *gid, uint32_t interface)
{
	uint32_t count = soft_gid_count(table);

	if (count == SOFT_GIDS_MAX || is_in_table(table, gid))
		return;
	table->gids[count] = *gid;
	table->interfaces[count] = interface;
	atomic_store_explicit(&table->count, count + 1, memory_order_release);
}

/* The address of an interface that is up; false for one of another family. */
static bool address_of(const struct ifaddrs *interface, union ibv_gid *gid)
{
	const struct sockaddr *address = interface->ifa_addr;

	if (!address || !(interface->ifa_flags & IFF_UP))
		return false;
	if (address->sa_family == AF_INET) {
		soft_gid_from_ipv4(gid, (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr);
		return true;
	}
	if (address->sa_family != AF_INET6)
		return false;
	memcpy(gid->raw, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, sizeof(gid->raw));
	return true;
}

void soft_gid_table_init(struct soft_gid_table *table)
{
	struct ifaddrs *interfaces, *interface;
	union ibv_gid gid;

	*table = (struct soft_gid_table){0};
	soft_mutex_init(&table->lock, SOFT_ORDER_DEVICE);
	for (int loopback = 0; loopback < SOFT_GIDS; loopback++)
		append(table, &loopback_gids[loopback], 0);
	/* Where it is forbidden to ask, there are those. */
	if (getifaddrs(&interfaces))
		return;
	for (interface = interfaces; interface; interface = interface->ifa_next)
		if (address_of(interface, &gid))
			append(table, &gid, if_nametoindex(interface->ifa_name));
	freeifaddrs(interfaces);
}

void soft_gid_table_destroy(struct soft_gid_table *table)
{
	soft_mutex_destroy(&table->lock);
}

bool soft_gid_table_has(const struct soft_gid_table *table, const union ibv_gid *gid)
{
	return soft_gid_is_loopback(gid) || is_in_table(table, gid);
}

/*
 * The kernel knows best: a socket can be bound to an address of the host, and to no other but those of groups and of
 * broadcasts.  To the latter it cannot be connected, unless it asks for it.
 */
static bool is_of_host(const union ibv_gid *gid, uint32_t interface)
{
	struct sockaddr_in ipv4 = {.sin_family = AF_INET};
	struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_scope_id = interface};
	bool is_ipv4 = soft_gid_is_ipv4(gid), found;
	int fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	memcpy(&ipv4.sin_addr, &gid->raw[12], sizeof(ipv4.sin_addr));
	memcpy(&ipv6.sin6_addr, gid->raw, sizeof(ipv6.sin6_addr));
	if (is_ipv4) {
		found = ipv4.sin_addr.s_addr && bind(fd, (struct sockaddr *)&ipv4, sizeof(ipv4)) == 0;
		ipv4.sin_port = htons(SOFT_WIRE_PORT);
		found = found && connect(fd, (struct sockaddr *)&ipv4, sizeof(ipv4)) == 0;
	} else {
		found = bind(fd, (struct sockaddr *)&ipv6, sizeof(ipv6)) == 0;
	}
	close(fd);
	return found;
}

bool soft_gid_table_ask(struct soft_gid_table *table, const union ibv_gid *gid, uint32_t interface)
{
	if (soft_gid_is_loopback(gid) || is_same(gid, &loopback_gids[1]))
		return true;
	/* A socket can be bound to a group as well. */
	if (soft_gid_is_multicast(gid) || !is_of_host(gid, interface))
		return false;
	soft_mutex_lock(&table->lock);
	append(table, gid, interface);
	soft_mutex_unlock(&table->lock);
	return true;
}

uint8_t soft_gid_find(const struct soft_gid_table *table, const union ibv_gid *gid)
{
	uint32_t count = soft_gid_count(table);

	for (uint32_t index = 0; index < count; index++)
		if (is_same(&table->gids[index], gid))
			return (uint8_t)index;
	return soft_gid_is_ipv4(gid) ? 0 : 1;
}

uint8_t soft_gid_add(struct soft_gid_table *table, const union ibv_gid *gid)
{
	if (soft_gid_is_loopback(gid)) {
		soft_mutex_lock(&table->lock);
		append(table, gid, 0);
		soft_mutex_unlock(&table->lock);
	}
	return soft_gid_find(table, gid);
}
