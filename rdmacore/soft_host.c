#include "soft_host.h"

#include <errno.h>
#include <stdlib.h>

#include "soft_cm.h"
#include "soft_device.h"

int soft_host_create(struct soft_host **out, uint64_t seed, bool virtual_clock)
{
	struct soft_host *host = calloc(1, sizeof(*host));
	int result;

	if (!host)
		return -ENOMEM;
	host->random.state = seed;
	pthread_mutex_init(&host->lock, NULL);
	soft_faults_init(&host->faults, soft_random_next(&host->random));
	soft_clock_wall(&host->wall);
	if (virtual_clock)
		soft_clock_virtual(&host->clock);
	else
		soft_clock_wall(&host->clock);
	soft_timers_init(&host->timers, &host->clock);
	result = soft_device_create(host, "soft0", &host->device);
	if (result)
		goto destroy_timers;
	result = soft_cm_create(host, &host->cm);
	if (result)
		goto destroy_device;
	*out = host;
	return 0;

destroy_device:
	soft_device_destroy(host->device);
destroy_timers:
	soft_timers_destroy(&host->timers);
	soft_faults_destroy(&host->faults);
	pthread_mutex_destroy(&host->lock);
	free(host);
	return result;
}

void soft_host_destroy(struct soft_host *host)
{
	soft_timers_destroy(&host->timers);
	soft_cm_destroy(host->cm);
	soft_device_destroy(host->device);
	soft_faults_destroy(&host->faults);
	pthread_mutex_destroy(&host->lock);
	free(host);
}

uint64_t soft_host_random(struct soft_host *host)
{
	uint64_t value;

	pthread_mutex_lock(&host->lock);
	value = soft_random_next(&host->random);
	pthread_mutex_unlock(&host->lock);
	return value;
}
