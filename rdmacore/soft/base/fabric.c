#include "soft/base/fabric.h"

void soft_fabric_init(struct soft_fabric *fabric, uint64_t seed, bool virtual_clock)
{
	fabric->secret = (struct soft_secret){.key = seed};
	fabric->capture = NULL;
	soft_mutex_init(&fabric->lock, SOFT_ORDER_FABRIC);
	soft_faults_init(&fabric->faults, soft_secret_next(&fabric->secret));
	soft_clock_wall(&fabric->wall);
	if (virtual_clock)
		soft_clock_virtual(&fabric->clock);
	else
		soft_clock_wall(&fabric->clock);
	soft_timers_init(&fabric->timers, &fabric->clock);
	soft_poller_init(&fabric->poller);
	fabric->notices.fd = -1;
	atomic_init(&fabric->without_users, false);
}

void soft_fabric_destroy(struct soft_fabric *fabric)
{
	soft_poller_destroy(&fabric->poller);
	soft_timers_destroy(&fabric->timers);
	soft_faults_destroy(&fabric->faults);
	soft_mutex_destroy(&fabric->lock);
}

uint64_t soft_fabric_random(struct soft_fabric *fabric)
{
	uint64_t value;

	soft_mutex_lock(&fabric->lock);
	value = soft_secret_next(&fabric->secret);
	soft_mutex_unlock(&fabric->lock);
	return value;
}
