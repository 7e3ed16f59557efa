/*
 * The IP header before a RoCE v2 packet, in the form in which a receiver of datagrams finds it in its memory:
 * 40 bytes, an IPv6 header, or 20 bytes of nothing and an IPv4 header (annex A17.4.5.2).
 */
#ifndef SOFT_WIRE_IP_H
#define SOFT_WIRE_IP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/wire/packet.h"

#define SOFT_IPV4_HEADER 20
#define SOFT_UDP_HEADER 8

/* Whether the GID stands for an IPv4 address (::ffff:a.b.c.d). */
bool soft_gid_is_ipv4(const union ibv_gid *gid);
void soft_gid_from_ipv4(union ibv_gid *gid, const uint8_t *address);

/* A header whose length and checksum are 0. */
void soft_ip_make(uint8_t header[SOFT_GRH], const struct ibv_global_route *route,
		  const union ibv_gid *source);
/* Fill in the length, which is that of all after the IP header, and the checksum. */
void soft_ip_finish(uint8_t header[SOFT_GRH], uint32_t length);

/*
 * False when it has an IPv4 header whose checksum is wrong: what the ICRC leaves out of that, since routers
 * change it, is covered by nothing else.  IPv6 headers have none.
 */
bool soft_ip_is_whole(const uint8_t *datagram, size_t length);

/* Where in the 40 bytes the header begins that goes on the wire. */
static inline size_t soft_ip_offset(const uint8_t header[SOFT_GRH])
{
	return header[0] >> 4 == 6 ? 0 : SOFT_GRH - SOFT_IPV4_HEADER;
}

/*
 * Take a datagram that arrived apart: the addresses, and the header in its 40 bytes.  Returns where its UDP
 * header begins, or 0 when it is none of ours: no IPv4 header without options nor IPv6 header without
 * extensions, not UDP, or not of that length.
 */
size_t soft_ip_parse(const uint8_t *datagram, size_t length, uint8_t header[SOFT_GRH],
		     union ibv_gid *source, union ibv_gid *destination);

#endif
