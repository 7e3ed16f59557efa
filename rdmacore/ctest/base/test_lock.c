/* The lock of the data path with threads that compete for it, and the order in which threads with turns get it. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "soft/base/lock.h"

#define THREADS 4
#define TURNS 20000
#define NAP_EVERY 5000 /* long enough that the others stop spinning, and stop yielding */
#define CONTROLLERS 3
#define CONTROLLER_TURNS 30

static struct {
	struct soft_lock lock;
	unsigned long count; /* all under it */
	bool wanted; /* another thread had a turn when it was released last */
	uint8_t due;
	unsigned long turns;
	_Atomic bool stop;
} shared;

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static void *take_turns(void *argument)
{
	(void)argument;
	for (int turn = 1; turn <= TURNS; turn++) {
		soft_lock_take(&shared.lock);
		shared.count++;
		if (turn % NAP_EVERY == 0)
			nap();
		soft_lock_release(&shared.lock);
	}
	return NULL;
}

static void test_exclusion(void)
{
	pthread_t threads[THREADS];

	for (int thread = 0; thread < THREADS; thread++)
		CHECK(!pthread_create(&threads[thread], NULL, take_turns, NULL));
	for (int thread = 0; thread < THREADS; thread++)
		CHECK(!pthread_join(threads[thread], NULL));
	CHECK(shared.count == THREADS * TURNS);
}

/* --- a thread with a turn is next, even if others take the lock again at once ---------------------- */

static uint8_t due(void)
{
	return (uint8_t)atomic_load(&shared.lock.turns);
}

/* The lock is held: no thread had it between its last holder and a turn that was drawn by then. */
static void enter(void)
{
	uint8_t passed = (uint8_t)(due() - shared.due);

	CHECK(passed == 1 || (passed == 0 && !shared.wanted));
	shared.turns += passed;
	shared.due = due();
}

static void leave(void)
{
	shared.wanted = soft_lock_is_wanted(&shared.lock);
	soft_lock_release(&shared.lock);
}

static void *stream(void *argument)
{
	(void)argument;
	for (unsigned int message = 1; !atomic_load(&shared.stop); message++) {
		soft_lock_take(&shared.lock);
		enter();
		if (message % 1000 == 0)
			nap();
		leave();
	}
	return NULL;
}

static void *control(void *argument)
{
	(void)argument;
	for (int turn = 0; turn < CONTROLLER_TURNS; turn++) {
		soft_lock_take_turn(&shared.lock);
		enter();
		leave();
	}
	return NULL;
}

/* It is held until a turn was drawn: without that, luck alone would decide whether there ever is one. */
static void wait_until_wanted(void)
{
	soft_lock_take(&shared.lock);
	enter();
	while (!soft_lock_is_wanted(&shared.lock))
		nap();
	leave();
}

static void test_order(void)
{
	pthread_t streams[THREADS], controllers[CONTROLLERS];

	for (int thread = 0; thread < THREADS; thread++)
		CHECK(!pthread_create(&streams[thread], NULL, stream, NULL));
	wait_until_wanted(); /* streaming threads draw turns as well, after they have waited for long */
	for (int thread = 0; thread < CONTROLLERS; thread++)
		CHECK(!pthread_create(&controllers[thread], NULL, control, NULL));
	for (int thread = 0; thread < CONTROLLERS; thread++)
		CHECK(!pthread_join(controllers[thread], NULL));
	atomic_store(&shared.stop, true);
	for (int thread = 0; thread < THREADS; thread++)
		CHECK(!pthread_join(streams[thread], NULL));
	CHECK(shared.turns > 0);
	CHECK(!soft_lock_is_wanted(&shared.lock));
}

/* --- more threads than there is room for in the queue --------------------------------------------- */

#define CROWD 400

static void *control_once(void *argument)
{
	(void)argument;
	soft_lock_take_turn(&shared.lock);
	enter();
	shared.count++;
	leave();
	return NULL;
}

static void test_crowd(void)
{
	pthread_t threads[CROWD];
	pthread_attr_t small;

	shared.count = 0;
	CHECK(!pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, 256 << 10));
	soft_lock_take(&shared.lock);
	enter();
	for (int thread = 0; thread < CROWD; thread++)
		CHECK(!pthread_create(&threads[thread], &small, control_once, NULL));
	/* Until the queue is full. */
	while ((uint8_t)((atomic_load(&shared.lock.turns) >> 8) - due()) != UINT8_MAX)
		nap();
	leave();
	for (int thread = 0; thread < CROWD; thread++)
		CHECK(!pthread_join(threads[thread], NULL));
	CHECK(!pthread_attr_destroy(&small));
	CHECK(shared.count == CROWD);
}

/* --- a thread is cancelled while it waits: it gets its turn, passes it on, and ends then ----------------- */

static void *wait_and_end(void *argument)
{
	(void)argument;
	soft_lock_take_turn(&shared.lock);
	shared.count++;
	soft_lock_release(&shared.lock);
	for (;;)
		pause();
	return NULL;
}

static void test_cancellation(void)
{
	pthread_t thread;
	uint8_t drawn;

	shared.count = 0;
	soft_lock_take(&shared.lock);
	drawn = (uint8_t)(atomic_load(&shared.lock.turns) >> 8);
	CHECK(!pthread_create(&thread, NULL, wait_and_end, NULL));
	while ((uint8_t)(atomic_load(&shared.lock.turns) >> 8) == drawn)
		nap();
	nap(); /* it naps by now, too */
	CHECK(!pthread_cancel(thread));
	nap();
	soft_lock_release(&shared.lock);
	CHECK(!pthread_join(thread, NULL));
	CHECK(shared.count == 1);
	soft_lock_take(&shared.lock);
	soft_lock_release(&shared.lock);
}

int main(void)
{
	soft_lock_init(&shared.lock, SOFT_ORDER_CQ);
	test_exclusion();
	/* Turns that were drawn in it do not count. */
	soft_lock_init(&shared.lock, SOFT_ORDER_CQ);
	test_order();
	test_crowd();
	test_cancellation();
	return 0;
}
