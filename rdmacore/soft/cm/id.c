#include "soft/cm/id.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/event_queue.h"
#include "soft/base/fabric.h"
#include "soft/base/refusal.h"
#include "soft/cm/cm.h"
#include "soft/objects/device.h"
#include "soft/wire/packet.h"

struct soft_id *soft_id_lock_any(struct rdma_cm_id *rdma_id)
{
	struct soft_id *id = soft_id(rdma_id);
	struct soft_progress *progress;

	soft_refusal_clear();
	if (!id) {
		errno = soft_refuse(EINVAL, "there is no id; librdmacm would crash here");
		return NULL;
	}
	progress = id->cm->device->progress;
	if (progress)
		progress->flush_acks(progress);
	soft_mutex_lock(&id->cm->lock);
	if (id->state != SOFT_ID_DESTROYED)
		return id;
	soft_mutex_unlock(&id->cm->lock);
	errno = soft_refuse(EINVAL, "the id was destroyed; librdmacm would crash here");
	return NULL;
}

struct soft_id *soft_id_lock(struct rdma_cm_id *rdma_id)
{
	struct soft_id *id = soft_id_lock_any(rdma_id);

	if (!id || id->state != SOFT_ID_REMOVED)
		return id;
	soft_mutex_unlock(&id->cm->lock);
	errno = soft_refuse(ENXIO, "the id's device was removed; all that can be done is to destroy it");
	return NULL;
}

int soft_id_wait_moved(struct soft_id *id)
{
	static const uint32_t none = 0;
	struct soft_cm *cm = id->cm;

	soft_mutex_expect(&id->cm->lock);
	if (!soft_events_wait(&cm->lock.native, &cm->acknowledged, &cm->fabric->wall, &id->moving, &none))
		return 0;
	return soft_refuse(EBUSY, "the id's queue pair is being modified by a thread that was stopped");
}

void soft_id_unlock_for_io(struct soft_id *id)
{
	id->moving++;
	id->binding = true;
	soft_mutex_unlock(&id->cm->lock);
	soft_order_expect_none();
}

int soft_id_relock(struct soft_id *id, enum soft_id_state state)
{
	soft_mutex_lock(&id->cm->lock);
	id->moving--;
	id->binding = false;
	pthread_cond_broadcast(&id->cm->acknowledged);
	if (id->state == state)
		return 0;
	return id->state == SOFT_ID_REMOVED ? ENXIO : EINVAL;
}

void soft_id_set_channel(struct soft_id *id, struct soft_event_channel *channel)
{
	soft_mutex_expect(&id->cm->lock);
	if (id->of_channel.le_prev)
		LIST_REMOVE(id, of_channel);
	id->of_channel.le_prev = NULL;
	id->rdma.channel = channel ? &channel->rdma : NULL;
	if (channel)
		LIST_INSERT_HEAD(&channel->ids, id, of_channel);
}

/* Like rdma_create_id of librdmacm. */
static enum ibv_qp_type qp_type_of(enum rdma_port_space port_space)
{
	return port_space == RDMA_PS_UDP || port_space == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

struct soft_id *soft_id_alloc(struct soft_cm *cm, struct soft_event_channel *channel, void *context,
			      enum rdma_port_space port_space)
{
	struct soft_id *id = calloc(1, sizeof(*id));
	int error = ENOMEM;

	soft_mutex_expect(&cm->lock);
	if (!id)
		return NULL;
	id->cm = cm;
	id->path_timeout = SOFT_CM_ACK_TIMEOUT;
	id->last_unread = &id->unread;
	id->rdma.context = context;
	id->rdma.ps = port_space;
	id->rdma.qp_type = qp_type_of(port_space);
	id->qkey = RDMA_UDP_QKEY;
	if (soft_timer_register(&cm->fabric->timers, &id->timer, cm->expire))
		goto free_id;
	error = -soft_table_insert(&cm->ids, id, &id->local);
	if (error)
		goto unregister_timer;
	soft_id_set_channel(id, channel);
	return id;

unregister_timer:
	soft_timer_unregister(&cm->fabric->timers, &id->timer);
free_id:
	free(id);
	errno = error;
	return NULL;
}

uint32_t soft_local_qp_num(const struct soft_id *id, const struct rdma_conn_param *param)
{
	if (id->rdma.qp)
		return id->rdma.qp->qp_num;
	return param ? param->qp_num & SOFT_PSN_MASK : 0;
}
