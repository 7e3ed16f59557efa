/*
 * The local link: both queue pairs are in this process.  Packets are handed over by reference while the
 * sender holds its requester.lock and the receiver's responder.lock, so a transfer is one copy from source
 * to target memory, with no thread in between.
 */
#ifndef SOFT_LINK_LOCAL_H
#define SOFT_LINK_LOCAL_H

#include <stdbool.h>

struct soft_multicast_members;
struct soft_qp;

/* What is left to do when a pass over the send queue has released its locks. */
struct soft_pass {
	struct soft_qp *failed_peer; /* to be settled; held */
	struct soft_multicast_members *failed_group; /* the same: one of them failed, or several */
	bool again; /* there may be more to send */
};

/*
 * Hand over what the requester of qp has to send, until somebody waits for a lock or a datagram has made
 * somebody fail; requester.lock is held.
 */
void soft_link_local_send(struct soft_qp *qp, struct soft_pass *pass);

#endif
