/* Everything that one open soft provider owns.  It is to soft what the kernel is to librdmacm. */
#ifndef SOFT_HOST_H
#define SOFT_HOST_H

#include "provider/provider.h"
#include "soft/base/fabric.h"

struct soft_cm;
struct soft_device;
struct soft_packets;
struct soft_udp;

struct soft_host {
	struct soft_fabric fabric;
	struct soft_device *device; /* "soft0" */
	/* The link of its queue pairs: one of them, or the local one. */
	struct soft_packets *packets;
	struct soft_udp *udp;
	struct soft_cm *cm;
};

/* options.seed determines every random number of the host.  -ENOMEM, or the errno of a descriptor. */
int soft_host_create(struct soft_host **host, const struct core_options *options);
/* Every object of the host must be gone. */
void soft_host_destroy(struct soft_host *host);

#endif
