/* Read-write locks, spinlocks, barriers, things done once, and values of threads: of green threads, of which one runs at a time. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "internal.h"

static int wait_until(bool (*ready)(void *), void *object, int64_t timeout_ns)
{
	struct wait wait = {.ready = ready, .object = object};

	return wait_for(&wait, timeout_ns);
}

/* How many read; -1: one writes. */
static int *holders(pthread_rwlock_t *lock) { return &lock->__u.__i[0]; }
static bool has_no_writer(void *lock) { return *holders(lock) >= 0; }
static bool has_no_holder(void *lock) { return *holders(lock) == 0; }

int pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attr)
{
	(void)attr;
	memset(lock, 0, sizeof(*lock));
	return 0;
}

int pthread_rwlock_destroy(pthread_rwlock_t *lock) { return has_no_holder(lock) ? 0 : EBUSY; }

int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
	if (!has_no_writer(lock))
		return EBUSY;
	++*holders(lock);
	return 0;
}

int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
	if (!has_no_holder(lock))
		return EBUSY;
	*holders(lock) = -1;
	return 0;
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	int ended = wait_until(has_no_writer, lock, -1);

	return ended ? ended : pthread_rwlock_tryrdlock(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	int ended = wait_until(has_no_holder, lock, -1);

	return ended ? ended : pthread_rwlock_trywrlock(lock);
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	*holders(lock) -= *holders(lock) < 0 ? -1 : 1;
	return 0;
}

static bool is_zero(void *number) { return !*(int *)number; }

int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
	(void)shared;
	*lock = 0;
	return 0;
}

int pthread_spin_destroy(pthread_spinlock_t *lock)
{
	(void)lock;
	return 0;
}

int pthread_spin_trylock(pthread_spinlock_t *lock)
{
	if (*lock)
		return EBUSY;
	*lock = 1;
	return 0;
}

int pthread_spin_lock(pthread_spinlock_t *lock)
{
	int ended = wait_until(is_zero, (void *)lock, -1);

	return ended ? ended : pthread_spin_trylock(lock);
}

int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	*lock = 0;
	return 0;
}

struct barrier {
	uint32_t needed, arrived, round;
};
struct arrival {
	struct barrier *barrier;
	uint32_t round;
};

_Static_assert(sizeof(struct barrier) <= sizeof(pthread_barrier_t), "a barrier has room for it");

int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr, unsigned count)
{
	(void)attr;
	if (!count)
		return EINVAL;
	*(struct barrier *)(void *)barrier = (struct barrier){.needed = count};
	return 0;
}

int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
	(void)barrier;
	return 0;
}

static bool has_opened(void *object)
{
	const struct arrival *arrival = object;

	return arrival->barrier->round != arrival->round;
}

int pthread_barrier_wait(pthread_barrier_t *object)
{
	struct barrier *barrier = (void *)object;
	struct arrival arrival = {barrier, barrier->round};

	if (++barrier->arrived == barrier->needed) {
		barrier->arrived = 0;
		barrier->round++;
		return PTHREAD_BARRIER_SERIAL_THREAD;
	}
	return wait_until(has_opened, &arrival, -1);
}

enum { NOT_BEGUN = PTHREAD_ONCE_INIT, UNDER_WAY, DONE };

static bool was_done(void *control) { return *(pthread_once_t *)control == DONE; }

int pthread_once(pthread_once_t *control, void (*run)(void))
{
	if (*control == NOT_BEGUN) {
		*control = UNDER_WAY;
		run();
		*control = DONE;
	}
	return wait_until(was_done, control, -1);
}

static struct {
	bool used;
	void (*destructor)(void *);
} keys[PTHREAD_KEYS_MAX];

/* In threads.c, which is linked only for programs that make threads. */
__attribute__((weak)) void **values_of_thread(void);

static void **values(void)
{
	static void *of_main[PTHREAD_KEYS_MAX]; /* and of the scheduler, which has none but at exit */
	void **of_thread = values_of_thread ? values_of_thread() : NULL;

	return of_thread ? of_thread : of_main;
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	for (*key = 0; *key < PTHREAD_KEYS_MAX; ++*key)
		if (!keys[*key].used) {
			keys[*key].used = true;
			keys[*key].destructor = destructor;
			return 0;
		}
	return EAGAIN;
}

int pthread_key_delete(pthread_key_t key)
{
	if (key >= PTHREAD_KEYS_MAX || !keys[key].used)
		return EINVAL;
	keys[key].used = false;
	return 0;
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
	if (key >= PTHREAD_KEYS_MAX || !keys[key].used)
		return EINVAL;
	values()[key] = (void *)(uintptr_t)value;
	return 0;
}

void *pthread_getspecific(pthread_key_t key) { return key < PTHREAD_KEYS_MAX && keys[key].used ? values()[key] : NULL; }

/* Called at the end of a thread, which its values do not outlive. */
void destroy_values(void)
{
	for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS; round++)
		for (unsigned i = 0; i < PTHREAD_KEYS_MAX; i++) {
			void *value = values()[i];

			values()[i] = NULL;
			if (value && keys[i].used && keys[i].destructor)
				keys[i].destructor(value);
		}
}
