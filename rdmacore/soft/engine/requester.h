/* The half of a queue pair that works off its send queue; requester.lock is held. */
#ifndef SOFT_ENGINE_REQUESTER_H
#define SOFT_ENGINE_REQUESTER_H

#include <stdbool.h>
#include <stdint.h>

struct soft_packet;
struct soft_qp;

/* -ENOMEM */
int soft_requester_init(struct soft_qp *qp);
void soft_requester_reset(struct soft_qp *qp);
/*
 * Build the next packet.  False when there is none to send: nothing posted, a wait is on, or a local
 * error ended the queue pair (its state is then ERR).
 */
bool soft_requester_next(struct soft_qp *qp, struct soft_packet *packet);
/* What next gave was handed over, and the service is one without acknowledgements: it is complete. */
void soft_requester_sent(struct soft_qp *qp);
/*
 * Work on windows at the head of the queue, in two halves (soft/objects/mw.h).  begin: false when there is none;
 * true, and the caller passes soft_quiesce with no lock held before it calls end, with what local_turn was then.
 */
bool soft_requester_begin_local(struct soft_qp *qp);
/* True: as begin, once more.  Work of another turn is left to who began it, and has passed soft_quiesce. */
bool soft_requester_end_local(struct soft_qp *qp, uint32_t turn);
/* An acknowledgement or a response came back. */
void soft_requester_receive(struct soft_qp *qp, const struct soft_packet *packet);
/* The delay of requester.wait has passed: go back and send again, or give up. */
void soft_requester_expire(struct soft_qp *qp);
/* SQD begins: no new request is sent.  event: SQ_DRAINED when all that were sent are answered. */
void soft_requester_drain(struct soft_qp *qp, bool event);
/* Complete everything outstanding with WR_FLUSH_ERR. */
void soft_requester_flush(struct soft_qp *qp);

#endif
