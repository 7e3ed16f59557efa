/*
 * The link udp: RoCE v2 through an ordinary user's UDP sockets.
 *
 * Which port a queue pair has its number says: the upper twelve bits are a block, and all queue pairs of a block have the
 * port SOFT_UDP_PORTS + block.  So a peer on the same host needs nobody to ask.  A device has a block when it has bound
 * that port of 127.0.0.1; when its process ends, however it does, the port is free again.  From a peer on another host,
 * which may be a kernel or an adapter, packets come to SOFT_WIRE_PORT, which the processes of a user share (share.c).
 *
 * Sockets are of one address and never connected, so that the kernel gives what they send the identification 0, and the
 * segments of a burst 0, 1, 2 and so on: it is in the ICRC.
 */
#ifndef SOFT_UDP_UDP_H
#define SOFT_UDP_UDP_H

#include <stdbool.h>
#include <stdint.h>

struct soft_device;
struct soft_fabric;
struct soft_udp;

struct soft_udp_counters {
	uint64_t sent, received; /* packets */
	uint64_t calls_to_send, calls_to_receive; /* that moved some */
	uint64_t unsent; /* packets that the kernel did not take */
	uint64_t dropped; /* that arrived malformed, or for no queue pair */
	uint64_t passed, not_passed; /* to other processes: bursts that were, and those they did not take in time */
};

/*
 * The device has this link from now on; it has no queue pairs yet.  share: SOFT_WIRE_PORT with other processes of the user that
 * do.  -ENOMEM, or an errno of a socket.
 */
int soft_udp_create(struct soft_fabric *fabric, struct soft_device *device, bool share, struct soft_udp **udp);
/* Every queue pair on it must be gone. */
void soft_udp_destroy(struct soft_udp *udp);
struct soft_udp_counters soft_udp_count(const struct soft_udp *udp);

#endif
