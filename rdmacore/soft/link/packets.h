/*
 * The link packets: RoCE v2 datagrams as bytes, between devices of one fabric. They take time on the fabric's clock
 * and are subject to its faults. With a virtual clock and a seed a run repeats exactly.
 */
#ifndef SOFT_LINK_PACKETS_H
#define SOFT_LINK_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct soft_device;
struct soft_fabric;
struct soft_fault_result;
struct soft_packets;

#define SOFT_PACKETS_DEVICES 16 /* a simulated network is small */

struct soft_packets_options {
	uint64_t seed;
	uint32_t datagrams; /* maximum in flight; further ones are lost */
	/* nanoseconds: each takes delay and up to jitter; packets between the same queue pairs keep their order */
	uint64_t delay, jitter;
	uint64_t acknowledge_delay; /* how long an acknowledgement may wait for later ones; 0: not at all */
	bool icrc; /* compute and check it */
};

struct soft_packets_counters {
	uint64_t sent; /* packets that queue pairs sent */
	uint64_t delivered; /* packets that queue pairs received */
	uint64_t lost, duplicated, reordered, corrupted; /* by faults */
	uint64_t overflowed; /* lost because too many were in flight */
	uint64_t dropped; /* malformed, or for no queue pair */
};

/* From then on all actions of faults are possible for data. -ENOMEM. */
int soft_packets_create(struct soft_fabric *fabric, const struct soft_packets_options *options,
		    struct soft_packets **packets);
/* All queue pairs of the link are destroyed. */
void soft_packets_destroy(struct soft_packets *packets);
/*
 * Give the device that address, as its GID 0, and this link. It has no queue pairs yet. -ENOSPC: there are
 * SOFT_PACKETS_DEVICES.
 */
int soft_packets_attach(struct soft_packets *packets, struct soft_device *device, const union ibv_gid *address);
struct soft_packets_counters soft_packets_count(struct soft_packets *packets);

/* How a delayed packet of another link is sent, and the data that this needs, copied. */
struct soft_packets_sender {
	void (*send)(const struct soft_packets_sender *sender, uint8_t *bytes, size_t length);
	uint64_t flow; /* packets of one flow keep their order, except for faults; any number */
	uint64_t route[16];
};

/* Send a packet of another link, subject to faults. No lock that the sender takes is held. */
void soft_packets_send(struct soft_packets *packets, const struct soft_fault_result *fault_result,
		       const struct soft_packets_sender *sender, const uint8_t *bytes, size_t length);
/* Whether no packet is in flight. */
bool soft_packets_is_empty(struct soft_packets *packets);

#endif
