#include "soft/objects/verbs.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "soft/objects/context.h"
#include "soft/objects/device.h"

struct soft_comp_channel {
	struct ibv_comp_channel ibv;
	struct soft_event_queue queue;
};

static struct soft_comp_channel *soft_channel(struct ibv_comp_channel *channel)
{
	return (struct soft_comp_channel *)channel;
}

struct ibv_comp_channel *soft_create_comp_channel(struct ibv_context *context)
{
	struct soft_comp_channel *channel;
	int result;

	if (soft_context_is_removed(context)) {
		errno = EIO;
		return NULL;
	}
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return NULL;
	result = soft_event_queue_init(&channel->queue, soft_device(context->device)->legal);
	if (result) {
		free(channel);
		errno = -result;
		return NULL;
	}
	channel->ibv.context = context;
	channel->ibv.fd = channel->queue.fd;
	return &channel->ibv;
}

int soft_destroy_comp_channel(struct ibv_comp_channel *ibv_channel)
{
	struct soft_comp_channel *channel = soft_channel(ibv_channel);
	int users;

	pthread_mutex_lock(&ibv_channel->context->mutex);
	users = ibv_channel->refcnt;
	pthread_mutex_unlock(&ibv_channel->context->mutex);
	if (users)
		return EBUSY;
	soft_event_queue_destroy(&channel->queue);
	free(channel);
	return 0;
}

void soft_comp_channel_use(struct ibv_comp_channel *channel, int change)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += change;
	pthread_mutex_unlock(&channel->context->mutex);
}

void soft_comp_channel_push(struct ibv_comp_channel *channel, struct soft_event_node *event)
{
	soft_event_queue_push(&soft_channel(channel)->queue, event);
}

struct soft_event_node *soft_comp_channel_pop(struct ibv_comp_channel *channel)
{
	return soft_event_queue_pop(&soft_channel(channel)->queue);
}

uint32_t soft_comp_channel_remove(struct ibv_comp_channel *channel, struct soft_event_node *event)
{
	return soft_event_queue_remove(&soft_channel(channel)->queue, event);
}
