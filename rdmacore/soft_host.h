/*
 * The soft host: everything that one open soft provider owns.  It is to the soft provider what
 * the kernel is to librdmacm: devices, timers, and the connection manager.
 */
#ifndef SOFT_HOST_H
#define SOFT_HOST_H

#include <pthread.h>

#include "soft_clock.h"
#include "soft_fault.h"
#include "soft_random.h"
#include "soft_timer.h"

struct soft_cm;
struct soft_device;

struct soft_host {
	pthread_mutex_t lock; /* guards random */
	struct soft_clock clock; /* of the protocols */
	struct soft_clock wall; /* of bounds on what a caller waits for */
	struct soft_timers timers;
	struct soft_random random;
	struct soft_faults faults;
	struct soft_device *device;
	struct soft_cm *cm;
};

/* A host with one device, "soft0".  seed drives every random number of the host.  -ENOMEM. */
int soft_host_create(struct soft_host **host, uint64_t seed, bool virtual_clock);
/* Every object of the host must be gone. */
void soft_host_destroy(struct soft_host *host);

uint64_t soft_host_random(struct soft_host *host);

#endif
