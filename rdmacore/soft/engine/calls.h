/*
 * The functions of the transport, in the order in which a packet meets them. soft/engine/segment.h has those of
 * messages that are cut into packets.
 */
#ifndef SOFT_ENGINE_CALLS_H
#define SOFT_ENGINE_CALLS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_link;
struct soft_packet;
struct soft_qp;
struct soft_receive;
struct soft_segment;
struct soft_segmentation;
struct soft_send_wqe;

/* --- state.c: both halves of a queue pair enter a state --------------------------------------------- */

/* Both locks of a queue pair, the requester's first (soft/base/order.h). */
void soft_qp_lock(struct soft_qp *qp);
void soft_qp_unlock(struct soft_qp *qp);
/* Enter the state. Both locks are held. */
void soft_qp_enter(struct soft_qp *qp, enum ibv_qp_state state);
/* Look up the peer again before the next packet. requester.lock is held. */
void soft_qp_forget_peer(struct soft_qp *qp);
/*
 * After one half failed, change both to ERR and flush all outstanding requests (IBTA 10.3.1.7). Does nothing if
 * neither failed. Takes both locks.
 */
void soft_qp_enter_error(struct soft_qp *qp);
/* Change to RESET for destruction. Unpolled completions stay. Takes both locks. */
void soft_qp_reset(struct soft_qp *qp);

/* --- requester.c: sends the send queue; requester.lock is held -------------------------------------- */

/* -ENOMEM. Initialises the lock. */
int soft_requester_init(struct soft_qp *qp);
void soft_requester_reset(struct soft_qp *qp);
/*
 * Build the next packet. False if nothing is to be sent: nothing is posted, the requester waits, or a local error
 * has changed the queue pair to ERR.
 */
bool soft_requester_next(struct soft_qp *qp, struct soft_packet *packet);
/* In a service without acknowledgements: the packet of soft_requester_next was sent, so its request completes. */
void soft_requester_sent(struct soft_qp *qp);
/*
 * A BIND_MW or LOCAL_INV at the head of the queue is executed in two halves (soft/objects/mw.h). False if there is
 * none. True: the caller stores requester.mw_op_seq, calls soft_quiesce with no lock held, and then
 * soft_requester_end_local.
 */
bool soft_requester_begin_local(struct soft_qp *qp);
/*
 * True if the first half had to be repeated: call soft_quiesce, and this again. Ignores an operation with another
 * seq.
 */
bool soft_requester_end_local(struct soft_qp *qp, uint32_t seq);
/* An acknowledgement or a response has arrived. */
void soft_requester_receive(struct soft_qp *qp, const struct soft_packet *packet);
/* requester.wait_delay has passed: send again, or fail. */
void soft_requester_expire(struct soft_qp *qp);
/* SQD begins, and no new request is sent. event: raise SQ_DRAINED when all sent requests are answered. */
void soft_requester_drain(struct soft_qp *qp, bool event);
/* Complete all outstanding requests with WR_FLUSH_ERR. */
void soft_requester_flush(struct soft_qp *qp);

/* --- request.c: the packet of a send request; requester.lock is held -------------------------------- */

/* IBV_WC_SUCCESS, or why the request cannot be sent. */
enum ibv_wc_status soft_request_build(struct soft_qp *qp, struct soft_send_wqe *wqe, struct soft_packet *packet);
/* Translate the request's own memory into segments of packet. False if a key, a range or a right is wrong. */
bool soft_request_translate(struct soft_qp *qp, struct soft_send_wqe *wqe, uint32_t access,
			    struct soft_packet *packet);

/* --- responder.c: executes requests of the peer; responder.lock is held ----------------------------- */

/* -ENOMEM. Initialises the lock. */
int soft_responder_init(struct soft_qp *qp);
void soft_responder_reset(struct soft_qp *qp);
/* From INIT to RTR: allocate results for that many atomics. -ENOMEM. */
int soft_responder_remember(struct soft_qp *qp, uint32_t atomics);
/* Execute a request. True if response must be sent now. */
bool soft_responder_receive(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);

/*
 * The same for the target of an extended connection. It keeps the shared queue of the request until
 * soft_target_leave, because the response may refer to memory of the queue's domain.
 */
bool soft_target_receive(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);

/* --- target.c: the shared queue of a target's request; responder.lock is held --------------------- */

/* Use that queue, its domain and its completion queue. False if the target has no such queue in its XRC domain. */
bool soft_target_enter(struct soft_qp *qp, uint32_t number);
/* The same for the queue of a message that has arrived in part; false if there is none. */
bool soft_target_resume(struct soft_qp *qp);
/* Stop using the queue. */
void soft_target_leave(struct soft_qp *qp);
/* Drop the message that has arrived in part. */
void soft_target_abandon(struct soft_qp *qp);

/* --- atomic.c: atomics at the target; responder.lock is held -------------------------------------- */

/* Execute, store the result, and answer. The caller has checked the target. */
void soft_atomic_execute(struct soft_qp *qp, const struct soft_packet *packet, void *target,
			 struct soft_packet *response);
/* Answer a duplicate as before. False if its result was overwritten. */
bool soft_atomic_replay(const struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);

/* --- receive.c: the receive that a message uses; responder.lock is held --------------------------- */

/*
 * Whether the message finds no receive although one is posted, by legal choice (CORE_LEGAL_RNR). That happens only
 * where the peer tries again, and not twice for a message.
 */
bool soft_receive_stalls(struct soft_qp *qp, const struct soft_packet *packet);
/* Take the oldest receive of the queue; false if it is empty. */
bool soft_receive_take(struct soft_qp *qp, struct soft_receive *receive);
/*
 * Find the memory for the payload, offset bytes into the receive: at most SOFT_MAX_SGE segments. IBV_WC_SUCCESS, or
 * the status of its completion.
 */
enum ibv_wc_status soft_receive_reach(struct soft_qp *qp, const struct soft_receive *receive, uint64_t offset,
				      const struct soft_packet *packet, struct soft_segment *segments);
/* Complete a receive. packet is NULL for a flush. */
void soft_receive_complete(struct soft_qp *qp, const struct soft_receive *receive, enum ibv_wc_status status,
			   const struct soft_packet *packet);
/* Copy the payload, and complete the receive with success. */
void soft_receive_deliver(struct soft_qp *qp, const struct soft_receive *receive, const struct soft_packet *packet,
			  const struct soft_segment *to);
/*
 * In ERR: complete all receives of its own queue with WR_FLUSH_ERR. A shared queue keeps its receives, and
 * LAST_WQE_REACHED means that this queue pair takes no more (IBTA 10.2.9.6).
 */
void soft_receive_flush(struct soft_qp *qp);
/* Unreliable datagrams (IBTA 9.8.3): one packet, one receive, no answer. */
void soft_datagram_receive(struct soft_qp *qp, const struct soft_packet *packet);

/* --- assembly.c: the responder on a link with an MTU; responder.lock is held ---------------------- */

/*
 * The state of a queue pair on such a link (soft/engine/segment.h), with that many bytes of route; NULL without
 * memory.
 */
struct soft_segmentation *soft_segmentation_create(struct soft_link *link, size_t route);
/* From INIT to RTR: the path is known. Both locks are held. */
void soft_segmentation_start(struct soft_qp *qp);
/* The queue pair goes to ERR or RESET. Both locks are held. */
void soft_segmentation_stop(struct soft_qp *qp);
/*
 * Whether the packet is a whole request, which is executed as on the local link. If not, it was handled here: it is
 * a part of a request, or was rejected and response is set.
 */
bool soft_assembly_is_request(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);
/* Drop the message that has begun. */
void soft_assembly_abandon(struct soft_qp *qp);
/*
 * The request was executed or rejected. True if response must be sent now; otherwise an ACK is pending, or a READ
 * response is streamed.
 */
bool soft_assembly_answer(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);
/* A request that was executed before is repeated. True if response must be sent now. */
bool soft_assembly_repeat(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);
/*
 * The next packet of a READ response. A link takes all of them before it delivers another request. False: there is
 * none, or the queue pair failed.
 */
bool soft_assembly_stream(struct soft_qp *qp, struct soft_packet *response);
/* The pending ACK; false if none is pending. */
bool soft_assembly_acknowledge(struct soft_qp *qp, struct soft_packet *response);

/* --- credits.c: legal credits for receives (CORE_LEGAL_ACK_CREDITS), on links with an MTU ------------------- */

/* Add them to an acknowledgement, if the queue pair sends them. responder.lock is held. */
void soft_credits_add(struct soft_qp *qp, struct soft_packet *response);
/* An acknowledgement has arrived. requester.lock is held. */
void soft_credits_learn(struct soft_qp *qp, const struct soft_packet *ack);
/* Whether the request at that index may be sent. requester.lock is held. */
bool soft_credits_allow(struct soft_qp *qp, uint32_t index);

/* --- ack_delay.c: how long an acknowledgement waits; responder.lock is held ------------------------- */

/* The program's answer is sent now: whether the pending acknowledgement is sent with it. */
bool soft_ack_is_piggybacked(struct soft_qp *qp);
/* Whether the pending acknowledgement waits for an answer. idle: it has waited so long that it is sent now. */
bool soft_ack_waits(struct soft_qp *qp, bool idle);

#endif
