#include "ctest/support/legal.h"

#include "core/core.h"
#include "ctest/support/check.h"

struct core_provider *open_legal_with(uint32_t choices, uint64_t seed, struct core_options options)
{
	struct core_provider *provider;
	char why[256];

	options.seeded = true;
	options.seed = 1;
	options.legal = choices;
	options.legal_seed = seed;
	CHECK(!core_open("soft", &options, &provider, why, sizeof(why)));
	return provider;
}

struct core_provider *open_legal(uint32_t choices, uint64_t seed)
{
	return open_legal_with(choices, seed, (struct core_options){0});
}

uint64_t counter(struct core_provider *provider, const char *name)
{
	struct core_counter counters[CORE_COUNTERS_MAX];
	int count = provider->counters(provider, counters);

	for (int index = 0; index < count; index++)
		if (!strcmp(counters[index].name, name))
			return counters[index].value;
	return 0;
}

uint64_t made(struct core_provider *provider, enum core_legal choice)
{
	return counter(provider, core_legal_choices[choice].counter);
}
