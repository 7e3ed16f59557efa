/* What a queue pair has to send goes out, on whichever link it is, and what comes of that is settled. */
#ifndef SOFT_LINK_TRANSMIT_H
#define SOFT_LINK_TRANSMIT_H

struct soft_qp;
struct soft_timer;

/*
 * Send what the requester of qp has to send.  Called with requester.lock held, returns with it
 * released, and with both queue pairs settled in ERR when the exchange failed.
 *
 * On the local link sending is copying, by whoever calls.  A send queue may ask for any amount of it, so after
 * about a gigabyte the call returns, and the thread of the timers sends the rest, in parts between which others
 * have their turn.
 */
void soft_transmit(struct soft_qp *qp);

/* expire of soft_qp.timer: a wait of the requester is over, or it is to send on. */
void soft_transmit_expire(struct soft_timer *timer);

#endif
