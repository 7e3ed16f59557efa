/* What an id is made of, and how it goes. */
#include "soft_cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft_clock.h"
#include "soft_fabric.h"
#include "soft_join.h"
#include "soft_refusal.h"

#define ACKNOWLEDGE_BOUND (10 * SOFT_SECOND)

struct soft_id *soft_id_lock_any(struct rdma_cm_id *rdma_id)
{
	struct soft_id *id = soft_id(rdma_id);

	soft_refusal_clear();
	if (!id) {
		errno = soft_refuse(EINVAL, "there is no id; librdmacm would crash here");
		return NULL;
	}
	pthread_mutex_lock(&id->cm->lock);
	if (id->state != SOFT_ID_DESTROYED)
		return id;
	pthread_mutex_unlock(&id->cm->lock);
	errno = soft_refuse(EINVAL, "the id was destroyed; librdmacm would crash here");
	return NULL;
}

struct soft_id *soft_id_lock(struct rdma_cm_id *rdma_id)
{
	struct soft_id *id = soft_id_lock_any(rdma_id);

	if (!id || id->state != SOFT_ID_REMOVED)
		return id;
	pthread_mutex_unlock(&id->cm->lock);
	errno = soft_refuse(ENXIO, "the id's device was removed; all that can be done is to destroy it");
	return NULL;
}

void soft_id_set_channel(struct soft_id *id, struct soft_event_channel *channel)
{
	if (id->channel_link) {
		*id->channel_link = id->channel_next;
		if (id->channel_next)
			id->channel_next->channel_link = id->channel_link;
		id->channel_link = NULL;
	}
	id->rdma.channel = channel ? &channel->rdma : NULL;
	if (!channel)
		return;
	id->channel_link = &channel->ids;
	id->channel_next = channel->ids;
	if (channel->ids)
		channel->ids->channel_link = &id->channel_next;
	channel->ids = id;
}

/* librdmacm makes datagram ids of the datagram port spaces (rdma_create_id). */
static enum ibv_qp_type qp_type_of(enum rdma_port_space port_space)
{
	return port_space == RDMA_PS_UDP || port_space == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

struct soft_id *soft_id_alloc(struct soft_cm *cm, struct soft_event_channel *channel, void *context,
			      enum rdma_port_space port_space)
{
	struct soft_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->cm = cm;
	id->path_timeout = SOFT_CM_ACK_TIMEOUT;
	id->last_unread = &id->unread;
	id->rdma.context = context;
	id->rdma.ps = port_space;
	id->rdma.qp_type = qp_type_of(port_space);
	id->qkey = RDMA_UDP_QKEY;
	if (soft_timer_register(&cm->fabric->timers, &id->timer, soft_cm_expire))
		goto free_id;
	if (soft_table_insert(&cm->ids, id, &id->local))
		goto unregister_timer;
	soft_id_set_channel(id, channel);
	return id;

unregister_timer:
	soft_timer_unregister(&cm->fabric->timers, &id->timer);
free_id:
	free(id);
	errno = ENOMEM;
	return NULL;
}

/* cm_destroy_id of Linux */
void soft_id_leave(struct soft_id *id)
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
		soft_cm_prepare(id, &id->request, SOFT_CM_DREQ);
		id->request.qp_num = id->remote_qp_num;
		soft_cm_send(id->cm, &id->request);
		break;
	case SOFT_ID_DREQ_RECEIVED:
		soft_cm_send_plain(id, SOFT_CM_DREP);
		break;
	case SOFT_ID_SIDR_RECEIVED:
		soft_sidr_reply(id, SOFT_SIDR_REJECT, NULL);
		break;
	default:
		break;
	}
	soft_cm_close(id);
}

/* Keep the memory of id for a while, and free the oldest that is kept. */
static void bury(struct soft_id *id)
{
	struct soft_cm *cm = id->cm;
	struct soft_id *oldest;

	memset(&id->rdma, 0, sizeof(id->rdma));
	id->state = SOFT_ID_DESTROYED;
	id->destroyed_next = NULL;
	*cm->last_destroyed = id;
	cm->last_destroyed = &id->destroyed_next;
	if (cm->num_destroyed < SOFT_DESTROYED_KEPT) {
		cm->num_destroyed++;
		return;
	}
	oldest = cm->destroyed;
	cm->destroyed = oldest->destroyed_next;
	free(oldest);
}

void soft_id_free(struct soft_id *id)
{
	struct soft_cm *cm = id->cm;
	struct soft_event_channel *own = id->sync ? (void *)id->rdma.channel : NULL;

	soft_id_leave(id);
	soft_port_release(id);
	soft_table_remove(&cm->ids, id->local);
	soft_cm_drop_unread(id);
	soft_joins_free(id);
	soft_id_set_channel(id, NULL);
	soft_id_unbind_device(id);
	/* Its expire takes cm.lock; closed, it does nothing any more. */
	pthread_mutex_unlock(&cm->lock);
	soft_timer_unregister(&cm->fabric->timers, &id->timer);
	if (own)
		soft_destroy_event_channel(&own->rdma);
	soft_freeaddrinfo(id->info);
	free(id->endpoint_attr);
	free(id->connect_prefix);
	pthread_mutex_lock(&cm->lock);
	bury(id);
}

static bool known_port_space(enum rdma_port_space port_space)
{
	return port_space == RDMA_PS_TCP || port_space == RDMA_PS_UDP ||
	       port_space == RDMA_PS_IB || port_space == RDMA_PS_IPOIB;
}

int soft_create_id(struct rdma_event_channel *rdma_channel, struct rdma_cm_id **out, void *context,
		   enum rdma_port_space port_space)
{
	struct soft_event_channel *channel = (struct soft_event_channel *)rdma_channel;
	struct soft_cm *cm = channel ? channel->cm : soft_cm_current();
	struct soft_id *id;

	soft_refusal_clear();
	if (!out || !cm || !known_port_space(port_space)) {
		errno = EINVAL;
		return -1;
	}
	/* rdma_create_id(3): without a channel the id is synchronous, with one of its own. */
	if (!rdma_channel)
		channel = soft_event_channel_create(cm);
	if (!channel) {
		errno = ENOMEM;
		return -1;
	}
	pthread_mutex_lock(&cm->lock);
	id = soft_id_alloc(cm, channel, context, port_space);
	if (id)
		id->sync = !rdma_channel;
	pthread_mutex_unlock(&cm->lock);
	if (!id) {
		if (!rdma_channel)
			soft_destroy_event_channel(&channel->rdma);
		errno = ENOMEM;
		return -1;
	}
	*out = &id->rdma;
	return 0;
}

/* "1 unacknowledged CONNECT_REQUEST on the listener at port 7471" */
static int name_blocker(const struct soft_id *id)
{
	uint32_t missing = id->events_reported - id->events_acknowledged;

	if (id->backlog)
		return soft_refuse(EBUSY,
				   "%u unacknowledged CONNECT_REQUEST%s on the listener at port %u; "
				   "librdmacm would wait for ever", missing, missing == 1 ? "" : "s",
				   id->port);
	return soft_refuse(EBUSY, "%u unacknowledged event%s of the id; librdmacm would wait for ever",
			   missing, missing == 1 ? "" : "s");
}

/*
 * rdma_destroy_id(3) and rdma_migrate_id(3) wait until every event was acknowledged; here not for ever: an
 * event that is never acknowledged is EBUSY.
 */
int soft_id_wait_acknowledged(struct soft_id *id)
{
	struct soft_clock *clock = &id->cm->fabric->wall;
	uint64_t bound = clock->now(clock) + ACKNOWLEDGE_BOUND;
	struct timespec until = {(time_t)(bound / SOFT_SECOND), (long)(bound % SOFT_SECOND)};

	soft_cm_flush(id->cm); /* nobody else might, while this waits */
	while (id->events_acknowledged != id->events_reported)
		if (pthread_cond_timedwait(&id->cm->acknowledged, &id->cm->lock, &until))
			return name_blocker(id);
	return 0;
}

int soft_destroy_id(struct rdma_cm_id *rdma_id)
{
	struct soft_id *id;
	struct soft_cm *cm;
	int error;

	soft_id_drop_event(rdma_id);
	id = soft_id_lock_any(rdma_id);
	if (!id)
		return -1;
	cm = id->cm;
	/* The peer hears of it before the wait, as from Linux, which destroys its half first. */
	soft_id_leave(id);
	soft_port_release(id);
	soft_cm_drop_unread(id);
	error = soft_id_wait_acknowledged(id);
	if (!error)
		soft_id_free(id);
	return soft_cm_finish(cm, error);
}
