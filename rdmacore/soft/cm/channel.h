/* Channels of events, each with a descriptor, and the ids whose events come there. */
#ifndef SOFT_CM_CHANNEL_H
#define SOFT_CM_CHANNEL_H

#include <rdma/rdma_cma.h>

#include "soft/base/event_queue.h"

struct soft_cm;
struct soft_id;

struct soft_event_channel {
	struct rdma_event_channel rdma;
	struct soft_cm *cm;
	struct soft_event_queue queue;
	struct soft_id *ids; /* linked by channel_next; under cm.lock */
};

/* Of that cm; NULL and errno. */
struct soft_event_channel *soft_event_channel_create(struct soft_cm *cm);
/* No id is on it any more. */
void soft_event_channel_free(struct soft_event_channel *channel);

#endif
