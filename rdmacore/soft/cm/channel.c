#include "soft/cm/calls.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "soft/objects/device.h"

struct soft_event_channel *soft_event_channel_create(struct soft_cm *cm)
{
	struct soft_event_channel *channel = calloc(1, sizeof(*channel));
	int result;

	if (!channel)
		return NULL;
	result = soft_event_queue_init(&channel->queue, cm->device->legal);
	if (result) {
		free(channel);
		errno = -result;
		return NULL;
	}
	channel->rdma.fd = channel->queue.fd;
	channel->cm = cm;
	return channel;
}

static void release(struct soft_event_channel *channel)
{
	if (!channel)
		return;
	soft_event_queue_destroy(&channel->queue);
	free(channel);
}

/*
 * The memory is kept for a while. rping's main destroys its channel while its thread may be about to ask for the next
 * event, which fails with EBADF then (cm_thread of rping.c).
 */
void soft_event_channel_free(struct soft_event_channel *channel)
{
	struct soft_cm *cm = channel->cm;
	unsigned int index;

	if (!soft_event_queue_close(&channel->queue))
		return; /* destroyed before */
	index = atomic_fetch_add(&cm->channels_destroyed, 1) % SOFT_CHANNELS_KEPT;
	release(atomic_exchange(&cm->destroyed_channels[index], channel));
}

void soft_event_channels_release(struct soft_cm *cm)
{
	for (unsigned int index = 0; index < SOFT_CHANNELS_KEPT; index++)
		release(atomic_exchange(&cm->destroyed_channels[index], NULL));
}
