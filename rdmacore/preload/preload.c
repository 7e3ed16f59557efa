#include "preload.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "soft/cm/calls.h"
#include "soft/host.h"
#include "soft/objects/device.h"

/*
 * The one provider of the process.  A preloaded library has nowhere else to keep it: its callers know
 * no handle of ours.
 */
static struct {
	pthread_once_t once;
	pthread_once_t watching; /* handlers of forks outlive one */
	struct core_provider provider;
	int error;
	bool forked; /* this is a child, and an ancestor had a provider */
} process = {.once = PTHREAD_ONCE_INIT, .watching = PTHREAD_ONCE_INIT};

/*
 * What the parent had is a copy without its timer thread, and its locks are as other threads left them:
 * it is left alone, and the child's first call opens a provider of its own.
 */
static void in_child(void)
{
	process.once = (pthread_once_t)PTHREAD_ONCE_INIT;
	process.forked = true;
}

static void watch_forks(void)
{
	preload_contexts_watch_forks(in_child);
}

static struct soft_host *host(void)
{
	return process.provider.host;
}

static void open_provider(void)
{
	struct core_options options = {0};
	const char *seed = getenv("RDMARUN_EXEC_SEED"), *link = getenv("RDMARUN_EXEC_LINK");
	const char *fabric = getenv("RDMARUN_EXEC_FABRIC");

	if (seed) {
		options.seeded = true;
		options.seed = strtoull(seed, NULL, 0);
	}
	if (link && !strcmp(link, "packets"))
		options.link = CORE_LINK_PACKETS;
	if (link && !strcmp(link, "udp"))
		options.link = CORE_LINK_UDP;
	if (fabric && strlen(fabric) <= CORE_FABRIC_MAX)
		strcpy(options.fabric, fabric);
	process.provider = (struct core_provider){0};
	process.error = -soft_provider_open(&process.provider, &options);
	if (process.error)
		return;
	/* Programs are given it by rdma_cm, in id->verbs. */
	if (preload_context_add(host()->cm->opened->context)) {
		soft_provider_close(&process.provider);
		process.error = ENOMEM;
		return;
	}
	pthread_once(&process.watching, watch_forks);
}

struct core_provider *preload_provider(void)
{
	pthread_once(&process.once, open_provider);
	if (process.error) {
		errno = process.error;
		return NULL;
	}
	process.provider.select(&process.provider);
	return &process.provider;
}

struct core_provider *preload_provider_of(const void *owner)
{
	struct core_provider *provider = preload_provider();

	if (provider && process.forked && owner && owner != &host()->device->ibv &&
	    owner != host()->cm) {
		errno = ENODEV;
		return NULL;
	}
	return provider;
}
