/*
 * What all devices of one soft host share: clocks and timers, descriptors that are waited for, random numbers, the
 * faults that are injected, a record of packets, and what is said of those that are dropped.  It knows neither devices nor connections.
 */
#ifndef SOFT_BASE_FABRIC_H
#define SOFT_BASE_FABRIC_H

#include <pthread.h>
#include <stdbool.h>

#include "soft/base/clock.h"
#include "soft/base/fault.h"
#include "soft/base/mutex.h"
#include "soft/base/notice.h"
#include "soft/base/poller.h"
#include "soft/base/random.h"
#include "soft/base/timer.h"

struct soft_capture;

struct soft_fabric {
	struct soft_mutex lock; /* guards secret */
	struct soft_clock clock; /* of the protocols */
	struct soft_clock wall; /* for how long a caller may wait */
	struct soft_timers timers;
	struct soft_poller poller;
	struct soft_secret secret;
	struct soft_capture *capture; /* records what is sent (soft/capture/capture.h); NULL: nothing does */
	struct soft_faults faults;
	struct soft_notices notices;
	_Atomic bool without_users; /* of sockets (soft/base/local_name.h) */
};

/* seed drives every random number of the fabric. */
void soft_fabric_init(struct soft_fabric *fabric, uint64_t seed, bool virtual_clock);
/* No timer and no source may be there any more. */
void soft_fabric_destroy(struct soft_fabric *fabric);

/* Nanoseconds of the wall clock, since some time before. */
static inline uint64_t soft_fabric_wall_now(struct soft_fabric *fabric)
{
	return fabric->wall.now(&fabric->wall);
}

/* A number that cannot be guessed without the seed. */
uint64_t soft_fabric_random(struct soft_fabric *fabric);

#endif
