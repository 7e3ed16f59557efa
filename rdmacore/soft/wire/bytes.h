/*
 * RoCE v2 packets as bytes (IBTA 9.2 to 9.6, annex A17): BTH, extended headers, payload, padding and ICRC,
 * which is what a UDP datagram to port 4791 holds.  Pure functions; they keep nothing.
 */
#ifndef SOFT_WIRE_BYTES_H
#define SOFT_WIRE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/wire/packet.h"

#define SOFT_WIRE_BTH 12
#define SOFT_WIRE_ICRC 4
#define SOFT_WIRE_PORT 4791
/* BTH, the longest extended headers (an atomic's, 28) and the ICRC. */
#define SOFT_WIRE_OVERHEAD (SOFT_WIRE_BTH + 28 + SOFT_WIRE_ICRC)
#define SOFT_WIRE_PARTITION 0xffff /* the default one, full member */

/* Bytes of the packet with its ICRC; 0 for an opcode that cannot be encoded. */
size_t soft_wire_length(const struct soft_packet *packet);
/*
 * Write everything before the ICRC; returns how much that is.  The payload is packet->length bytes of the
 * segments (of a datagram, without the GRH, which is the first one).  soft_wire_length must not be 0.
 */
size_t soft_wire_encode(const struct soft_packet *packet, uint8_t *bytes);
/*
 * Read a packet of that many bytes, ICRC included but not looked at.  The payload is referred to, not
 * copied.  False, and the packet has to be dropped: unknown opcode or version, or too short for its
 * headers.
 */
bool soft_wire_decode(uint8_t *bytes, size_t length, struct soft_packet *packet);

#endif
