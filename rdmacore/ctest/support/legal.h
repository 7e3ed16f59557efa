/* Providers that make legal choices (provider/legal.h), and how often they did. */
#ifndef CTEST_SUPPORT_LEGAL_H
#define CTEST_SUPPORT_LEGAL_H

#include "provider/legal.h"
#include "provider/provider.h"

#define ONLY(choice) (UINT32_C(1) << (choice))

/* soft with those choices, a bit for each, and options for the rest. */
struct core_provider *open_legal_with(uint32_t choices, uint64_t seed, struct core_options options);
/* On the local link, with the real clock. */
struct core_provider *open_legal(uint32_t choices, uint64_t seed);
/* The value of a counter of the device; 0 if it has none of that name. */
uint64_t counter(struct core_provider *provider, const char *name);
/* How often the choice was made. */
uint64_t made(struct core_provider *provider, enum core_legal choice);

#endif
