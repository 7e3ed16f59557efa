#include "soft/rdma/rdma.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/event_queue.h"
#include "soft/base/fabric.h"
#include "soft/cm/calls.h"

int soft_cm_create(struct soft_fabric *fabric, struct soft_device *device, struct soft_cm **out)
{
	struct soft_cm *cm = calloc(1, sizeof(*cm));
	int result = -ENOMEM;

	if (!cm)
		return -ENOMEM;
	cm->fabric = fabric;
	cm->device = device;
	cm->expire = soft_cm_expire;
	cm->last_message = &cm->first_message;
	cm->last_destroyed = &cm->destroyed;
	if (soft_table_init(&cm->ids, 1, 1 << 22, soft_fabric_random(fabric)))
		goto free_cm;
	result = soft_cm_open_device(cm);
	if (result)
		goto destroy_ids;
	result = soft_timer_register(&fabric->timers, &cm->held_timer, soft_cm_expire_held);
	if (result)
		goto close_device;
	soft_events_init(&cm->lock.native, &cm->acknowledged);
	soft_mutex_place(&cm->lock, SOFT_ORDER_CM);
	*out = cm;
	return 0;

close_device:
	soft_cm_close_devices(cm);
destroy_ids:
	soft_table_destroy(&cm->ids);
free_cm:
	free(cm);
	return result;
}

void soft_cm_destroy(struct soft_cm *cm)
{
	struct soft_cm_message *message;
	struct soft_id *id;

	soft_timer_unregister(&cm->fabric->timers, &cm->held_timer);
	soft_mutex_lock(&cm->lock);
	soft_cm_forget_held(cm);
	while ((message = soft_cm_take_message(cm)))
		free(message);
	soft_mutex_unlock(&cm->lock);
	while ((id = cm->destroyed)) {
		cm->destroyed = id->destroyed_next;
		free(id);
	}
	if (soft_cm_current() == cm)
		soft_cm_select(NULL);
	soft_cm_close_devices(cm);
	soft_table_destroy(&cm->ids);
	soft_events_destroy(&cm->lock.native, &cm->acknowledged);
	free(cm);
}
