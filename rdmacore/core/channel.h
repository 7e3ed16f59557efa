/* Events of the connection manager, as core/channel.c and core/sync.c read them. */
#ifndef CORE_CHANNEL_H
#define CORE_CHANNEL_H

#include "core/core.h"

/* The next event of the channel, not acknowledged; -EAGAIN when there is none. */
int core_read_event(struct core_provider *provider, struct rdma_event_channel *channel,
		    struct rdma_cm_event **event);
void core_copy_event(struct core_event *to, const struct rdma_cm_event *from);

#endif
