/*
 * Connection management of the soft provider, in the two parts that the kernel and librdmacm are:
 * the communication manager, which exchanges REQ, REP, RTU, REJ, MRA, DREQ and DREP between ids (IBTA
 * 12.9), and the rdma_cm id on top, which moves queue pairs and reports events.
 *
 * Messages are queued and delivered one after another with cm.lock held; a handler that answers
 * queues its answer, so no id ever calls into another one.
 */
#ifndef SOFT_CM_CM_H
#define SOFT_CM_CM_H

#include <pthread.h>
#include <stdint.h>

#include "soft/base/mutex.h"
#include "soft/base/table.h"
#include "soft/base/timer.h"

#define SOFT_PORT_BUCKETS 32768
#define SOFT_PEER_BUCKETS 32768

struct soft_cm_device;
struct soft_cm_held;
struct soft_cm_message;
struct soft_device;
struct soft_fabric;
struct soft_id;

struct soft_cm {
	struct soft_mutex lock;
	pthread_cond_t acknowledged; /* an event; or nobody moves the queue pair of an id any more */
	struct soft_fabric *fabric;
	struct soft_device *device;
	struct soft_cm_device *opened; /* the newest: of the ids that are bound from now on */
	uint32_t hardware_address; /* of the network interface: 0, or 1 while it has another */
	uint32_t told_removal, told_address; /* ids, of what is so now */
	struct soft_table ids; /* by communication id */
	struct soft_cm_message *first_message, **last_message;
	struct soft_cm_held *held; /* messages that faults keep back, by the time when each is due */
	struct soft_timer held_timer; /* of the first of them */
	/* Of ids' timers: an id that runs out of time may do all that ids can, so they lie below it. */
	void (*expire)(struct soft_timer *timer);
	struct soft_id *ports[SOFT_PORT_BUCKETS];
	struct soft_id *remote_ids[SOFT_PEER_BUCKETS], *remote_qps[SOFT_PEER_BUCKETS];
	/* The ids destroyed last, kept for a while so that their use is an error and not a crash. */
	struct soft_id *destroyed, **last_destroyed;
	unsigned int num_destroyed;
};

/*
 * The communication manager that librdmacm's functions without any argument mean for the calling
 * thread: the one it selected last.
 */
struct soft_cm *soft_cm_current(void);
void soft_cm_select(struct soft_cm *cm);

#endif
