/*
 * The local link: both queue pairs are in this process.  Packets are handed over by reference while the
 * sender holds its requester.lock and the receiver's responder.lock, so a transfer is one copy from source
 * to target memory, with no thread in between.
 */
#ifndef SOFT_LINK_LOCAL_H
#define SOFT_LINK_LOCAL_H

struct soft_multicast_members;
struct soft_qp;

/*
 * Hand over whatever the requester of qp has to send, or of datagrams as much until one has made somebody
 * fail; requester.lock is held.  Who failed is returned, held, or of a multicast kept in *group, all members
 * together: they are to be settled when the lock is released.
 */
struct soft_qp *soft_link_local_send(struct soft_qp *qp, struct soft_multicast_members **group);

#endif
