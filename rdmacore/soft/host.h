/* All that one open soft provider owns. Soft relates to it as librdmacm does to a kernel. */
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
	/* The link of its queue pairs: packets or udp; if both are NULL, the local link. */
	struct soft_packets *packets;
	struct soft_udp *udp;
	struct soft_cm *cm;
};

/* options.seed determines all random numbers of the host. -ENOMEM, or a negative errno of a descriptor. */
int soft_host_create(struct soft_host **host, const struct core_options *options);
/* All objects of the host are destroyed. */
void soft_host_destroy(struct soft_host *host);

#endif
