/*
 * Queue pairs: the requester sends the send queue, the responder executes the requests of the peer, and the receive
 * queue is between responder and user.
 *
 * The engine does no I/O: it takes and gives packets, and returns how long to wait. A link transfers the packets.
 */
#ifndef SOFT_OBJECTS_QP_H
#define SOFT_OBJECTS_QP_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "provider/newer.h"
#include "soft/base/legal.h"
#include "soft/base/lock.h"
#include "soft/base/timer.h"
#include "soft/objects/context.h"
#include "soft/objects/pd.h"
#include "soft/objects/receive_queue.h"
#include "soft/objects/request.h"
#include "soft/wire/packet.h"

struct soft_capture_flow;
struct soft_segmentation;
struct soft_pd;
struct soft_srq;
struct soft_xrc_domain;
struct soft_xrcd;

enum soft_requester_wait {
	SOFT_WAIT_NONE,
	SOFT_WAIT_ACK, /* sent, not answered */
	/* While one of these is set, nothing is sent. */
	SOFT_WAIT_RNR, /* after an RNR NAK */
	SOFT_WAIT_LOCAL, /* the first half of work on a window is done (soft/objects/mw.h) */
};

/*
 * Indexes wrap and are reduced by mask; completed <= transmitted <= posted. The fields that each request uses come
 * first, in one cache line.
 */
struct soft_requester {
	struct soft_lock lock;
	uint32_t stride;
	char *ring;
	uint32_t size; /* maximum number of requests, and slots of the ring */
	uint32_t mask;
	uint32_t posted;
	uint32_t transmitted;
	uint32_t completed;
	uint32_t psn; /* of the next request to be posted */
	uint64_t ack_timeout; /* nanoseconds; 0: none */
	uint64_t wait_delay; /* nanoseconds for which the link must arm the timer, or 0 */
	uint8_t responding; /* transmitted READs and atomics, at most SOFT_MAX_RD_ATOMIC */
	uint8_t wait; /* enum soft_requester_wait */
	uint8_t retries : 4, rnr_retries : 4; /* retry_cnt and rnr_retry */
	/*
	 * On the local link: the peer may see a message before its request is completed (soft_qp_await_sender). It is in
	 * this cache line for speed. In a line of the peer, each message would transfer that line; in another line of its
	 * own, each message would touch one more.
	 */
	_Atomic bool sending;
	uint8_t retries_left, rnr_retries_left;
	uint8_t service_level;
	bool drain_event : 1; /* in SQD: SQ_DRAINED was requested and is not raised yet */
	bool deferred : 1; /* the timer sends the rest; it does not end a wait */
	bool shared : 1; /* of an initiator: each request has the trait SOFT_SHARED */

	uint32_t drain_until; /* in SQD: requests before it were sent, and may be sent again */
	uint32_t mw_op_seq; /* counts BIND_MW and LOCAL_INV that have begun, so that each second half finds its first */
	uint32_t mw_op_base; /* mw_op_seq when the queue pair was reset */
	uint32_t resend_until; /* requests before it had been sent when the requester last went back */
	_Atomic uint32_t resets; /* how many times it was reset */
	struct soft_pd *ring_source; /* see soft_parent_domain_allocate */
	struct soft_capture_flow *flow; /* on the local link, if packets are captured */
};

struct soft_responder {
	struct soft_lock lock;
	uint32_t psn; /* expected */
	uint32_t msn;
	bool nak_sent; /* one sequence NAK is sent for each gap */
	bool failed : 1; /* its queue pair must go to ERR (soft/base/order.h) */
	bool awaits_rtu : 1; /* by legal choice, the first message raises COMM_EST */
	uint8_t result_count; /* max_dest_rd_atomic */
	uint8_t result_next;
	struct soft_atomic_result *results; /* results of the last atomics, for duplicates: a ring of result_count */
};

/* A new result overwrites the oldest. As many are kept as the requester may have outstanding and so may repeat. */
struct soft_atomic_result {
	uint32_t psn;
	bool valid;
	uint64_t value;
};

enum soft_qp_event {
	SOFT_QP_ACCESS_EVENT,
	SOFT_QP_REQUEST_EVENT,
	SOFT_QP_LAST_WQE_EVENT,
	SOFT_QP_DRAINED_EVENT,
	SOFT_QP_FATAL_EVENT,
	SOFT_QP_ESTABLISHED_EVENT,
	SOFT_QP_EVENTS
};

/*
 * The batch of ibv_wr_post(3) that is being written to free slots of the send queue, guarded by lock. The requests
 * belong to the requester when the batch is complete. requester.lock is free until then, so the thread may call
 * anything meanwhile.
 */
struct soft_builder {
	struct soft_lock lock; /* other ways of posting take it, too */
	int error; /* the first error; then nothing of the batch is sent */
	uint32_t begin, end; /* of the batch, or both equal to requester.posted; indexes of the ring */
	uint32_t completed, resets; /* of the requester, when they were last read */
	uint64_t operations; /* enum ibv_qp_create_send_ops_flags */
	struct soft_send_wqe *wqe; /* the request that is not complete yet */
	uint64_t operand, compare; /* of that request, if it is an atomic */
};

/* Fields of a target only; under its responder.lock, and handles under both of its locks. */
struct soft_xrc_target {
	struct soft_xrc_domain *domain;
	/* reference, with its transfer lock: the queue of the request that is being executed */
	struct soft_srq *entered;
	struct soft_srq *source; /* reference: the queue of a message that has arrived in part */
	struct soft_qp *handles;
	bool ended; /* the last handle is destroyed */
};

/* Legal choices of a queue pair (provider/legal.h), under responder.lock. */
struct soft_qp_legal {
	struct soft_legal_draws draws;
	bool peer_retries; /* after an RNR NAK, as the connection manager arranged it */
	bool credits; /* its acknowledgements carry credits */
	uint32_t stalled; /* the number of the last packet that got such a NAK by choice, or SOFT_NO_PSN */
};

#define SOFT_NO_PSN UINT32_MAX

#define SOFT_NUMBER_MASK 0xffffffu /* of queue pairs and shared queues */
#define SOFT_NO_QPN UINT32_MAX

/* Which end of an extended reliable connection (soft/objects/xrc.h) a queue pair is. */
enum soft_xrc { SOFT_NO_XRC, SOFT_INITIATOR, SOFT_TARGET };

struct soft_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex extended; /* begins with ibv */
		struct core_newer_qp_ex newer;
	};
	/*
	 * The fields that each packet uses are together: this cache line, requester, and responder with the access
	 * flags at the beginning of attr. The posting thread writes requester, and the peer's thread writes responder.
	 *
	 * state is an enum ibv_qp_state, written under both locks. The requester may also write ERR or SQE under its
	 * own lock alone; soft_qp_enter_error then changes the other half to ERR.
	 */
	_Atomic int state __attribute__((aligned(SOFT_CACHE_LINE)));
	uint8_t service; /* enum soft_service */
	uint8_t service_bit; /* SOFT_RC, SOFT_UC or SOFT_UD */
	bool signal_all : 1;
	bool mcast_loopback : 1; /* receives the multicasts that it sends */
	bool has_builder : 1; /* ibv_qp_to_qp_ex returns it */
	bool direct : 1; /* a reliable connection on the local link: requests may skip its queue (soft_link_pass) */
	uint8_t xrc; /* enum soft_xrc */
	struct soft_device *device;
	struct soft_srq *srq; /* the source of its receives; NULL: its own queue */
	struct soft_qp *peer; /* reference; under requester.lock */
	struct soft_segmentation *segmentation; /* NULL on the local link, where a message is a packet */
	struct ibv_qp_cap cap;
	/*
	 * Connected services: the number of the queue pair of this device that it accepts packets of, or SOFT_NO_QPN.
	 * Written under both locks, together with attr.
	 */
	_Atomic uint32_t accepted_qpn;

	struct soft_requester requester __attribute__((aligned(SOFT_CACHE_LINE)));
	struct soft_responder responder __attribute__((aligned(SOFT_CACHE_LINE)));
	struct ibv_qp_attr attr; /* attributes as they were set; under requester.lock */
	struct soft_receive_queue receive __attribute__((aligned(SOFT_CACHE_LINE)));

	_Atomic unsigned int references; /* the owner, a peer's link, and temporary ones */
	_Atomic unsigned int groups; /* multicast groups it is attached to */
	struct soft_pd_member member, receive_member; /* in the list of its PD, and of its shared queue's */
	struct soft_timer timer;
	struct soft_async_event events[SOFT_QP_EVENTS];
	struct soft_builder builder;
	struct soft_qp_legal legal;
	struct soft_xrc_target *target; /* SOFT_TARGET only */
	/* Fields of a handle of a target: */
	struct soft_qp *target_qp; /* the target; a reference */
	struct soft_qp *next_handle; /* the target's next handle; under both locks of the target */
	struct soft_xrcd *xrcd;
};

#ifndef SOFT_ORDER_CHECKED /* checked locks are larger */
_Static_assert(offsetof(struct soft_qp, accepted_qpn) < SOFT_CACHE_LINE + offsetof(struct soft_qp, state),
	       "the line of state");
_Static_assert(offsetof(struct soft_requester, drain_until) == SOFT_CACHE_LINE, "the first line");
_Static_assert(offsetof(struct soft_qp, attr.qp_access_flags) <
		       offsetof(struct soft_qp, responder) + SOFT_CACHE_LINE, "the same line");
#endif

static inline struct soft_qp *soft_qp(struct ibv_qp *qp)
{
	return (struct soft_qp *)qp;
}

static inline enum ibv_qp_state soft_qp_state(const struct soft_qp *qp)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp->state, memory_order_relaxed);
}

/* Packets are executed in all states from RTR on but ERR (IBTA 10.3.1). */
static inline bool soft_qp_receives(const struct soft_qp *qp)
{
	enum ibv_qp_state state = soft_qp_state(qp);

	return state >= IBV_QPS_RTR && state <= IBV_QPS_SQE;
}

/* Whether it accepts packets of that other queue pair of this device. */
static inline bool soft_qp_accepts(const struct soft_qp *qp, const struct soft_qp *other)
{
	return atomic_load_explicit(&qp->accepted_qpn, memory_order_relaxed) == other->ibv.qp_num;
}

static inline struct soft_device *soft_qp_device(const struct soft_qp *qp)
{
	return qp->device;
}

static inline struct soft_send_wqe *soft_send_wqe(struct soft_requester *requester, uint32_t index)
{
	return (struct soft_send_wqe *)(void *)(requester->ring +
						(size_t)(index & requester->mask) * requester->stride);
}

/*
 * The number of the message of which a packet was sent last: 1, 2, .. since the queue pair was reset (IBTA 9.7.7,
 * SSN). Requests without packets have no number. lock is held.
 */
static inline uint32_t soft_requester_message(const struct soft_requester *requester)
{
	return (requester->transmitted - (requester->mw_op_seq - requester->mw_op_base)) & SOFT_PSN_MASK;
}

/* The shared receive queue that an initiator's request names. */
static inline uint32_t *soft_request_shared_queue(const struct soft_requester *requester, struct soft_send_wqe *wqe)
{
	return (uint32_t *)(void *)((char *)wqe + requester->stride - sizeof(uint32_t));
}

/* Number of times to check for the sender's completion: about one second. */
#define SOFT_SENDER_ATTEMPTS 20000

/*
 * On a wire, an acknowledgement arrives before any message that the peer sends after it. So a request completes before
 * the peer's reply arrives. On the local link the sending thread executes the peer's half, and may lose the processor
 * before it completes its own request. So before a reply is reported, this function waits until qp has completed. It
 * waits for one message at most, and that message waits for no lock that a poller holds. If the sending thread is
 * stopped, the reply is reported first.
 */
static inline void soft_qp_await_sender(const struct soft_qp *qp)
{
	unsigned int attempt = 0;

	while (atomic_load_explicit(&qp->requester.sending, memory_order_acquire) && attempt < SOFT_SENDER_ATTEMPTS)
		soft_lock_backoff(attempt++);
}

/* The argument is a void pointer, for soft_table_find. */
void soft_qp_hold(void *qp);
/* Free the memory of its queues, which no thread uses any more. */
void soft_qp_free_queues(struct soft_qp *qp);
/* The last reference frees it. */
void soft_qp_release(struct soft_qp *qp);

/*
 * Raise an event of qp; of a target, on each of its handles. once: unless it was raised before. responder.lock is
 * held.
 */
void soft_qp_raise(struct soft_qp *qp, enum soft_qp_event event, bool once);
/* Events that are raised once may be raised again. Both locks are held. */
void soft_qp_forget_events(struct soft_qp *qp);

/*
 * Wait until each data transfer that is under way in a queue pair of pd has ended (soft/objects/mr_table.h). Returns
 * the number of queue pairs.
 */
size_t soft_quiesce(struct soft_pd *pd);

#endif
