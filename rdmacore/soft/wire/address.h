/* GIDs of RoCE v2, which are IP addresses (IBTA annex A17.4.1).  Pure functions, which keep nothing. */
#ifndef SOFT_WIRE_ADDRESS_H
#define SOFT_WIRE_ADDRESS_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Whether the GID is an IPv4-mapped address (::ffff:a.b.c.d). */
bool soft_gid_is_ipv4(const union ibv_gid *gid);
/* Whether it is one of 127.0.0.0/8, all of which are the own host. */
bool soft_gid_is_loopback(const union ibv_gid *gid);
/* Of 127.0.0.0/8, or ::1: no other host has anything to do with it. */
bool soft_gid_is_this_host_only(const union ibv_gid *gid);
/* An address of a multicast group, of IPv6 or of IPv4. */
bool soft_gid_is_multicast(const union ibv_gid *gid);
void soft_gid_from_ipv4(union ibv_gid *gid, const uint8_t *address);

/* The GID of an address of IPv4 or IPv6; false for one of another family. */
bool soft_gid_from_sockaddr(union ibv_gid *gid, const struct sockaddr *address);
/* The address of a GID, without a scope; there must be room for one of IPv6. */
void soft_gid_to_sockaddr(const union ibv_gid *gid, uint16_t port, struct sockaddr *address);

/* Of an address of IPv4 or IPv6. */
static inline socklen_t soft_sockaddr_length(const struct sockaddr *address)
{
	return address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

#endif
