#include "soft/objects/gid.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include "soft/wire/datagram.h"

static const union ibv_gid loopback_gids[SOFT_GIDS] = {
	{.raw = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}},
	{.raw = {[15] = 1}},
};

static bool is_same(const union ibv_gid *a, const union ibv_gid *b)
{
	return memcmp(a->raw, b->raw, sizeof(a->raw)) == 0;
}

/* soft_gid_count if it is not in the table. */
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

/* table->lock is held, or no other thread has the table yet. */
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

void soft_gid_table_init(struct soft_gid_table *table)
{
	struct ifaddrs *interfaces, *interface;
	union ibv_gid gid;

	*table = (struct soft_gid_table){0};
	soft_mutex_init(&table->lock, SOFT_ORDER_DEVICE);
	for (int loopback = 0; loopback < SOFT_GIDS; loopback++)
		append(table, &loopback_gids[loopback], 0, SOFT_GID_ASKED);
	/* If it is forbidden to list interfaces, there are only those. */
	if (getifaddrs(&interfaces))
		return;
	for (interface = interfaces; interface; interface = interface->ifa_next)
		if (soft_gid_of_interface(interface, &gid))
			append(table, &gid, if_nametoindex(interface->ifa_name), SOFT_GID_SEEN);
	freeifaddrs(interfaces);
}

/* Whether the interface of an entry has vanished. table->lock is held, as for the next two. */
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

/*
 * An interface has the address of that entry; false if that is not new. An interface that is down keeps its
 * addresses, and gets no new ones.
 */
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

bool soft_gid_table_refresh(struct soft_gid_table *table, struct soft_gid_changes *changes)
{
	bool seen[SOFT_GIDS_MAX + 1] = {false};
	struct ifaddrs *interfaces, *interface;
	union ibv_gid gid;

	*changes = (struct soft_gid_changes){0};
	if (getifaddrs(&interfaces))
		return false;
	soft_mutex_lock(&table->lock);
	for (uint32_t index = 0; index < soft_gid_count(table); index++)
		changes->vanished |= table->vanished[index] = lost_interface(table, index);
	for (interface = interfaces; interface; interface = interface->ifa_next) {
		uint32_t index;

		if (!interface->ifa_addr || !soft_gid_from_sockaddr(&gid, interface->ifa_addr) || soft_gid_is_this_host_only(&gid))
			continue;
		index = index_of(table, &gid);
		seen[index] = true;
		changes->changed |= see(table, index, &gid, interface);
		changes->runs |= !(interface->ifa_flags & IFF_LOOPBACK) && interface->ifa_flags & IFF_RUNNING;
	}
	for (uint32_t index = SOFT_GIDS; index < soft_gid_count(table); index++) {
		if (!seen[index] && atomic_load(&table->states[index]) == SOFT_GID_SEEN)
			changes->changed |= set_state(table, index, SOFT_GID_GONE);
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

void soft_gid_table_destroy(struct soft_gid_table *table)
{
	soft_mutex_destroy(&table->lock);
}

bool soft_gid_table_has(const struct soft_gid_table *table, const union ibv_gid *gid)
{
	return soft_gid_is_loopback(gid) || is_in_table(table, gid);
}

bool soft_gid_table_ask(struct soft_gid_table *table, const union ibv_gid *gid, uint32_t interface)
{
	if (soft_gid_is_this_host_only(gid))
		return true;
	/* A socket can be bound to a group as well. */
	if (soft_gid_is_multicast(gid) || !soft_gid_host_has(gid, interface))
		return false;
	if (is_in_table(table, gid))
		return true;
	if (!interface)
		interface = soft_gid_host_interface(gid);
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
		/*
		 * A peer can request any loopback address from an id on any address. These must leave room for
		 * others.
		 */
		if (count_loopback(table) < SOFT_GIDS_LOOPBACK)
			append(table, gid, 0, SOFT_GID_ASKED);
		soft_mutex_unlock(&table->lock);
	}
	return soft_gid_find(table, gid);
}
