/*
 * READ responses are sent in parts.
 *
 * A request of 32 bytes asks for up to 2 GiB, which are 8 million packets at a path MTU of 256. The receiving thread
 * sends ROOM packets of responses in a pass over received packets, and continues in the next pass. When nothing else
 * comes, the timers' thread continues. So messages of the connection manager and other queue pairs wait for one part
 * at most.
 *
 * A responder executes requests in order, so requests behind such a READ wait (as in req_pkts of rdma_rxe). They are
 * few, because soft's requester asks for SOFT_READ_MAX packets at once. Further requests are dropped, and the
 * requester sends them again after a NAK.
 */
#include "soft/udp/internal.h"

#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/engine/segment.h"
#include "soft/objects/qp.h"

/*
 * Packets of responses in one pass, which take 0.5 ms; and packets of one response before the next response
 * continues.
 */
#define ROOM 512
#define PART 32
/* Limits of waiting requests: of one queue pair, its window; of all together, the windows of a few. */
#define WAITING SOFT_WINDOW_MAX
#define WAITING_IN_ALL (8 * SOFT_WINDOW_MAX)

/* Let the timers' thread continue if nothing else comes. If the timer cannot be armed, the next pass continues. */
static void wait_for_turn(struct soft_udp *udp)
{
	if (udp->reads.first && !udp->reads.deferred)
		udp->reads.deferred = !soft_timer_defer(&udp->fabric->timers, &udp->reads.timer);
}

void soft_udp_answer_later(struct soft_link *link, struct soft_qp *qp)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	struct soft_udp *udp = soft_udp_of(link);

	soft_lock_expect(&udp->receiving);
	if (segmentation->answers)
		return;
	soft_qp_hold(qp);
	segmentation->answers = true;
	segmentation->next_answer = NULL;
	*udp->reads.last = qp;
	udp->reads.last = &segmentation->next_answer;
	wait_for_turn(udp);
}

static struct soft_qp *take_first(struct soft_udp *udp)
{
	struct soft_qp *qp = udp->reads.first;

	udp->reads.first = qp->segmentation->next_answer;
	if (!udp->reads.first)
		udp->reads.last = &udp->reads.first;
	qp->segmentation->answers = false;
	return qp;
}

void soft_udp_request_later(struct soft_link *link, struct soft_qp *qp, const struct soft_arrival *arrival,
			    const uint8_t *bytes, size_t length)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	struct soft_udp *udp = soft_udp_of(link);
	struct soft_link_request *request = NULL;

	soft_lock_expect(&udp->receiving);
	if (segmentation->waiting_count < WAITING && udp->reads.waiting < WAITING_IN_ALL)
		request = malloc(sizeof(*request) + length);
	if (!request) {
		atomic_fetch_add_explicit(&udp->counters.dropped, 1, memory_order_relaxed);
		return;
	}
	request->next = NULL;
	request->arrival = *arrival;
	request->arrival.receiver = NULL;
	request->length = length;
	memcpy(request->bytes, bytes, length);
	if (!segmentation->waiting)
		segmentation->last_waiting = &segmentation->waiting;
	*segmentation->last_waiting = request;
	segmentation->last_waiting = &request->next;
	segmentation->waiting_count++;
	udp->reads.waiting++;
}

/* The oldest waiting request, which the caller frees. */
static struct soft_link_request *take_request(struct soft_udp *udp, struct soft_qp *qp)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	struct soft_link_request *request = segmentation->waiting;

	if (!request)
		return NULL;
	segmentation->waiting = request->next;
	segmentation->waiting_count--;
	udp->reads.waiting--;
	return request;
}

/* The READ is answered. Deliver the requests behind it, up to the next READ without a complete response. */
static void deliver_waiting(struct soft_udp *udp, struct soft_qp *qp)
{
	struct soft_link_request *request;

	while (!qp->segmentation->answers && (request = take_request(udp, qp))) {
		if (!soft_link_deliver(udp->device, &request->arrival, request->bytes, request->length))
			soft_udp_drop(udp, request->arrival.fault, &request->arrival.source);
		soft_link_deliver_end(&request->arrival);
		free(request);
	}
}

/* Send a part of a response. */
static void answer_part(struct soft_udp *udp, struct soft_qp *qp)
{
	struct soft_link *link = &udp->link;
	uint32_t kept = link->read_room > PART ? link->read_room - PART : 0;
	bool goes_on;

	link->read_room -= kept;
	goes_on = soft_link_answer_read(qp);
	link->read_room += kept;
	if (goes_on)
		soft_udp_answer_later(link, qp);
	else
		deliver_waiting(udp, qp);
}

void soft_udp_end_pass(struct soft_udp *udp)
{
	soft_lock_expect(&udp->receiving);
	while (udp->reads.first && udp->link.read_room) {
		struct soft_qp *qp = take_first(udp);

		answer_part(udp, qp);
		soft_qp_release(qp);
	}
	udp->link.read_room = udp->reads.room;
	wait_for_turn(udp);
}

int soft_udp_reads_init(struct soft_udp *udp, void (*expire)(struct soft_timer *timer))
{
	udp->reads.last = &udp->reads.first;
	udp->link.read_room = udp->reads.room = ROOM;
	return soft_timer_register(&udp->fabric->timers, &udp->reads.timer, expire);
}

/* No thread receives any more, so no lock is needed. */
void soft_udp_reads_stop(struct soft_udp *udp)
{
	soft_timer_unregister(&udp->fabric->timers, &udp->reads.timer);
	while (udp->reads.first) {
		struct soft_qp *qp = take_first(udp);
		struct soft_link_request *request;

		while ((request = take_request(udp, qp)))
			free(request);
		soft_qp_release(qp);
	}
}
