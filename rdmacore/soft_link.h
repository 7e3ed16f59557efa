/*
 * The local link: both queue pairs are in this process.  Packets are handed over by reference while
 * the sender holds its requester.lock and the receiver's responder.lock, so a transfer is one copy
 * from source to target memory, with no thread in between.
 */
#ifndef SOFT_LINK_H
#define SOFT_LINK_H

struct soft_qp;
struct soft_timer;

/*
 * Send whatever the requester of qp has to send.  Called with requester.lock held, returns with it
 * released, and with both queue pairs settled in ERR when the exchange failed.
 */
void soft_link_transmit(struct soft_qp *qp);

/* expire of soft_qp.timer: a wait of the requester is over. */
void soft_link_expire(struct soft_timer *timer);

#endif
