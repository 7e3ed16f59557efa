/*
 * The packets link: RoCE v2 datagrams, byte for byte, between devices of one fabric.  They take time on the fabric's clock and
 * meet its faults.  With a virtual clock and a seed a run repeats exactly.
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

#define SOFT_PACKETS_DEVICES 16

struct soft_packets_options {
	uint64_t seed;
	uint32_t datagrams; /* on their way at once; what is more is lost */
	uint64_t delay, jitter; /* nanoseconds: each takes delay and up to jitter, and reorders none between the same queue pairs */
	uint64_t acknowledge_delay; /* how long an acknowledgement may be saved up for later ones; 0: not */
	bool icrc; /* compute and check it */
};

struct soft_packets_counters {
	uint64_t sent; /* that queue pairs wanted to send */
	uint64_t delivered; /* that queue pairs got */
	uint64_t lost, duplicated, reordered, corrupted; /* by faults */
	uint64_t overflowed; /* lost because there were too many */
	uint64_t dropped; /* arrived malformed, or for no queue pair */
};

/* From then on all actions of faults are possible with data.  -ENOMEM. */
int soft_packets_create(struct soft_fabric *fabric, const struct soft_packets_options *options,
		    struct soft_packets **packets);
/* Every queue pair on it must be gone. */
void soft_packets_destroy(struct soft_packets *packets);
/*
 * Give the device that address, as its GID 0, and this link.  It must have no queue pairs yet.  -ENOSPC:
 * there are SOFT_PACKETS_DEVICES.
 */
int soft_packets_attach(struct soft_packets *packets, struct soft_device *device, const union ibv_gid *address);
struct soft_packets_counters soft_packets_count(struct soft_packets *packets);

/* Of a packet of another link: who sends it when its time has come, and what that needs, copied. */
struct soft_packets_sender {
	void (*send)(const struct soft_packets_sender *sender, uint8_t *bytes, size_t length);
	uint64_t flow; /* packets of one way keep their order, but for faults; any number */
	uint64_t route[16];
};

/* Send a packet of another link, with the faults that apply.  No lock that the sender takes is held. */
void soft_packets_send(struct soft_packets *packets, const struct soft_fault_result *fault_result,
		       const struct soft_packets_sender *sender, const uint8_t *bytes, size_t length);
/* Whether nothing is on its way. */
bool soft_packets_is_empty(struct soft_packets *packets);

#endif
