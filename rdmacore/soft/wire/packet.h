/*
 * A packet between two engines: the fields of the InfiniBand transport headers and a reference to the payload in the
 * sender's memory.  A link with an MTU copies the payload out.  The local link passes the reference, so that a message of
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

/*
 * BTH opcodes (IBTA 9.2, table 38): the upper three bits are the service, the others the operation.  The local link has
 * only the single-packet forms.
 */
enum soft_service {
	SOFT_RELIABLE_CONNECTION = 0x00,
	SOFT_UNRELIABLE_CONNECTION = 0x20,
	SOFT_UNRELIABLE_DATAGRAM = 0x60,
};

#define SOFT_OPERATION 0x1f
#define SOFT_SERVICE 0xe0

/*
 * On the wire an extended reliable connection (XRC, IBTA annex A14) is a service of its own, whose requests have an XRCETH.
 * The transport is that of a reliable connection, so in struct soft_packet it is that service, and xrc is set.
 */
#define SOFT_WIRE_EXTENDED 0xa0

enum soft_operation {
	SOFT_SEND_FIRST = 0x00,
	SOFT_SEND_MIDDLE = 0x01,
	SOFT_SEND_LAST = 0x02,
	SOFT_SEND_LAST_IMMEDIATE = 0x03,
	SOFT_SEND_ONLY = 0x04,
	SOFT_SEND_ONLY_IMMEDIATE = 0x05,
	SOFT_RDMA_WRITE_FIRST = 0x06,
	SOFT_RDMA_WRITE_MIDDLE = 0x07,
	SOFT_RDMA_WRITE_LAST = 0x08,
	SOFT_RDMA_WRITE_LAST_IMMEDIATE = 0x09,
	SOFT_RDMA_WRITE_ONLY = 0x0a,
	SOFT_RDMA_WRITE_ONLY_IMMEDIATE = 0x0b,
	SOFT_RDMA_READ_REQUEST = 0x0c,
	SOFT_RDMA_READ_RESPONSE_FIRST = 0x0d,
	SOFT_RDMA_READ_RESPONSE_MIDDLE = 0x0e,
	SOFT_RDMA_READ_RESPONSE_LAST = 0x0f,
	SOFT_RDMA_READ_RESPONSE_ONLY = 0x10,
	SOFT_ACKNOWLEDGE = 0x11,
	SOFT_ATOMIC_ACKNOWLEDGE = 0x12,
	SOFT_COMPARE_SWAP = 0x13,
	SOFT_FETCH_ADD = 0x14,
	SOFT_SEND_LAST_INVALIDATE = 0x16,
	SOFT_SEND_ONLY_INVALIDATE = 0x17,
	SOFT_FLUSH = 0x1c, /* IBTA 1.6, as the next one, and answered like it */
	SOFT_ATOMIC_WRITE = 0x1d, /* IBTA 1.6; answered with an RDMA_READ_RESPONSE_ONLY of no bytes */
};

static inline bool soft_operation_has_immediate(uint8_t opcode)
{
	return (UINT32_C(1) << SOFT_SEND_LAST_IMMEDIATE | UINT32_C(1) << SOFT_SEND_ONLY_IMMEDIATE |
		UINT32_C(1) << SOFT_RDMA_WRITE_LAST_IMMEDIATE |
		UINT32_C(1) << SOFT_RDMA_WRITE_ONLY_IMMEDIATE) >>
		       (opcode & SOFT_OPERATION) &
	       1;
}

/* Whether the packet ends a request. */
static inline bool soft_operation_is_last(uint8_t opcode)
{
	return !((UINT32_C(1) << SOFT_SEND_FIRST | UINT32_C(1) << SOFT_SEND_MIDDLE |
		  UINT32_C(1) << SOFT_RDMA_WRITE_FIRST | UINT32_C(1) << SOFT_RDMA_WRITE_MIDDLE) >>
			 (opcode & SOFT_OPERATION) &
		 1);
}

/* What a responder sends; the others are requests. */
static inline bool soft_operation_is_answer(uint8_t opcode)
{
	uint8_t operation = opcode & SOFT_OPERATION;

	return operation >= SOFT_RDMA_READ_RESPONSE_FIRST && operation <= SOFT_ATOMIC_ACKNOWLEDGE;
}

static inline bool soft_operation_is_read_response(uint8_t opcode)
{
	return opcode >= SOFT_RDMA_READ_RESPONSE_FIRST && opcode <= SOFT_RDMA_READ_RESPONSE_ONLY;
}

/* AETH syndromes (IBTA 9.7.5.1.2): what kind of acknowledgement. */
enum soft_syndrome {
	SOFT_ACK = 0x1f, /* credits are not used */
	SOFT_RNR_NAK = 0x20, /* | timer code */
	SOFT_NAK_SEQUENCE = 0x60,
	SOFT_NAK_INVALID_REQUEST = 0x61,
	SOFT_NAK_REMOTE_ACCESS = 0x62,
	SOFT_NAK_REMOTE_OPERATIONAL = 0x63,
};

/* Whether it acknowledges: the lower bits are credits (IBTA 9.7.5.1.2), of which none are used here. */
static inline bool soft_syndrome_is_ack(uint8_t syndrome)
{
	return !(syndrome & 0xe0);
}

#define SOFT_RNR_TIMER_MASK 0x1f
#define SOFT_SYNDROME_KIND 0x60
#define SOFT_PSN_MASK 0xffffffu
#define SOFT_GRH 40 /* bytes of a global route header, or of what stands for it in RoCE v2 */
#define SOFT_MAX_SEGMENTS (SOFT_MAX_SGE + 1) /* a datagram's GRH is one more */

struct soft_segment {
	void *address;
	uint64_t length;
};

struct soft_ah;

struct soft_packet {
	uint8_t opcode;
	uint8_t syndrome; /* ACKNOWLEDGE, RDMA_READ_RESPONSE */
	bool solicited;
	bool xrc; /* this and the next five are for links with an MTU only */
	bool acknowledge; /* the AckReq bit */
	bool migrated;
	uint8_t congestion; /* FECN and BECN, the upper two bits */
	uint16_t partition; /* P_Key */
	uint32_t message_length; /* RDMA_WRITE_FIRST and ONLY: of all packets together, as their RETH says */
	uint8_t header; /* bytes of GRH that go before the payload in the receiver's memory: SOFT_GRH or 0 */
	uint8_t service_level;
	uint32_t destination; /* queue pair number; that of a connection is known to its link */
	uint32_t source; /* queue pair number */
	uint32_t queue_key; /* datagrams */
	uint8_t placement, selectivity; /* FLUSH: enums of provider/newer.h */
	uint32_t psn;
	uint32_t msn; /* ACKNOWLEDGE, RDMA_READ_RESPONSE: messages executed so far */
	uint32_t immediate; /* as the user gave it; SEND_ONLY_INVALIDATE: the key */
	uint32_t rkey;
	uint32_t shared_queue; /* XRC: the number of the shared receive queue */
	uint64_t remote_address;
	uint64_t length; /* payload, or bytes asked for by a READ, or to be flushed */
	uint64_t operand; /* to add, or to swap in; ATOMIC_ACKNOWLEDGE: what was there before */
	uint64_t compare;
	const struct soft_ah *ah; /* datagrams */
	uint8_t grh[SOFT_GRH]; /* datagrams: the first segment */
	uint32_t num_segments;
	struct soft_segment segments[SOFT_MAX_SEGMENTS];
};

/* Of the opcode of a whole message that of its first, middle or last packet; both first and last: the same. */
uint8_t soft_operation_part(uint8_t opcode, bool first, bool last);
/* Leave out the first bytes of the payload. */
void soft_packet_skip(struct soft_packet *packet, uint64_t bytes);

/* Distance of two 24-bit sequence numbers: negative when a is before b. */
static inline int32_t soft_psn_difference(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* RNR timer codes in nanoseconds (IBTA 9.7.5.2.8, table 45). */
uint64_t soft_rnr_timer(uint8_t code);
/* Local ACK timeout codes in nanoseconds: 4.096 us * 2^code; 0 is no timeout (IBTA 9.9.2.1.1). */
uint64_t soft_ack_timeout(uint8_t code);

/* The general half of soft_segments_copy. */
void soft_segments_copy_pieces(const struct soft_segment *to, const struct soft_segment *from,
			       uint64_t length);

/*
 * Copy length bytes from one segment list to another, each at least that long.  A thread that polls the target's memory
 * sees the copies of a queue pair in order (IBTA 9.5); some processors need the fence for that, x86 does not.
 */
static inline void soft_segments_copy(const struct soft_segment *to, const struct soft_segment *from,
				      uint64_t length)
{
	if (!length)
		return;
	atomic_thread_fence(memory_order_release);
	soft_page_guard_begin();
	if (length <= to->length && length <= from->length)
		memmove(to->address, from->address, length);
	else
		soft_segments_copy_pieces(to, from, length);
	soft_page_guard_end();
}

#endif
