#include "soft/cm/calls.h"

#include <errno.h>
#include <stdlib.h>

struct soft_event_channel *soft_event_channel_create(struct soft_cm *cm)
{
	struct soft_event_channel *channel = calloc(1, sizeof(*channel));
	int result;

	if (!channel)
		return NULL;
	result = soft_event_queue_init(&channel->queue);
	if (result) {
		free(channel);
		errno = -result;
		return NULL;
	}
	channel->rdma.fd = channel->queue.fd;
	channel->cm = cm;
	return channel;
}

void soft_event_channel_free(struct soft_event_channel *channel)
{
	soft_event_queue_destroy(&channel->queue);
	free(channel);
}
