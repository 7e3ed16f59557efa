/* A soft device: one port, the GIDs of the loopback addresses, the memory keys and the numbers of queue pairs. */
#ifndef SOFT_OBJECTS_DEVICE_H
#define SOFT_OBJECTS_DEVICE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "soft/base/mutex.h"
#include "soft/base/table.h"
#include "soft/objects/mr_table.h"
#include "soft/objects/multicast.h"

#define SOFT_VENDOR_ID 0xffffff /* no company's OUI, as rdma_rxe has it; 0 is taken for "unknown" */
#define SOFT_PORT 1
#define SOFT_GIDS 2 /* ::ffff:127.0.0.1 and ::1 */
#define SOFT_GID_TABLE 1024 /* places for GIDs; those behind SOFT_GIDS are empty */
#define SOFT_ACK_DELAY 15 /* local CA ACK delay, a time code as rdma_rxe has it (RXE_LOCAL_CA_ACK_DELAY) */

struct soft_context;
struct soft_fabric;
struct soft_link;

struct soft_device {
	struct ibv_device ibv;
	struct soft_fabric *fabric;
	struct soft_link *link; /* of the queue pairs made from now on; NULL: the local link */
	uint64_t guid; /* host byte order */
	union ibv_gid gids[SOFT_GIDS];
	struct soft_mr_table memory;
	struct soft_table queue_pairs;
	struct soft_table shared_queues;
	struct soft_multicast multicast;
	_Atomic uint32_t queue_key_violations; /* of the port (IBTA 14.2.5.6) */
	_Atomic bool away; /* it was removed, and is not back yet */
	struct soft_mutex lock; /* guards contexts */
	struct soft_context *contexts; /* those that are open */
};

int soft_device_create(struct soft_fabric *fabric, const char *name, struct soft_device **device);
void soft_device_destroy(struct soft_device *device);

static inline bool soft_device_is_away(const struct soft_device *device)
{
	return atomic_load_explicit(&device->away, memory_order_acquire);
}

/* Whether packets to that GID arrive at this device: any 127/8 address and ::1. */
bool soft_device_owns(const struct soft_device *device, const union ibv_gid *gid);

void soft_device_attributes(const struct soft_device *device, struct ibv_device_attr *attr);
void soft_port_attributes(const struct soft_device *device, struct ibv_port_attr *attr);

static inline struct soft_device *soft_device(struct ibv_device *device)
{
	return (struct soft_device *)device;
}

#endif
