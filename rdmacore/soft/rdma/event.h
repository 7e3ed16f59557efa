/* Event channels and events as their users have them (rdma_get_cm_event(3)). */
#ifndef SOFT_RDMA_EVENT_H
#define SOFT_RDMA_EVENT_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

struct rdma_event_channel *soft_create_event_channel(void);
void soft_destroy_event_channel(struct rdma_event_channel *channel);
int soft_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int soft_ack_cm_event(struct rdma_cm_event *event);
int soft_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t argument);

#endif
