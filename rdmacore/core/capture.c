/* Files of captured packets, and what else their readers want to know. */
#include "core/core.h"

#include "soft/capture/file.h"

int core_capture_open(const struct core_capture_options *options, struct soft_capture_file **file)
{
	return soft_capture_file_open(options, file);
}

void core_capture_close(struct soft_capture_file *file, struct core_capture_result *result)
{
	soft_capture_file_finish(file, result);
	soft_capture_file_free(file);
}

void core_capture_name(struct core_provider *provider, const struct core_address *address, const char *name)
{
	if (provider->capture_name)
		provider->capture_name(provider, address, name);
}

void core_capture_step(struct core_provider *provider, const struct core_address *address, uint32_t number, const char *text)
{
	if (provider->capture_step)
		provider->capture_step(provider, address, number, text);
}

void core_capture_add(struct core_provider *provider, const struct core_capture_packet *packet)
{
	if (provider->capture_add)
		provider->capture_add(provider, packet);
}

uint32_t core_captured(struct core_provider *provider, struct core_captured *packets, uint32_t count, uint64_t *missed)
{
	*missed = 0;
	return provider->captured ? provider->captured(provider, packets, count, missed) : 0;
}
