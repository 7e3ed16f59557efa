/*
 * The functions of the transport, in the order in which a packet meets them.  Those of messages cut into packets are in
 * soft/engine/segment.h.
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

/* --- state.c: what happens to both halves of a queue pair when it enters a state ------------------ */

/* Both locks of a queue pair, the requester's first (soft/base/order.h). */
void soft_qp_lock(struct soft_qp *qp);
void soft_qp_unlock(struct soft_qp *qp);
/* Enter the state.  Both locks are held. */
void soft_qp_enter(struct soft_qp *qp, enum ibv_qp_state state);
/* The peer that was found is looked up again.  requester.lock is held. */
void soft_qp_forget_peer(struct soft_qp *qp);
/*
 * After one half failed, move both to ERR and flush every outstanding request (IBTA 10.3.1.7).  Does nothing when
 * neither failed.  Takes both locks.
 */
void soft_qp_enter_error(struct soft_qp *qp);
/* To RESET when it is destroyed.  Completions that were not polled yet stay.  Takes both locks. */
void soft_qp_reset(struct soft_qp *qp);

/* --- requester.c: works off the send queue; requester.lock is held -------------------------------- */

/* -ENOMEM.  Makes the lock. */
int soft_requester_init(struct soft_qp *qp);
void soft_requester_reset(struct soft_qp *qp);
/*
 * Build the next packet.  False when nothing is to be sent: nothing is posted, the requester waits, or a local error
 * ended the queue pair, which is then in ERR.
 */
bool soft_requester_next(struct soft_qp *qp, struct soft_packet *packet);
/* In a service without acknowledgements: the packet of soft_requester_next was sent, and its request is complete. */
void soft_requester_sent(struct soft_qp *qp);
/*
 * A BIND_MW or LOCAL_INV at the head of the queue is done in two halves (soft/objects/mw.h).  False when there is none.
 * True: the caller notes requester.mw_op_seq, passes soft_quiesce with no lock held, and calls
 * soft_requester_end_local.
 */
bool soft_requester_begin_local(struct soft_qp *qp);
/* True when the first half had to be done again: soft_quiesce, and this once more.  Ignores work of another turn. */
bool soft_requester_end_local(struct soft_qp *qp, uint32_t seq);
/* An acknowledgement or a response arrived. */
void soft_requester_receive(struct soft_qp *qp, const struct soft_packet *packet);
/* requester.wait_delay has passed: send again, or give up. */
void soft_requester_expire(struct soft_qp *qp);
/* SQD begins and no new request is sent.  event: raise SQ_DRAINED when all that were sent are answered. */
void soft_requester_drain(struct soft_qp *qp, bool event);
/* Complete everything outstanding with WR_FLUSH_ERR. */
void soft_requester_flush(struct soft_qp *qp);

/* --- request.c: the packet of a send work request; requester.lock is held ------------------------- */

/* IBV_WC_SUCCESS, or why the request cannot be sent. */
enum ibv_wc_status soft_request_build(struct soft_qp *qp, struct soft_send_wqe *wqe, struct soft_packet *packet);
/* Translate the request's own memory into segments of packet.  False when a key, a range or a right is wrong. */
bool soft_request_translate(struct soft_qp *qp, struct soft_send_wqe *wqe, uint32_t access,
			    struct soft_packet *packet);

/* --- responder.c: executes what the peer asks; responder.lock is held ----------------------------- */

/* -ENOMEM.  Makes the lock. */
int soft_responder_init(struct soft_qp *qp);
void soft_responder_reset(struct soft_qp *qp);
/* From INIT to RTR: make room for the results of that many atomics.  -ENOMEM. */
int soft_responder_remember(struct soft_qp *qp, uint32_t atomics);
/* Execute a request.  True when response goes back now. */
bool soft_responder_receive(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);

/*
 * The same for the target of an extended connection.  It keeps the shared queue of the request until soft_target_leave,
 * because the response may refer to memory of its domain.
 */
bool soft_target_receive(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);

/* --- target.c: the shared queue of a target's request; responder.lock is held --------------------- */

/* Have that queue, its domain and its completion queue.  False when the target has no such queue in its XRC domain. */
bool soft_target_enter(struct soft_qp *qp, uint32_t number);
/* The same for the queue of the message of which a part has come; false when there is none. */
bool soft_target_resume(struct soft_qp *qp);
/* Have none of them any more. */
void soft_target_leave(struct soft_qp *qp);
/* The message of which a part has come is forgotten. */
void soft_target_abandon(struct soft_qp *qp);

/* --- atomic.c: atomics at the target; responder.lock is held -------------------------------------- */

/* Execute, remember the result and answer.  The caller has checked the target. */
void soft_atomic_execute(struct soft_qp *qp, const struct soft_packet *packet, void *target,
			 struct soft_packet *response);
/* A duplicate gets the same answer again.  False when its result was overwritten. */
bool soft_atomic_replay(const struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);

/* --- receive.c: the receive that a message uses; responder.lock is held --------------------------- */

/* Take the oldest receive of the queue; false when it is empty. */
bool soft_receive_take(struct soft_qp *qp, struct soft_receive *receive);
/*
 * Find the memory for the payload, offset bytes into the receive: SOFT_MAX_SGE segments at most.  IBV_WC_SUCCESS, or
 * the status of its completion.
 */
enum ibv_wc_status soft_receive_reach(struct soft_qp *qp, const struct soft_receive *receive, uint64_t offset,
				      const struct soft_packet *packet, struct soft_segment *segments);
/* Complete a receive.  packet is NULL for a flush. */
void soft_receive_complete(struct soft_qp *qp, const struct soft_receive *receive, enum ibv_wc_status status,
			   const struct soft_packet *packet);
/* Copy the payload and complete the receive with success. */
void soft_receive_deliver(struct soft_qp *qp, const struct soft_receive *receive, const struct soft_packet *packet,
			  const struct soft_segment *to);
/*
 * In ERR: complete all of its own receive queue with WR_FLUSH_ERR.  A shared queue keeps its receives, and
 * LAST_WQE_REACHED says that this queue pair takes no more (IBTA 10.2.9.6).
 */
void soft_receive_flush(struct soft_qp *qp);
/* Unreliable datagrams (IBTA 9.8.3): one packet, one receive, no answer. */
void soft_datagram_receive(struct soft_qp *qp, const struct soft_packet *packet);

/* --- assembly.c: the responder on a link with an MTU; responder.lock is held ---------------------- */

/* Where a queue pair has it on such a link (soft/engine/segment.h), with that many bytes of route; NULL without memory. */
struct soft_segmentation *soft_segmentation_create(struct soft_link *link, size_t route);
/* From INIT to RTR, when the path is known.  Both locks are held. */
void soft_segmentation_start(struct soft_qp *qp);
/* The queue pair goes to ERR or RESET.  Both locks are held. */
void soft_segmentation_stop(struct soft_qp *qp);
/*
 * Whether the packet is a whole request, which is executed as on the local link.  If not it was dealt with here: it is
 * a part of a request, or refused, and response says so.
 */
bool soft_assembly_is_request(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);
/* Forget the message that was begun. */
void soft_assembly_abandon(struct soft_qp *qp);
/* The request was executed or refused.  True when response goes back now; else an ACK is pending, or a READ is streamed. */
bool soft_assembly_answer(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);
/* A request that was executed before.  True when response goes back now. */
bool soft_assembly_repeat(struct soft_qp *qp, const struct soft_packet *packet, struct soft_packet *response);
/*
 * The next packet of a READ's answer.  A link takes all of them before it gives the responder another request.  False: there
 * is none, or the queue pair failed.
 */
bool soft_assembly_stream(struct soft_qp *qp, struct soft_packet *response);
/* The ACK that is pending; false when none is. */
bool soft_assembly_acknowledge(struct soft_qp *qp, struct soft_packet *response);

/* --- ack_delay.c: how long an acknowledgement waits; responder.lock is held ------------------------- */

/* An answer of the program goes now: whether the acknowledgement that is pending goes with it. */
bool soft_ack_is_piggybacked(struct soft_qp *qp);
/* Whether the acknowledgement that is pending waits for such an answer.  idle: it has, for so long that it goes now. */
bool soft_ack_waits(struct soft_qp *qp, bool idle);

#endif
