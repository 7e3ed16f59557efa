#include "preload.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/*
 * The one provider of the process.  A preloaded library has nowhere else to keep it: its callers know no
 * handle of ours.
 */
static struct {
	pthread_once_t once;
	struct core_provider provider;
	int error;
	bool opened;
	bool inherited; /* this is a child, and the parent had opened it */
} process = {.once = PTHREAD_ONCE_INIT};

static void in_child(void)
{
	if (process.opened)
		process.inherited = true;
}

static void open_provider(void)
{
	struct core_options options = {0};
	const char *seed = getenv("RDMARUN_EXEC_SEED");

	if (seed) {
		options.seeded = true;
		options.seed = strtoull(seed, NULL, 0);
	}
	process.error = -soft_provider_open(&process.provider, &options);
	if (process.error)
		return;
	process.opened = true;
	/* Without it a child that goes on with its parent's objects waits for a lock for ever. */
	pthread_atfork(NULL, NULL, in_child);
}

struct core_provider *preload_provider(void)
{
	pthread_once(&process.once, open_provider);
	if (process.error || process.inherited) {
		errno = process.error ? process.error : ENODEV;
		return NULL;
	}
	process.provider.select(&process.provider);
	return &process.provider;
}
