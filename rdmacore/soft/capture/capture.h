/*
 * What a host sends, written to a pcapng file as RoCE v2 packets with IP headers. Each address of the host is an
 * interface in the file. A link with datagrams hands over their bytes. The local link and the connection manager have
 * no bytes: those are made here (message.c), as the same traffic would have them on a wire.
 *
 * A host that is not captured has no struct soft_capture. Callers of these functions test that pointer
 * (soft_fabric.capture). It is set before the first queue pair is created and does not change.
 */
#ifndef SOFT_CAPTURE_CAPTURE_H
#define SOFT_CAPTURE_CAPTURE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "provider/provider.h"
#include "soft/base/fault.h"

struct soft_capture;
struct soft_capture_file;
struct soft_cm_message;
struct soft_fabric;
struct soft_packet;

/* --- capture.c: a host ---------------------------------------------------------------------------- */

/*
 * label says in the file to which host the interfaces belong. Times are those of the fabric's clock: since 1970, or
 * as a virtual clock shows them, which begins at 1 s. -ENOMEM.
 */
int soft_capture_create(struct soft_capture_file *file, struct soft_fabric *fabric, const char *label,
			struct soft_capture **capture);
/* Write how many packets each interface had. Later packets are not counted. */
void soft_capture_finish(struct soft_capture *capture);
void soft_capture_destroy(struct soft_capture *capture);

/* Set the name of an address's interface, before its first packet. A second name is added to the first. */
void soft_capture_name(struct soft_capture *capture, const union ibv_gid *address, const char *name);
/*
 * Set the step of the sender with that address, which becomes the comment of its packets; "" ends it. Packets of
 * senders without a step belong to the step that began last.
 */
void soft_capture_step(struct soft_capture *capture, const union ibv_gid *address, uint32_t number, const char *text);
/* A fault was added: comments of packets name it and the step that added it. */
void soft_capture_fault(struct soft_capture *capture, int rule);
/* Take what was noted of the last packets, at most count; *missed is how many more there were. */
uint32_t soft_capture_take(struct soft_capture *capture, struct core_captured *packets, uint32_t count, uint64_t *missed);

/* Write and note a packet that another process has captured. It belongs to the step that began last. */
void soft_capture_add(struct soft_capture *capture, const struct core_capture_packet *packet);

/* What happens to a packet in addition to being sent. */
struct soft_capture_outcome {
	struct soft_fault_result fault_result;
	bool unreachable; /* it has no receiver */
};

/* A datagram at the interface of that address, from its IP header on: sent by it; or inbound, from another process. */
void soft_capture_datagram(struct soft_capture *capture, const uint8_t *datagram, size_t length, const union ibv_gid *at,
			   bool inbound, const struct soft_capture_outcome *outcome);

/* --- message.c: messages that have no bytes yet ----------------------------------------------------- */

/* The path of a packet between two queue pairs. */
struct soft_capture_path {
	const union ibv_gid *from, *to;
	const struct ibv_global_route *route; /* traffic class and others; NULL: those of a datagram's address handle */
	uint32_t source, destination; /* numbers of queue pairs */
	uint32_t mtu; /* bytes of payload in a packet */
	bool inbound; /* it came from another process */
	bool xrc; /* an extended connection */
};

/*
 * The local link counts messages, and a wire counts packets. This maps messages of a queue pair to packets; under
 * its requester.lock.
 */
struct soft_capture_flow;

/* requests: capacity of the send queue, a power of two. NULL without memory. */
struct soft_capture_flow *soft_capture_flow_create(uint32_t requests);
/* The queue pair is reset. flow may be NULL. */
void soft_capture_flow_reset(struct soft_capture_flow *flow);

/* A request that is sent, as the packets that it needs on a wire. */
void soft_capture_request(struct soft_capture *capture, struct soft_capture_flow *flow, const struct soft_capture_path *path,
			  const struct soft_packet *packet, const struct soft_capture_outcome *outcome);
/* The same for an answer to a request of the flow. */
void soft_capture_answer(struct soft_capture *capture, const struct soft_capture_flow *flow,
			 const struct soft_capture_path *path, const struct soft_packet *packet,
			 const struct soft_capture_outcome *outcome);
/* A message of connection management, as a datagram between queue pairs 1; inbound: from another process. */
void soft_capture_management(struct soft_capture *capture, const union ibv_gid *from, const union ibv_gid *to,
			     const struct soft_cm_message *message, bool inbound,
				const struct soft_capture_outcome *outcome);

#endif
