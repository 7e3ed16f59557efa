/*
 * The local link: both queue pairs are in this process.  Packets are handed over by reference while the
 * sender holds its requester.lock and the receiver's responder.lock, so a transfer is one copy from source
 * to target memory, with no thread in between.
 */
#ifndef SOFT_LINK_LOCAL_H
#define SOFT_LINK_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

struct soft_multicast_members;
struct soft_qp;

/* What is left to do when a pass over the send queue has released its locks. */
struct soft_pass {
	struct soft_qp *failed_peer; /* to be settled; held */
	struct soft_multicast_members *failed_group; /* the same: one of them failed, or several */
	bool again; /* there may be more to send */
	uint64_t work_left; /* bytes to copy, each message as SOFT_MESSAGE_WORK more */
};

/* What goes with a message takes about as long as copying so many bytes. */
#define SOFT_MESSAGE_WORK 1024

/* One more message was handed over. */
static inline void soft_pass_count(struct soft_pass *pass, uint64_t length)
{
	uint64_t work = length + SOFT_MESSAGE_WORK;

	pass->work_left -= work < pass->work_left ? work : pass->work_left;
}

/*
 * Hand over what the requester of qp has to send, until somebody waits for a lock, no work is left, or a datagram
 * has made somebody fail; requester.lock is held.
 */
void soft_link_local_send(struct soft_qp *qp, struct soft_pass *pass);

#endif
