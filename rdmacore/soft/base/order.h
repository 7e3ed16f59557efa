/*
 * The order of the soft provider's locks: a thread takes them only downwards in this list. Builds with a sanitizer
 * check this each time a lock is taken. They also check that functions hold the locks that they need. Other builds
 * check nothing.
 *
 * A requester holds its own requester.lock and its peer's responder.lock. No path goes from a responder.lock to a
 * requester.lock. So two queue pairs that send to each other cannot deadlock. A responder that finds an error of its
 * queue pair releases responder.lock first. Then it changes the requester's half (soft_qp_enter_error).
 */
#ifndef SOFT_BASE_ORDER_H
#define SOFT_BASE_ORDER_H

#include <stdint.h>

enum soft_order {
	/* cq.polling: from ibv_start_poll to ibv_end_poll; the user may call anything in between */
	SOFT_ORDER_POLLING,
	/* builder.lock: from ibv_wr_start to ibv_wr_complete, likewise. Users may take these two in any order. */
	SOFT_ORDER_BUILDING,
	/* udp.receiving: one thread at a time delivers packets from the sockets of a device */
	SOFT_ORDER_RECEIVING,
	SOFT_ORDER_CM, /* cm.lock: every rdma_cm id, port table and communication id */
	SOFT_ORDER_PD, /* pd.lock: the list of queue pairs of a protection domain */
	SOFT_ORDER_REQUESTER, /* requester.lock: send half of a queue pair: its send queue and its transition to ERR */
	/* responder.lock: receive half of a queue pair, its own or the peer's on the local link */
	SOFT_ORDER_RESPONDER,
	SOFT_ORDER_TRANSFER, /* srq.transfer: the request that is being executed for an XRC shared queue */
	/* receive_queue.lock: producers of one receive queue; of a shared one, consumers too */
	SOFT_ORDER_RECEIVE_QUEUE,
	SOFT_ORDER_CONSUMER, /* cq.consumer_lock: consumers of one completion queue */
	SOFT_ORDER_CQ, /* cq.lock: producers of one completion queue */
	SOFT_ORDER_MR, /* mr.lock: slots of the memory key table (writers; readers take no lock) */
	SOFT_ORDER_LATE_WRITES, /* late_writes.lock: WRITEs that are not visible yet */
	SOFT_ORDER_MULTICAST, /* multicast.lock: the members of multicast groups */
	SOFT_ORDER_DEVICE, /* device.lock: the open contexts of a device */
	SOFT_ORDER_TABLE, /* table.lock: one number table (queue pair numbers, communication ids) */
	/* event_queue.lock: one CM event channel, completion channel or async event queue */
	SOFT_ORDER_EVENT_QUEUE,
	SOFT_ORDER_ASKING, /* gate.asking: a DREQ is sent to find out whether a host receives */
	SOFT_ORDER_GATE, /* gate.lock: hosts that have answered, and requests of others */
	SOFT_ORDER_INBOX, /* inbox.lock: management datagrams that wait for the communication manager */
	SOFT_ORDER_FAULTS, /* faults.lock: the rules of injected faults */
	SOFT_ORDER_PACKETS, /* packets.lock: packets in flight on the link packets */
	SOFT_ORDER_UDP, /* udp.lock: the sockets of a device, and which events the poller waits for */
	SOFT_ORDER_BUFFERS, /* udp.buffers.lock: buffers of bursts */
	SOFT_ORDER_POLLER, /* poller.lock: polled descriptors */
	SOFT_ORDER_NOTICES, /* notices.lock: dropped packets that are not reported yet */
	SOFT_ORDER_TIMERS, /* timers.lock: the timer heap */
	SOFT_ORDER_FABRIC, /* fabric.lock: the random numbers */
	SOFT_ORDER_CAPTURE, /* capture_file.lock: the captured packets */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

#define SOFT_ORDER_CHECKED

/* The calling thread: is about to take a lock; holds it; releases it; holds none but users' locks and udp.receiving. */
void soft_order_take(const void *lock, enum soft_order order);
void soft_order_expect(const void *lock);
void soft_order_release(const void *lock);
void soft_order_expect_none(void);

#else

static inline void soft_order_expect_none(void)
{
}

#endif

#endif
