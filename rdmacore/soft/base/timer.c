#include "soft/base/timer.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void heap_put(struct soft_timers *timers, size_t index, struct soft_timer *timer)
{
	timers->heap[index] = timer;
	timer->heap_index = index + 1;
}

static void heap_up(struct soft_timers *timers, size_t index, struct soft_timer *timer)
{
	while (index > 0) {
		size_t parent = (index - 1) / 2;

		if (timers->heap[parent]->deadline <= timer->deadline)
			break;
		heap_put(timers, index, timers->heap[parent]);
		index = parent;
	}
	heap_put(timers, index, timer);
}

static void heap_down(struct soft_timers *timers, size_t index, struct soft_timer *timer)
{
	for (;;) {
		size_t child = 2 * index + 1;

		if (child >= timers->armed)
			break;
		if (child + 1 < timers->armed &&
		    timers->heap[child + 1]->deadline < timers->heap[child]->deadline)
			child++;
		if (timer->deadline <= timers->heap[child]->deadline)
			break;
		heap_put(timers, index, timers->heap[child]);
		index = child;
	}
	heap_put(timers, index, timer);
}

static void heap_remove(struct soft_timers *timers, struct soft_timer *timer)
{
	size_t index = timer->heap_index - 1;
	struct soft_timer *last = timers->heap[--timers->armed];

	timer->heap_index = 0;
	if (last == timer)
		return;
	if (last->deadline < timer->deadline)
		heap_up(timers, index, last);
	else
		heap_down(timers, index, last);
}

static void queue_remove(struct soft_timers *timers, struct soft_timer *timer)
{
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	else
		timers->last_deferred = timer->link;
	timer->link = NULL;
}

static bool is_armed(const struct soft_timer *timer)
{
	return timer->heap_index || timer->link;
}

static void disarm(struct soft_timers *timers, struct soft_timer *timer)
{
	if (timer->heap_index)
		heap_remove(timers, timer);
	else if (timer->link)
		queue_remove(timers, timer);
}

/* The timer to run now; NULL if there is none. */
static struct soft_timer *due(struct soft_timers *timers, uint64_t now)
{
	return timers->armed && timers->heap[0]->deadline <= now ? timers->heap[0] : timers->deferred;
}

static void wait_for_deadline(struct soft_timers *timers, uint64_t deadline)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline / SOFT_SECOND),
		.tv_nsec = (long)(deadline % SOFT_SECOND),
	};

	timers->waking = deadline;
	pthread_cond_timedwait(&timers->changed, &timers->lock.native, &until);
	timers->waking = 0;
}

static void wait_for_work(struct soft_timers *timers)
{
	timers->waking = UINT64_MAX;
	pthread_cond_wait(&timers->changed, &timers->lock.native);
	timers->waking = 0;
}

/* timers->lock is held, and released while the timer runs. */
static void run(struct soft_timers *timers, struct soft_timer *timer)
{
	soft_mutex_expect(&timers->lock);
	disarm(timers, timer);
	timers->running = timer;
	soft_mutex_unlock(&timers->lock);
	soft_order_expect_none();
	timer->expire(timer);
	soft_mutex_lock(&timers->lock);
	timers->running = NULL;
	pthread_cond_broadcast(&timers->finished);
}

static void *run_timers(void *argument)
{
	struct soft_timers *timers = argument;

	soft_mutex_lock(&timers->lock);
	while (!timers->stopping) {
		struct soft_timer *timer = due(timers, timers->clock->now(timers->clock));

		if (timer)
			run(timers, timer);
		else if (timers->armed)
			wait_for_deadline(timers, timers->heap[0]->deadline);
		else
			wait_for_work(timers);
	}
	soft_mutex_unlock(&timers->lock);
	return NULL;
}

/* Never goes back, even if two threads advance at once. */
static void set_time(struct soft_clock *clock, uint64_t time)
{
	if (time > clock->now(clock))
		atomic_store_explicit(&clock->standing, time, memory_order_release);
}

bool soft_timers_advance(struct soft_timers *timers, uint64_t limit)
{
	struct soft_timer *timer;
	bool ran = false;

	soft_mutex_lock(&timers->lock);
	/* One timer at a time: soft_timer_unregister waits for the one that runs. */
	while (timers->running)
		pthread_cond_wait(&timers->finished, &timers->lock.native);
	timer = due(timers, timers->clock->now(timers->clock));
	if (!timer && timers->armed && timers->heap[0]->deadline <= limit) {
		timer = timers->heap[0];
		set_time(timers->clock, timer->deadline);
	}
	if (timer) {
		run(timers, timer);
		ran = true;
	} else if (limit != UINT64_MAX) {
		set_time(timers->clock, limit);
	}
	soft_mutex_unlock(&timers->lock);
	return ran;
}

void soft_timers_init(struct soft_timers *timers, struct soft_clock *clock)
{
	pthread_condattr_t monotonic;

	*timers = (struct soft_timers){.clock = clock};
	timers->last_deferred = &timers->deferred;
	soft_mutex_init(&timers->lock, SOFT_ORDER_TIMERS);
	pthread_cond_init(&timers->finished, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&timers->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void soft_timers_destroy(struct soft_timers *timers)
{
	soft_mutex_lock(&timers->lock);
	timers->stopping = true;
	pthread_cond_signal(&timers->changed);
	soft_mutex_unlock(&timers->lock);
	if (timers->started)
		pthread_join(timers->thread, NULL);
	pthread_cond_destroy(&timers->changed);
	pthread_cond_destroy(&timers->finished);
	soft_mutex_destroy(&timers->lock);
	free(timers->heap);
}

int soft_timer_register(struct soft_timers *timers, struct soft_timer *timer,
			void (*expire)(struct soft_timer *timer))
{
	int result = 0;

	*timer = (struct soft_timer){.expire = expire};
	soft_mutex_lock(&timers->lock);
	if (timers->reserved == timers->capacity) {
		size_t capacity = timers->capacity ? 2 * timers->capacity : 16;
		struct soft_timer **heap = realloc(timers->heap, capacity * sizeof(*heap));

		if (heap) {
			timers->heap = heap;
			timers->capacity = capacity;
		} else {
			result = -ENOMEM;
		}
	}
	if (result == 0)
		timers->reserved++;
	soft_mutex_unlock(&timers->lock);
	return result;
}

void soft_timer_unregister(struct soft_timers *timers, struct soft_timer *timer)
{
	soft_mutex_lock(&timers->lock);
	disarm(timers, timer);
	while (timers->running == timer)
		pthread_cond_wait(&timers->finished, &timers->lock.native);
	/* expire may have armed the timer again while it ran */
	disarm(timers, timer);
	timer->expire = NULL;
	timers->reserved--;
	soft_mutex_unlock(&timers->lock);
}

/*
 * In debug builds: a timer that is armed after soft_timer_unregister would stay in the heap after its owner is freed.
 */
static void expect_registered(const struct soft_timer *timer)
{
	(void)timer;
#ifdef SOFT_ORDER_CHECKED
	if (!timer->expire)
		abort();
#endif
}

/* Start the thread unless the clock is virtual; -EAGAIN. */
static int start(struct soft_timers *timers)
{
	int result = 0;

	if (!timers->started && !soft_clock_is_virtual(timers->clock)) {
		result = -soft_thread_create(&timers->thread, run_timers, timers);
		timers->started = result == 0;
	}
	return result;
}

int soft_timer_arm(struct soft_timers *timers, struct soft_timer *timer, uint64_t delay)
{
	uint64_t deadline = timers->clock->now(timers->clock) + delay;
	int result;

	soft_mutex_lock(&timers->lock);
	expect_registered(timer);
	result = start(timers);
	if (result == 0) {
		disarm(timers, timer);
		timer->deadline = deadline;
		heap_up(timers, timers->armed++, timer);
		/*
		 * A timer that is postponed each time, such as that of a queue pair's next ACK, does not wake the
		 * thread.
		 */
		if (deadline < timers->waking) {
			timers->waking = 0;
			pthread_cond_signal(&timers->changed);
		}
	}
	soft_mutex_unlock(&timers->lock);
	return result;
}

int soft_timer_defer(struct soft_timers *timers, struct soft_timer *timer)
{
	int result;

	soft_mutex_lock(&timers->lock);
	expect_registered(timer);
	result = start(timers);
	if (result == 0) {
		disarm(timers, timer);
		timer->next = NULL;
		timer->link = timers->last_deferred;
		*timer->link = timer;
		timers->last_deferred = &timer->next;
		pthread_cond_signal(&timers->changed);
	}
	soft_mutex_unlock(&timers->lock);
	return result;
}

void soft_timer_cancel(struct soft_timers *timers, struct soft_timer *timer)
{
	soft_mutex_lock(&timers->lock);
	disarm(timers, timer);
	soft_mutex_unlock(&timers->lock);
}

bool soft_timer_is_armed(struct soft_timers *timers, struct soft_timer *timer)
{
	bool armed;

	soft_mutex_lock(&timers->lock);
	armed = is_armed(timer);
	soft_mutex_unlock(&timers->lock);
	return armed;
}
