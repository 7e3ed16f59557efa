#include "soft/base/lock.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "provider/provider.h"
#include "soft/base/mutex.h"

/* A few microseconds: longer than the data path holds a lock, except for large copies. */
#define SPINS 200
/*
 * Few: while other threads spin, each yield may cost a time slice, whereas a thread that wakes from sleep runs at
 * once.
 */
#define YIELDS 4
/* Sleeps before the data path draws a turn: about half a millisecond in all. */
#define NAPS 5

/*
 * Sleep longer if other turns come first: hundreds of threads that check every 50 us would leave no time for the next
 * one.
 */
static void nap(unsigned int others)
{
	const struct timespec time = {.tv_nsec = 50000 * (others < 20 ? others + 1 : 20)};

	/*
	 * Not nanosleep(3), which is a cancellation point: a cancelled thread would keep its turn, and no thread
	 * would get the lock again.
	 */
	syscall(SYS_nanosleep, &time, NULL);
}

/* Spin, yield or sleep before the next check. */
static void rest(unsigned int attempt, unsigned int others)
{
	if (attempt < SPINS)
		core_pause();
	else
		nap(others);
}

static bool try_exchange(struct soft_lock *lock)
{
	return !atomic_load_explicit(&lock->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
}

/* The lock was taken although other threads have turns: release it, and keep waiting. */
static void give_back(struct soft_lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}

/* Try to take the lock without a turn, unless other threads have turns. */
static bool try_take(struct soft_lock *lock)
{
	if (soft_lock_is_wanted(lock) || !try_exchange(lock))
		return false;
	if (!soft_lock_is_wanted(lock))
		return true;
	give_back(lock);
	return false;
}

/* Wait for a while without a turn. */
static bool spin(struct soft_lock *lock)
{
	for (unsigned int attempt = 0; attempt < SPINS; attempt++) {
		if (try_take(lock))
			return true;
		core_pause();
	}
	return false;
}

static bool spin_and_sleep(struct soft_lock *lock)
{
	if (spin(lock))
		return true;
	for (unsigned int attempt = 0; attempt < YIELDS + NAPS; attempt++) {
		if (attempt < YIELDS)
			sched_yield();
		else
			nap(0);
		if (try_take(lock))
			return true;
	}
	return false;
}

/* Draw the last turn of the queue, which has room for 255. */
static uint8_t draw_turn(struct soft_lock *lock)
{
	uint16_t turns = atomic_load_explicit(&lock->turns, memory_order_relaxed);

	for (;;) {
		if ((uint8_t)((turns >> 8) - turns) == UINT8_MAX) {
			nap(UINT8_MAX);
			turns = atomic_load_explicit(&lock->turns, memory_order_relaxed);
		} else if (atomic_compare_exchange_weak_explicit(&lock->turns, &turns,
								 (uint16_t)(turns + 0x100),
								 memory_order_relaxed,
								 memory_order_relaxed)) {
			return (uint8_t)(turns >> 8);
		}
	}
}

/* The lock is held. The next turn may enter when it is released. */
static void pass_turn(struct soft_lock *lock)
{
	uint16_t turns = atomic_load_explicit(&lock->turns, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(&lock->turns, &turns,
						      (uint16_t)((turns & 0xff00) | (uint8_t)(turns + 1)),
						      memory_order_relaxed, memory_order_relaxed))
		;
}

void soft_lock_backoff(unsigned int attempt)
{
	rest(attempt, 0);
}

static void wait_in_queue(struct soft_lock *lock)
{
	uint8_t turn = draw_turn(lock), others;
	unsigned int attempt = 0;

	while ((others = (uint8_t)(turn - atomic_load_explicit(&lock->turns, memory_order_relaxed))))
		rest(attempt++, others);
	for (attempt = 0; !try_exchange(lock); attempt++)
		rest(attempt, 0);
	pass_turn(lock);
}

/*
 * The data path draws no turn before it has waited for long. If all threads that compete for a lock had turns, each
 * message would wait until a sleeping thread wakes up.
 */
void soft_lock_wait(struct soft_lock *lock, bool taken)
{
	if (taken)
		give_back(lock);
	if (!spin_and_sleep(lock))
		wait_in_queue(lock);
}

void soft_lock_wait_turn(struct soft_lock *lock, bool taken)
{
	if (taken)
		give_back(lock);
	if (!spin(lock))
		wait_in_queue(lock);
}

int soft_thread_create(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
	sigset_t all, before;
	int error;

	/*
	 * Signals of the thread's own faults stay unblocked: if they were blocked, the kernel would end the process
	 * without calling their handlers.
	 */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}
