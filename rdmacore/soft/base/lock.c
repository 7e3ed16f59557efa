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
/* Few: while others spin, each yield may cost a time slice.  A thread that wakes up from a nap runs at once. */
#define YIELDS 4
/* Before the data path draws a turn: about half a millisecond. */
#define NAPS 5

/* Longer with others in front: hundreds of threads that look every 50 us leave no time for the one that is next. */
static void nap(unsigned int others)
{
	const struct timespec time = {.tv_nsec = 50000 * (others < 20 ? others + 1 : 20)};

	/* Not nanosleep(3), where a thread can be cancelled: it would take its turn with it, and nobody would get the lock again. */
	syscall(SYS_nanosleep, &time, NULL);
}

/* What to do before looking again. */
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

/* The lock was taken before threads that have a turn, and the caller goes on waiting. */
static void give_back(struct soft_lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}

/* Without a turn, and not before threads that have one. */
static bool try_take(struct soft_lock *lock)
{
	if (soft_lock_is_wanted(lock) || !try_exchange(lock))
		return false;
	if (!soft_lock_is_wanted(lock))
		return true;
	give_back(lock);
	return false;
}

/* Without a turn, for a while. */
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

/* At the end of the queue, in which there is room for 255. */
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

/* The lock is held; the next turn is due when it is released. */
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
 * The data path draws no turn before it has waited for long: if all threads that compete for a lock had turns, each
 * message would wait until a sleeping thread has woken up.
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

	/* But for its own faults: of one that is blocked nobody hears, and the kernel ends the process. */
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
