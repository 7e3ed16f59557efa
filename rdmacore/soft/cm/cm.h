/*
 * Connection management has the same two parts as in the kernel and librdmacm. The communication manager exchanges
 * REQ, REP, RTU, REJ, MRA, DREQ and DREP between ids (IBTA 12.9). The rdma_cm id on top changes states of queue pairs
 * and reports events.
 *
 * Messages are queued, and delivered one after another with cm.lock held. A handler queues its answer, so no id
 * calls into another one.
 */
#ifndef SOFT_CM_CM_H
#define SOFT_CM_CM_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

#include "soft/base/clock.h"
#include "soft/base/event_queue.h"
#include "soft/base/mutex.h"
#include "soft/base/table.h"
#include "soft/base/timer.h"
#include "soft/wire/mad.h"

#define SOFT_PORT_BUCKETS 32768 /* 256 KiB; two ports of a port space in each */
#define SOFT_PEER_BUCKETS 32768 /* short lists for tens of thousands of connections */

struct soft_cm_held;
struct soft_cm_inbox;
struct soft_cm_network;
struct soft_device;
struct soft_fabric;
struct soft_gate;
struct soft_id;
struct soft_ipc;

/*
 * Half-open requests of other hosts: at most 32 MiB. One source gets at most as many as are left for all others, so
 * half of them if it is alone. If none is left, a source with less than SOFT_HALF_OPEN_SHARE replaces the oldest.
 */
#define SOFT_HALF_OPEN_MAX 8192
#define SOFT_HALF_OPEN_SHARE 32
#define SOFT_HALF_OPEN_SOURCES 1024
/*
 * A source with SOFT_UNANSWERED_SHARE requests gives way to another source's request for the same port. Its oldest
 * accepted request ends if its REP was not answered within SOFT_UNANSWERED_TIME. Kernels and soft answer a REP at
 * once, by an RTU or an MRA, so a second is many round trips.
 */
#define SOFT_UNANSWERED_SHARE 16
#define SOFT_UNANSWERED_TIME SOFT_SECOND
/* Half-open requests of unproven hosts (soft/cm/gate.c): what a few clients start at the same time. */
#define SOFT_UNPROVEN_MAX 16

/*
 * Unread requests of processes of this host, for all listeners: at most 64 MiB. A source is a process of this user, or
 * another user. It gets at most as many as are left for all others, so half of them if it is alone.
 */
#define SOFT_BACKLOG_BYTES (64u << 20)
#define SOFT_BACKLOG_SOURCES 1024

struct soft_backlog {
	uint32_t total;
	uint16_t by_source[SOFT_BACKLOG_SOURCES];
};

/* The stage of a request of another host (soft/cm/half_open.c). */
enum soft_half_open_stage {
	SOFT_HALF_OPEN_NOT,
	SOFT_HALF_OPEN_UNREAD, /* its event is not read yet */
	SOFT_HALF_OPEN_READ, /* its user has read it and not answered */
	SOFT_HALF_OPEN_ACCEPTED, /* the REP was sent */
	SOFT_HALF_OPEN_STAGES,
};

struct soft_half_open_list {
	TAILQ_HEAD(soft_id_queue, soft_id) ids; /* oldest first */
	uint32_t count;
};

LIST_HEAD(soft_id_list, soft_id);

/* What is sent to other hosts within a time, limited in all and for each source (soft/cm/budget.c). */
struct soft_budget {
	uint64_t until; /* the counts are reset then */
	uint32_t total;
	uint16_t by_source[SOFT_HALF_OPEN_SOURCES];
};

struct soft_half_open {
	struct soft_half_open_list lists[SOFT_HALF_OPEN_STAGES];
	uint64_t requests; /* for listeners, without repeats */
	uint64_t dropped; /* requests that were dropped because there was no room */
	uint64_t replaced; /* requests that were replaced by others */
	uint32_t total, unproven;
	uint16_t by_source[SOFT_HALF_OPEN_SOURCES];
};

#define SOFT_CHANNELS_KEPT 16 /* soft_cm.destroyed_channels */

struct soft_cm {
	struct soft_mutex lock;
	pthread_cond_t acknowledged; /* an event was acknowledged, or soft_id.moving decreased */
	struct soft_fabric *fabric;
	struct soft_device *device;
	struct soft_ipc *ipc; /* NULL: ids connect within the process only */
	struct soft_cm_inbox *inbox; /* messages of other hosts; NULL: the link reaches none */
	struct soft_gate *gate; /* in front of inbox, for requests; NULL: the link reaches no other hosts */
	struct soft_cm_network *network; /* watches networks; NULL: they are not watched */
	struct soft_cm_device *opened; /* the present device, which ids are bound to */
	uint32_t hardware_address; /* of the network interface: 1 while it is changed, otherwise 0 */
	/* ids that got DEVICE_REMOVAL or ADDR_CHANGE for the present change */
	uint32_t notified_removal, notified_address;
	struct soft_table ids; /* by communication id */
	struct soft_cm_message *first_message, **last_message;
	/* requests that soft_cm_flush rejects, unless another process listens (soft_cm_defer_refusal) */
	struct soft_cm_message *deferred_requests;
	struct soft_cm_held *held; /* messages that faults delay, ordered by due time */
	struct soft_timer held_timer; /* expires for the first of them */
	/* expires timers of ids: a function of soft/rdma, which this package cannot call */
	void (*expire)(struct soft_timer *timer);
	struct soft_id *ports[SOFT_PORT_BUCKETS];
	struct soft_id_list remote_ids[SOFT_PEER_BUCKETS], remote_qps[SOFT_PEER_BUCKETS];
	struct soft_half_open half_open;
	struct soft_backlog backlog;
	/* key of hashes of values that others choose: soft_address_source, soft_backlog.by_source, soft_peers */
	uint64_t source_key;
	/*
	 * The ids that were destroyed last. They are kept for a while, so that using one is an error and not a
	 * crash.
	 */
	struct soft_id *destroyed, **last_destroyed;
	unsigned int num_destroyed;
	/* The same of event channels: a ring, which needs no lock. */
	_Atomic(struct soft_event_channel *) destroyed_channels[SOFT_CHANNELS_KEPT];
	atomic_uint channels_destroyed;
};

/* The device as librdmacm opens it. A removed one remains for the ids that are bound to it. */
struct soft_cm_device {
	struct soft_cm_device *earlier;
	struct ibv_context *context;
	struct ibv_pd *default_pd; /* exists while ids are bound to the device */
	unsigned int default_pd_users;
	struct ibv_xrcd *default_xrcd; /* of ids without one from the user */
};

/* An event channel with its descriptor, and its ids. */
struct soft_event_channel {
	struct rdma_event_channel rdma;
	struct soft_cm *cm;
	struct soft_event_queue queue;
	struct soft_id_list ids; /* by of_channel; under cm.lock */
};

/* An event from its report to rdma_ack_cm_event. */
struct soft_cm_event {
	struct rdma_cm_event rdma;
	struct soft_event_node node;
	struct soft_id *owner; /* counts it as reported: the id, or the listener of a request */
	struct soft_cm_event *next; /* the next one that owner has not read */
	uint8_t private_data[SOFT_MAX_PRIVATE_DATA];
};

#define SOFT_CM_ACK_TIMEOUT 19 /* Linux's value for a RoCE connection: 2.1 s */
#define SOFT_CM_RESPONSE_CODE 20 /* Linux's limit for the peer's answer: 4.1 s */
#define SOFT_CM_RETRIES 15 /* how often Linux repeats a message (CMA_MAX_CM_RETRIES) */
#define SOFT_CM_TIME_CODE_MAX 31 /* time fields have five bits (IBTA 12.7) */

/*
 * A time code (4.096 us * 2^code) in nanoseconds. Like Linux, rounded to a power of two milliseconds
 * (drivers/infiniband/core/cm.c, cm_convert_to_ms). A code that does not fit its field counts as the highest.
 */
static inline uint64_t soft_cm_time(unsigned int code)
{
	if (code > SOFT_CM_TIME_CODE_MAX)
		code = SOFT_CM_TIME_CODE_MAX;
	return SOFT_MILLISECOND << (code > 8 ? code - 8 : 0);
}

/* The instance that functions of librdmacm without an id use: the one that the calling thread selected last. */
struct soft_cm *soft_cm_current(void);
void soft_cm_select(struct soft_cm *cm);

#endif
