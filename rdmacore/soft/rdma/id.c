#include "soft/rdma/rdma.h"

#include <errno.h>

#include "soft/base/clock.h"
#include "soft/base/fabric.h"
#include "soft/base/refusal.h"
#include "soft/cm/calls.h"

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
	int error;

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
	soft_mutex_lock(&cm->lock);
	id = soft_id_alloc(cm, channel, context, port_space);
	error = errno;
	if (id)
		id->sync = !rdma_channel;
	soft_mutex_unlock(&cm->lock);
	if (!id) {
		if (!rdma_channel)
			soft_event_channel_free(channel);
		errno = error;
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
 * rdma_destroy_id(3) and rdma_migrate_id(3) wait until all events are acknowledged. Here they wait for ten seconds,
 * and then fail with EBUSY.
 */
static int wait_acknowledged(struct soft_id *id)
{
	struct soft_cm *cm = id->cm;
	int error;

	soft_mutex_expect(&id->cm->lock);
	soft_cm_flush(cm); /* now, because no other thread may do it during the wait */
	do {
		error = soft_id_wait_moved(id);
		if (error)
			return error;
		if (soft_events_wait(&cm->lock.native, &cm->acknowledged, &cm->fabric->wall,
				     &id->events_acknowledged, &id->events_reported))
			return name_blocker(id);
	} while (id->moving);
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
	/* The peer gets its message before the wait, as on Linux, which destroys the kernel's half first. */
	soft_id_leave(id);
	soft_port_release(id);
	soft_id_drop_unread(id);
	error = wait_acknowledged(id);
	if (!error)
		soft_id_free(id);
	return soft_cm_finish(cm, error);
}

/* rdma_migrate_id(3): to another channel, or to or from being synchronous. */

int soft_migrate_id(struct rdma_cm_id *rdma_id, struct rdma_event_channel *rdma_channel)
{
	struct soft_event_channel *to = (struct soft_event_channel *)rdma_channel;
	struct soft_event_channel *own = NULL;
	struct soft_id *id = soft_id_lock(rdma_id);
	struct soft_cm *cm;
	int error = 0;

	if (!id)
		return -1;
	cm = id->cm;
	if ((id->sync && !to) || !id->rdma.channel || (to && to->cm != cm))
		error = EINVAL;
	else if (!to && !(to = soft_event_channel_create(cm)))
		error = ENOMEM;
	if (error)
		return soft_cm_finish(cm, error);
	soft_cm_move_unread(id, to);
	if (id->sync)
		own = (struct soft_event_channel *)id->rdma.channel;
	soft_id_set_channel(id, to);
	id->sync = !rdma_channel;
	if (own) {
		soft_mutex_unlock(&cm->lock);
		soft_id_drop_event(rdma_id);
		soft_destroy_event_channel(&own->rdma);
		soft_mutex_lock(&cm->lock);
	}
	return soft_cm_finish(cm, wait_acknowledged(id));
}
