/* The addresses of the host as GIDs of RoCE v2 (IBTA annex A17.4.1). */
#ifndef SOFT_OBJECTS_GID_H
#define SOFT_OBJECTS_GID_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "soft/base/mutex.h"

#define SOFT_GIDS 2 /* the first of each device: ::ffff:127.0.0.1 and ::1 */
#define SOFT_GIDS_MAX 256 /* an address handle has 8 bits for their index */
#define SOFT_GIDS_LOOPBACK 128 /* of 127.0.0.0/8; its other addresses go by the first */
#define SOFT_GID_TABLE 1024 /* places for GIDs, most of them empty */

enum soft_gid_state {
	SOFT_GID_ASKED, /* the kernel has said so, of an address that no interface need have */
	SOFT_GID_SEEN, /* an interface had it when that was last looked at */
	SOFT_GID_GONE, /* and now none has */
};

/*
 * SOFT_GIDS, those of the other addresses of the host, and more of them as ids come by them.  Each is written once: an
 * address that the host gives up keeps its place, which queue pairs may name, and is shown to nobody until it is back.
 */
struct soft_gid_table {
	union ibv_gid gids[SOFT_GIDS_MAX];
	_Atomic uint32_t interfaces[SOFT_GIDS_MAX]; /* the network interface that has the address; 0: not known */
	_Atomic uint8_t states[SOFT_GIDS_MAX]; /* enum soft_gid_state; who changes one has the lock, as with the next */
	bool vanished[SOFT_GIDS_MAX]; /* its interface did, between the last two looks */
	_Atomic uint32_t count;
	struct soft_mutex lock; /* who adds one has it */
};

/* With SOFT_GIDS and what addresses the host's interfaces have now. */
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

struct soft_gid_news {
	bool changed; /* addresses came or went */
	bool vanished; /* an interface that had some */
	bool runs; /* of the interfaces that have addresses one does, loopback aside */
};

/* Look again what addresses the host's interfaces have.  False when that cannot be known. */
bool soft_gid_table_refresh(struct soft_gid_table *table, struct soft_gid_news *news);
/* Whether the interface of that GID vanished between the last two looks; for the thread that has looked. */
bool soft_gid_has_vanished(const struct soft_gid_table *table, const union ibv_gid *gid);

/*
 * The path MTU that all interfaces of the host take which run and have an address: a queue pair may come by any of them.
 * Loopback counts where there is no other.
 */
enum ibv_mtu soft_gid_host_mtu(void);

/* Whether it is in the table, or an address of 127.0.0.0/8: as on Linux, all of those are this host. */
bool soft_gid_table_has(const struct soft_gid_table *table, const union ibv_gid *gid);
/*
 * Whether the host has that address now, which it may have got since; then it is in the table, while there is room.
 * interface: of a link-local address, which says nothing without; else 0.
 */
bool soft_gid_table_ask(struct soft_gid_table *table, const union ibv_gid *gid, uint32_t interface);
/* The network interface that has the address; 0: not known. */
uint32_t soft_gid_interface(const struct soft_gid_table *table, const union ibv_gid *gid);
/*
 * What the host has as route to an address of IPv4 or IPv6: the source, if that is not NULL, and what a packet may carry on
 * the way.  False without a route.
 */
bool soft_gid_route(const struct sockaddr *destination, struct sockaddr *source, enum ibv_mtu *mtu);
/* The index of that GID; of one that is not in the table, that of the first of its kind. */
uint8_t soft_gid_find(const struct soft_gid_table *table, const union ibv_gid *gid);
/* The same, and an address of 127.0.0.0/8 comes into the table while there are less than SOFT_GIDS_LOOPBACK. */
uint8_t soft_gid_add(struct soft_gid_table *table, const union ibv_gid *gid);

#endif
