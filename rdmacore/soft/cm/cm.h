/*
 * Connection management in the two parts that the kernel and librdmacm have: the communication manager, which exchanges
 * REQ, REP, RTU, REJ, MRA, DREQ and DREP between ids (IBTA 12.9), and the rdma_cm id on top, which moves queue pairs and
 * reports events.
 *
 * Messages are queued, and delivered one after another with cm.lock held.  A handler that answers queues its answer, so
 * no id ever calls into another one.
 */
#ifndef SOFT_CM_CM_H
#define SOFT_CM_CM_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <sys/queue.h>

#include "soft/base/clock.h"
#include "soft/base/event_queue.h"
#include "soft/base/mutex.h"
#include "soft/base/table.h"
#include "soft/base/timer.h"
#include "soft/wire/mad.h"

#define SOFT_PORT_BUCKETS 32768
#define SOFT_PEER_BUCKETS 32768

struct soft_cm_held;
struct soft_cm_inbox;
struct soft_cm_network;
struct soft_device;
struct soft_fabric;
struct soft_gate;
struct soft_id;
struct soft_ipc;

/*
 * Requests of other hosts that are not connections yet, in bytes 32 MiB at most.  One source gets as many as are left for
 * all, thus half of them if it is alone.  With none left, a source with less than its share replaces the oldest.
 */
#define SOFT_HALF_OPEN_MAX 8192
#define SOFT_HALF_OPEN_SHARE 32
#define SOFT_HALF_OPEN_SOURCES 1024
/*
 * A source with so many gives way to a request of another one for the same port: its oldest that was accepted ends, if nothing
 * has answered the REP for so long.  Kernels and soft answer a REP at once, by an RTU or an MRA.
 */
#define SOFT_UNANSWERED_SHARE 16
#define SOFT_UNANSWERED_TIME SOFT_SECOND
/* And so many of hosts that have not shown yet that they receive what is sent to them (soft/cm/gate.c). */
#define SOFT_UNPROVEN_MAX 16

/*
 * Requests of processes of this host that their listeners' users have not read, in bytes 64 MiB at most for all listeners.  One
 * source gets as many as are left for all, thus half of them if it is alone: a process of this user, or another user.
 */
#define SOFT_BACKLOG_BYTES (64u << 20)
#define SOFT_BACKLOG_SOURCES 1024

struct soft_backlog {
	uint32_t total;
	uint16_t by_source[SOFT_BACKLOG_SOURCES];
};

/* How far a request of another host has come (soft/cm/half_open.c). */
enum soft_half_open_stage {
	SOFT_HALF_OPEN_NOT,
	SOFT_HALF_OPEN_UNREAD, /* its event was not read */
	SOFT_HALF_OPEN_READ, /* its user decides */
	SOFT_HALF_OPEN_ACCEPTED, /* the REP was sent */
	SOFT_HALF_OPEN_STAGES,
};

struct soft_half_open_list {
	TAILQ_HEAD(soft_id_queue, soft_id) ids; /* oldest first */
	uint32_t count;
};

LIST_HEAD(soft_id_list, soft_id);

struct soft_half_open {
	struct soft_half_open_list lists[SOFT_HALF_OPEN_STAGES];
	uint64_t requests; /* that came for listeners, without repeats */
	uint64_t dropped; /* of them, for want of room */
	uint64_t replaced; /* requests that others took the place of */
	uint32_t total, unproven;
	uint16_t by_source[SOFT_HALF_OPEN_SOURCES];
};

struct soft_cm {
	struct soft_mutex lock;
	pthread_cond_t acknowledged; /* an event was, or soft_id.moving went down */
	struct soft_fabric *fabric;
	struct soft_device *device;
	struct soft_ipc *ipc; /* NULL: ids connect within the process only */
	struct soft_cm_inbox *inbox; /* of messages from other hosts; NULL: the link reaches none */
	struct soft_gate *gate; /* before it, for requests; NULL: the same */
	struct soft_cm_network *network; /* whose changes are heard of; NULL: they are not */
	struct soft_cm_device *opened; /* the newest, which ids are bound to from now on */
	uint32_t hardware_address; /* of the network interface: 0, or 1 while it has another */
	uint32_t notified_removal, notified_address; /* ids that heard of what is in force now */
	struct soft_table ids; /* by communication id */
	struct soft_cm_message *first_message, **last_message;
	/* requests that soft_cm_flush refuses, unless another process listens (soft_cm_defer_refusal) */
	struct soft_cm_message *deferred_requests;
	struct soft_cm_held *held; /* messages that faults hold back, by due time */
	struct soft_timer held_timer; /* of the first of them */
	void (*expire)(struct soft_timer *timer); /* of ids' timers: a function of soft/rdma, which this room cannot name */
	struct soft_id *ports[SOFT_PORT_BUCKETS];
	struct soft_id_list remote_ids[SOFT_PEER_BUCKETS], remote_qps[SOFT_PEER_BUCKETS];
	struct soft_half_open half_open;
	struct soft_backlog backlog;
	uint64_t source_key; /* of hashes of what others choose: soft_address_source, soft_backlog.by_source, soft_peers */
	/* The ids that were destroyed last: kept for a while, so that using one is an error and not a crash. */
	struct soft_id *destroyed, **last_destroyed;
	unsigned int num_destroyed;
};

/* The device as librdmacm has it open.  One that was removed stays, for the ids that are bound to it. */
struct soft_cm_device {
	struct soft_cm_device *earlier;
	struct ibv_context *context;
	struct ibv_pd *default_pd; /* while ids are bound to it */
	unsigned int default_pd_users;
	struct ibv_xrcd *default_xrcd; /* of ids whose user gives none */
};

/* A channel of events, with its descriptor, and the ids that report there. */
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
	struct soft_id *owner; /* counts it as reported: the id, or of a request its listener */
	struct soft_cm_event *next; /* the next one that owner has not read */
	uint8_t private_data[SOFT_MAX_PRIVATE_DATA];
};

#define SOFT_CM_ACK_TIMEOUT 19 /* what Linux puts in a RoCE connection: 2.1 s */
#define SOFT_CM_RESPONSE_CODE 20 /* what Linux allows a peer for its answer: 4.1 s */
#define SOFT_CM_RETRIES 15 /* and how often a message is repeated (CMA_MAX_CM_RETRIES) */
#define SOFT_CM_TIME_CODE_MAX 31 /* fields of five bits (IBTA 12.7) */

/*
 * A time code (4.096 us * 2^code) in nanoseconds, as Linux takes it: a power of two milliseconds
 * (drivers/infiniband/core/cm.c, cm_convert_to_ms).  A code that does not fit its field counts as the highest.
 */
static inline uint64_t soft_cm_time(unsigned int code)
{
	if (code > SOFT_CM_TIME_CODE_MAX)
		code = SOFT_CM_TIME_CODE_MAX;
	return SOFT_MILLISECOND << (code > 8 ? code - 8 : 0);
}

/* What functions of librdmacm without an argument mean: the one that the calling thread selected last. */
struct soft_cm *soft_cm_current(void);
void soft_cm_select(struct soft_cm *cm);

#endif
