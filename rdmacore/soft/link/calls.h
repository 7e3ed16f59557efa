/* What carries packets between queue pairs, from the send queue down to one of the links. */
#ifndef SOFT_LINK_CALLS_H
#define SOFT_LINK_CALLS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/base/fault.h"
#include "soft/base/notice.h"
#include "soft/wire/datagram.h"

struct soft_arrival;
struct soft_device;
struct soft_multicast_members;
struct soft_packet;
struct soft_qp;
struct soft_timer;
struct soft_udp_burst;

/* --- transmit.c: the send queue goes out on whichever link the queue pair has --------------------- */

/*
 * Send what the requester of qp has to send.  Called with requester.lock held; returns with it released, and with both
 * queue pairs in ERR when the exchange failed.
 *
 * On the local link sending is copying, by the calling thread.  A send queue may ask for any amount of it, so after
 * about a gigabyte the call returns and the timer thread sends the rest, in parts, with other timers in between.
 */
void soft_transmit(struct soft_qp *qp);
/* The expire of soft_qp.timer: the requester's wait is over, or it sends the rest. */
void soft_transmit_expire(struct soft_timer *timer);

/* --- local.c: both queue pairs are in this process ------------------------------------------------ */

/*
 * Packets are handed over by reference with the sender's requester.lock and the receiver's responder.lock held, so a
 * transfer is one copy from source to target memory, with no thread in between.
 */

/* One pass over a send queue, and what is left to do once its locks are released. */
struct soft_pass {
	struct soft_qp *failed_peer; /* held; soft_qp_enter_error is due */
	struct soft_multicast_members *failed_group; /* held; the same for each member */
	bool again; /* there may be more to send */
	uint64_t work_left; /* bytes to copy, each message counted as SOFT_MESSAGE_WORK more */
};

/* A message without its payload takes about as long as copying this many bytes. */
#define SOFT_MESSAGE_WORK 1024

/* One more message was handed over. */
static inline void soft_pass_count(struct soft_pass *pass, uint64_t length)
{
	uint64_t work = length + SOFT_MESSAGE_WORK;

	pass->work_left -= work < pass->work_left ? work : pass->work_left;
}

/*
 * Hand over what the requester of qp has to send, until another thread waits for a lock, no work is left, or a datagram
 * made its receiver fail.  requester.lock is held.
 */
void soft_link_local_send(struct soft_qp *qp, struct soft_pass *pass);
/* The other end of the connection, in this process, which qp->peer holds; NULL: it is not there.  requester.lock is held. */
struct soft_qp *soft_link_peer(struct soft_qp *qp);

/* --- a link that carries datagrams ---------------------------------------------------------------- */

/* A datagram of the longest packet, and room for the headers that a link may want before it. */
#define SOFT_DATAGRAM (SOFT_GRH + SOFT_UDP_HEADER + SOFT_WIRE_OVERHEAD + SOFT_MTU)

/* Packets that go out together: what one pass over a queue sends is flushed at its end.  A link may do without. */
struct soft_burst {
	uint32_t count; /* packets that are not sent yet */
	struct soft_udp_burst *pending; /* NULL, or at the begin of own */
	uint8_t own[SOFT_DATAGRAM + 384] __attribute__((aligned(16))); /* where one packet has room, or many short ones */
};

static inline void soft_burst_begin(struct soft_burst *burst)
{
	burst->count = 0;
	burst->pending = NULL;
}

/* Of a queue pair; of one for datagrams, which has none, source is NULL. */
struct soft_path {
	const union ibv_gid *source, *destination;
	uint32_t number; /* of the queue pair at the other end */
	uint32_t mtu;
};

/* Called with a requester.lock or a responder.lock held, from any thread. */
struct soft_link {
	bool icrc; /* compute and check it */
	bool piggybacks_acks; /* one that is pending goes out with a request, if there is one */
	bool lax_timeouts; /* a timeout may be up to twice as long */
	size_t route_size; /* of soft_segmentation.route */
	uint32_t read_room; /* packets of answers to READs that may still go out in this pass, of a link with answer_later */
	/*
	 * The queue pair comes to RTR, or gets another path; both locks are held.  0, or a positive errno, and it stays as
	 * it was.  NULL: there is nothing to do.
	 */
	int (*connect)(struct soft_link *link, struct soft_qp *qp, const struct soft_path *path);
	/* Room for a packet of that many bytes; NULL, and it is lost. */
	uint8_t *(*begin)(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
			  const struct soft_packet *packet, size_t length);
	/* Write the packet where begin has given room, and send it. */
	void (*send)(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
		     const struct soft_packet *packet, uint8_t *bytes, size_t length);
	/* The burst ends, whose count is not 0. */
	void (*flush)(struct soft_link *link, struct soft_burst *burst);
	/* The queue pair joins a multicast group, or leaves it; no lock is held.  0 or a positive errno.  NULL: nothing to do. */
	int (*join)(struct soft_link *link, const union ibv_gid *group);
	/*
	 * Whether the packet is from the peer of the connected qp and for the address that qp has; one of the locks is held.  NULL:
	 * its addresses and its sender say so.
	 */
	bool (*is_peer)(const struct soft_qp *qp, const struct soft_arrival *arrival);
	/*
	 * qp has an acknowledgement pending.  The link calls soft_link_acknowledge with no lock held, when it has nothing more
	 * for that queue pair or after a time of its choice.  False when it cannot.
	 */
	bool (*queue_ack)(struct soft_link *link, struct soft_qp *qp);
	/*
	 * The answer of qp to a READ goes on, and read_room is used up.  The link calls soft_link_answer_read in a later pass, so that
	 * none is long.  NULL: an answer goes out whole.
	 */
	void (*answer_later)(struct soft_link *link, struct soft_qp *qp);
	/* A request came behind that READ, and is delivered when that is answered, or dropped and counted. */
	void (*request_later)(struct soft_link *link, struct soft_qp *qp, const struct soft_arrival *arrival,
			      const uint8_t *bytes, size_t length);
};

/* --- receive.c: a datagram arrives ---------------------------------------------------------------- */

/* Where a packet came from, and what its IP header said. */
struct soft_arrival {
	union ibv_gid source, destination;
	uint16_t port; /* UDP source port, of a link that compares it */
	uint32_t sender; /* the queue pair that sent it; SOFT_NO_QPN: the link does not know */
	uint8_t header[SOFT_GRH]; /* of a datagram */
	/* What the last packet was for, held, or NULL: others that came with it are often for the same. */
	struct soft_qp *receiver;
	enum soft_notice fault; /* of a packet that was dropped */
};

/* A request that waits until a READ before it is answered. */
struct soft_link_request {
	struct soft_link_request *next;
	struct soft_arrival arrival; /* without a receiver */
	size_t length;
	uint8_t bytes[];
};

/* A packet with its ICRC, which was checked.  No lock is held.  False when it was dropped, for arrival->fault. */
bool soft_link_deliver(struct soft_device *device, struct soft_arrival *arrival, uint8_t *bytes, size_t length);
/* No more packets came with those. */
void soft_link_deliver_end(struct soft_arrival *arrival);
/*
 * A datagram for one of the device's addresses, from its IP header on, and the queue pair that sent it (soft_arrival.sender).  No
 * lock is held.  False when it was dropped: malformed, or for no queue pair.
 */
bool soft_link_receive(struct soft_device *device, bool icrc, uint32_t sender, uint8_t *datagram, size_t length);

/* Go on with the answer to a READ, as far as read_room goes.  False when it has ended.  No lock of a queue pair is held. */
bool soft_link_answer_read(struct soft_qp *qp);

/* --- send.c: packets become datagrams ------------------------------------------------------------- */

/*
 * Send what the requester of qp has to send, until another thread waits for requester.lock, which is held.  Returns
 * whether there may be more.
 */
bool soft_link_send(struct soft_qp *qp);
/* Send an answer of qp's responder.  responder.lock is held. */
void soft_link_answer(struct soft_qp *qp, struct soft_burst *burst, struct soft_packet *packet);
void soft_link_flush(struct soft_qp *qp, struct soft_burst *burst);
/* Send the acknowledgement that is pending, if it still is.  No lock of a queue pair is held. */
void soft_link_acknowledge(struct soft_qp *qp);
/*
 * The same, unless it waits for an answer to go with: then false.  idle: it has waited, nothing came meanwhile, and it
 * goes now.
 */
bool soft_link_acknowledge_answered(struct soft_qp *qp, bool idle);
/* The addresses that a packet has, as its sender sees them.  A lock of the queue pair is held. */
const union ibv_gid *soft_link_source(const struct soft_qp *qp, const struct soft_packet *packet);
const union ibv_gid *soft_link_destination(const struct soft_qp *qp, const struct soft_packet *packet);
/*
 * What faults may say of a packet.  Its message is, of a request, the one that the requester sends, and of an answer what
 * its AETH says: the last one that was executed.  requester.lock is held, or of an answer's queue pair responder.lock.
 */
struct soft_fault_subject soft_link_subject(const struct soft_qp *qp, const struct soft_packet *packet);

#endif
