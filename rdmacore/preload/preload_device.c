/* Devices that are opened and closed by libibverbs' functions: their contexts are noted. */
#include <errno.h>

#include "preload.h"
#include "soft/host.h"
#include "soft/objects/device.h"

/* A list of the parent contains devices that this process has as well. */
struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct core_provider *provider = preload_provider();
	struct ibv_context *context;

	if (!provider)
		return NULL;
	if (device && !preload_provider_of(device))
		device = &((struct soft_host *)provider->host)->device->ibv;
	preload_faults_catch(&((struct soft_host *)provider->host)->device->memory);
	context = provider->ibv_open_device(device);
	if (context && preload_context_add(context)) {
		provider->ibv_close_device(context);
		errno = ENOMEM;
		return NULL;
	}
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	struct core_provider *provider = preload_provider_of(OWNER(context));
	int result;

	if (!provider)
		return errno;
	preload_context_remove(context);
	result = provider->ibv_close_device(context);
	if (result) /* it is still open */
		preload_context_add(context);
	return result;
}
