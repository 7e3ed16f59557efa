#include "soft_cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft_clock.h"
#include "soft_context.h"
#include "soft_device.h"
#include "soft_fabric.h"
#include "soft_pd.h"

#define ACKNOWLEDGE_BOUND (10 * SOFT_SECOND)

struct soft_id *soft_id_alloc(struct soft_cm *cm, struct soft_event_channel *channel, void *context,
			      enum rdma_port_space port_space)
{
	struct soft_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->cm = cm;
	id->ack_timeout = SOFT_CM_ACK_TIMEOUT;
	id->rdma.channel = &channel->rdma;
	id->rdma.context = context;
	id->rdma.ps = port_space;
	id->rdma.qp_type = IBV_QPT_RC;
	if (soft_timer_register(&cm->fabric->timers, &id->timer, soft_cm_expire))
		goto free_id;
	if (soft_table_insert(&cm->ids, id, &id->local))
		goto unregister_timer;
	return id;

unregister_timer:
	soft_timer_unregister(&cm->fabric->timers, &id->timer);
free_id:
	free(id);
	errno = ENOMEM;
	return NULL;
}

int soft_id_bind_device(struct soft_id *id)
{
	struct soft_cm *cm = id->cm;

	if (id->device_bound)
		return 0;
	if (!cm->default_pd) {
		cm->default_pd = soft_alloc_pd(cm->context);
		if (!cm->default_pd)
			return -ENOMEM;
	}
	cm->default_pd_users++;
	id->device_bound = true;
	id->rdma.verbs = cm->context;
	id->rdma.port_num = SOFT_PORT;
	id->rdma.pd = cm->default_pd;
	return 0;
}

static void unbind_device(struct soft_id *id)
{
	struct soft_cm *cm = id->cm;

	if (!id->device_bound)
		return;
	id->device_bound = false;
	/* As librdmacm: the PD goes with its last id, or stays behind while something uses it. */
	if (--cm->default_pd_users == 0 && soft_dealloc_pd(cm->default_pd) == 0)
		cm->default_pd = NULL;
}

/* What the peer of a destroyed id gets to hear, by the state of the connection (cm_destroy_id of Linux). */
static void leave_connection(struct soft_id *id)
{
	switch (id->state) {
	case SOFT_ID_REQ_SENT:
		soft_cm_reject(id, SOFT_REJ_TIMEOUT, NULL, 0);
		break;
	case SOFT_ID_REQ_RECEIVED:
	case SOFT_ID_REP_SENT:
	case SOFT_ID_REP_RECEIVED:
		soft_cm_reject(id, SOFT_REJ_CONSUMER_DEFINED, NULL, 0);
		break;
	case SOFT_ID_ESTABLISHED:
		soft_cm_send_plain(id, SOFT_CM_DREQ);
		break;
	case SOFT_ID_DREQ_RECEIVED:
		soft_cm_send_plain(id, SOFT_CM_DREP);
		break;
	default:
		break;
	}
	id->state = SOFT_ID_CLOSED;
}

void soft_id_free(struct soft_id *id)
{
	struct soft_cm *cm = id->cm;

	leave_connection(id);
	soft_port_release(id);
	soft_table_remove(&cm->ids, id->local);
	soft_cm_drop_unread(id);
	unbind_device(id);
	/* Its expire takes cm.lock; closed, it does nothing any more. */
	pthread_mutex_unlock(&cm->lock);
	soft_timer_unregister(&cm->fabric->timers, &id->timer);
	pthread_mutex_lock(&cm->lock);
	free(id);
}

int soft_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
		   enum rdma_port_space port_space)
{
	struct soft_id *id;

	if (!channel || (port_space != RDMA_PS_TCP && port_space != RDMA_PS_IB)) {
		errno = channel ? EPROTONOSUPPORT : EINVAL;
		return -1;
	}
	id = soft_id_alloc(((struct soft_event_channel *)channel)->cm, (struct soft_event_channel *)channel, context, port_space);
	if (!id)
		return -1;
	*out = &id->rdma;
	return 0;
}

/*
 * Waits until every event of the id was acknowledged, as rdma_destroy_id(3) does, but not for ever: an
 * event that is never acknowledged is EBUSY.
 */
static int wait_for_acknowledgements(struct soft_id *id)
{
	struct soft_clock *clock = &id->cm->fabric->wall;
	uint64_t bound = clock->now(clock) + ACKNOWLEDGE_BOUND;
	struct timespec until = {(time_t)(bound / SOFT_SECOND), (long)(bound % SOFT_SECOND)};

	while (id->events_acknowledged != id->events_reported)
		if (pthread_cond_timedwait(&id->cm->acknowledged, &id->cm->lock, &until))
			return EBUSY;
	return 0;
}

int soft_destroy_id(struct rdma_cm_id *rdma_id)
{
	struct soft_id *id = soft_id(rdma_id);
	struct soft_cm *cm = id->cm;
	int error;

	pthread_mutex_lock(&cm->lock);
	error = wait_for_acknowledgements(id);
	if (!error)
		soft_id_free(id);
	return soft_cm_finish(cm, error);
}

static bool known_family(const struct sockaddr *address)
{
	return address && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

static int bind_locked(struct soft_id *id, const struct sockaddr *address)
{
	int error;

	if (id->state != SOFT_ID_IDLE)
		return EINVAL;
	if (!soft_address_is_any(address) && !soft_address_is_local(id->cm, address))
		return EADDRNOTAVAIL;
	error = soft_port_bind(id, address);
	if (error)
		return error;
	if (!soft_address_is_any(address) && soft_id_bind_device(id)) {
		soft_port_release(id);
		return ENOMEM;
	}
	id->state = SOFT_ID_BOUND;
	return 0;
}

int soft_bind_addr(struct rdma_cm_id *rdma_id, struct sockaddr *address)
{
	struct soft_id *id = soft_id(rdma_id);

	if (!known_family(address)) {
		errno = EINVAL;
		return -1;
	}
	pthread_mutex_lock(&id->cm->lock);
	return soft_cm_finish(id->cm, bind_locked(id, address));
}

static int resolve_locked(struct soft_id *id, const struct sockaddr *source,
			  const struct sockaddr *destination)
{
	struct rdma_addr *addr = &id->rdma.route.addr;
	struct sockaddr_storage any = {.ss_family = destination->sa_family};
	int error = 0;

	if (id->state == SOFT_ID_IDLE)
		error = bind_locked(id, known_family(source) ? source : (struct sockaddr *)&any);
	if (error)
		return error;
	if (id->state != SOFT_ID_BOUND || addr->src_addr.sa_family != destination->sa_family)
		return EINVAL;
	if (!soft_address_is_any(destination) && !soft_address_is_local(id->cm, destination))
		return ENODEV;
	memset(&addr->dst_storage, 0, sizeof(addr->dst_storage));
	memcpy(&addr->dst_addr, destination, soft_address_length(destination));
	if (soft_address_is_any(destination)) { /* Linux takes any as this host, too */
		if (destination->sa_family == AF_INET)
			addr->dst_sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		else
			addr->dst_sin6.sin6_addr = in6addr_loopback;
	}
	if (soft_address_is_any(&addr->src_addr)) {
		memcpy(&addr->src_addr, &addr->dst_addr, soft_address_length(&addr->dst_addr));
		soft_address_set_port(&addr->src_addr, id->port);
	}
	if (!soft_cm_report(id, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL))
		return ENOMEM;
	id->state = SOFT_ID_ADDR_RESOLVED;
	return 0;
}

int soft_resolve_addr(struct rdma_cm_id *rdma_id, struct sockaddr *source,
		      struct sockaddr *destination, int timeout_ms)
{
	struct soft_id *id = soft_id(rdma_id);

	(void)timeout_ms; /* a local address is resolved at once */
	if (!known_family(destination)) {
		errno = EINVAL;
		return -1;
	}
	pthread_mutex_lock(&id->cm->lock);
	return soft_cm_finish(id->cm, resolve_locked(id, source, destination));
}

int soft_resolve_route(struct rdma_cm_id *rdma_id, int timeout_ms)
{
	struct soft_id *id = soft_id(rdma_id);
	int error = 0;

	(void)timeout_ms;
	pthread_mutex_lock(&id->cm->lock);
	if (id->state != SOFT_ID_ADDR_RESOLVED || !id->device_bound)
		error = EINVAL;
	else if (!soft_cm_report(id, id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL))
		error = ENOMEM;
	else
		id->state = SOFT_ID_ROUTE_RESOLVED;
	return soft_cm_finish(id->cm, error);
}

int soft_listen(struct rdma_cm_id *rdma_id, int backlog)
{
	struct soft_id *id = soft_id(rdma_id);
	struct sockaddr_in any = {.sin_family = AF_INET};
	int error = 0;

	pthread_mutex_lock(&id->cm->lock);
	if (id->state == SOFT_ID_IDLE) /* rdma_listen(3): an unbound id listens on any address */
		error = bind_locked(id, (struct sockaddr *)&any);
	if (!error && id->state != SOFT_ID_BOUND)
		error = EINVAL;
	if (!error) {
		id->backlog = backlog <= 0 || backlog > SOFT_MAX_BACKLOG ? SOFT_MAX_BACKLOG : backlog;
		id->state = SOFT_ID_LISTEN;
	}
	return soft_cm_finish(id->cm, error);
}

__be16 soft_get_src_port(struct rdma_cm_id *id)
{
	return htons(soft_address_port(&id->route.addr.src_addr));
}

__be16 soft_get_dst_port(struct rdma_cm_id *id)
{
	return htons(soft_address_port(&id->route.addr.dst_addr));
}

struct ibv_context **soft_get_devices(int *count)
{
	struct ibv_context **list = calloc(2, sizeof(struct ibv_context *));

	if (!list)
		return NULL;
	list[0] = soft_cm_current()->context;
	if (count)
		*count = 1;
	return list;
}

void soft_free_devices(struct ibv_context **list)
{
	free(list);
}
