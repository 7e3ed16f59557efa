/* The counters of the link udp. */
#ifndef CTEST_SUPPORT_UDP_COUNTS_H
#define CTEST_SUPPORT_UDP_COUNTS_H

#include <stdint.h>

#include "soft/udp/internal.h"

struct udp_counts {
	uint64_t sent, received; /* packets */
	uint64_t calls_to_send, calls_to_receive; /* system calls that moved packets */
	uint64_t unsent; /* packets that the kernel did not take */
	uint64_t dropped; /* received packets that are malformed, or for no queue pair */
	uint64_t passed, not_passed; /* bursts for other processes: forwarded, and not taken in time */
};

static inline struct udp_counts udp_count(const struct soft_udp *udp)
{
	return (struct udp_counts){
		.sent = atomic_load(&udp->counters.sent),
		.received = atomic_load(&udp->counters.received),
		.calls_to_send = atomic_load(&udp->counters.calls_to_send),
		.calls_to_receive = atomic_load(&udp->counters.calls_to_receive),
		.unsent = atomic_load(&udp->counters.unsent),
		.dropped = atomic_load(&udp->counters.dropped),
		.passed = atomic_load(&udp->counters.passed),
		.not_passed = atomic_load(&udp->counters.not_passed),
	};
}

#endif
