#include "soft/cm/calls.h"

#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/ipc/ipc.h"

#define DESTROYED_KEPT 64 /* soft_cm.destroyed */

/* Like cm_destroy_id of Linux. */
void soft_id_leave(struct soft_id *id)
{
	soft_mutex_expect(&id->cm->lock);
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

void soft_id_drop_unread(struct soft_id *owner)
{
	struct soft_cm_event *event;

	soft_mutex_expect(&owner->cm->lock);
	while ((event = soft_cm_take_unread(owner))) {
		if (event->rdma.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			soft_id_free(soft_id(event->rdma.id));
		free(event);
	}
}

void soft_id_leave_channel(struct soft_event_channel *channel)
{
	struct soft_id *id;

	while ((id = LIST_FIRST(&channel->ids))) {
		soft_id_leave(id);
		soft_port_release(id);
		soft_id_drop_unread(id);
		soft_id_set_channel(id, NULL);
	}
}

/* Keep the memory of id for a while, and free that of the oldest destroyed id. */
static void defer_free(struct soft_id *id)
{
	struct soft_cm *cm = id->cm;
	struct soft_id *oldest;

	memset(&id->rdma, 0, sizeof(id->rdma));
	id->state = SOFT_ID_DESTROYED;
	id->destroyed_next = NULL;
	*cm->last_destroyed = id;
	cm->last_destroyed = &id->destroyed_next;
	if (cm->num_destroyed < DESTROYED_KEPT) {
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

	soft_mutex_expect(&id->cm->lock);
	soft_id_leave(id);
	soft_port_release(id);
	soft_table_remove(&cm->ids, id->local);
	soft_id_drop_unread(id);
	soft_joins_free(id);
	soft_id_set_channel(id, NULL);
	soft_id_unbind_device(id);
	soft_ipc_leave(id->peer_process);
	id->peer_process = NULL;
	/* The timer's expire takes cm.lock, and does nothing for a closed id. */
	soft_mutex_unlock(&cm->lock);
	soft_timer_unregister(&cm->fabric->timers, &id->timer);
	soft_freeaddrinfo(id->info);
	free(id->endpoint_attr);
	free(id->connect_prefix);
	soft_mutex_lock(&cm->lock);
	if (own) { /* other ids may have migrated to it */
		soft_id_leave_channel(own);
		soft_event_channel_free(own);
	}
	defer_free(id);
}
