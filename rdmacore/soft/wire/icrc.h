/*
 * The invariant CRC of RoCE v2 (IBTA annex A17.3.3): over a datagram from its IP header on, with what a
 * router may change taken as ones, and 8 bytes of ones before it in place of a local route header.
 */
#ifndef SOFT_WIRE_ICRC_H
#define SOFT_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CRC-32 of IEEE 802.3 without its inversions: state of bytes that follow those of state. */
uint32_t soft_crc32(uint32_t state, const uint8_t *bytes, size_t length);
/*
 * The ICRC of a datagram of that many bytes, which begins with an IPv4 header without options or an IPv6
 * header without extensions; the length is without the ICRC.  At least IP, UDP and BTH are there.
 */
uint32_t soft_icrc(const uint8_t *datagram, size_t length);
/*
 * The identification of an IPv4 header that was lost on the way to the receiver, as a UDP socket loses it, from the
 * ICRC that covers it: datagram has 0 in its place, length is without the ICRC.  false when no identification makes
 * that ICRC right.  What is left of the check has 16 bits: the caller is to know which identifications it expects.
 */
bool soft_icrc_find_identification(const uint8_t *datagram, size_t length, uint32_t icrc, uint16_t *identification);
/* The ICRC has the other order on the wire than everything else. */
void soft_icrc_put(uint8_t *place, uint32_t icrc);
uint32_t soft_icrc_get(const uint8_t *place);

#endif
