/* Mutexes, condition variables and semaphores of green threads, of which one runs at a time. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include "internal.h"

/* What is left of a time of a clock. */
static int64_t until(clockid_t clock, const struct timespec *time)
{
	struct timespec now;
	int64_t left;

	clock_gettime(clock, &now);
	left = (time->tv_sec - now.tv_sec) * 1000000000ll + time->tv_nsec - now.tv_nsec;
	return left < 0 ? 0 : left;
}

static int wait_until(bool (*ready)(void *), void *object, int64_t timeout_ns)
{
	struct wait wait = {.ready = ready, .object = object, .restart = RESTART_ALWAYS};

	return wait_for(&wait, timeout_ns);
}

/* What a pthread_mutex_t holds: who has it, and how often. */
struct mutex {
	int locked, type;
	pthread_t owner;
};

_Static_assert(sizeof(struct mutex) <= sizeof(pthread_mutex_t), "a mutex has room for it");

/* In threads.c, which is linked only for programs that make threads. */
__attribute__((weak)) pthread_t pthread_self(void);

static pthread_t self(void) { return pthread_self ? pthread_self() : NULL; }

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	*(struct mutex *)(void *)mutex = (struct mutex){.type = attr ? (int)attr->__attr : PTHREAD_MUTEX_NORMAL};
	return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

int pthread_mutexattr_init(pthread_mutexattr_t *attr)
{
	attr->__attr = PTHREAD_MUTEX_NORMAL;
	return 0;
}

int pthread_mutexattr_destroy(pthread_mutexattr_t *attr)
{
	(void)attr;
	return 0;
}

int pthread_mutexattr_settype(pthread_mutexattr_t *attr, int type)
{
	if (type < PTHREAD_MUTEX_NORMAL || type > PTHREAD_MUTEX_ERRORCHECK)
		return EINVAL;
	attr->__attr = (unsigned)type;
	return 0;
}

int pthread_mutexattr_gettype(const pthread_mutexattr_t *attr, int *type)
{
	*type = (int)attr->__attr;
	return 0;
}

static bool is_unlocked(void *mutex) { return !((struct mutex *)mutex)->locked; }

int pthread_mutex_trylock(pthread_mutex_t *object)
{
	struct mutex *mutex = (void *)object;

	if (mutex->locked && !(mutex->type == PTHREAD_MUTEX_RECURSIVE && mutex->owner == self()))
		return EBUSY;
	mutex->locked++;
	mutex->owner = self();
	return 0;
}

static int lock(pthread_mutex_t *object, int64_t timeout_ns)
{
	struct mutex *mutex = (void *)object;
	int ended;

	if (mutex->locked && mutex->owner == self()) {
		if (mutex->type == PTHREAD_MUTEX_ERRORCHECK)
			return EDEADLK;
		if (mutex->type == PTHREAD_MUTEX_RECURSIVE)
			return pthread_mutex_trylock(object);
	}
	ended = wait_until(is_unlocked, mutex, timeout_ns);
	return ended ? ended : pthread_mutex_trylock(object);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) { return lock(mutex, -1); }

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *time) { return lock(mutex, until(CLOCK_REALTIME, time)); }

int pthread_mutex_unlock(pthread_mutex_t *object)
{
	struct mutex *mutex = (void *)object;

	if (mutex->type == PTHREAD_MUTEX_ERRORCHECK && (!mutex->locked || mutex->owner != self()))
		return EPERM;
	mutex->locked -= mutex->locked > 0;
	return 0;
}

/* A waiting thread draws a number; a signal wakes the next number. */
struct condition {
	uint32_t drawn, let_go, monotonic;
};
struct turn {
	struct condition *condition;
	uint32_t number;
};

_Static_assert(sizeof(struct condition) <= sizeof(pthread_cond_t), "a condition variable has room for it");

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	*(struct condition *)(void *)cond = (struct condition){.monotonic = attr && attr->__attr};
	return 0;
}

int pthread_condattr_init(pthread_condattr_t *attr)
{
	attr->__attr = 0;
	return 0;
}

int pthread_condattr_destroy(pthread_condattr_t *attr)
{
	(void)attr;
	return 0;
}

int pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	attr->__attr = clock == CLOCK_MONOTONIC;
	return 0;
}

int pthread_cond_destroy(pthread_cond_t *cond)
{
	(void)cond;
	return 0;
}

static bool has_turn(void *object)
{
	const struct turn *turn = object;

	return (int32_t)(turn->condition->let_go - turn->number) > 0;
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	struct condition *condition = (void *)cond;

	if (condition->let_go != condition->drawn)
		condition->let_go++;
	return 0;
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	struct condition *condition = (void *)cond;

	condition->let_go = condition->drawn;
	return 0;
}

static int wait_for_turn(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t timeout_ns)
{
	struct turn turn = {.condition = (void *)cond, .number = ((struct condition *)cond)->drawn++};
	int ended, locked;

	pthread_mutex_unlock(mutex);
	ended = wait_until(has_turn, &turn, timeout_ns);
	if (ended) /* its number would take the signal of another thread; spurious wakeups are allowed */
		pthread_cond_signal(cond);
	locked = pthread_mutex_lock(mutex);
	return ended ? ended : locked;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) { return wait_for_turn(cond, mutex, -1); }

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *time)
{
	return wait_for_turn(cond, mutex, until(((struct condition *)cond)->monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, time));
}

int sem_init(sem_t *sem, int shared, unsigned value)
{
	(void)shared;
	sem->__val[0] = (int)value;
	return 0;
}

int sem_destroy(sem_t *sem)
{
	(void)sem;
	return 0;
}

static bool is_positive(void *sem) { return ((sem_t *)sem)->__val[0] > 0; }

static int take(sem_t *sem, int64_t timeout_ns)
{
	struct wait wait = {.ready = is_positive, .object = sem};
	int ended = wait_for(&wait, timeout_ns);

	if (ended) {
		errno = ended;
		return -1;
	}
	sem->__val[0]--;
	return 0;
}

int sem_wait(sem_t *sem) { return take(sem, -1); }

int sem_timedwait(sem_t *sem, const struct timespec *time) { return take(sem, until(CLOCK_REALTIME, time)); }

int sem_trywait(sem_t *sem)
{
	if (!take(sem, 0))
		return 0;
	errno = EAGAIN;
	return -1;
}

int sem_post(sem_t *sem)
{
	sem->__val[0]++;
	return 0;
}

int sem_getvalue(sem_t *sem, int *value)
{
	*value = sem->__val[0];
	return 0;
}
