#include "soft/cm/queue.h"

#include <stdlib.h>

#include "soft/cm/cm.h"

void soft_cm_deliver(struct soft_cm *cm, const struct soft_cm_message *message)
{
	struct soft_cm_message *copy = malloc(sizeof(*copy));

	if (!copy)
		return;
	*copy = *message;
	copy->next = NULL;
	*cm->last_message = copy;
	cm->last_message = &copy->next;
}

struct soft_cm_message *soft_cm_take_message(struct soft_cm *cm)
{
	struct soft_cm_message *message = cm->first_message;

	if (!message)
		return NULL;
	cm->first_message = message->next;
	if (!cm->first_message)
		cm->last_message = &cm->first_message;
	return message;
}
