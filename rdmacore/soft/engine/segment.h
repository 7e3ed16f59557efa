/*
 * Messages on a link with an MTU (IBTA 9.7.2, 9.7.5, 9.8.2). On the local link a message is one packet. Here the
 * requester's half (segment.c) cuts it into packets of the path MTU with a sequence number each, and the responder's
 * half (assembly.c) reassembles it.
 *
 * A queue pair on such a link has a struct soft_segmentation. On the local link that pointer is NULL, and testing it
 * is the only cost.
 */
#ifndef SOFT_ENGINE_SEGMENT_H
#define SOFT_ENGINE_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/objects/qp.h"
#include "soft/objects/receive_queue.h"
#include "soft/wire/packet.h"

struct soft_link;
struct soft_link_request;

/*
 * Unanswered packets; a receiver's socket buffer holds about as many. A loss halves the window, and each answer
 * increases it by one.
 */
#define SOFT_WINDOW_MAX 128
#define SOFT_WINDOW_MIN 4
/* Packets of READ responses that may arrive at once; they use the own socket buffer. */
#define SOFT_READ_MAX 512
/* An ACK is requested at the end of a message, and after that many of its packets, or as many as the link sets. */
#define SOFT_ACKNOWLEDGE_EVERY 16

/* A message that has arrived in part. */
struct soft_assembly {
	uint8_t kind; /* SOFT_SEND_FIRST, SOFT_RDMA_WRITE_FIRST or NO_MESSAGE */
	bool holds; /* receive was taken from a shared queue and not completed */
	uint64_t offset; /* bytes that have arrived */
	uint64_t address, length; /* RDMA WRITE: of the whole message */
	uint32_t rkey;
	struct soft_receive receive; /* SEND: the receive of the message */
};

/* A READ response while it is being sent. */
struct soft_read_stream {
	bool active;
	bool again; /* the READ is repeated: a key that is not valid any more is no error then */
	bool first;
	uint32_t shared_queue; /* the queue that the request to a target named */
	uint32_t psn;
	uint32_t rkey;
	uint64_t address, left;
};

/* State of pending acknowledgements (ack_delay.c). */
struct soft_ack_delay {
	bool needless; /* the peer does not wait for them */
	bool probing; /* a try is under way that finds out whether it waits */
	uint8_t requests; /* that came since the last acknowledgement was sent, as far as they count */
	/* acknowledgements sent with answers since the last try, and how many before the next one */
	uint16_t piggybacked, interval;
};

struct soft_segmentation {
	struct soft_link *link;
	uint32_t mtu; /* bytes of payload in a packet */
	uint32_t window_limit, read_limit; /* SOFT_WINDOW_MAX and SOFT_READ_MAX, or the limits of the link */
	uint32_t acknowledge_every;
	uint8_t header[SOFT_GRH]; /* IP header of sent packets; connected services */

	/* Fields of the requester, under requester.lock. */
	uint32_t cursor; /* sent packets of the message before transmitted; 0: it was sent completely */
	uint32_t answered; /* answered packets of the message at completed */
	uint32_t next_unsent_psn; /* the number after the highest one that was sent */
	uint32_t window;
	bool credited; /* the peer's acknowledgements carry credits: */
	uint32_t credit_limit; /* the number of the last message that it has a receive for (IBTA 9.7.7.2, LSN) */
	bool retrying; /* it went back, and nothing was answered since */
	/* the timer runs for the oldest request, or for an earlier one and is then extended once */
	bool timed, prolonged;

	/* Fields of the responder, under responder.lock. */
	bool ack_pending; /* an ACK of all requests before responder.psn */
	bool ack_queued; /* the link will send it */
	struct soft_ack_delay ack_delay;
	struct soft_assembly assembly;
	struct soft_read_stream stream;

	/* Fields of a link that sends READ responses in parts (soft/udp/reads.c). */
	bool answers; /* it is in the list of queue pairs that do */
	struct soft_qp *next_answer;
	struct soft_link_request *waiting, **last_waiting; /* requests that came meanwhile, the oldest first */
	uint32_t waiting_count;

	/* Data of the link about a connected queue pair; written under both locks. */
	uint64_t route[];
};

#define SOFT_NO_MESSAGE 0xff

/* --- ack_delay.c: how long an acknowledgement waits; responder.lock is held ------------------------- */

void soft_ack_delay_init(struct soft_ack_delay *ack_delay);
/* A request that asks for an acknowledgement has come. */
void soft_ack_delay_request(struct soft_segmentation *segmentation);
/* All requests before responder.psn are acknowledged. */
void soft_ack_delay_acknowledged(struct soft_segmentation *segmentation);
/* The peer waits for its acknowledgement. */
void soft_ack_delay_end(struct soft_segmentation *segmentation);

/* The number of packets, and so of sequence numbers, of a message of that length; 1 without an MTU. */
static inline uint32_t soft_segment_count(const struct soft_qp *qp, uint64_t length)
{
	const struct soft_segmentation *segmentation = qp->segmentation;

	if (!segmentation || length <= segmentation->mtu)
		return 1;
	return (uint32_t)((length + segmentation->mtu - 1) / segmentation->mtu);
}

/* The functions below belong to the requester; requester.lock is held. */

/* Whether the window allows another packet of that message. */
bool soft_segment_may_send(struct soft_qp *qp, const struct soft_send_wqe *wqe);
/* Change a packet that is the whole message to the one that is sent next. */
void soft_segment_cut(struct soft_qp *qp, const struct soft_send_wqe *wqe, struct soft_packet *packet);
/*
 * The first packets of the message at the head of the queue are acknowledged. True if all of them are. If not,
 * *whole: no response is missing; *part: more packets are acknowledged than before.
 */
bool soft_segment_is_answered(struct soft_qp *qp, const struct soft_send_wqe *wqe, uint32_t packets,
			      bool *whole, bool *part);
/* An answer has made progress. */
void soft_segment_progress(struct soft_qp *qp);
/* The requester goes back. False if it did before, and nothing was answered since. */
bool soft_segment_retry(struct soft_qp *qp);
/* Whether the packet answers one that was never sent. */
bool soft_segment_is_stray(const struct soft_qp *qp, const struct soft_packet *packet);
/* Whether it is a NAK of a packet that was answered since. */
bool soft_segment_is_stale(struct soft_qp *qp, const struct soft_packet *packet);

enum soft_segment_result {
	SOFT_SEGMENT_OLD, /* it has arrived before */
	SOFT_SEGMENT_GAP, /* an earlier one has not arrived */
	SOFT_SEGMENT_BAD, /* it does not match the request */
	SOFT_SEGMENT_UNREACHABLE, /* the memory for it is not accessible any more */
	SOFT_SEGMENT_PART,
	SOFT_SEGMENT_WHOLE, /* it was the last one */
};

/* Store a packet of the response to the READ at the head of the queue. */
enum soft_segment_result soft_segment_read(struct soft_qp *qp, struct soft_send_wqe *wqe,
					   const struct soft_packet *packet);

#endif
