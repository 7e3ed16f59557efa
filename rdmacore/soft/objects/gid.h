/* The addresses of the host as GIDs of RoCE v2 (IBTA annex A17.4.1). */
#ifndef SOFT_OBJECTS_GID_H
#define SOFT_OBJECTS_GID_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "soft/base/mutex.h"

struct ifaddrs;

#define SOFT_GIDS 2 /* the first of each device: ::ffff:127.0.0.1 and ::1 */
#define SOFT_GIDS_MAX 256 /* an address handle has 8 bits for their index */
#define SOFT_GIDS_LOOPBACK 128 /* of 127.0.0.0/8; its further addresses use the first entry */
#define SOFT_GID_TABLE 1024 /* entries of the table that programs see, most of them empty */

enum soft_gid_state {
	SOFT_GID_ASKED, /* the kernel accepts the address, which need not belong to an interface */
	SOFT_GID_SEEN, /* an interface had it at the last refresh */
	SOFT_GID_GONE, /* no interface has it any more */
};

/*
 * The two loopback addresses, the other addresses of the host, and further ones as ids use them. Each entry is
 * written once. An address that the host loses keeps its entry, because queue pairs may refer to it; programs do not
 * see it until it returns.
 */
struct soft_gid_table {
	union ibv_gid gids[SOFT_GIDS_MAX];
	_Atomic uint32_t interfaces[SOFT_GIDS_MAX]; /* the network interface that has the address; 0: not known */
	_Atomic uint8_t states[SOFT_GIDS_MAX]; /* enum soft_gid_state; changed under lock, as the next */
	bool vanished[SOFT_GIDS_MAX]; /* its interface vanished between the last two refreshes */
	_Atomic uint32_t count;
	struct soft_mutex lock; /* held to add an entry */
};

/* Fill in the loopback addresses and those of the host's interfaces. */
void soft_gid_table_init(struct soft_gid_table *table);
void soft_gid_table_destroy(struct soft_gid_table *table);

static inline uint32_t soft_gid_count(const struct soft_gid_table *table)
{
	return atomic_load_explicit(&table->count, memory_order_acquire);
}

static inline bool soft_gid_is_there(const struct soft_gid_table *table, uint32_t index)
{
	return index < soft_gid_count(table) && atomic_load(&table->states[index]) != SOFT_GID_GONE;
}

struct soft_gid_changes {
	bool changed; /* addresses were added or lost */
	bool vanished; /* an interface with addresses vanished */
	bool runs; /* an interface with addresses is running, loopback aside */
};

/* Read the addresses of the host's interfaces again. False if they cannot be read. */
bool soft_gid_table_refresh(struct soft_gid_table *table, struct soft_gid_changes *changes);
/* Whether the interface of that GID vanished between the last two refreshes; for the refreshing thread. */
bool soft_gid_has_vanished(const struct soft_gid_table *table, const union ibv_gid *gid);

/* Whether it is in the table, or in 127.0.0.0/8: as on Linux, all of that network is this host. */
bool soft_gid_table_has(const struct soft_gid_table *table, const union ibv_gid *gid);
/*
 * Whether the host has that address now. If so, it is added to the table while there is room. interface: required
 * for a link-local address, which is ambiguous without it; otherwise 0.
 */
bool soft_gid_table_ask(struct soft_gid_table *table, const union ibv_gid *gid, uint32_t interface);
/* The network interface that has the address; 0: not known. */
uint32_t soft_gid_interface(const struct soft_gid_table *table, const union ibv_gid *gid);
/* The index of that GID. If it is not in the table, the index of the first one of its family. */
uint8_t soft_gid_find(const struct soft_gid_table *table, const union ibv_gid *gid);
/* The same; adds an address of 127.0.0.0/8 while there are less than SOFT_GIDS_LOOPBACK of them. */
uint8_t soft_gid_add(struct soft_gid_table *table, const union ibv_gid *gid);

/* --- host_address.c: addresses as the kernel has them --------------------------------------------- */

/* The address of an interface that is up; false for other address families. */
bool soft_gid_of_interface(const struct ifaddrs *interface, union ibv_gid *gid);
/*
 * The largest path MTU that all running interfaces with addresses allow, because a queue pair may use any of them.
 * Loopback counts only if there is no other.
 */
enum ibv_mtu soft_gid_host_mtu(void);
/* The interface that has the address; 0 when there is none, or it cannot be known. */
uint32_t soft_gid_host_interface(const union ibv_gid *gid);
/* Whether the host has that address. interface: as for soft_gid_table_ask. */
bool soft_gid_host_has(const union ibv_gid *gid, uint32_t interface);
/*
 * The host's route to an IPv4 or IPv6 address: the source, unless it is NULL, and the path MTU. False without a
 * route.
 */
bool soft_gid_route(const struct sockaddr *destination, struct sockaddr *source, enum ibv_mtu *mtu);

#endif
