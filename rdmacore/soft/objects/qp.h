/*
 * Queue pairs: the requester that works off the send queue, the responder that executes the requests of the peer, and
 * the receive queue between responder and user.
 *
 * The engine does no I/O: it takes and gives packets, and says for how long it wants to wait.  A link moves the packets.
 */
#ifndef SOFT_OBJECTS_QP_H
#define SOFT_OBJECTS_QP_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "provider/newer.h"
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
	/* in the others nothing is sent */
	SOFT_WAIT_RNR, /* the peer asked for time */
	SOFT_WAIT_LOCAL, /* the first half of work on a window is done (soft/objects/mw.h) */
};

/*
 * Indexes wrap and are reduced by mask; completed <= transmitted <= posted.  The fields that every request uses come first,
 * in one cache line.
 */
struct soft_requester {
	struct soft_lock lock;
	uint32_t stride;
	char *ring;
	uint32_t size; /* requests at most, and places of the ring */
	uint32_t mask;
	uint32_t posted;
	uint32_t transmitted;
	uint32_t completed;
	uint32_t psn; /* of the next request to be posted */
	uint64_t ack_timeout; /* nanoseconds; 0: none */
	uint64_t wait_delay; /* nanoseconds for which the link must arm the timer, or 0 */
	uint8_t responding; /* transmitted READs and atomics, SOFT_MAX_RD_ATOMIC at most */
	uint8_t wait; /* enum soft_requester_wait */
	uint8_t retries : 4, rnr_retries : 4; /* retry_cnt and rnr_retry */
	/*
	 * On the local link: the peer may see a message whose completion is not made yet (soft_qp_await_sender).  In this
	 * cache line, because in the peer's each message would move that line, and in another it would touch one more.
	 */
	_Atomic bool sending;
	uint8_t retries_left, rnr_retries_left;
	uint8_t service_level;
	bool drain_event : 1; /* in SQD: SQ_DRAINED is wanted, and not raised yet */
	bool deferred : 1; /* the timer is to send the rest, not the end of a wait */
	bool shared : 1; /* of an initiator: every request has the trait SOFT_SHARED */

	uint32_t drain_until; /* in SQD: requests before it were sent, and may be sent again */
	uint32_t mw_op_seq; /* counts BIND_MW and LOCAL_INV that have begun, so that each second half knows its own */
	uint32_t mw_op_base; /* mw_op_seq when the queue pair was reset */
	uint32_t resend_until; /* requests before it had been sent when the requester last went back */
	_Atomic uint32_t resets; /* how many times it was reset */
	struct soft_pd *ring_source; /* see soft_parent_domain_allocate */
	struct soft_capture_flow *flow; /* on the local link, when packets are recorded */
};

struct soft_responder {
	struct soft_lock lock;
	uint32_t psn; /* expected */
	uint32_t msn;
	bool nak_sent; /* one sequence NAK a gap */
	bool failed; /* its queue pair must go to ERR; see soft/base/order.h */
	uint8_t result_count; /* max_dest_rd_atomic */
	uint8_t result_next;
	struct soft_atomic_result *results; /* of the last atomics, for duplicates: a ring of result_count */
};

/* The oldest is overwritten; as many are kept as the requester may have outstanding and so repeat. */
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
 * The batch of ibv_wr_post(3) that is being written into the free places of the send queue, guarded by lock.  The requests are
 * the requester's when the batch is complete; requester.lock is free until then, so that the thread may do anything else.
 */
struct soft_builder {
	struct soft_lock lock; /* who posts otherwise takes it, too */
	int error; /* the first one; then nothing of the batch is sent */
	uint32_t begin, end; /* of the batch, or both posted of the requester; indexes of the ring */
	uint32_t completed, resets; /* of the requester when they were last looked at */
	uint64_t operations; /* enum ibv_qp_create_send_ops_flags */
	struct soft_send_wqe *wqe; /* the request that is not whole yet */
	uint64_t operand, compare; /* of it, when it is an atomic */
};

/* What a target has besides a queue pair; under its responder.lock, and handles under both of its locks. */
struct soft_xrc_target {
	struct soft_xrc_domain *domain;
	struct soft_srq *entered; /* held, with its transfer lock: that of the request which is executed */
	struct soft_srq *source; /* held: that of the message of which a part has come */
	struct soft_qp *handles;
	bool ended; /* the last handle is gone */
};

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
	 * The fields that every packet uses are together: this cache line; requester, which the posting thread writes;
	 * responder, with the access flags at the beginning of attr, which the peer's thread writes.
	 *
	 * state is an enum ibv_qp_state, written under both locks.  The requester may also write ERR or SQE under its own
	 * lock alone; soft_qp_enter_error then brings the other half to ERR.
	 */
	_Atomic int state __attribute__((aligned(SOFT_CACHE_LINE)));
	uint8_t service; /* enum soft_service */
	uint8_t service_bit; /* SOFT_RC, SOFT_UC or SOFT_UD */
	bool signal_all : 1;
	bool mcast_loopback : 1; /* gets the multicasts that it sends */
	bool has_builder : 1; /* ibv_qp_to_qp_ex gives it */
	uint8_t xrc; /* enum soft_xrc */
	struct soft_device *device;
	struct soft_srq *srq; /* where its receives come from; NULL: from its own queue */
	struct soft_qp *peer; /* held; under requester.lock */
	struct soft_segmentation *segmentation; /* NULL on the local link, where a message is a packet */
	struct ibv_qp_cap cap;
	/*
	 * Connected services: the number of the one queue pair of this device that it takes packets from, or
	 * SOFT_NO_QPN.  Written under both locks, like attr, from which it follows.
	 */
	_Atomic uint32_t accepted_qpn;

	struct soft_requester requester __attribute__((aligned(SOFT_CACHE_LINE)));
	struct soft_responder responder __attribute__((aligned(SOFT_CACHE_LINE)));
	struct ibv_qp_attr attr; /* what was set; under requester.lock */
	struct soft_receive_queue receive __attribute__((aligned(SOFT_CACHE_LINE)));

	_Atomic unsigned int references; /* the owner, a peer's link, and short holds */
	_Atomic unsigned int groups; /* multicast groups it is attached to */
	struct soft_pd_member member, receive_member; /* of its PD, and of its shared queue's */
	struct soft_timer timer;
	struct soft_async_event events[SOFT_QP_EVENTS];
	struct soft_builder builder;
	struct soft_xrc_target *target; /* SOFT_TARGET: what only it has */
	/* What users have of a target: */
	struct soft_qp *target_qp; /* it; held */
	struct soft_qp *next_handle; /* of it; under both of its locks */
	struct soft_xrcd *xrcd;
};

#ifndef SOFT_ORDER_CHECKED /* locks are larger then */
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

/* Whether the packets of another queue pair of this device are for it. */
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
 * The number of the message of which a packet was sent last: 1, 2, .. since the queue pair was reset (IBTA 9.7.7, SSN).  What
 * needs no packet has none.  lock is held.
 */
static inline uint32_t soft_requester_message(const struct soft_requester *requester)
{
	return (requester->transmitted - (requester->mw_op_seq - requester->mw_op_base)) & SOFT_PSN_MASK;
}

/* Of an initiator's request. */
static inline uint32_t *soft_request_shared_queue(const struct soft_requester *requester, struct soft_send_wqe *wqe)
{
	return (uint32_t *)(void *)((char *)wqe + requester->stride - sizeof(uint32_t));
}

/* Looks at a sender that has not completed yet: a second. */
#define SOFT_SENDER_ATTEMPTS 20000

/*
 * On a wire an acknowledgement arrives before any message that the peer sent after it, and so the completion of a request
 * is there before the peer's reply.  On the local link the sending thread executes the peer's half and may lose the
 * processor before it completes its own request.  So before a reply is seen, this waits until qp has completed: for one
 * message at most, which waits for no lock that a poller holds.  Of a thread that was stopped the reply is seen first.
 */
static inline void soft_qp_await_sender(const struct soft_qp *qp)
{
	unsigned int attempt = 0;

	while (atomic_load_explicit(&qp->requester.sending, memory_order_acquire) && attempt < SOFT_SENDER_ATTEMPTS)
		soft_lock_backoff(attempt++);
}

/* A void pointer, for soft_table_find. */
void soft_qp_hold(void *qp);
/* Free the memory of its queues, which no thread uses any more. */
void soft_qp_free_queues(struct soft_qp *qp);
/* The last reference frees it. */
void soft_qp_release(struct soft_qp *qp);

/* Raise an event of it; of a target on each of its handles.  once: unless it was raised before.  responder.lock is held. */
void soft_qp_raise(struct soft_qp *qp, enum soft_qp_event event, bool once);
/* Those that were raised once may be raised again.  Both locks are held. */
void soft_qp_forget_events(struct soft_qp *qp);

/*
 * Wait until every data transfer that is under way in a queue pair of pd has ended (soft/objects/mr_table.h).  Returns how
 * many queue pairs there were.
 */
size_t soft_quiesce(struct soft_pd *pd);

#endif
