/* Faults of the fabric, where the provider has them. */
#include "core/core.h"

#include <errno.h>

int core_fault_add(struct core_provider *provider, const struct core_fault *fault)
{
	return provider->fault_add ? provider->fault_add(provider, fault) : -EOPNOTSUPP;
}

int core_fault_remove(struct core_provider *provider, int rule, uint32_t *lost)
{
	return provider->fault_remove ? provider->fault_remove(provider, rule, lost) : -EOPNOTSUPP;
}
