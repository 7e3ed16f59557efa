#include "soft/cm/calls.h"

#include <errno.h>

#include "soft/ipc/ipc.h"

void soft_cm_flush(struct soft_cm *cm)
{
	struct soft_cm_message *message;

	soft_mutex_expect(&cm->lock);
	while ((message = soft_cm_take_message(cm))) {
		soft_cm_receive(cm, message);
		soft_cm_free_message(message);
	}
	if (cm->ipc)
		soft_ipc_flush(cm->ipc);
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
