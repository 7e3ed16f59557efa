#include "soft/base/fabric.h"

/* The last ones. The device has the first ones (soft/objects/counters.c). */
static _Atomic uint64_t *legal_counters(struct soft_fabric *fabric)
{
	return fabric->tally->counters + CORE_COUNTERS_MAX - CORE_LEGAL_CHOICES;
}

void soft_fabric_init(struct soft_fabric *fabric, uint64_t seed, bool virtual_clock, struct core_tally *tally)
{
	fabric->own_tally = (struct core_tally){0};
	fabric->tally = tally ? tally : &fabric->own_tally;
	fabric->secret = (struct soft_secret){.key = seed};
	fabric->capture = NULL;
	soft_mutex_init(&fabric->lock, SOFT_ORDER_FABRIC);
	soft_faults_init(&fabric->faults, soft_secret_next(&fabric->secret), fabric->tally->applied);
	soft_legal_init(&fabric->legal, 0, 0, NULL, legal_counters(fabric));
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

void soft_fabric_choose(struct soft_fabric *fabric, uint64_t seed, uint32_t choices, const uint32_t *rates)
{
	soft_legal_init(&fabric->legal, seed, choices, rates, legal_counters(fabric));
	soft_faults_choose(&fabric->faults, &fabric->legal);
}

uint64_t soft_fabric_random(struct soft_fabric *fabric)
{
	uint64_t value;

	soft_mutex_lock(&fabric->lock);
	value = soft_secret_next(&fabric->secret);
	soft_mutex_unlock(&fabric->lock);
	return value;
}

#define PSN_MASK 0xffffffu
#define PACKETS_TO_WRAP 16

uint32_t soft_fabric_starting_psn(struct soft_fabric *fabric)
{
	uint32_t psn = (uint32_t)soft_fabric_random(fabric) & PSN_MASK;
	uint64_t drawn = soft_legal_choose(&fabric->legal.calls, CORE_LEGAL_PSN_WRAP);

	return drawn ? (uint32_t)(PSN_MASK + 1 - soft_legal_amount(drawn, PACKETS_TO_WRAP)) : psn;
}
