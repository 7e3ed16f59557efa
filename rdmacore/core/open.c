/* Providers by name, their tables and their counters. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

struct opener {
	const char *name;
	int (*open)(struct core_provider *provider, const struct core_options *options, char *why,
		    size_t why_size);
	void (*close)(struct core_provider *provider); /* closes what needs no table afterwards; may be NULL */
	void (*unload)(struct core_provider *provider); /* unloads the libraries; may be NULL */
};

static int open_soft(struct core_provider *provider, const struct core_options *options, char *why,
		     size_t why_size)
{
	if (options->virtual_clock && options->link == CORE_LINK_UDP) {
		snprintf(why, why_size, "packets of the link udp take real time; use the link local or packets with a virtual clock");
		return -EOPNOTSUPP;
	}
	return soft_provider_open(provider, options);
}

static int open_verbs(struct core_provider *provider, const struct core_options *options, char *why,
		      size_t why_size)
{
	if (options->virtual_clock || options->seeded || options->link != CORE_LINK_LOCAL || options->capture ||
	    options->legal) {
		snprintf(why, why_size,
			 "a real device has no virtual clock, no seed, no link to choose, no packets to show and no legal choices; open soft");
		return -EOPNOTSUPP;
	}
	return verbs_provider_open(provider, why, why_size);
}

static const struct opener openers[] = {
	{.name = "soft", .open = open_soft, .close = soft_provider_close},
	{.name = "verbs", .open = open_verbs, .unload = verbs_provider_close},
};

static const struct opener *find_opener(const char *name)
{
	for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]); i++)
		if (!strcmp(openers[i].name, name))
			return &openers[i];
	return NULL;
}

static void close_device_side(const struct opener *opener, struct core_provider *provider)
{
	if (opener->close)
		opener->close(provider);
}

int core_open(const char *name, const struct core_options *options, struct core_provider **provider,
	      char *why, size_t why_size)
{
	const struct opener *opener = find_opener(name);
	struct core_provider *opened;
	int result;

	if (why_size)
		why[0] = '\0';
	if (!opener)
		return -ENOENT;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	result = opener->open(opened, options, why, why_size);
	if (result)
		goto free_provider;
	atomic_init(&opened->holds, 1);
	result = core_ah_table_init(&opened->address_handles);
	if (result)
		goto close_provider;
	*provider = opened;
	return 0;

close_provider:
	close_device_side(opener, opened);
	core_release(opened);
	return result;
free_provider:
	free(opened);
	return result;
}

void core_hold(struct core_provider *provider)
{
	atomic_fetch_add_explicit(&provider->holds, 1, memory_order_relaxed);
}

void core_release(struct core_provider *provider)
{
	const struct opener *opener = find_opener(provider->name);

	if (atomic_fetch_sub_explicit(&provider->holds, 1, memory_order_acq_rel) != 1)
		return;
	if (opener->unload)
		opener->unload(provider);
	free(provider);
}

int core_close(struct core_provider *provider)
{
	for (int kind = 0; kind < CORE_OBJECT_KINDS; kind++)
		if (core_live(provider, kind))
			return -EBUSY;
	core_ah_table_destroy(&provider->address_handles);
	close_device_side(find_opener(provider->name), provider);
	core_release(provider);
	return 0;
}

long core_live(struct core_provider *provider, enum core_object kind)
{
	return atomic_load_explicit(&provider->live[kind], memory_order_relaxed);
}

uint64_t core_clock_now(struct core_provider *provider)
{
	return provider->clock_now ? provider->clock_now(provider) : 0;
}

int core_clock_advance(struct core_provider *provider, uint64_t limit)
{
	return provider->clock_advance ? provider->clock_advance(provider, limit) : -EOPNOTSUPP;
}

int core_counters(struct core_provider *provider, struct core_counter *counters)
{
	return provider->counters ? provider->counters(provider, counters) : -EOPNOTSUPP;
}

/* Faults of the fabric, if the provider has them. */

int core_fault_add(struct core_provider *provider, const struct core_fault *fault)
{
	return provider->fault_add ? provider->fault_add(provider, fault) : -EOPNOTSUPP;
}

int core_fault_remove(struct core_provider *provider, int rule, uint32_t *lost)
{
	return provider->fault_remove ? provider->fault_remove(provider, rule, lost) : -EOPNOTSUPP;
}

/* What a provider says of a failure in addition to the errno. */

const char *core_refusal(struct core_provider *provider)
{
	return provider->refusal ? provider->refusal(provider) : "";
}

void core_forget_refusal(struct core_provider *provider)
{
	if (provider->forget_refusal)
		provider->forget_refusal(provider);
}
