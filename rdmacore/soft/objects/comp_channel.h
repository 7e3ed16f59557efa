/* Completion channels (ibv_create_comp_channel(3)): where completion queues tell that something completed. */
#ifndef SOFT_OBJECTS_COMP_CHANNEL_H
#define SOFT_OBJECTS_COMP_CHANNEL_H

#include <infiniband/verbs.h>

#include "soft/base/event_queue.h"

struct ibv_comp_channel *soft_create_comp_channel(struct ibv_context *context);
/* EBUSY while completion queues use it. */
int soft_destroy_comp_channel(struct ibv_comp_channel *channel);

/* One more completion queue uses it (1), or one less (-1).  NULL: no channel, nothing to do. */
void soft_comp_channel_use(struct ibv_comp_channel *channel, int change);
/* Deliver the event of a completion queue once more. */
void soft_comp_channel_push(struct ibv_comp_channel *channel, struct soft_event_node *event);
/* The oldest, waited for where the channel's descriptor blocks; NULL and errno when there is none. */
struct soft_event_node *soft_comp_channel_pop(struct ibv_comp_channel *channel);
/* Forget every delivery of it that is still to come; returns how often it was taken. */
uint32_t soft_comp_channel_remove(struct ibv_comp_channel *channel, struct soft_event_node *event);

#endif
