/* Sending datagrams on a link that carries them (soft/link/carrier.h). */
#ifndef SOFT_LINK_SEND_H
#define SOFT_LINK_SEND_H

#include <stdbool.h>

struct soft_packet;
struct soft_qp;

/*
 * Send what the requester of qp has to send, until somebody waits for requester.lock, which is held.  Returns
 * whether there may be more.
 */
bool soft_link_send(struct soft_qp *qp);
/* Send what the responder of qp answers; responder.lock is held. */
void soft_link_answer(struct soft_qp *qp, struct soft_packet *packet);
/* Send the acknowledgement that is owed, if it still is.  No lock is held. */
void soft_link_acknowledge(struct soft_qp *qp);

#endif
