/* The struct of an id, and how ids begin. */
#ifndef SOFT_CM_ID_H
#define SOFT_CM_ID_H

#include <infiniband/sa.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "soft/base/timer.h"
#include "soft/cm/cm.h"
#include "soft/wire/mad.h"

struct soft_cm;
struct soft_cm_device;
struct soft_cm_event;
struct soft_claim;
struct soft_event_channel;
struct soft_ipc_peer;
struct soft_join;

enum soft_id_state {
	SOFT_ID_IDLE,
	SOFT_ID_BOUND,
	SOFT_ID_ADDR_QUERY, /* not answered yet; or faults lost or delay the query */
	SOFT_ID_ADDR_RESOLVED,
	SOFT_ID_ROUTE_QUERY,
	SOFT_ID_ROUTE_RESOLVED,
	SOFT_ID_LISTEN,
	SOFT_ID_REQ_SENT,
	SOFT_ID_REQ_RECEIVED,
	SOFT_ID_REP_SENT,
	SOFT_ID_REP_RECEIVED,
	SOFT_ID_ESTABLISHED,
	SOFT_ID_DREQ_SENT,
	SOFT_ID_DREQ_RECEIVED,
	SOFT_ID_TIMEWAIT,
	SOFT_ID_SIDR_SENT,
	SOFT_ID_SIDR_RECEIVED,
	SOFT_ID_RESOLVED_UD, /* UD: the answer came, or was sent */
	SOFT_ID_CLOSED, /* rejected, unreachable or past timewait: it can only be destroyed */
	SOFT_ID_REMOVED, /* its device was removed: it can only be destroyed */
	SOFT_ID_DESTROYED,
};

/*
 * Guarded by cm.lock. An id has two halves: rdma and device are what librdmacm knows, the rest is what the kernel
 * knows. librdmacm learns of the kernel's half when the user binds or reads an event.
 */
struct soft_id {
	struct rdma_cm_id rdma;
	struct soft_cm_device *device; /* as librdmacm sees it, with rdma.verbs and the default of rdma.pd */
	struct soft_cm *cm;
	enum soft_id_state state;
	bool sync; /* synchronous: rdma.channel is its own, and calls wait for their events */
	bool disconnected; /* DISCONNECTED was reported, which happens once */
	bool unaccepted; /* a child before its rdma_accept */
	bool connect_error; /* the user read CONNECT_ERROR, after which no event of the connection is reported */
	uint32_t events_reported, events_acknowledged;
	bool binding; /* a call has released cm.lock to find the owner of its port (soft_id_unlock_for_io) */
	uint32_t moving; /* calls that modify or bind its queue pair, with cm.lock released */
	struct soft_cm_event *unread, **last_unread;
	LIST_ENTRY(soft_id) of_channel; /* soft_event_channel.ids; le_prev is NULL while it is on no channel */
	struct soft_id *destroyed_next; /* soft_cm.destroyed */

	struct soft_id *port_next; /* port_space bucket */
	uint16_t port; /* host order; 0 while it has no port of its own */
	bool port_chosen; /* soft has chosen the port */
	struct soft_claim *claim; /* of the port, seen by other processes */
	struct soft_claim *claim_for_hosts; /* the same, for a listener that other hosts reach */
	bool no_remote_port; /* another process has that claim */
	struct rdma_addr addr;
	bool on_device; /* its address is one of the device */
	uint32_t hardware_address; /* soft_cm.hardware_address when it was bound */
	bool reuse_address, only_family, only_family_set; /* rdma_set_option */
	uint8_t type_of_service;

	int backlog;
	int requests; /* unread CONNECT_REQUESTs */

	struct soft_ipc_peer *peer_process; /* the peer's process; NULL: this one */
	bool between_hosts; /* the peer is on another host */
	enum soft_half_open_stage half_open_stage;
	uint16_t half_open_source;
	bool half_open_unproven; /* soft_half_open.unproven */
	bool mra_sent; /* an MRA was sent for its request: the peer waits and does not repeat it */
	bool rep_answered; /* an MRA answered the REP */
	uint64_t rtu_late; /* by legal choice: what was drawn for the time of the RTU; 0: it is not late */
	uint64_t accepted_at; /* by the wall clock */
	struct soft_cm_event *half_open_event; /* its unread event */
	TAILQ_ENTRY(soft_id) half_open; /* soft_half_open_list */
	bool peer_process_fresh; /* peer_process was found for this id, not for an earlier one */
	uint64_t transaction; /* of the request, and all messages after it */
	uint32_t local, remote; /* communication ids */
	uint64_t remote_guid;
	uint32_t local_qp_num, remote_qp_num;
	LIST_ENTRY(soft_id) of_remote_id, of_remote_qp; /* lists of soft_cm; le_prev is NULL while it is in none */
	uint32_t send_psn, receive_psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	uint8_t ack_timeout; /* RDMA_OPTION_ID_ACK_TIMEOUT */
	bool ack_timeout_set;
	uint8_t path_timeout; /* time code of a round trip on the path */
	uint32_t qkey;
	struct ibv_ece local_ece, remote_ece;

	struct ibv_sa_path_rec path; /* rdma.route.path_rec, once the user has queried it */
	struct soft_timer timer; /* repeats request until it is answered; ends timewait or a query */
	uint64_t response_timeout; /* nanoseconds */
	uint64_t request_timeout; /* of request: response_timeout, or what an MRA requested */
	struct soft_cm_message request; /* REQ, REP, DREQ or SIDR REQ that waits for an answer */
	unsigned int retries_left;
	unsigned int unlistened_retries; /* how often the request found no listener (soft/cm/locate.c) */
	bool answer_comes; /* the query will be answered; otherwise it times out */
	uint64_t query_ends; /* when the query times out, and the time until the kernel is asked again */
	uint64_t query_interval;

	struct ibv_qp_init_attr *endpoint_attr; /* rdma_create_ep: of the queue pairs of children */
	void *connect_prefix; /* ai_connect: goes before the private data of the first rdma_connect */
	uint8_t connect_prefix_len;
	struct rdma_addrinfo *info; /* rdma_resolve_addrinfo */
	struct soft_join *joins;
};

static inline struct soft_id *soft_id(struct rdma_cm_id *id)
{
	return (struct soft_id *)id;
}

static inline bool soft_id_is_ud(const struct soft_id *id)
{
	return id->rdma.qp_type == IBV_QPT_UD;
}

/*
 * Take cm.lock and return the id. NULL and errno: EINVAL for NULL and for a destroyed id (librdmacm would crash),
 * ENXIO after its device was removed.
 */
struct soft_id *soft_id_lock(struct rdma_cm_id *id);
/* The same without ENXIO. */
struct soft_id *soft_id_lock_any(struct rdma_cm_id *id);

/* The callers of the functions below hold cm.lock. */

/* A new id with no port and no device; NULL and errno ENOMEM. */
struct soft_id *soft_id_alloc(struct soft_cm *cm, struct soft_event_channel *channel, void *context,
			      enum rdma_port_space port_space);
/*
 * Wait until no call modifies the id's queue pair: 0, or EBUSY with a sentence after ten seconds. Releases cm.lock
 * while it waits.
 */
int soft_id_wait_moved(struct soft_id *id);
/*
 * Code that reads /proc, or waits for the kernel, runs with cm.lock released, so that other connections continue.
 * Meanwhile no other thread destroys, binds or resolves the id. soft_id_relock takes cm.lock again. It returns 0 if
 * the id is still in that state; ENXIO if its device was removed; otherwise EINVAL.
 */
void soft_id_unlock_for_io(struct soft_id *id);
int soft_id_relock(struct soft_id *id, enum soft_id_state state);
/* Put id on a channel, or on none. */
void soft_id_set_channel(struct soft_id *id, struct soft_event_channel *channel);
/* The queue pair number that an end sends to its peer: of the id's queue pair, or of param. */
uint32_t soft_local_qp_num(const struct soft_id *id, const struct rdma_conn_param *param);

#endif
