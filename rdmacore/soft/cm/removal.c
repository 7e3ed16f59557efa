/*
 * The device is removed and returns, its interface changes its hardware address, or the program ends: events of ids,
 * messages to peers.
 */
#include "soft/cm/calls.h"

#include <errno.h>

#include "soft/objects/device.h"
#include "soft/qp/verbs.h"

/* A request that is not accepted yet reports nothing (ucma_event_handler of Linux). */
static bool notify_id(struct soft_id *id, enum rdma_cm_event_type event)
{
	return !id->unaccepted && id->rdma.channel && soft_cm_report(id, id, event, 0, NULL);
}

/*
 * Like cma_process_remove of Linux: the id gets DEVICE_REMOVAL, and the kernel's half of it is destroyed, with its
 * port and connection. The peer gets nothing, because the device is gone.
 */
static bool remove_id(struct soft_id *id)
{
	if (id->state == SOFT_ID_REMOVED || !id->on_device)
		return false;
	soft_cm_answered(id);
	soft_peers_forget(id);
	soft_port_release(id);
	id->state = SOFT_ID_REMOVED;
	return notify_id(id, RDMA_CM_EVENT_DEVICE_REMOVAL);
}

/* rdma_rxe's device is removed with its interface; this device has other interfaces. */
static bool remove_with_interface(struct soft_id *id)
{
	union ibv_gid source;

	if (!id->on_device || !soft_address_is_ip(&id->addr.src_addr))
		return false;
	soft_address_to_gid(&id->addr.src_addr, &source);
	return soft_gid_has_vanished(&id->cm->device->gid_table, &source) && remove_id(id);
}

/* Like cma_netdev_change of Linux: ids that were bound under another hardware address get ADDR_CHANGE. */
static bool change_address(struct soft_id *id)
{
	return id->state != SOFT_ID_REMOVED && id->on_device &&
	       id->hardware_address != id->cm->hardware_address &&
	       notify_id(id, RDMA_CM_EVENT_ADDR_CHANGE);
}

/* Returns how many ids got the event. */
static uint32_t for_each_id(struct soft_cm *cm, bool (*act)(struct soft_id *id))
{
	uint32_t slot = 0, notified = 0;
	struct soft_id *id;

	while ((id = soft_table_next(&cm->ids, &slot, NULL))) {
		notified += act(id);
		slot++;
	}
	return notified;
}

void soft_cm_remove_interfaces(struct soft_cm *cm)
{
	soft_mutex_lock(&cm->lock);
	(void)for_each_id(cm, remove_with_interface);
	soft_cm_unlock(cm);
}

int soft_cm_remove_device(struct soft_cm *cm)
{
	int result = -EBUSY;

	soft_mutex_lock(&cm->lock);
	if (!soft_device_is_away(cm->device)) {
		soft_device_leave(cm->device);
		cm->notified_removal = for_each_id(cm, remove_id);
		result = 0;
	}
	soft_cm_unlock(cm);
	if (!result)
		soft_device_stop(cm->device);
	return result;
}

int soft_cm_return_device(struct soft_cm *cm, uint32_t *notified)
{
	int result = -ENOENT;

	soft_mutex_lock(&cm->lock);
	if (soft_device_is_away(cm->device)) {
		soft_device_return(cm->device);
		result = soft_cm_open_device(cm);
		if (result)
			soft_device_leave(cm->device);
		*notified = cm->notified_removal;
	}
	soft_cm_unlock(cm);
	return result;
}

int soft_cm_change_address(struct soft_cm *cm)
{
	int result = -EBUSY;

	soft_mutex_lock(&cm->lock);
	if (!cm->hardware_address) {
		cm->hardware_address = 1;
		cm->notified_address = for_each_id(cm, change_address);
		result = 0;
	}
	soft_cm_unlock(cm);
	return result;
}

int soft_cm_restore_address(struct soft_cm *cm, uint32_t *notified)
{
	int result = -ENOENT;

	soft_mutex_lock(&cm->lock);
	if (cm->hardware_address) {
		cm->hardware_address = 0;
		*notified = cm->notified_address + for_each_id(cm, change_address);
		result = 0;
	}
	soft_cm_unlock(cm);
	return result;
}

/* Send the last message that the state requires (soft_id_leave). */
static bool leave_host(struct soft_id *id)
{
	if (!id->between_hosts || id->state == SOFT_ID_DESTROYED)
		return false;
	soft_id_leave(id);
	return true;
}

void soft_cm_leave_hosts(struct soft_cm *cm)
{
	struct soft_management *management = &cm->device->management;

	soft_mutex_lock(&cm->lock);
	(void)for_each_id(cm, leave_host);
	soft_cm_unlock(cm);
	if (management->leave)
		management->leave(management);
}
