#include "soft_lock.h"

#include <sched.h>
#include <stdbool.h>
#include <time.h>

#include "core_pause.h"

/* A few microseconds: longer than what the data path does under a lock, but for large copies. */
#define SPINS 200
#define YIELDS 50

void soft_lock_wait(struct soft_lock *lock)
{
	const struct timespec nap = {.tv_nsec = 50000};
	unsigned int attempts = 0;

	do {
		while (atomic_load_explicit(&lock->held, memory_order_relaxed)) {
			if (attempts < SPINS)
				core_pause();
			else if (attempts < SPINS + YIELDS)
				sched_yield();
			else
				nanosleep(&nap, NULL);
			attempts++;
		}
	} while (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire));
}
