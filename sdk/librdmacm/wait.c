/*
 * Waiting.  A guest has one thread of the machine.  So a wait here waits for all of the program's threads at once, with
 * one call of the host.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "internal.h"

enum { MAX_ENTRIES = 1024 };

/* Of a program that was stopped and does not handle SIGTERM. */
enum { STOPPED = 128 + 15 };

const struct other_threads *other_threads;
const struct signals *signals;

int64_t clock_now(void)
{
	uint64_t now = 0;

	rdmarun_clock_ns(&now);
	return (int64_t)now;
}

/* Waits for an entry or deadline of any thread, and wakes it; *found: an entry of wait is ready. */
static int32_t wait_for_all_threads(const struct wait *wait, bool look_only, bool *found)
{
	static struct rdmarun_poll_entry all[MAX_ENTRIES];
	int64_t deadline = wait->deadline, timeout;
	uint32_t own = wait->count < MAX_ENTRIES ? wait->count : MAX_ENTRIES, count = own;
	int32_t result;

	memcpy(all, wait->entries, own * sizeof(*all));
	if (other_threads)
		count = other_threads->gather(all, count, MAX_ENTRIES, &deadline);
	if (signals && signals->deadline() >= 0 && (deadline < 0 || signals->deadline() < deadline))
		deadline = signals->deadline();
	timeout = deadline < 0 ? -1 : deadline - clock_now();
	if (look_only || (deadline >= 0 && timeout < 0))
		timeout = 0;
	result = rdmarun_poll_set(all, count, timeout);
	*found = false;
	for (uint32_t i = 0; result > 0 && i < own; i++)
		*found |= all[i].revents != 0;
	if (result > 0 && count > own)
		other_threads->scatter(all, own);
	return result;
}

/* Whether a handler ran that ends the wait. */
static bool interrupted(const struct wait *wait)
{
	bool restart = true;

	if (!signals || (other_threads && !other_threads->handles_signals()) || !signals->deliver(&restart))
		return false;
	return wait->restart == RESTART_NEVER || (wait->restart == RESTART_BY_FLAGS && !restart);
}

int wait_for(struct wait *wait, int64_t timeout_ns)
{
	bool found = true;

	wait->deadline = timeout_ns > 0 ? clock_now() + timeout_ns : timeout_ns;
	for (;;) {
		int32_t result;

		if ((found || !wait->count || wait->local) && wait->ready(wait->object))
			return 0;
		if (interrupted(wait))
			return EINTR;
		if (wait->deadline == 0 || (wait->deadline > 0 && clock_now() >= wait->deadline))
			return ETIMEDOUT;
		if (other_threads && other_threads->runnable()) {
			other_threads->run(wait);
			found = true;
			continue;
		}
		result = wait_for_all_threads(wait, false, &found);
		if (result == -RDMARUN_ECANCELED) {
			if (!signals || !signals->terminate())
				exit(STOPPED);
			return wait->restart == RESTART_ALWAYS ? ECANCELED : EINTR;
		}
		if (result < 0)
			return errno_of(result);
	}
}

int wait_for_handle(bool (*ready)(void *), void *object, rdmarun_handle handle, uint32_t events, int64_t timeout_ns)
{
	struct rdmarun_poll_entry entry = {.handle = handle, .events = events};
	struct wait wait = {.ready = ready, .object = object, .entries = &entry, .count = 1};

	return wait_for(&wait, timeout_ns);
}

static bool second_time(void *looked)
{
	bool before = *(bool *)looked;

	*(bool *)looked = true;
	return before;
}

void give_way(void)
{
	bool looked = true, found;
	struct wait wait = {.ready = second_time, .object = &looked, .deadline = -1};

	rdmarun_sched_yield();
	interrupted(&wait);
	if (!other_threads)
		return;
	if (!other_threads->runnable())
		wait_for_all_threads(&wait, true, &found);
	if (other_threads->runnable())
		other_threads->run(&wait);
}

int sched_yield(void)
{
	give_way();
	return 0;
}

static bool never(void *unused)
{
	(void)unused;
	return false;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	struct wait wait = {.ready = never, .restart = RESTART_NEVER};
	int64_t length = time->tv_sec * 1000000000ll + time->tv_nsec, remains;
	int ended;

	if (flags) { /* TIMER_ABSTIME */
		struct timespec now;

		clock_gettime(clock, &now);
		length -= now.tv_sec * 1000000000ll + now.tv_nsec;
	}
	if (left)
		memset(left, 0, sizeof(*left));
	ended = wait_for(&wait, length < 0 ? 0 : length);
	if (ended == EINTR && left && !flags) {
		remains = wait.deadline - clock_now();
		remains = remains < 0 ? 0 : remains;
		*left = (struct timespec){.tv_sec = remains / 1000000000, .tv_nsec = (long)(remains % 1000000000)};
	}
	return ended == ETIMEDOUT ? 0 : ended;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	int error;

	if (time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= 1000000000) {
		errno = EINVAL;
		return -1;
	}
	error = clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
	if (!error)
		return 0;
	errno = error;
	return -1;
}

unsigned sleep(unsigned seconds)
{
	struct timespec time = {.tv_sec = seconds}, left = {0};

	nanosleep(&time, &left);
	return (unsigned)left.tv_sec + (left.tv_nsec > 0);
}

int usleep(unsigned microseconds)
{
	struct timespec time = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};

	return nanosleep(&time, NULL);
}
