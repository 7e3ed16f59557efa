#include "soft/cm/calls.h"

#include <errno.h>

#include "soft/base/local_name.h"
#include "soft/base/order.h"
#include "soft/ipc/ipc.h"

static void deliver(struct soft_cm *cm)
{
	struct soft_cm_message *message;

	while ((message = soft_cm_take_message(cm))) {
		soft_cm_receive(cm, message);
		soft_cm_free_message(message);
	}
	if (cm->ipc)
		soft_ipc_flush(cm->ipc);
}

/* Receive deferred requests again, now that the kernel's list of sockets is known. */
static void look_for_listeners(struct soft_cm *cm)
{
	struct soft_cm_message *message = cm->deferred_requests, *next;
	struct soft_local_list list;

	cm->deferred_requests = NULL;
	soft_mutex_unlock(&cm->lock);
	soft_order_expect_none();
	soft_local_list_read(&list, &cm->fabric->without_users);
	soft_mutex_lock(&cm->lock);
	for (; message; message = next) {
		struct soft_ipc_port port = soft_ipc_port(message->port_space, (const struct sockaddr *)&message->destination, false);

		next = message->next;
		message->looked = true;
		message->served = soft_claim_has_listener(cm->ipc, &port, &list);
		soft_cm_receive(cm, message);
		soft_cm_free_message(message);
	}
	soft_local_list_free(&list);
}

void soft_cm_flush(struct soft_cm *cm)
{
	soft_mutex_expect(&cm->lock);
	deliver(cm);
	while (cm->deferred_requests) {
		look_for_listeners(cm);
		deliver(cm);
	}
}

void soft_cm_unlock(struct soft_cm *cm)
{
	soft_cm_flush(cm);
	soft_mutex_unlock(&cm->lock);
}

int soft_cm_finish(struct soft_cm *cm, int error)
{
	soft_cm_unlock(cm);
	if (!error)
		return 0;
	errno = error;
	return -1;
}
