#include "soft/host.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/objects/device.h"
#include "soft/rdma/rdma.h"

int soft_host_create(struct soft_host **out, uint64_t seed, bool virtual_clock)
{
	struct soft_host *host = calloc(1, sizeof(*host));
	int result;

	if (!host)
		return -ENOMEM;
	soft_fabric_init(&host->fabric, seed, virtual_clock);
	result = soft_device_create(&host->fabric, "soft0", &host->device);
	if (result)
		goto destroy_fabric;
	result = soft_cm_create(&host->fabric, host->device, &host->cm);
	if (result)
		goto destroy_device;
	*out = host;
	return 0;

destroy_device:
	soft_device_destroy(host->device);
destroy_fabric:
	soft_fabric_destroy(&host->fabric);
	free(host);
	return result;
}

void soft_host_destroy(struct soft_host *host)
{
	soft_cm_destroy(host->cm);
	soft_device_destroy(host->device);
	soft_fabric_destroy(&host->fabric);
	free(host);
}
