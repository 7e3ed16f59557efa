#include "soft/rdma/rdma.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/event_queue.h"
#include "soft/base/fabric.h"
#include "soft/cm/calls.h"
#include "soft/ipc/ipc.h"
#include "soft/objects/device.h"

/* If the fabric has a name, ids connect to ids of other processes, too. */
static int create_ipc(struct soft_cm *cm, const struct core_options *options)
{
	int result;

	if (options->link != CORE_LINK_UDP || !*options->fabric)
		return 0;
	result = soft_ipc_create(cm->fabric, &cm->lock, options->fabric, options->shared, soft_cm_ready, &cm->ipc);
	if (result)
		return result;
	cm->ipc->receive = soft_cm_arrive;
	cm->ipc->lost = soft_cm_peer_died;
	return 0;
}

int soft_cm_create(struct soft_fabric *fabric, struct soft_device *device, const struct core_options *options,
		   struct soft_cm **out)
{
	struct soft_cm *cm = calloc(1, sizeof(*cm));
	int result = -ENOMEM;

	if (!cm)
		return -ENOMEM;
	cm->fabric = fabric;
	cm->device = device;
	cm->expire = soft_cm_expire;
	cm->last_message = &cm->first_message;
	soft_half_open_init(cm);
	cm->last_destroyed = &cm->destroyed;
	if (soft_table_init(&cm->ids, 1, 1 << 22, soft_fabric_random(fabric)))
		goto free_cm;
	cm->source_key = soft_secret_hash(cm->ids.key, UINT64_MAX);
	if (device->management.block_source)
		soft_table_use_blocks(&cm->ids, device->management.block_source);
	result = soft_cm_open_device(cm);
	if (result)
		goto destroy_ids;
	result = soft_timer_register(&fabric->timers, &cm->held_timer, soft_cm_expire_held);
	if (result)
		goto close_device;
	soft_events_init(&cm->lock.native, &cm->acknowledged);
	soft_mutex_place(&cm->lock, SOFT_ORDER_CM);
	result = create_ipc(cm, options);
	if (result)
		goto destroy_events;
	result = soft_cm_open_inbox(cm);
	if (result)
		goto destroy_ipc;
	result = soft_cm_watch_network(cm);
	if (result)
		goto close_inbox;
	*out = cm;
	return 0;

close_inbox:
	soft_cm_stop_inbox(cm);
	soft_cm_close_inbox(cm);
destroy_ipc:
	if (cm->ipc) {
		soft_ipc_stop(cm->ipc);
		soft_ipc_destroy(cm->ipc);
	}
destroy_events:
	soft_events_destroy(&cm->lock.native, &cm->acknowledged);
	soft_timer_unregister(&fabric->timers, &cm->held_timer);
close_device:
	soft_cm_close_devices(cm);
destroy_ids:
	soft_table_destroy(&cm->ids);
free_cm:
	free(cm);
	return result;
}

void soft_cm_stop_mad_tx(struct soft_cm *cm)
{
	/* It answers requests and forwards messages to other processes. */
	soft_cm_stop_inbox(cm);
	soft_mutex_lock(&cm->lock);
	soft_gate_stop_mad_tx(cm);
	soft_mutex_unlock(&cm->lock);
}

void soft_cm_destroy(struct soft_cm *cm)
{
	struct soft_cm_message *message;
	struct soft_id *id;

	/* Messages of other processes arm the timer if faults are active. */
	if (cm->ipc)
		soft_ipc_stop(cm->ipc);
	soft_timer_unregister(&cm->fabric->timers, &cm->held_timer);
	soft_mutex_lock(&cm->lock);
	soft_cm_forget_held(cm);
	while ((message = soft_cm_take_message(cm)))
		soft_cm_free_message(message);
	soft_mutex_unlock(&cm->lock);
	if (cm->ipc)
		soft_ipc_destroy(cm->ipc);
	soft_cm_close_network(cm);
	soft_cm_close_inbox(cm);
	while ((id = cm->destroyed)) {
		cm->destroyed = id->destroyed_next;
		free(id);
	}
	soft_event_channels_release(cm);
	if (soft_cm_current() == cm)
		soft_cm_select(NULL);
	soft_cm_close_devices(cm);
	soft_table_destroy(&cm->ids);
	soft_events_destroy(&cm->lock.native, &cm->acknowledged);
	free(cm);
}
