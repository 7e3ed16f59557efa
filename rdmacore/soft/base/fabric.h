/*
 * What all devices of one soft host share. These are clocks and timers, polled descriptors, random numbers, legal
 * choices, injected faults, the capture, and notices of dropped packets. It does not know devices or connections.
 */
#ifndef SOFT_BASE_FABRIC_H
#define SOFT_BASE_FABRIC_H

#include <pthread.h>
#include <stdbool.h>

#include "provider/tally.h"
#include "soft/base/clock.h"
#include "soft/base/fault.h"
#include "soft/base/legal.h"
#include "soft/base/mutex.h"
#include "soft/base/notice.h"
#include "soft/base/poller.h"
#include "soft/base/random.h"
#include "soft/base/timer.h"

struct soft_capture;

struct soft_fabric {
	struct soft_mutex lock; /* guards secret */
	struct soft_clock clock; /* for protocols */
	struct soft_clock wall; /* for waits of callers */
	struct soft_timers timers;
	struct soft_poller poller;
	struct soft_secret secret;
	struct soft_capture *capture; /* captures sent packets (soft/capture/capture.h); NULL: no capture */
	struct soft_legal legal;
	struct soft_faults faults;
	struct soft_notices notices;
	struct core_tally own_tally; /* where it counts unless it was given another one */
	struct core_tally *tally;
	_Atomic bool without_users; /* the kernel does not list the users of sockets (soft/base/local_name.h) */
};

/* seed determines all random numbers of the fabric. tally: zeros, where it counts; NULL: in its own. */
void soft_fabric_init(struct soft_fabric *fabric, uint64_t seed, bool virtual_clock, struct core_tally *tally);
/* There are no timers and no sources. */
void soft_fabric_destroy(struct soft_fabric *fabric);

/* Nanoseconds of the wall clock since some earlier time. */
static inline uint64_t soft_fabric_wall_now(struct soft_fabric *fabric)
{
	return fabric->wall.now(&fabric->wall);
}

/* From now on make those choices (soft_legal_init). Nothing of the fabric is in use yet. */
void soft_fabric_choose(struct soft_fabric *fabric, uint64_t seed, uint32_t choices, const uint32_t *rates);

/* A number that cannot be guessed without the seed. */
uint64_t soft_fabric_random(struct soft_fabric *fabric);
/* The same for the first packet of a connection. */
uint32_t soft_fabric_starting_psn(struct soft_fabric *fabric);

#endif
