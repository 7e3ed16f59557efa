/*
 * Timers of one soft fabric: a binary heap of deadlines, a queue of deferred work, and the thread that runs what is due,
 * and deferred work when nothing is.  An expire function that has much to do defers itself.  The thread starts with the
 * first timer that is armed, so a run without RNR waits or CM retries has none.  With a virtual clock there is no thread:
 * soft_timers_advance runs the next timer.
 */
#ifndef SOFT_BASE_TIMER_H
#define SOFT_BASE_TIMER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "soft/base/clock.h"
#include "soft/base/mutex.h"

struct soft_timer {
	void (*expire)(struct soft_timer *timer);
	uint64_t deadline;
	size_t heap_index; /* index in the heap + 1; 0 while it is not there */
	struct soft_timer *next, **link; /* in the queue; link is NULL while it is not there */
};

struct soft_timers {
	struct soft_mutex lock;
	pthread_cond_t changed; /* a deadline before waking, work that was deferred, or stopping */
	uint64_t waking; /* when the thread wakes up by itself; 0 while it is awake */
	pthread_cond_t finished; /* running became NULL */
	struct soft_clock *clock;
	struct soft_timer **heap;
	size_t armed;
	size_t reserved; /* registered timers: arming never has to allocate */
	size_t capacity;
	struct soft_timer *deferred, **last_deferred;
	struct soft_timer *running;
	pthread_t thread;
	bool started;
	bool stopping;
};

void soft_timers_init(struct soft_timers *timers, struct soft_clock *clock);
/* Stop the thread.  No timer may be registered any more. */
void soft_timers_destroy(struct soft_timers *timers);

/*
 * Virtual clock only.  With a timer due by limit: advance the clock to the earliest one and run it, true.  Without:
 * advance the clock to limit, unless that is UINT64_MAX, false.
 */
bool soft_timers_advance(struct soft_timers *timers, uint64_t limit);

/* Make room for one timer.  expire runs on the timer thread with no lock held.  -ENOMEM. */
int soft_timer_register(struct soft_timers *timers, struct soft_timer *timer,
			void (*expire)(struct soft_timer *timer));
/* Cancel, and wait until a running expire has returned.  The caller holds no lock that expire takes and is not expire. */
void soft_timer_unregister(struct soft_timers *timers, struct soft_timer *timer);

/* Arm or move: expire once, delay nanoseconds from now.  -EAGAIN when the thread cannot be made. */
int soft_timer_arm(struct soft_timers *timers, struct soft_timer *timer, uint64_t delay);
/* For long work: expire once, when no timer is due, after timers that were deferred before. */
int soft_timer_defer(struct soft_timers *timers, struct soft_timer *timer);
/* Whether it will expire. */
bool soft_timer_is_armed(struct soft_timers *timers, struct soft_timer *timer);
/* When this returns, expire may still be running. */
void soft_timer_cancel(struct soft_timers *timers, struct soft_timer *timer);

#endif
