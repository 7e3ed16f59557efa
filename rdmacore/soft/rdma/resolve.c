/* How an id gets its port and its device, and the address and route of its peer. */
#include "soft/rdma/rdma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/base/refusal.h"
#include "soft/cm/calls.h"
#include "soft/objects/device.h"
#include "soft/wire/datagram.h"

/*
 * The default of net.rdma_ucm.max_backlog is 1024. Requests beyond it are dropped silently, and thousands of peers
 * that connect at once would each wait for seconds. So soft allows more. The bytes of requests are limited for all
 * listeners together (soft/cm/half_open.c).
 */
#define MAX_BACKLOG (1 << 16)
/*
 * The time until the kernel's neighbours are read again: the first time after 0.2 ms, about an ARP round trip, later
 * after longer times.
 */
#define NEIGHBOUR_INTERVAL_MIN (200 * SOFT_MICROSECOND)
#define NEIGHBOUR_INTERVAL_MAX (50 * SOFT_MILLISECOND)

/*
 * Whether a local address belongs to the device (cma_acquire_dev_by_src_ip of Linux): 0 or an errno. EINVAL for IP
 * over InfiniBand, which an Ethernet port does not have. ENODEV while the device is removed.
 */
static int find_device(const struct soft_id *id)
{
	if (id->rdma.ps == RDMA_PS_IPOIB)
		return soft_refuse(EINVAL, "the port space IPOIB is of InfiniBand links, and the device is on Ethernet");
	return soft_device_is_away(id->cm->device) ? ENODEV : 0;
}

static int bind_locked(struct soft_id *id, const struct sockaddr *address)
{
	int error = 0;

	if (id->state != SOFT_ID_IDLE || id->binding)
		return EINVAL;
	if (address->sa_family == AF_IB)
		error = soft_address_ib_check(id, address);
	else if (!soft_address_is_any(address) && !soft_address_is_local(id->cm->device, address))
		error = EADDRNOTAVAIL;
	else if (!soft_address_is_any(address))
		error = find_device(id);
	if (error)
		return error;
	error = soft_port_bind(id, address);
	if (error)
		return error;
	id->on_device = !soft_address_is_any(address);
	if (address->sa_family == AF_IB)
		soft_address_ib_bound(id);
	else if (id->on_device)
		soft_id_set_gids(id);
	id->hardware_address = id->cm->hardware_address;
	id->state = SOFT_ID_BOUND;
	return 0;
}

int soft_bind_addr(struct rdma_cm_id *rdma_id, struct sockaddr *address)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	int error;

	if (!id)
		return -1;
	error = soft_address_is_known(address) ? bind_locked(id, address) : EINVAL;
	if (!error)
		error = -soft_id_query(id);
	return soft_cm_finish(id->cm, error);
}

static uint64_t nanoseconds(int timeout_ms)
{
	return (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * SOFT_MILLISECOND;
}

/*
 * A query is answered at once (true), unless a fault applies to it. Then the answer comes when the id's timer
 * expires, or the query is lost and ends in -ETIMEDOUT.
 */
static bool ask(struct soft_id *id, enum soft_cm_attribute question, int timeout_ms)
{
	struct soft_fabric *fabric = id->cm->fabric;
	struct soft_fault_result fault_result;
	uint64_t timeout = nanoseconds(timeout_ms);
	union ibv_gid from, to;
	bool lost;

	if (!soft_faults_active(&fabric->faults))
		return true;
	soft_address_to_gid(&id->addr.src_addr, &from);
	soft_address_to_gid(&id->addr.dst_addr, &to);
	fault_result = soft_faults_apply(&fabric->faults, &from, &to,
				   &(struct soft_fault_subject){SOFT_FAULT_QUESTION, .attribute = question});
	lost = fault_result.lose || fault_result.delay > timeout;
	if (!lost && !fault_result.delay)
		return true;
	id->answer_comes = !lost;
	soft_timer_arm(&fabric->timers, &id->timer, lost ? timeout : fault_result.delay);
	return false;
}

/* ARP for an address without a host: the query times out. */
static void ask_absent_host(struct soft_id *id, int timeout_ms)
{
	id->answer_comes = false;
	id->state = SOFT_ID_ADDR_QUERY;
	soft_timer_arm(&id->cm->fabric->timers, &id->timer, nanoseconds(timeout_ms));
}

/* After either error the same call may be repeated. */
static void time_out(struct soft_id *id)
{
	bool address = id->state == SOFT_ID_ADDR_QUERY;

	id->state = address ? SOFT_ID_BOUND : SOFT_ID_ADDR_RESOLVED;
	soft_cm_report(id, id, address ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, NULL);
}

static int address_resolved(struct soft_id *id)
{
	/* Linux looks for the device when the address is known (addr_handler). */
	int error = find_device(id);

	if (error) {
		id->state = SOFT_ID_BOUND;
		return soft_cm_report(id, id, RDMA_CM_EVENT_ADDR_ERROR, -error, NULL) ? 0 : ENOMEM;
	}
	if (!soft_cm_report(id, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL))
		return ENOMEM;
	id->hardware_address = id->cm->hardware_address;
	id->on_device = true;
	soft_id_set_gids(id);
	id->state = SOFT_ID_ADDR_RESOLVED;
	return 0;
}

static int route_resolved(struct soft_id *id)
{
	if (!soft_cm_report(id, id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL))
		return ENOMEM;
	soft_id_set_path(id);
	id->state = SOFT_ID_ROUTE_RESOLVED;
	return 0;
}

/* The kernel resolves the neighbour, and reports the result only to those who ask again. */
static int find_neighbour(struct soft_id *id)
{
	struct soft_fabric *fabric = id->cm->fabric;
	uint64_t now, rest = id->query_interval;

	if (!id->between_hosts || soft_neighbour_answers(&id->addr.src_addr, &id->addr.dst_addr))
		return address_resolved(id);
	id->state = SOFT_ID_ADDR_QUERY;
	now = fabric->clock.now(&fabric->clock);
	if (now >= id->query_ends) {
		time_out(id);
		return 0;
	}
	id->answer_comes = true;
	id->query_interval = 2 * rest < NEIGHBOUR_INTERVAL_MAX ? 2 * rest : NEIGHBOUR_INTERVAL_MAX;
	soft_timer_arm(&fabric->timers, &id->timer, rest < id->query_ends - now ? rest : id->query_ends - now);
	return 0;
}

void soft_resolve_expired(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
	if (!id->answer_comes)
		time_out(id);
	else if (id->state == SOFT_ID_ADDR_QUERY)
		find_neighbour(id);
	else
		route_resolved(id);
}

/* Nothing is resolved: the GID table has the answer. */
static int resolve_ib(struct soft_id *id, const struct sockaddr *destination)
{
	int error;

	memcpy(&id->addr.dst_addr, destination, soft_address_length(destination));
	error = soft_address_ib_resolve(id);
	return error ? error : address_resolved(id);
}

/* The answers of a peer on another host come to the port of RoCE, so open it: 0 or a positive errno. */
static int open_for_answers(struct soft_id *id)
{
	struct soft_management *management = &id->cm->device->management;
	enum soft_id_state state = id->state;
	union ibv_gid source;
	int error, changed;

	soft_address_to_gid(&id->addr.src_addr, &source);
	if (soft_gid_is_loopback(&source))
		return soft_refuse(EINVAL, "a loopback address reaches no other host");
	soft_id_unlock_for_io(id);
	error = management->open(management, &source);
	changed = soft_id_relock(id, state);
	return changed ? changed : error;
}

/* Choose the source of an id that is not bound to an address: 0 or a positive errno. */
static int choose_source(struct soft_id *id, bool local, bool unanswered)
{
	struct sockaddr *source = &id->addr.src_addr, *destination = &id->addr.dst_addr;
	enum ibv_mtu mtu;

	if (local)
		memcpy(source, destination, soft_address_length(destination));
	else if (!soft_device_reaches_hosts(id->cm->device))
		soft_address_of_device(source);
	else if (soft_gid_route(destination, source, &mtu))
		; /* the kernel chose it */
	else if (unanswered)
		soft_address_of_device(source); /* without a route, a group has only members on this host */
	else
		return ENETUNREACH;
	soft_address_set_port(source, id->port);
	return 0;
}

static int resolve_locked(struct soft_id *id, const struct sockaddr *source,
			  const struct sockaddr *destination, int timeout_ms)
{
	struct rdma_addr *addr = &id->addr;
	struct sockaddr_storage any = {.ss_family = destination->sa_family};
	bool any_host = soft_address_is_any(destination), group = soft_address_is_multicast(destination);
	bool local, absent;
	int error = 0;

	if (id->state == SOFT_ID_IDLE)
		error = bind_locked(id, soft_address_is_known(source) ? source :
									(struct sockaddr *)&any);
	if (error)
		return error;
	if (id->state != SOFT_ID_BOUND || id->binding || addr->src_addr.sa_family != destination->sa_family)
		return EINVAL;
	if (destination->sa_family == AF_IB)
		return resolve_ib(id, destination);
	local = any_host || soft_address_is_local(id->cm->device, destination);
	absent = !local && !soft_device_reaches_hosts(id->cm->device) && soft_address_is_absent_neighbour(destination);
	if (!local && !group && !absent && !soft_device_reaches_hosts(id->cm->device))
		return ENETUNREACH; /* this link reaches only the host's own addresses */
	memset(&addr->dst_storage, 0, sizeof(addr->dst_storage));
	memcpy(&addr->dst_addr, destination, soft_address_length(destination));
	if (any_host) /* Linux treats the wildcard address as this host, too */
		soft_address_of_device(&addr->dst_addr);
	if (soft_address_is_any(&addr->src_addr))
		error = choose_source(id, local, group || absent);
	if (error)
		return error;
	id->between_hosts = soft_address_is_elsewhere(id->cm->device, &addr->dst_addr);
	if (id->between_hosts) {
		error = open_for_answers(id);
		if (error)
			return error;
	}
	if (absent) {
		ask_absent_host(id, timeout_ms);
		return 0;
	}
	id->query_interval = NEIGHBOUR_INTERVAL_MIN;
	id->query_ends = id->cm->fabric->clock.now(&id->cm->fabric->clock) + nanoseconds(timeout_ms);
	if (ask(id, SOFT_CM_ARP, timeout_ms))
		return find_neighbour(id);
	id->state = SOFT_ID_ADDR_QUERY;
	return 0;
}

int soft_resolve_addr(struct rdma_cm_id *rdma_id, struct sockaddr *source,
		      struct sockaddr *destination, int timeout_ms)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	int error = EINVAL;

	if (!id)
		return -1;
	if (soft_address_is_known(destination))
		error = resolve_locked(id, source, destination, timeout_ms);
	if (!error) /* librdmacm copies the address without asking the kernel */
		memcpy(&rdma_id->route.addr.dst_addr, destination, soft_address_length(destination));
	return soft_cm_finish(id->cm, error) ? -1 : soft_id_complete(rdma_id);
}

int soft_resolve_route(struct rdma_cm_id *rdma_id, int timeout_ms)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	int error = 0;

	if (!id)
		return -1;
	if (!timeout_ms)
		error = soft_refuse(EINVAL, "rdma_resolve_route needs a time to do it in");
	else if (id->state != SOFT_ID_ADDR_RESOLVED || !id->device)
		error = soft_refuse(EINVAL, "rdma_resolve_route needs a resolved address");
	else if (!soft_address_is_ip(&id->addr.dst_addr))
		error = soft_refuse(ENODEV, "an address of AF_IB names no network interface for a route of Ethernet");
	else if (ask(id, SOFT_CM_PATH_RECORD, timeout_ms))
		error = route_resolved(id);
	else
		id->state = SOFT_ID_ROUTE_QUERY;
	return soft_cm_finish(id->cm, error) ? -1 : soft_id_complete(rdma_id);
}

int soft_listen(struct rdma_cm_id *rdma_id, int backlog)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	struct sockaddr_in any = {.sin_family = AF_INET};
	int error = 0;

	if (!id)
		return -1;
	if (id->state == SOFT_ID_IDLE) /* rdma_listen(3): an unbound id listens on any address */
		error = bind_locked(id, (struct sockaddr *)&any);
	if (!error && (id->state != SOFT_ID_BOUND || id->binding))
		error = EINVAL;
	if (!error)
		error = soft_port_listen(id);
	if (!error) {
		id->backlog = backlog <= 0 || backlog > MAX_BACKLOG ? MAX_BACKLOG : backlog;
		id->state = SOFT_ID_LISTEN;
		error = -soft_id_query(id);
	}
	return soft_cm_finish(id->cm, error);
}

__be16 soft_get_src_port(struct rdma_cm_id *id)
{
	return id ? htons(soft_address_port(&id->route.addr.src_addr)) : 0;
}

__be16 soft_get_dst_port(struct rdma_cm_id *id)
{
	return id ? htons(soft_address_port(&id->route.addr.dst_addr)) : 0;
}

struct ibv_context **soft_get_devices(int *count)
{
	struct soft_cm *cm = soft_cm_current();
	struct ibv_context **list;

	if (soft_device_is_away(cm->device)) {
		errno = ENODEV;
		return NULL;
	}
	list = calloc(2, sizeof(struct ibv_context *));
	if (!list)
		return NULL;
	soft_mutex_lock(&cm->lock);
	list[0] = cm->opened->context;
	soft_mutex_unlock(&cm->lock);
	if (count)
		*count = 1;
	return list;
}

void soft_free_devices(struct ibv_context **list)
{
	free(list);
}
