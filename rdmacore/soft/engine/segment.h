/*
 * Messages on a link with an MTU.  What is one packet on the local link is cut into packets of the path MTU,
 * each with a sequence number of its own (here, the requester's half), and put together again (soft/engine/assembly.h,
 * the responder's half): IBTA 9.7.2, 9.7.5, 9.8.2.
 *
 * A queue pair on such a link has one struct soft_segmentation.  On the local link it has none, and all of
 * this costs a test of that pointer.
 */
#ifndef SOFT_ENGINE_SEGMENT_H
#define SOFT_ENGINE_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/objects/qp.h"
#include "soft/objects/receive_queue.h"
#include "soft/wire/packet.h"

struct soft_link;

/*
 * Packets that may be on the way unanswered; a receiver's socket buffer holds about as many.  A loss halves
 * what is allowed, every answer gives one back.
 */
#define SOFT_WINDOW_MAX 128
#define SOFT_WINDOW_MIN 4
/* An answer is wanted at the end of a message, and after that many packets of it. */
#define SOFT_ACKNOWLEDGE_EVERY 16

/* The message of which the peer has sent a part. */
struct soft_assembly {
	uint8_t kind; /* SOFT_SEND_FIRST, SOFT_RDMA_WRITE_FIRST or NO_MESSAGE */
	bool holds; /* receive was taken, from a shared queue, and belongs to nothing else */
	uint64_t offset; /* bytes that came */
	uint64_t address, length; /* RDMA WRITE: of the whole */
	uint32_t rkey;
	struct soft_receive receive; /* SEND: where it goes */
};

/* The answer to a READ, while it is being given. */
struct soft_read_stream {
	bool active;
	bool again; /* it was answered before, and what went wrong since is no error */
	bool first;
	uint32_t psn;
	uint32_t rkey;
	uint64_t address, left;
};

struct soft_segmentation {
	struct soft_link *link;
	uint32_t mtu; /* bytes of payload in a packet */
	uint8_t header[SOFT_GRH]; /* IP header of what it sends; connected services */

	/* The requester's, under requester.lock. */
	uint32_t cursor; /* packets sent of the message before transmitted; 0: all of it was */
	uint32_t answered; /* packets answered of the message at completed */
	uint32_t frontier; /* the number after the highest that was ever sent */
	uint32_t window;
	bool retrying; /* it went back, and nothing was answered since */

	/* The responder's, under responder.lock. */
	bool owes; /* an ACK of all before responder.psn */
	bool owing; /* the link knows, and will ask for it */
	struct soft_assembly assembly;
	struct soft_read_stream stream;
};

#define SOFT_NO_MESSAGE 0xff

/* Packets, and so sequence numbers, of a message of that length; 1 without an MTU. */
static inline uint32_t soft_segment_count(const struct soft_qp *qp, uint64_t length)
{
	const struct soft_segmentation *segmentation = qp->segmentation;

	if (!segmentation || length <= segmentation->mtu)
		return 1;
	return (uint32_t)((length + segmentation->mtu - 1) / segmentation->mtu);
}

/* The rest is the requester's, with requester.lock held. */

/* Whether the window lets another packet of that message go. */
bool soft_segment_may_send(struct soft_qp *qp, const struct soft_send_wqe *wqe);
/* Of a packet that is the whole message make the one that is due. */
void soft_segment_cut(struct soft_qp *qp, const struct soft_send_wqe *wqe, struct soft_packet *packet);
/*
 * That many packets, counted from the first of the message at the head of the queue, are acknowledged.
 * Whether all of it is over; if not, *whole says that nothing of it is missing that should have come by now,
 * and *part that it is farther than before.
 */
bool soft_segment_is_answered(struct soft_qp *qp, const struct soft_send_wqe *wqe, uint32_t packets,
			      bool *whole, bool *part);
/* Something new was answered. */
void soft_segment_progress(struct soft_qp *qp);
/* It goes back.  False when it has done so already, and nothing was answered since. */
bool soft_segment_retry(struct soft_qp *qp);
/* An answer to what was never sent. */
bool soft_segment_is_stray(const struct soft_qp *qp, const struct soft_packet *packet);
/* A refusal of what has been answered since. */
bool soft_segment_is_stale(struct soft_qp *qp, const struct soft_packet *packet);

enum soft_segment_result {
	SOFT_SEGMENT_OLD, /* it came before */
	SOFT_SEGMENT_GAP, /* one before it did not come */
	SOFT_SEGMENT_BAD, /* it is not what was asked for */
	SOFT_SEGMENT_UNREACHABLE, /* the memory for it is no longer ours */
	SOFT_SEGMENT_PART,
	SOFT_SEGMENT_WHOLE, /* it was the last one */
};

/* A packet of the answer to the READ at the head of the queue: put it where it belongs. */
enum soft_segment_result soft_segment_read(struct soft_qp *qp, struct soft_send_wqe *wqe,
					   const struct soft_packet *packet);

/*
 * The receive that a message took from a shared queue before it broke off, for the next one; false when there is
 * none.  responder.lock is held.
 */
bool soft_segment_take_held(struct soft_qp *qp, struct soft_receive *receive);

#endif
