/* Ports of ids. Each port space has its own ports, separate from the ports of sockets. */
#include "soft/cm/calls.h"

#include <errno.h>
#include <string.h>

#include "soft/base/capability.h"
#include "soft/base/fabric.h"
#include "soft/base/refusal.h"
#include "soft/ipc/ipc.h"
#include "soft/objects/device.h"
#include "soft/wire/datagram.h"

/* the default of net.ipv4.ip_local_port_range */
#define FIRST_EPHEMERAL 32768
#define LAST_EPHEMERAL 60999
#define FIRST_UNPRIVILEGED 1024

static struct soft_id **bucket_of(struct soft_cm *cm, int port_space, uint16_t port)
{
	return &cm->ports[((unsigned int)port_space * 31 + port) % SOFT_PORT_BUCKETS];
}

/* Check against the ids of this process; soft_claim_check checks those of other processes. */
static int check_port(struct soft_id *id, const struct sockaddr *address, uint16_t port, bool reuse)
{
	struct soft_id *other = *bucket_of(id->cm, id->rdma.ps, port);

	for (; other; other = other->port_next) {
		const struct sockaddr *bound = &other->addr.src_addr;
		int error;

		if (other == id || other->port != port || other->rdma.ps != id->rdma.ps)
			continue;
		error = soft_port_conflict(&(struct soft_port_pair){
			.both_reuse = reuse && other->reuse_address,
			.families_apart = id->only_family && other->only_family && address->sa_family != bound->sa_family,
			.one_is_any = soft_address_is_any(address) || soft_address_is_any(bound),
			.same_address = soft_address_is_same(address, bound),
		});
		if (error)
			return error;
	}
	return 0;
}

static int choose_port(struct soft_id *id, const struct sockaddr *address, uint16_t *port)
{
	const unsigned int range = LAST_EPHEMERAL - FIRST_EPHEMERAL + 1;
	unsigned int start = (unsigned int)(soft_fabric_random(id->cm->fabric) % range);

	for (unsigned int step = 0; step < range; step++) {
		*port = (uint16_t)(FIRST_EPHEMERAL + (start + step) % range);
		if (!check_port(id, address, *port, id->reuse_address))
			return 0;
	}
	return EADDRNOTAVAIL;
}

/* A claim that is checked against those of other processes. own: the claim that the id has. */
static int make_claim(struct soft_id *id, const struct soft_ipc_port *port, const struct sockaddr *address, bool shared,
		      const struct soft_claim *own, struct soft_claim **out)
{
	struct soft_ipc *ipc = id->cm->ipc;
	enum soft_id_state state = id->state;
	struct soft_local_list list;
	struct soft_claim *claim;
	int error = soft_claim_make(ipc, port, address, id->only_family, shared, &claim);

	if (error)
		return error;
	soft_id_unlock_for_io(id);
	soft_local_list_read(&list, &id->cm->fabric->without_users);
	error = soft_id_relock(id, state);
	if (!error && id->claim != own && !port->for_hosts)
		error = EINVAL;
	if (!error)
		error = soft_claim_check(claim, port, address, id->only_family, &list);
	soft_local_list_free(&list);
	if (error)
		soft_claim_release(claim);
	else
		*out = claim;
	return error;
}

/*
 * Keep other processes from using the port, unless their ids may share it. own: a claim of the same id, which the new
 * one replaces.
 */
static int claim(struct soft_id *id, const struct sockaddr *address, bool shared)
{
	struct soft_claim *own = id->claim;
	struct soft_ipc_port port;
	int error;

	if (!id->cm->ipc || !soft_address_is_ip(address))
		return 0;
	port = soft_ipc_port(id->rdma.ps, address, false);
	error = make_claim(id, &port, address, shared, own, &id->claim);
	if (!error && own)
		soft_claim_release(own);
	return error;
}

int soft_port_bind(struct soft_id *id, const struct sockaddr *address)
{
	struct sockaddr *source = &id->addr.src_addr;
	uint16_t port = soft_address_port(address);
	struct soft_id **bucket;
	int error;

	soft_mutex_expect(&id->cm->lock);
	if (port && port < FIRST_UNPRIVILEGED && !soft_has_capability(CAP_NET_BIND_SERVICE))
		return EACCES;
	/* An IPv4 id is restricted to its family, an IPv6 id only by option (net.ipv6.bindv6only is 0). */
	if (!id->only_family_set)
		id->only_family = address->sa_family == AF_INET;
	id->port_chosen = !port;
	error = port ? check_port(id, address, port, id->reuse_address) :
		       choose_port(id, address, &port);
	/* A port that soft has chosen is claimed when an id listens on it, so connecting costs no socket. */
	if (!error && !id->port_chosen)
		error = claim(id, address, id->reuse_address);
	/* Another id may have taken the port meanwhile. */
	if (!error && id->claim) {
		error = check_port(id, address, port, id->reuse_address);
		if (error) {
			soft_claim_release(id->claim);
			id->claim = NULL;
		}
	}
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

/*
 * If another user has the UDP port of the address, or another fabric of this user listens on the port, other hosts
 * cannot connect. Processes of this host can.
 */
static int listen_for_hosts(struct soft_id *id)
{
	struct soft_management *management = &id->cm->device->management;
	const struct sockaddr *address = &id->addr.src_addr;
	enum soft_id_state state = id->state;
	struct soft_ipc_port port;
	union ibv_gid gid;
	struct soft_claim *claimed;
	int refused, error;

	if (!management->open || !soft_address_is_ip(address))
		return 0;
	soft_address_to_gid(address, &gid);
	if (soft_gid_is_this_host_only(&gid))
		return 0;
	soft_id_unlock_for_io(id);
	/* finds the owner of the port */
	refused = management->open(management, soft_address_is_any(address) ? NULL : &gid);
	error = soft_id_relock(id, state);
	if (error)
		return error;
	if (refused) {
		if (*soft_refusal())
			soft_notice_text(&id->cm->fabric->notices, "the listener on port %u is not reachable from other hosts: %s",
					 id->port, soft_refusal());
		soft_refusal_clear();
		return 0;
	}
	if (!id->cm->ipc)
		return 0;
	port = soft_ipc_port(id->rdma.ps, address, true);
	error = make_claim(id, &port, address, false, NULL, &claimed);
	if (id->state != state)
		return error;
	id->no_remote_port = error;
	if (error)
		return 0;
	id->claim_for_hosts = claimed;
	if (soft_claim_listen(id->claim_for_hosts)) {
		soft_claim_release(id->claim_for_hosts);
		id->claim_for_hosts = NULL;
	}
	return 0;
}

int soft_port_listen(struct soft_id *id)
{
	int error = check_port(id, &id->addr.src_addr, id->port, false);

	soft_mutex_expect(&id->cm->lock);
	if (!error && (!id->claim || id->claim->shared))
		error = claim(id, &id->addr.src_addr, false);
	if (!error)
		error = listen_for_hosts(id);
	if (!error) /* another id may have bound it meanwhile */
		error = check_port(id, &id->addr.src_addr, id->port, false);
	/* Last: a process that sees the name connects at once, and cm.lock is held until the id listens. */
	if (!error && id->claim)
		error = soft_claim_listen(id->claim);
	if (!error)
		id->reuse_address = false;
	else if (id->claim_for_hosts) {
		soft_claim_release(id->claim_for_hosts);
		id->claim_for_hosts = NULL;
	}
	return error;
}

void soft_port_release(struct soft_id *id)
{
	struct soft_id **link;

	soft_mutex_expect(&id->cm->lock);
	if (!id->port)
		return;
	for (link = bucket_of(id->cm, id->rdma.ps, id->port); *link != id; link = &(*link)->port_next)
		;
	*link = id->port_next;
	id->port = 0;
	if (id->claim)
		soft_claim_release(id->claim);
	if (id->claim_for_hosts)
		soft_claim_release(id->claim_for_hosts);
	id->claim = id->claim_for_hosts = NULL;
}

struct soft_id *soft_port_find_listener(struct soft_cm *cm, int port_space,
					const struct sockaddr *destination)
{
	uint16_t port = soft_address_port(destination);
	struct soft_id *id, *wildcard = NULL;

	soft_mutex_expect(&cm->lock);
	for (id = *bucket_of(cm, port_space, port); id; id = id->port_next) {
		const struct sockaddr *bound = &id->addr.src_addr;

		if (id->port != port || (int)id->rdma.ps != port_space ||
		    id->state != SOFT_ID_LISTEN)
			continue;
		if (bound->sa_family != destination->sa_family && id->only_family)
			continue;
		if (soft_address_is_same(bound, destination))
			return id;
		if (soft_address_is_any(bound))
			wildcard = id;
	}
	return wildcard;
}

bool soft_port_has_listener(struct soft_cm *cm, int port_space, uint16_t port)
{
	struct soft_id *id = *bucket_of(cm, port_space, port);

	soft_mutex_expect(&cm->lock);
	while (id && (id->port != port || (int)id->rdma.ps != port_space ||
		      id->state != SOFT_ID_LISTEN))
		id = id->port_next;
	return id;
}
