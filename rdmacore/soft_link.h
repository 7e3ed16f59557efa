/*
 * What carries packets from one queue pair to another.
 *
 * The local link: both queue pairs are in this process.  Packets are handed over by reference while the
 * sender holds its requester.lock and the receiver's responder.lock, so a transfer is one copy from source
 * to target memory, with no thread in between.
 *
 * Any other link is a struct soft_link: it carries datagrams, whose making and reading all of them share
 * (soft_link_wire.c), and which arrive at a time of their own.
 */
#ifndef SOFT_LINK_H
#define SOFT_LINK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_device;
struct soft_qp;
struct soft_timer;

/* The functions are called with a requester.lock or a responder.lock held, from any thread. */
struct soft_link {
	bool icrc; /* compute and check it */
	/* Room for a datagram of that many bytes; NULL, and it is lost. */
	uint8_t *(*begin)(struct soft_link *link, size_t length);
	/* What begin gave has been filled, from its IP header on: send it. */
	void (*send)(struct soft_link *link, uint8_t *datagram, size_t length,
		     const union ibv_gid *from, const union ibv_gid *to);
	/*
	 * qp owes an acknowledgement.  The link calls soft_link_acknowledge for it with no lock held, when it
	 * has nothing more for that queue pair or after a time of its choice.  false: it cannot.
	 */
	bool (*owe)(struct soft_link *link, struct soft_qp *qp);
};

/*
 * Send whatever the requester of qp has to send.  Called with requester.lock held, returns with it
 * released, and with both queue pairs settled in ERR when the exchange failed.
 */
void soft_link_transmit(struct soft_qp *qp);

/* expire of soft_qp.timer: a wait of the requester is over. */
void soft_link_expire(struct soft_timer *timer);

/* soft_link_wire.c */

/* The same for a queue pair on a link that carries datagrams; requester.lock stays held. */
void soft_link_send(struct soft_qp *qp);
/* Send the acknowledgement that is owed, if it still is.  No lock is held. */
void soft_link_acknowledge(struct soft_qp *qp);
/*
 * A datagram that came for one of the device's addresses, from its IP header on.  No lock is held.  What is
 * malformed or for nobody is dropped; false then.
 */
bool soft_link_receive(struct soft_device *device, bool icrc, uint8_t *datagram, size_t length);

#endif
