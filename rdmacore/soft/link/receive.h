/* Datagrams that arrive on a link that carries them (soft/link/carrier.h), and whose they are. */
#ifndef SOFT_LINK_RECEIVE_H
#define SOFT_LINK_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_device;

/*
 * A datagram that came for one of the device's addresses, from its IP header on.  No lock is held.  What is
 * malformed or for nobody is dropped; false then.
 */
bool soft_link_receive(struct soft_device *device, bool icrc, uint8_t *datagram, size_t length);

#endif
