/* Numbers in transport headers: opcodes, syndromes, and codes of times. */
#ifndef SOFT_WIRE_OPCODE_H
#define SOFT_WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * BTH opcodes (IBTA 9.2, table 38): the upper three bits are the service, the others the operation. The local link
 * uses only the single-packet forms.
 */
enum soft_service {
	SOFT_RELIABLE_CONNECTION = 0x00,
	SOFT_UNRELIABLE_CONNECTION = 0x20,
	SOFT_UNRELIABLE_DATAGRAM = 0x60,
};

#define SOFT_OPERATION 0x1f
#define SOFT_SERVICE 0xe0

/*
 * On the wire an extended reliable connection (XRC, IBTA annex A14) is a service of its own, with an XRCETH in its
 * requests. Its transport is that of a reliable connection. So in struct soft_packet it has that service, and xrc is
 * set.
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
	SOFT_FLUSH = 0x1c, /* IBTA 1.6, and answered like the next one */
	SOFT_ATOMIC_WRITE = 0x1d, /* IBTA 1.6; its answer is an RDMA_READ_RESPONSE_ONLY without payload */
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

/* Whether a responder sends it; all other packets are requests. */
static inline bool soft_operation_is_answer(uint8_t opcode)
{
	uint8_t operation = opcode & SOFT_OPERATION;

	return operation >= SOFT_RDMA_READ_RESPONSE_FIRST && operation <= SOFT_ATOMIC_ACKNOWLEDGE;
}

static inline bool soft_operation_is_read_response(uint8_t opcode)
{
	return opcode >= SOFT_RDMA_READ_RESPONSE_FIRST && opcode <= SOFT_RDMA_READ_RESPONSE_ONLY;
}

/* AETH syndromes (IBTA 9.7.5.1.2): kinds of acknowledgements. */
enum soft_syndrome {
	SOFT_ACK = 0x1f, /* credits are not used */
	SOFT_RNR_NAK = 0x20, /* | timer code */
	SOFT_NAK_SEQUENCE = 0x60,
	SOFT_NAK_INVALID_REQUEST = 0x61,
	SOFT_NAK_REMOTE_ACCESS = 0x62,
	SOFT_NAK_REMOTE_OPERATIONAL = 0x63,
};

/* Whether it acknowledges. The lower bits are credits (IBTA 9.7.5.1.2), which are not used here. */
static inline bool soft_syndrome_is_ack(uint8_t syndrome)
{
	return !(syndrome & 0xe0);
}

#define SOFT_RNR_TIMER_MASK 0x1f
#define SOFT_SYNDROME_KIND 0x60

/* The opcode of the first, middle or last packet of a message with that opcode; if both first and last: the same. */
uint8_t soft_operation_part(uint8_t opcode, bool first, bool last);

/* RNR timer codes in nanoseconds (IBTA 9.7.5.2.8, table 45). */
uint64_t soft_rnr_timer(uint8_t code);
/* Local ACK timeout codes in nanoseconds: 4.096 us * 2^code; 0 is no timeout (IBTA 9.9.2.1.1). */
uint64_t soft_ack_timeout(uint8_t code);

#endif
