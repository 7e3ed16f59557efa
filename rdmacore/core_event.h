/* Events of the connection manager, as core_channel.c and core_sync.c read them. */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "core.h"

/* The next event of the channel, not acknowledged; -EAGAIN when there is none. */
int core_read_event(struct core_provider *provider, struct rdma_event_channel *channel,
		    struct rdma_cm_event **event);
void core_copy_event(struct core_event *to, const struct rdma_cm_event *from);

#endif
