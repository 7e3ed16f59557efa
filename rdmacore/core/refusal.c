/* What a provider says of a refusal beyond its errno. */
#include "core/core.h"

const char *core_refusal(struct core_provider *provider)
{
	return provider->refusal ? provider->refusal(provider) : "";
}

void core_forget_refusal(struct core_provider *provider)
{
	if (provider->forget_refusal)
		provider->forget_refusal(provider);
}
