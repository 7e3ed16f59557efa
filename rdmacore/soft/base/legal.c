#include "soft/base/legal.h"

#include <signal.h>
#include <stddef.h>

#include "soft/base/random.h"

_Static_assert(CORE_LEGAL_CHOICES <= 32, "a choice has a bit");

void soft_legal_init(struct soft_legal *legal, uint64_t seed, uint32_t choices, const uint32_t *rates,
		     _Atomic uint64_t *made)
{
	legal->seed = seed;
	legal->choices = choices;
	for (int choice = 0; choice < CORE_LEGAL_CHOICES; choice++)
		legal->rates[choice] = rates && rates[choice] ? rates[choice] : core_legal_choices[choice].rate;
	atomic_init(&legal->objects, 0);
	legal->made = made;
	soft_legal_draws_init(&legal->calls, legal);
}

void soft_legal_draws_init(struct soft_legal_draws *draws, struct soft_legal *legal)
{
	draws->legal = legal->choices ? legal : NULL;
	if (!draws->legal)
		return;
	draws->key = soft_secret_hash(legal->seed, atomic_fetch_add_explicit(&legal->objects, 1, memory_order_relaxed));
	for (int choice = 0; choice < CORE_LEGAL_CHOICES; choice++)
		atomic_init(&draws->drawn[choice], 0);
}

uint64_t soft_legal_draw(struct soft_legal_draws *draws, enum core_legal choice)
{
	uint32_t number = atomic_fetch_add_explicit(&draws->drawn[choice], 1, memory_order_relaxed);
	struct soft_random random = {.state = soft_secret_hash(draws->key, (uint64_t)choice << 32 | number)};

	if (soft_random_next(&random) % draws->legal->rates[choice])
		return 0;
	atomic_fetch_add_explicit(&draws->legal->made[choice], 1, memory_order_relaxed);
	return soft_random_next(&random) | 1;
}

static bool handles_signal_without_restart(void)
{
	struct sigaction action;

	for (int number = 1; number < NSIG; number++)
		if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
		    !(action.sa_flags & SA_RESTART))
			return true;
	return false;
}

bool soft_legal_interrupts(struct soft_legal *legal)
{
	return soft_legal_has(legal, UINT32_C(1) << CORE_LEGAL_INTERRUPTED) && handles_signal_without_restart() &&
	       soft_legal_draw(&legal->calls, CORE_LEGAL_INTERRUPTED);
}
