/*
 * RoCE v2 packets as UDP datagrams (IBTA annex A17): IP and UDP header; BTH, extended headers, payload and padding
 * (9.2 to 9.6); ICRC. Pure functions without state.
 */
#ifndef SOFT_WIRE_DATAGRAM_H
#define SOFT_WIRE_DATAGRAM_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/wire/address.h"
#include "soft/wire/packet.h"

/* --- ip.c: the IP header -------------------------------------------------------------------------- */

/*
 * An IP header has the 40 bytes that a UD receiver finds in its memory. They are an IPv6 header, or 20 undefined bytes
 * and an IPv4 header (annex A17.4.5.2).
 */
#define SOFT_IPV4_HEADER 20
#define SOFT_UDP_HEADER 8
#define SOFT_HOP_LIMIT 64 /* default hop limit */

/* A header with length and checksum 0. */
void soft_ip_make(uint8_t header[SOFT_GRH], const struct ibv_global_route *route, const union ibv_gid *source);
/* Set the length, which is that of all bytes after the IP header, and the checksum. */
void soft_ip_finish(uint8_t header[SOFT_GRH], uint32_t length);
/* Offset in the 40 bytes at which the header on the wire begins. */
static inline size_t soft_ip_offset(const uint8_t header[SOFT_GRH])
{
	return header[0] >> 4 == 6 ? 0 : SOFT_GRH - SOFT_IPV4_HEADER;
}

/*
 * Parse a received datagram: its addresses, and its IP header in 40 bytes. Returns the offset of the UDP header. 0
 * if the datagram must be dropped: IPv4 with options, IPv6 with extensions, a fragment, not UDP, or another length.
 */
size_t soft_ip_parse(const uint8_t *datagram, size_t length, uint8_t header[SOFT_GRH], union ibv_gid *source,
		     union ibv_gid *destination);

/*
 * A UDP header to SOFT_WIRE_PORT for length bytes. Its checksum is 0, which means none, because the packet has an
 * ICRC.
 */
void soft_udp_make(uint8_t header[SOFT_UDP_HEADER], uint16_t source_port, size_t length);
/* The destination port. */
uint16_t soft_udp_port(const uint8_t header[SOFT_UDP_HEADER]);

/* --- bytes.c: the packet -------------------------------------------------------------------------- */

#define SOFT_WIRE_BTH 12
#define SOFT_WIRE_DETH 8
#define SOFT_WIRE_IMMEDIATE 4
#define SOFT_WIRE_ICRC 4
#define SOFT_WIRE_PORT 4791 /* IBTA annex A17.9.2 */
/* BTH, the longest extended headers (an atomic's, 28) and the ICRC. */
#define SOFT_WIRE_OVERHEAD (SOFT_WIRE_BTH + 28 + SOFT_WIRE_ICRC)
#define SOFT_WIRE_PARTITION 0xffffu /* the default partition, full member */

/* Length of the packet with its ICRC; 0 for an opcode that cannot be encoded. */
size_t soft_wire_length(const struct soft_packet *packet);
/*
 * Write all bytes before the ICRC; returns their number. The payload is packet->length bytes of the segments (for a
 * datagram without the GRH, which is the first segment). soft_wire_length must not be 0.
 */
size_t soft_wire_encode(const struct soft_packet *packet, uint8_t *bytes);
/* Write only the headers; returns their length. */
size_t soft_wire_encode_headers(const struct soft_packet *packet, uint8_t *bytes);
/*
 * Decode a packet of that length with its ICRC, which is not checked. The payload is referenced, not copied. False
 * if the packet must be dropped: unknown opcode or version, or too short for its headers.
 */
bool soft_wire_decode(uint8_t *bytes, size_t length, struct soft_packet *packet);

/* --- crc32.c -------------------------------------------------------------------------------------- */

/* CRC-32 of IEEE 802.3 without its inversions: the state after more bytes. */
uint32_t soft_crc32(uint32_t state, const uint8_t *bytes, size_t length);
/*
 * The same while copying. Each byte is read once, so the sum is of the copied bytes, even if another thread writes
 * to from.
 */
uint32_t soft_crc32_copy(uint32_t state, uint8_t *to, const uint8_t *from, size_t length);

/* --- icrc.c: the invariant CRC (annex A17.3.3) ---------------------------------------------------- */

/*
 * It covers the datagram from its IP header on. Fields that a router may change count as ones. 8 bytes of ones
 * precede it in place of a local route header.
 */

/*
 * The ICRC of a datagram. The length of the datagram does not include it. It begins with an IPv4 header without options
 * or an IPv6 header without extensions, and contains at least IP, UDP and BTH.
 */
uint32_t soft_icrc(const uint8_t *datagram, size_t length);

/*
 * A UDP socket does not show headers. These are reconstructed from addresses and ports, with the fields that a
 * router may change as ones. The ICRC covers them all, except for the length and an IPv4 header's identification.
 */
struct soft_icrc_headers {
	uint8_t bytes[8 + SOFT_GRH + SOFT_UDP_HEADER];
	uint8_t length;
	bool ipv4;
};

struct soft_endpoint {
	union ibv_gid address;
	uint16_t port;
};

void soft_icrc_headers_make(struct soft_icrc_headers *headers, const struct soft_endpoint *from,
			    const struct soft_endpoint *to);
/* The ICRC of a packet of that length without ICRC, at least a BTH. */
uint32_t soft_icrc_of_packet(const struct soft_icrc_headers *headers, uint16_t identification, const uint8_t *packet,
			     size_t length);
/* soft_wire_encode, followed by the ICRC. length: soft_wire_length of the packet. */
void soft_icrc_encode(const struct soft_icrc_headers *headers, uint16_t identification, const struct soft_packet *packet,
		      uint8_t *bytes, size_t length);
/*
 * The identification of a received packet: guess, or the one that makes the ICRC right. False if none does. If
 * guess is wrong, only 16 bits of the check remain, so the caller must know which identifications to expect.
 */
bool soft_icrc_identify(const struct soft_icrc_headers *headers, uint16_t guess, const uint8_t *packet, size_t length,
			uint16_t *identification);
/* Unlike all other fields it is little-endian. */
void soft_icrc_put(uint8_t *cursor, uint32_t icrc);
uint32_t soft_icrc_get(const uint8_t *cursor);

#endif
