/*
 * A packet between two engines: the fields of the InfiniBand transport headers and a reference to the payload in the
 * sender's memory. A link with an MTU copies the payload. The local link passes the reference, so that a message of
 * any length is one packet.
 */
#ifndef SOFT_WIRE_PACKET_H
#define SOFT_WIRE_PACKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "soft/base/bounds.h"
#include "soft/base/page_guard.h"
#include "soft/wire/opcode.h"

#define SOFT_PSN_MASK 0xffffffu
#define SOFT_GRH 40 /* length of a global route header, or of the IP header that replaces it in RoCE v2 */
#define SOFT_MAX_SEGMENTS (SOFT_MAX_SGE + 1) /* one more for a datagram's GRH */

struct soft_segment {
	void *address;
	uint64_t length;
};

struct soft_ah;

struct soft_packet {
	uint8_t opcode;
	uint8_t syndrome; /* ACKNOWLEDGE, RDMA_READ_RESPONSE */
	bool solicited;
	bool xrc; /* only links with an MTU use this and the next five */
	bool acknowledge; /* the AckReq bit */
	bool migrated;
	uint8_t congestion; /* FECN and BECN, the upper two bits */
	uint16_t partition; /* P_Key */
	uint32_t message_length; /* RDMA_WRITE_FIRST and ONLY: of all packets together, as in their RETH */
	uint8_t header; /* bytes of GRH before the payload in the receiver's memory: SOFT_GRH or 0 */
	uint8_t service_level;
	uint32_t destination; /* queue pair number; not set for a connection: its link knows it */
	uint32_t source; /* queue pair number */
	uint32_t queue_key; /* datagrams */
	uint8_t placement, selectivity; /* FLUSH: enums of provider/newer.h */
	uint32_t psn;
	uint32_t msn; /* ACKNOWLEDGE, RDMA_READ_RESPONSE: messages executed so far */
	uint32_t immediate; /* in the user's byte order; SEND_ONLY_INVALIDATE: the key */
	uint32_t rkey;
	uint32_t shared_queue; /* XRC: the number of the shared receive queue */
	uint64_t remote_address;
	uint64_t length; /* of the payload, of the response to a READ, or of the range to flush */
	uint64_t operand; /* to add or to swap in; ATOMIC_ACKNOWLEDGE: the original value */
	uint64_t compare;
	const struct soft_ah *ah; /* datagrams */
	uint8_t grh[SOFT_GRH]; /* datagrams: the first segment */
	uint32_t num_segments;
	struct soft_segment segments[SOFT_MAX_SEGMENTS];
};

/* Remove the first bytes of the payload. */
void soft_packet_skip(struct soft_packet *packet, uint64_t bytes);

/* Distance of two 24-bit sequence numbers: negative if a is before b. */
static inline int32_t soft_psn_difference(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* soft_segments_copy for more than one segment. */
void soft_segments_copy_pieces(const struct soft_segment *to, const struct soft_segment *from,
			       uint64_t length);

/*
 * Copy memory of keys. A thread that polls the target's memory sees the copies of a queue pair in order (IBTA 9.5).
 * Some processors need the fence for that; x86 does not.
 */
static inline void soft_memory_copy(void *to, const void *from, uint64_t length)
{
	atomic_thread_fence(memory_order_release);
	soft_page_guard_begin();
	memmove(to, from, length);
	soft_page_guard_end();
}

/* The same from one segment list to another; both are at least length bytes long. */
static inline void soft_segments_copy(const struct soft_segment *to, const struct soft_segment *from,
				      uint64_t length)
{
	if (length && length <= to->length && length <= from->length) {
		soft_memory_copy(to->address, from->address, length);
	} else if (length) {
		atomic_thread_fence(memory_order_release);
		soft_page_guard_begin();
		soft_segments_copy_pieces(to, from, length);
		soft_page_guard_end();
	}
}

#endif
