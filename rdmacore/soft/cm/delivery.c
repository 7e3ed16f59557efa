#include "soft/cm/calls.h"

#include <stdlib.h>

#include "soft/ipc/ipc.h"
#include "soft/objects/device.h"

void soft_cm_send_to_host(struct soft_device *device, const struct soft_cm_message *message)
{
	union ibv_gid from, to;
	uint8_t mad[SOFT_MAD];

	if (!soft_device_reaches_hosts(device)) /* the device was removed */
		return;
	soft_address_to_gid((const struct sockaddr *)&message->source, &from);
	soft_address_to_gid((const struct sockaddr *)&message->destination, &to);
	soft_mad_encode(message, mad);
	device->management.send(&device->management, &from, &to, mad, !message->recorded);
}

void soft_cm_deliver(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_cm_message *copy;

	soft_mutex_expect(&cm->lock);
	if (message->peer_process && !message->arrived) {
		soft_ipc_send(message->peer_process, message);
		return;
	}
	if (message->between_hosts && !message->arrived) {
		soft_cm_send_to_host(cm->device, message);
		return;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		return;
	*copy = *message;
	soft_ipc_hold(copy->peer_process);
	copy->next = NULL;
	*cm->last_message = copy;
	cm->last_message = &copy->next;
}

struct soft_cm_message *soft_cm_take_message(struct soft_cm *cm)
{
	struct soft_cm_message *message = cm->first_message;

	soft_mutex_expect(&cm->lock);
	if (!message)
		return NULL;
	cm->first_message = message->next;
	if (!cm->first_message)
		cm->last_message = &cm->first_message;
	return message;
}

void soft_cm_free_message(struct soft_cm_message *message)
{
	soft_ipc_release(message->peer_process);
	free(message);
}
