/*
 * The link udp: RoCE v2 through the UDP sockets of an ordinary user.
 *
 * The upper twelve bits of a queue pair number are its block. All queue pairs of a block have the port
 * SOFT_UDP_PORTS + block, so a peer on the same host computes the port from the number. A device owns a block while
 * it has that port of 127.0.0.1 bound; the kernel frees the port when the process ends. Packets of another host,
 * which may be a kernel or an adapter, come to SOFT_WIRE_PORT, which the processes of a user share (share.c).
 *
 * Each socket is bound to one address and never connected. The kernel then sends single datagrams with the IP
 * identification 0, and the segments of a burst with 0, 1, 2 and so on. The ICRC covers the identification.
 */
#ifndef SOFT_UDP_UDP_H
#define SOFT_UDP_UDP_H

#include <stdbool.h>

struct soft_device;
struct soft_fabric;
struct soft_udp;

/*
 * The device has this link from now on. It has no queue pairs yet. share: share SOFT_WIRE_PORT with other processes
 * of the user. -ENOMEM, or a negative errno of a socket.
 */
int soft_udp_create(struct soft_fabric *fabric, struct soft_device *device, bool share, struct soft_udp **udp);
/* All queue pairs of the link are destroyed. */
void soft_udp_destroy(struct soft_udp *udp);

#endif
