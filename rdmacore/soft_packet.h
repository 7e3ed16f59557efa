/*
 * What travels between two engines: the fields of the InfiniBand transport headers, decoded, and a
 * reference to the payload in the sender's memory.  A link with an MTU copies the payload out; the
 * local link hands the reference over, so a message of any length is one packet.
 */
#ifndef SOFT_PACKET_H
#define SOFT_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "soft_device.h"

/* BTH opcodes of the reliable connected service (IBTA 9.2, table 38), the single-packet forms. */
enum soft_opcode {
	SOFT_SEND_ONLY = 0x04,
	SOFT_SEND_ONLY_IMMEDIATE = 0x05,
	SOFT_RDMA_WRITE_ONLY = 0x0a,
	SOFT_RDMA_WRITE_ONLY_IMMEDIATE = 0x0b,
	SOFT_RDMA_READ_REQUEST = 0x0c,
	SOFT_RDMA_READ_RESPONSE_ONLY = 0x10,
	SOFT_ACKNOWLEDGE = 0x11,
};

/* AETH syndromes (IBTA 9.7.5.1.2): what kind of acknowledgement. */
enum soft_syndrome {
	SOFT_ACK = 0x1f, /* credits are not used */
	SOFT_RNR_NAK = 0x20, /* | timer code */
	SOFT_NAK_SEQUENCE = 0x60,
	SOFT_NAK_INVALID_REQUEST = 0x61,
	SOFT_NAK_REMOTE_ACCESS = 0x62,
	SOFT_NAK_REMOTE_OPERATIONAL = 0x63,
};

#define SOFT_RNR_TIMER_MASK 0x1f
#define SOFT_SYNDROME_KIND 0x60
#define SOFT_PSN_MASK 0xffffffu

struct soft_segment {
	void *address;
	uint64_t length;
};

struct soft_packet {
	uint8_t opcode;
	uint8_t syndrome; /* ACKNOWLEDGE, RDMA_READ_RESPONSE */
	bool solicited;
	uint32_t destination; /* queue pair number */
	uint32_t psn;
	uint32_t msn; /* ACKNOWLEDGE, RDMA_READ_RESPONSE: messages executed so far */
	uint32_t immediate; /* as the user gave it */
	uint32_t rkey;
	uint64_t remote_address;
	uint64_t length; /* payload, or bytes asked for by a READ */
	uint32_t num_segments;
	struct soft_segment segments[SOFT_MAX_SGE];
};

/* Distance of two 24-bit sequence numbers: negative when a is before b. */
static inline int32_t soft_psn_difference(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* RNR timer codes in nanoseconds (IBTA 9.7.5.2.8, table 45). */
uint64_t soft_rnr_timer(uint8_t code);
/* Local ACK timeout codes in nanoseconds: 4.096 us * 2^code; 0 is no timeout (IBTA 9.9.2.1.1). */
uint64_t soft_ack_timeout(uint8_t code);

/* Copy length bytes from one segment list to another, each at least that long. */
void soft_segments_copy(const struct soft_segment *to, const struct soft_segment *from,
			uint64_t length);

#endif
