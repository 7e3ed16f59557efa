/* An id goes over to another channel, and so to or from being synchronous (rdma_migrate_id(3)). */
#include "soft/rdma/migrate.h"

#include <errno.h>

#include "soft/cm/channel.h"
#include "soft/cm/cm.h"
#include "soft/cm/finish.h"
#include "soft/cm/id.h"
#include "soft/cm/report.h"
#include "soft/rdma/event.h"
#include "soft/rdma/id.h"
#include "soft/rdma/sync.h"

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
	return soft_cm_finish(cm, soft_id_wait_acknowledged(id));
}
