/* What a responder does with the receive that it takes from a queue; responder.lock is held. */
#ifndef SOFT_ENGINE_RECEIVE_H
#define SOFT_ENGINE_RECEIVE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "soft/objects/receive_queue.h"

struct soft_packet;
struct soft_qp;
struct soft_segment;

/* The oldest receive of qp's queue; false when there is none. */
bool soft_receive_take(struct soft_qp *qp, struct soft_receive *receive);
/*
 * Where the receive wants the payload, behind that many bytes that came before it: at most SOFT_MAX_SGE
 * segments.  IBV_WC_SUCCESS, or what its completion must say.
 */
enum ibv_wc_status soft_receive_reach(struct soft_qp *qp, const struct soft_receive *receive,
				      uint64_t before, const struct soft_packet *packet,
				      struct soft_segment *segments);
/* What was taken is over.  packet is NULL for a flush. */
void soft_receive_complete(struct soft_qp *qp, const struct soft_receive *receive,
			   enum ibv_wc_status status, const struct soft_packet *packet);
/* With success, once the payload of packet is copied to there. */
void soft_receive_deliver(struct soft_qp *qp, const struct soft_receive *receive,
			  const struct soft_packet *packet, const struct soft_segment *to);
/*
 * The queue pair is in ERR: complete everything in its own queue with WR_FLUSH_ERR.  A shared queue
 * keeps its receives, and the event says that this queue pair takes no more (IBTA 10.2.9.6).
 */
void soft_receive_flush(struct soft_qp *qp);

/* The receiving side of the unreliable datagram service; responder.lock is held. */

void soft_datagram_receive(struct soft_qp *qp, const struct soft_packet *packet);

#endif
