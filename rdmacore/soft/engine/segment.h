/*
 * Messages on a link with an MTU (IBTA 9.7.2, 9.7.5, 9.8.2).  A message, which is one packet on the local link, is cut
 * into packets of the path MTU with a sequence number each (segment.c, the requester's half) and put together again
 * (assembly.c, the responder's half).
 *
 * A queue pair on such a link has a struct soft_segmentation.  On the local link that pointer is NULL, and all of this
 * costs a test of it.
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
 * Packets that may be unanswered; a receiver's socket buffer holds about as many.  A loss halves the window, every answer
 * widens it by one.
 */
#define SOFT_WINDOW_MAX 128
#define SOFT_WINDOW_MIN 4
/* Packets that responses to READs may bring at once, which are for the own buffer. */
#define SOFT_READ_MAX 512
/* An ACK is asked for at the end of a message, and after that many packets of it, or as many as the link says. */
#define SOFT_ACKNOWLEDGE_EVERY 16

/* A message of which a part has come. */
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
	bool again; /* it was answered before: then a key that is no longer valid is no error */
	bool first;
	uint32_t shared_queue; /* that the request to a target named */
	uint32_t psn;
	uint32_t rkey;
	uint64_t address, left;
};

/* Of the acknowledgements that are pending: ack_delay.c. */
struct soft_ack_delay {
	bool needless; /* the peer does not wait for them */
	bool probing; /* it is being tried whether it does */
	uint8_t requests; /* since the last one went, as far as they count */
	/* those that went with an answer since the last try, and how many before the next */
	uint16_t piggybacked, interval;
};

struct soft_segmentation {
	struct soft_link *link;
	uint32_t mtu; /* bytes of payload in a packet */
	uint32_t window_limit, read_limit; /* SOFT_WINDOW_MAX and SOFT_READ_MAX, or what the link says */
	uint32_t acknowledge_every;
	uint8_t header[SOFT_GRH]; /* IP header of what it sends; connected services */

	/* The requester's, under requester.lock. */
	uint32_t cursor; /* packets sent of the message before transmitted; 0: all of it was */
	uint32_t answered; /* packets answered of the message at completed */
	uint32_t next_unsent_psn; /* the number after the highest that was ever sent */
	uint32_t window;
	bool retrying; /* it went back, and nothing was answered since */
	bool timed, prolonged; /* the timer runs for the oldest request, or one before that, and then once more */

	/* The responder's, under responder.lock. */
	bool ack_pending; /* an ACK of all before responder.psn */
	bool ack_queued; /* the link was told, and will ask for it */
	struct soft_ack_delay ack_delay;
	struct soft_assembly assembly;
	struct soft_read_stream stream;

	/* The link's, of one that answers READs in parts (soft/udp/reads.c). */
	bool answers; /* it is among those that do */
	struct soft_qp *next_answer;
	struct soft_link_request *waiting, **last_waiting; /* requests that came meanwhile, the oldest first */
	uint32_t waiting_count;

	/* The link's own, of a connected queue pair; written under both locks. */
	uint64_t route[];
};

#define SOFT_NO_MESSAGE 0xff

/* --- ack_delay.c: how long an acknowledgement waits; responder.lock is held ------------------------- */

void soft_ack_delay_init(struct soft_ack_delay *ack_delay);
/* A request came that asks for an acknowledgement. */
void soft_ack_delay_request(struct soft_segmentation *segmentation);
/* All before responder.psn is acknowledged. */
void soft_ack_delay_acknowledged(struct soft_segmentation *segmentation);
/* The peer waits. */
void soft_ack_delay_end(struct soft_segmentation *segmentation);

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
 * The first packets of the message at the head of the queue are acknowledged.  True when that is all of it.  If not,
 * *whole says that no response that is due is missing, and *part that more is acknowledged than before.
 */
bool soft_segment_is_answered(struct soft_qp *qp, const struct soft_send_wqe *wqe, uint32_t packets,
			      bool *whole, bool *part);
/* Something new was answered. */
void soft_segment_progress(struct soft_qp *qp);
/* The requester goes back.  False when it did so before and nothing was answered since. */
bool soft_segment_retry(struct soft_qp *qp);
/* An answer to a packet that was never sent. */
bool soft_segment_is_stray(const struct soft_qp *qp, const struct soft_packet *packet);
/* A NAK of a packet that was answered since. */
bool soft_segment_is_stale(struct soft_qp *qp, const struct soft_packet *packet);

enum soft_segment_result {
	SOFT_SEGMENT_OLD, /* it came before */
	SOFT_SEGMENT_GAP, /* one before it did not come */
	SOFT_SEGMENT_BAD, /* it is not what was asked for */
	SOFT_SEGMENT_UNREACHABLE, /* the memory for it is no longer ours */
	SOFT_SEGMENT_PART,
	SOFT_SEGMENT_WHOLE, /* it was the last one */
};

/* Store a packet of the response to the READ at the head of the queue. */
enum soft_segment_result soft_segment_read(struct soft_qp *qp, struct soft_send_wqe *wqe,
					   const struct soft_packet *packet);

/*
 * Take the receive of a shared queue that an abandoned message left; false when there is none.  responder.lock is held,
 * and not requester.lock.
 */
bool soft_segment_take_held(struct soft_qp *qp, struct soft_receive *receive);

#endif
