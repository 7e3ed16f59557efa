/*
 * The soft host: everything that one open soft provider owns.  It is to the soft provider what the
 * kernel is to librdmacm.
 */
#ifndef SOFT_HOST_H
#define SOFT_HOST_H

#include "soft/base/fabric.h"

struct soft_cm;
struct soft_device;

struct soft_host {
	struct soft_fabric fabric;
	struct soft_device *device; /* "soft0" */
	struct soft_cm *cm;
};

/* seed drives every random number of the host.  -ENOMEM, or why a descriptor could not be had. */
int soft_host_create(struct soft_host **host, uint64_t seed, bool virtual_clock);
/* Every object of the host must be gone. */
void soft_host_destroy(struct soft_host *host);

#endif
