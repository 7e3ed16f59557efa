/* Mutexes, condition variables and semaphores of green threads, of which one runs at a time. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include "internal.h"

/* What is left of a time of the calendar, as pthread_cond_timedwait has it. */
static int64_t until(const struct timespec *time)
{
	struct timespec now;
	int64_t left;

	clock_gettime(CLOCK_REALTIME, &now);
	left = (time->tv_sec - now.tv_sec) * 1000000000ll + time->tv_nsec - now.tv_nsec;
	return left < 0 ? 0 : left;
}

static int wait_until(bool (*ready)(void *), void *object, int64_t timeout_ns)
{
	struct wait wait = {.ready = ready, .object = object};

	return wait_for(&wait, timeout_ns);
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	(void)attr;
	memset(mutex, 0, sizeof(*mutex));
	return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

static bool is_unlocked(void *mutex) { return !((pthread_mutex_t *)mutex)->__u.__i[0]; }

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	if (!is_unlocked(mutex))
		return EBUSY;
	mutex->__u.__i[0] = 1;
	return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int ended = wait_until(is_unlocked, mutex, -1);

	return ended ? ended : pthread_mutex_trylock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	mutex->__u.__i[0] = 0;
	return 0;
}

/* Who waits draws a number; a signal lets the next number go. */
struct condition {
	uint32_t drawn, let_go;
};
struct turn {
	struct condition *condition;
	uint32_t number;
};

_Static_assert(sizeof(struct condition) <= sizeof(pthread_cond_t), "a condition variable has room for it");

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	(void)attr;
	memset(cond, 0, sizeof(*cond));
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
	if (ended) /* its number would take somebody's signal; a wakeup too many is allowed */
		pthread_cond_signal(cond);
	locked = pthread_mutex_lock(mutex);
	return ended ? ended : locked;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) { return wait_for_turn(cond, mutex, -1); }

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *time)
{
	return wait_for_turn(cond, mutex, until(time));
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
	int ended = wait_until(is_positive, sem, timeout_ns);

	if (ended) {
		errno = ended;
		return -1;
	}
	sem->__val[0]--;
	return 0;
}

int sem_wait(sem_t *sem) { return take(sem, -1); }

int sem_timedwait(sem_t *sem, const struct timespec *time) { return take(sem, until(time)); }

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
