/*
 * What carries packets from one queue pair to another, where it is not the local link (soft/link/local.h): it
 * carries datagrams, whose making (soft/link/send.h) and reading (soft/link/receive.h) all such links share,
 * and which arrive at a time of their own.
 */
#ifndef SOFT_LINK_CARRIER_H
#define SOFT_LINK_CARRIER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_qp;

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

#endif
