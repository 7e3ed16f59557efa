/* What a queue pair has to send goes out, on whichever link it is, and what comes of that is settled. */
#ifndef SOFT_TRANSMIT_H
#define SOFT_TRANSMIT_H

struct soft_qp;
struct soft_timer;

/*
 * Send whatever the requester of qp has to send.  Called with requester.lock held, returns with it
 * released, and with both queue pairs settled in ERR when the exchange failed.
 */
void soft_transmit(struct soft_qp *qp);

/* expire of soft_qp.timer: a wait of the requester is over. */
void soft_transmit_expire(struct soft_timer *timer);

#endif
