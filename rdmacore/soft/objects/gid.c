#include "soft/objects/gid.h"

#include <arpa/inet.h>
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
 * IFF_LOWER_UP of <linux/if.h>, which does not go together with <net/if.h>: there is a carrier.  IFF_RUNNING follows it, up to a
 * second later (net/core/link_watch.c, linkwatch_schedule_work).
 */
#define CARRIER (1u << 16)

static const union ibv_gid loopback_gids[SOFT_GIDS] = {
	{.raw = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}},
	{.raw = {[15] = 1}},
};

static bool is_same(const union ibv_gid *a, const union ibv_gid *b)
{
	return memcmp(a->raw, b->raw, sizeof(a->raw)) == 0;
}

/* soft_gid_count when it is not there. */
static uint32_t index_of(const struct soft_gid_table *table, const union ibv_gid *gid)
{
	uint32_t count = soft_gid_count(table), index = 0;

	while (index < count && !is_same(&table->gids[index], gid))
		index++;
	return index;
}

static bool is_in_table(const struct soft_gid_table *table, const union ibv_gid *gid)
{
	return index_of(table, gid) < soft_gid_count(table);
}

/* table->lock is held, or nobody has the table yet. */
static void append(struct soft_gid_table *table, const union ibv_gid *gid, uint32_t interface, enum soft_gid_state state)
{
	uint32_t count = soft_gid_count(table);

	if (count == SOFT_GIDS_MAX || is_in_table(table, gid))
		return;
	table->gids[count] = *gid;
	atomic_store_explicit(&table->interfaces[count], interface, memory_order_relaxed);
	atomic_store_explicit(&table->states[count], state, memory_order_relaxed);
	atomic_store_explicit(&table->count, count + 1, memory_order_release);
}

/* The address of an interface that is up; false for one of another family. */
static bool address_of(const struct ifaddrs *interface, union ibv_gid *gid)
{
	return interface->ifa_addr && (interface->ifa_flags & IFF_UP) && soft_gid_from_sockaddr(gid, interface->ifa_addr);
}

void soft_gid_table_init(struct soft_gid_table *table)
{
	struct ifaddrs *interfaces, *interface;
	union ibv_gid gid;

	*table = (struct soft_gid_table){0};
	soft_mutex_init(&table->lock, SOFT_ORDER_DEVICE);
	for (int loopback = 0; loopback < SOFT_GIDS; loopback++)
		append(table, &loopback_gids[loopback], 0, SOFT_GID_ASKED);
	/* Where it is forbidden to ask, there are those. */
	if (getifaddrs(&interfaces))
		return;
	for (interface = interfaces; interface; interface = interface->ifa_next)
		if (address_of(interface, &gid))
			append(table, &gid, if_nametoindex(interface->ifa_name), SOFT_GID_SEEN);
	freeifaddrs(interfaces);
}

/* Whether the interface of an entry is there no more.  table->lock is held, as for the next two. */
static bool lost_interface(const struct soft_gid_table *table, uint32_t index)
{
	uint32_t interface = atomic_load_explicit(&table->interfaces[index], memory_order_relaxed);
	char name[IF_NAMESIZE];

	return interface && !if_indextoname(interface, name);
}

static bool set_state(struct soft_gid_table *table, uint32_t index, enum soft_gid_state state)
{
	return atomic_exchange(&table->states[index], state) != state;
}

/* The address was seen at that place; false: that is no news.  An interface that is down keeps addresses that it has, and gets none. */
static bool see(struct soft_gid_table *table, uint32_t index, const union ibv_gid *gid, const struct ifaddrs *interface)
{
	uint32_t number = if_nametoindex(interface->ifa_name);

	if (index == soft_gid_count(table)) {
		if (interface->ifa_flags & IFF_UP)
			append(table, gid, number, SOFT_GID_SEEN);
		return index < soft_gid_count(table);
	}
	if (table->vanished[index] || !atomic_load_explicit(&table->interfaces[index], memory_order_relaxed))
		atomic_store_explicit(&table->interfaces[index], number, memory_order_relaxed);
	return set_state(table, index, SOFT_GID_SEEN);
}

bool soft_gid_table_refresh(struct soft_gid_table *table, struct soft_gid_news *news)
{
	bool seen[SOFT_GIDS_MAX + 1] = {false};
	struct ifaddrs *interfaces, *interface;
	union ibv_gid gid;

	*news = (struct soft_gid_news){0};
	if (getifaddrs(&interfaces))
		return false;
	soft_mutex_lock(&table->lock);
	for (uint32_t index = 0; index < soft_gid_count(table); index++)
		news->vanished |= table->vanished[index] = lost_interface(table, index);
	for (interface = interfaces; interface; interface = interface->ifa_next) {
		uint32_t index;

		if (!interface->ifa_addr || !soft_gid_from_sockaddr(&gid, interface->ifa_addr) || soft_gid_is_this_host_only(&gid))
			continue;
		index = index_of(table, &gid);
		seen[index] = true;
		news->changed |= see(table, index, &gid, interface);
		news->runs |= !(interface->ifa_flags & IFF_LOOPBACK) && interface->ifa_flags & IFF_RUNNING;
	}
	for (uint32_t index = SOFT_GIDS; index < soft_gid_count(table); index++) {
		if (!seen[index] && atomic_load(&table->states[index]) == SOFT_GID_SEEN)
			news->changed |= set_state(table, index, SOFT_GID_GONE);
		if (!seen[index] && table->vanished[index])
			atomic_store_explicit(&table->interfaces[index], 0, memory_order_relaxed);
	}
	soft_mutex_unlock(&table->lock);
	freeifaddrs(interfaces);
	return true;
}

bool soft_gid_has_vanished(const struct soft_gid_table *table, const union ibv_gid *gid)
{
	uint32_t index = index_of(table, gid);

	return index < soft_gid_count(table) && table->vanished[index];
}

/*
 * What rdma_rxe takes from an interface's MTU (RXE_MAX_HDR_LENGTH): IPv6, UDP, BTH, RETH and ICRC, whatever the packet, so
 * that both ends of a path come to the same payload.  Atomics have longer headers and no payload; a message that is one
 * packet of a full payload with an immediate has 4 bytes more, which counts where an MTU is made to measure.
 */
#define HEADERS 80

static enum ibv_mtu payload_of(int packet)
{
	enum ibv_mtu payload = IBV_MTU_256;

	while (payload < IBV_MTU_4096 && (256 << payload) + HEADERS <= packet)
		payload++;
	return payload;
}

/* Of an interface, in bytes; 0: not known. */
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
		    address_of(interface, &gid))
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

void soft_gid_table_destroy(struct soft_gid_table *table)
{
	soft_mutex_destroy(&table->lock);
}

bool soft_gid_table_has(const struct soft_gid_table *table, const union ibv_gid *gid)
{
	return soft_gid_is_loopback(gid) || is_in_table(table, gid);
}

/* The interface that has the address; 0 when none says so. */
static uint32_t interface_of(const union ibv_gid *gid)
{
	struct ifaddrs *interfaces, *interface;
	union ibv_gid other;
	uint32_t index = 0;

	if (getifaddrs(&interfaces))
		return 0;
	for (interface = interfaces; interface && !index; interface = interface->ifa_next)
		if (address_of(interface, &other) && is_same(&other, gid))
			index = if_nametoindex(interface->ifa_name);
	freeifaddrs(interfaces);
	return index;
}

/*
 * The kernel knows best: a socket can be bound to an address of the host, and to no other but those of groups and of
 * broadcasts.  To the latter it cannot be connected, unless it asks for it.
 */
static bool is_of_host(const union ibv_gid *gid, uint32_t interface)
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

bool soft_gid_table_ask(struct soft_gid_table *table, const union ibv_gid *gid, uint32_t interface)
{
	if (soft_gid_is_this_host_only(gid))
		return true;
	/* A socket can be bound to a group as well. */
	if (soft_gid_is_multicast(gid) || !is_of_host(gid, interface))
		return false;
	if (is_in_table(table, gid))
		return true;
	if (!interface)
		interface = interface_of(gid);
	soft_mutex_lock(&table->lock);
	append(table, gid, interface, SOFT_GID_ASKED);
	soft_mutex_unlock(&table->lock);
	return true;
}

uint32_t soft_gid_interface(const struct soft_gid_table *table, const union ibv_gid *gid)
{
	uint32_t index = index_of(table, gid);

	return index < soft_gid_count(table) ? atomic_load_explicit(&table->interfaces[index], memory_order_relaxed) : 0;
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
	/* Connecting asks for the route and sends nothing; to port 0 it would fail. */
	to.sin6_port = htons(SOFT_WIRE_PORT);
	found = connect(fd, (struct sockaddr *)&to, length) == 0 && (!source || getsockname(fd, source, &length) == 0) &&
		getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_MTU : IPV6_MTU, &bytes, &size) == 0;
	*mtu = payload_of(bytes);
	close(fd);
	return found;
}

uint8_t soft_gid_find(const struct soft_gid_table *table, const union ibv_gid *gid)
{
	uint32_t index = index_of(table, gid);

	if (index < soft_gid_count(table))
		return (uint8_t)index;
	return soft_gid_is_ipv4(gid) ? 0 : 1;
}

/* table->lock is held. */
static uint32_t count_loopback(const struct soft_gid_table *table)
{
	uint32_t count = soft_gid_count(table), loopback = 0;

	for (uint32_t index = 0; index < count; index++)
		loopback += soft_gid_is_loopback(&table->gids[index]);
	return loopback;
}

uint8_t soft_gid_add(struct soft_gid_table *table, const union ibv_gid *gid)
{
	if (soft_gid_is_loopback(gid)) {
		soft_mutex_lock(&table->lock);
		/* Whoever connects to an id of any address can have any of them asked for: they leave room for others. */
		if (count_loopback(table) < SOFT_GIDS_LOOPBACK)
			append(table, gid, 0, SOFT_GID_ASKED);
		soft_mutex_unlock(&table->lock);
	}
	return soft_gid_find(table, gid);
}
