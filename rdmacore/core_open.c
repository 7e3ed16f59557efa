/* Providers by name, their tables and their counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

int core_open(const char *name, struct core_provider **provider, char *why, size_t why_size)
{
	struct core_provider *opened;
	int result = -ENOENT;

	if (why_size)
		why[0] = '\0';
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	if (!strcmp(name, "soft"))
		result = soft_provider_open(opened);
	else if (!strcmp(name, "verbs"))
		result = verbs_provider_open(opened, why, why_size);
	if (result) {
		free(opened);
		return result;
	}
	*provider = opened;
	return 0;
}

int core_close(struct core_provider *provider)
{
	for (int kind = 0; kind < CORE_OBJECT_KINDS; kind++)
		if (core_live(provider, kind))
			return -EBUSY;
	if (provider->libraries[0] || provider->libraries[1])
		verbs_provider_close(provider);
	free(provider);
	return 0;
}

long core_live(struct core_provider *provider, enum core_object kind)
{
	return atomic_load_explicit(&provider->live[kind], memory_order_relaxed);
}
