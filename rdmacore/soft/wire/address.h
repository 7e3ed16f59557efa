/* GIDs of RoCE v2, which are IP addresses (IBTA annex A17.4.1). Pure functions without state. */
#ifndef SOFT_WIRE_ADDRESS_H
#define SOFT_WIRE_ADDRESS_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Whether the GID is an IPv4-mapped address (::ffff:a.b.c.d). */
bool soft_gid_is_ipv4(const union ibv_gid *gid);
/* Whether it is in 127.0.0.0/8, which is this host. */
bool soft_gid_is_loopback(const union ibv_gid *gid);
/* Whether it is in 127.0.0.0/8, or is ::1: other hosts cannot use it. */
bool soft_gid_is_this_host_only(const union ibv_gid *gid);
/* Whether it is a multicast address of IPv6 or IPv4. */
bool soft_gid_is_multicast(const union ibv_gid *gid);
void soft_gid_from_ipv4(union ibv_gid *gid, const uint8_t *address);

/* The GID of an IPv4 or IPv6 address; false for other address families. */
bool soft_gid_from_sockaddr(union ibv_gid *gid, const struct sockaddr *address);
/* The address of a GID, without a scope. address has room for an IPv6 address. */
void soft_gid_to_sockaddr(const union ibv_gid *gid, uint16_t port, struct sockaddr *address);

/* Of an IPv4 or IPv6 address. */
static inline socklen_t soft_sockaddr_length(const struct sockaddr *address)
{
	return address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

#endif
