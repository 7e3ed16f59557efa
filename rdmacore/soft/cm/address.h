/* Addresses of ids: what they stand for on the soft device. */
#ifndef SOFT_CM_ADDRESS_H
#define SOFT_CM_ADDRESS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "soft/cm/id.h"

struct soft_device;

/* AF_INET, AF_INET6 or AF_IB; NULL is none. */
bool soft_address_is_known(const struct sockaddr *address);
bool soft_address_is_ip(const struct sockaddr *address);
bool soft_address_is_any(const struct sockaddr *address);
bool soft_address_is_multicast(const struct sockaddr *address);
/* Of 192.0.2.0/24 (RFC 5737), the network beside an embedded host in which nobody else is. */
bool soft_address_is_absent_neighbour(const struct sockaddr *address);
bool soft_address_is_same(const struct sockaddr *a, const struct sockaddr *b);
bool soft_address_is_local(const struct soft_device *device, const struct sockaddr *address);
void soft_address_to_gid(const struct sockaddr *address, union ibv_gid *gid);
socklen_t soft_address_length(const struct sockaddr *address);
/* Host byte order. */
uint16_t soft_address_port(const struct sockaddr *address);
void soft_address_set_port(struct sockaddr *address, uint16_t port);
/* Fill in the device's own address of the family that address has. */
void soft_address_of_device(struct sockaddr *address);

/* Addresses of family AF_IB; cm.lock is held.  0 or a positive errno. */

/* Whether id may be bound to that address of family AF_IB. */
int soft_address_ib_check(const struct soft_id *id, const struct sockaddr *address);
/* It was: the service id of its source tells its port. */
void soft_address_ib_bound(struct soft_id *id);
/* Choose the source towards id's destination. */
int soft_address_ib_resolve(struct soft_id *id);

#endif
