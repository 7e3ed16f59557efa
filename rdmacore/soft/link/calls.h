/* What transfers packets between queue pairs, from the send queue down to one of the links. */
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

/* --- transmit.c: sends the send queue on the link of the queue pair --------------------------------- */

/*
 * Send what the requester of qp has to send. Called with requester.lock held; releases it. If the exchange failed,
 * both queue pairs are in ERR then.
 *
 * On the local link the calling thread copies. A send queue may contain any amount of data. So after about a
 * gigabyte the call returns, and the timer thread sends the rest, in parts, with other timers in between.
 */
void soft_transmit(struct soft_qp *qp);
/* The expire of soft_qp.timer: the requester's wait ends, or the rest is sent. */
void soft_transmit_expire(struct soft_timer *timer);

/* --- local.c: both queue pairs are in this process ------------------------------------------------ */

/*
 * Packets are passed by reference with the sender's requester.lock and the receiver's responder.lock held. So a
 * transfer is one copy from source to target memory, without another thread.
 */

/* One pass over a send queue, and what remains to be done after its locks are released. */
struct soft_pass {
	struct soft_qp *failed_peer; /* reference; soft_qp_enter_error is due */
	struct soft_multicast_members *failed_group; /* reference; the same for each member */
	bool again; /* there may be more to send */
	uint64_t work_left; /* bytes that may still be copied; each message counts SOFT_MESSAGE_WORK more */
};

/* A message without payload takes about as long as copying that many bytes. */
#define SOFT_MESSAGE_WORK 1024

/* Count a message that was passed. */
static inline void soft_pass_count(struct soft_pass *pass, uint64_t length)
{
	uint64_t work = length + SOFT_MESSAGE_WORK;

	pass->work_left -= work < pass->work_left ? work : pass->work_left;
}

/*
 * Pass what the requester of qp has to send. Ends when another thread waits for a lock, no work is left, or a datagram
 * made its receiver fail. requester.lock is held.
 */
void soft_link_local_send(struct soft_qp *qp, struct soft_pass *pass);
/*
 * Execute the first requests of a list at once, without the send queue (soft/engine/direct.h), and remove them from
 * the list. True if none is left, and there is nothing to transmit. requester.lock is held; qp->direct is set.
 */
bool soft_link_pass(struct soft_qp *qp, struct ibv_send_wr **wr);
/* The other end of the connection in this process, which qp->peer refers to; NULL: none. requester.lock is held. */
struct soft_qp *soft_link_peer(struct soft_qp *qp);

/* --- links that carry datagrams --------------------------------------------------------------------- */

/* A datagram with the longest packet, and room for headers that a link may write before it. */
#define SOFT_DATAGRAM (SOFT_GRH + SOFT_UDP_HEADER + SOFT_WIRE_OVERHEAD + SOFT_MTU)

/* Packets that are sent together: those of one pass over a queue, at its end. A link may ignore it. */
struct soft_burst {
	uint32_t count; /* packets that are not sent yet */
	struct soft_udp_burst *pending; /* NULL, or at the beginning of own */
	uint8_t own[SOFT_DATAGRAM + 384] __attribute__((aligned(16))); /* room for one packet, or for many short ones */
};

static inline void soft_burst_begin(struct soft_burst *burst)
{
	burst->count = 0;
	burst->pending = NULL;
}

/* The path of a queue pair. For a datagram queue pair, which has none, source is NULL. */
struct soft_path {
	const union ibv_gid *source, *destination;
	uint32_t number; /* number of the queue pair at the other end */
	uint32_t mtu;
};

/* Called with a requester.lock or a responder.lock held, on any thread. */
struct soft_link {
	bool icrc; /* compute and check it */
	bool piggybacks_acks; /* a pending acknowledgement is sent with the next request */
	bool coarse_timeouts; /* a timeout may take up to twice as long */
	size_t route_size; /* of soft_segmentation.route */
	/* packets of READ responses that may still be sent in this pass, for a link with answer_later */
	uint32_t read_room;
	/*
	 * The queue pair changes to RTR, or to another path; both locks are held. 0, or a positive errno, and nothing
	 * changes. NULL: nothing to do.
	 */
	int (*connect)(struct soft_link *link, struct soft_qp *qp, const struct soft_path *path);
	/* Room for a packet of that length; NULL: the packet is lost. */
	uint8_t *(*begin)(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
			  const struct soft_packet *packet, size_t length);
	/* Write the packet to the room that begin returned, and send it. */
	void (*send)(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
		     const struct soft_packet *packet, uint8_t *bytes, size_t length);
	/* The burst ends. Its count is not 0. */
	void (*flush)(struct soft_link *link, struct soft_burst *burst);
	/*
	 * The queue pair joins or leaves a multicast group; no lock is held. 0 or a positive errno. NULL: nothing to
	 * do.
	 */
	int (*join)(struct soft_link *link, const union ibv_gid *group);
	/*
	 * Whether the packet comes from the peer of the connected qp and goes to qp's address; one of the locks is
	 * held. NULL: addresses and sender are compared.
	 */
	bool (*is_peer)(const struct soft_qp *qp, const struct soft_arrival *arrival);
	/*
	 * qp has a pending acknowledgement. The link calls soft_link_acknowledge with no lock held, when it has
	 * nothing more for that queue pair or after a time of its choice. False if it cannot.
	 */
	bool (*queue_ack)(struct soft_link *link, struct soft_qp *qp);
	/*
	 * The READ response of qp continues, and read_room is used up. The link calls soft_link_answer_read in a
	 * later pass, so that each pass is short. NULL: a response is sent at once.
	 */
	void (*answer_later)(struct soft_link *link, struct soft_qp *qp);
	/* A request came behind that READ. It is delivered when the READ is answered, or dropped and counted. */
	void (*request_later)(struct soft_link *link, struct soft_qp *qp, const struct soft_arrival *arrival,
			      const uint8_t *bytes, size_t length);
};

/* --- receive.c: received datagrams ------------------------------------------------------------------ */

/* The origin of a packet, and its IP header. */
struct soft_arrival {
	union ibv_gid source, destination;
	uint16_t port; /* UDP source port, for a link that compares it */
	uint32_t sender; /* the queue pair that sent it; SOFT_NO_QPN: unknown */
	uint8_t header[SOFT_GRH]; /* of a datagram */
	/*
	 * The receiver of the last packet, a reference, or NULL: packets that come together often have the same
	 * receiver.
	 */
	struct soft_qp *receiver;
	enum soft_notice fault; /* of a packet that was dropped */
};

/* A request that waits until an earlier READ is answered. */
struct soft_link_request {
	struct soft_link_request *next;
	struct soft_arrival arrival; /* without a receiver */
	size_t length;
	uint8_t bytes[];
};

/*
 * Deliver a packet with its ICRC, which was checked. No lock is held. False if it was dropped, because of
 * arrival->fault.
 */
bool soft_link_deliver(struct soft_device *device, struct soft_arrival *arrival, uint8_t *bytes, size_t length);
/* The last of the packets that came together was delivered. */
void soft_link_deliver_end(struct soft_arrival *arrival);
/*
 * Deliver a datagram for one of the device's addresses, from its IP header on; sender: the queue pair that sent it
 * (soft_arrival.sender). No lock is held. False if it was dropped: malformed, or for no queue pair.
 */
bool soft_link_receive(struct soft_device *device, bool icrc, uint32_t sender, uint8_t *datagram, size_t length);

/* Continue a READ response, as far as read_room allows. False if it has ended. No lock of a queue pair is held. */
bool soft_link_answer_read(struct soft_qp *qp);

/* --- send.c: packets become datagrams ------------------------------------------------------------- */

/*
 * Send what the requester of qp has to send, until another thread waits for requester.lock, which is held. Returns
 * whether there may be more.
 */
bool soft_link_send(struct soft_qp *qp);
/* Send an answer of qp's responder. responder.lock is held. */
void soft_link_answer(struct soft_qp *qp, struct soft_burst *burst, struct soft_packet *packet);
void soft_link_flush(struct soft_qp *qp, struct soft_burst *burst);
/* Send the acknowledgement if it is still pending. No lock of a queue pair is held. */
void soft_link_acknowledge(struct soft_qp *qp);
/*
 * The same, unless it waits for an answer: then false. idle: it has waited, and nothing came meanwhile, so it is sent
 * now.
 */
bool soft_link_acknowledge_answered(struct soft_qp *qp, bool idle);
/* The addresses of a packet, as its sender sees them. A lock of the queue pair is held. */
const union ibv_gid *soft_link_source(const struct soft_qp *qp, const struct soft_packet *packet);
const union ibv_gid *soft_link_destination(const struct soft_qp *qp, const struct soft_packet *packet);
/*
 * What fault rules can match in a packet. The message of a request is the one that the requester sends. The message of
 * an answer is in its AETH: the last one that was executed. requester.lock is held, or for an answer responder.lock.
 */
struct soft_fault_subject soft_link_subject(const struct soft_qp *qp, const struct soft_packet *packet);

#endif
