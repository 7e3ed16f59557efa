/* The lock of the data path under threads that want it at once, and while its holder sleeps. */
#include <pthread.h>
#include <time.h>

#include "../soft_lock.h"
#include "check.h"

#define THREADS 4
#define TURNS 20000
#define NAP_EVERY 5000 /* long enough that the others stop spinning, and stop yielding */

static struct {
	struct soft_lock lock;
	unsigned long count; /* under it */
} shared;

static void *take_turns(void *argument)
{
	const struct timespec nap = {.tv_nsec = 5000000};

	(void)argument;
	for (int turn = 1; turn <= TURNS; turn++) {
		soft_lock_take(&shared.lock);
		shared.count++;
		if (turn % NAP_EVERY == 0)
			nanosleep(&nap, NULL);
		soft_lock_release(&shared.lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	soft_lock_init(&shared.lock);
	for (int thread = 0; thread < THREADS; thread++)
		CHECK(!pthread_create(&threads[thread], NULL, take_turns, NULL));
	for (int thread = 0; thread < THREADS; thread++)
		CHECK(!pthread_join(threads[thread], NULL));
	CHECK(shared.count == THREADS * TURNS);
	return 0;
}
