/*
 * What threads of sdk/librdmacm promise: they wait for each other, for time and for descriptors, and end each other. A
 * stack overflow of a thread ends the guest ("overflow").
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define CHECK(what)                                                                \
	do {                                                                       \
		if (!(what)) {                                                     \
			printf("line %d: %s does not hold\n", __LINE__, #what);    \
			exit(1);                                                   \
		}                                                                  \
	} while (0)

enum { ROUNDS = 100, MANY = 50, CROWD = 100000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t ping, pong;
static int turns, waiting, released, counter_fd;

static void *answer(void *argument)
{
	for (int i = 0; i < ROUNDS; i++) {
		sem_wait(&ping);
		turns++;
		sem_post(&pong);
	}
	return argument;
}

static void *wait_to_be_released(void *unused)
{
	pthread_mutex_lock(&mutex);
	waiting++;
	while (!released)
		pthread_cond_wait(&changed, &mutex);
	waiting--;
	pthread_mutex_unlock(&mutex);
	return unused;
}

static void *count_up(void *unused)
{
	uint64_t one = 1;

	usleep(1000);
	CHECK(write(counter_fd, &one, sizeof(one)) == sizeof(one));
	pthread_exit(unused);
}

static void *wait_for_ever(void *unused)
{
	poll(NULL, 0, -1);
	printf("a cancelled thread went on\n");
	return unused;
}

static int deeper(volatile char *above)
{
	volatile char here[4096];

	here[0] = above[0];
	usleep(1);
	return deeper(here) + here[0];
}

static void *overflow(void *unused)
{
	char first = 1;

	printf("%d\n", deeper(&first));
	return unused;
}

static void take_turns(void)
{
	pthread_t thread;
	void *result;

	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	CHECK(!pthread_create(&thread, NULL, answer, &turns));
	for (int i = 0; i < ROUNDS; i++) {
		sem_post(&ping);
		sem_wait(&pong);
		CHECK(turns == i + 1);
	}
	CHECK(!pthread_join(thread, &result) && result == &turns);
	CHECK(sem_trywait(&pong) < 0 && errno == EAGAIN);
}

static void release_all(void)
{
	pthread_t threads[MANY];
	struct timespec soon;

	for (int i = 0; i < MANY; i++)
		CHECK(!pthread_create(&threads[i], NULL, wait_to_be_released, NULL));
	while (waiting < MANY)
		sched_yield();
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_nsec += 1000000;
	pthread_mutex_lock(&mutex);
	CHECK(pthread_cond_timedwait(&changed, &mutex, &soon) == ETIMEDOUT);
	released = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < MANY; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!waiting);
}

/* More threads than there is memory for: the last is refused, and those that there are go on. */
static void crowd(void)
{
	pthread_t *threads = calloc(CROWD, sizeof(*threads));
	int made = 0, refused = 0;

	CHECK(threads);
	while (made < CROWD && !(refused = pthread_create(&threads[made], NULL, wait_to_be_released, NULL)))
		made++;
	CHECK(made >= MANY && made < CROWD && refused == EAGAIN);
	while (waiting < made)
		sched_yield();
	pthread_mutex_lock(&mutex);
	released = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < made; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!waiting);
	CHECK(!pthread_create(&threads[0], NULL, wait_to_be_released, NULL)); /* there is room again */
	CHECK(!pthread_join(threads[0], NULL));
	printf("threads: a crowd that was refused, and went on\n");
}

static void poll_descriptors(void)
{
	struct pollfd fd = {.events = POLLIN};
	pthread_t thread;
	uint64_t value;

	counter_fd = fd.fd = eventfd(0, EFD_NONBLOCK);
	CHECK(counter_fd >= 0);
	CHECK(poll(&fd, 1, 0) == 0 && poll(&fd, 1, 1) == 0);
	CHECK(read(counter_fd, &value, sizeof(value)) < 0 && errno == EAGAIN);
	CHECK(!pthread_create(&thread, NULL, count_up, NULL));
	CHECK(poll(&fd, 1, -1) == 1 && fd.revents == POLLIN);
	CHECK(read(counter_fd, &value, sizeof(value)) == sizeof(value) && value == 1);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!close(counter_fd));
	CHECK(poll(&fd, 1, -1) == 1 && fd.revents == POLLNVAL);
	CHECK(read(counter_fd, &value, sizeof(value)) < 0 && errno == EBADF);
}

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static int initialized, destroyed, serial, inside;

static void initialize(void)
{
	usleep(1);
	initialized++;
}

static void destroy(void *value) { destroyed += value == &destroyed; }

/* Each thread has its own errno and values, whatever others do while it waits. */
static void *own(void *number)
{
	CHECK(!pthread_once(&once, initialize) && initialized == 1);
	errno = (int)(intptr_t)number;
	CHECK(!pthread_setspecific(key, &destroyed));
	serial += pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
	CHECK(errno == (int)(intptr_t)number);
	CHECK(!pthread_rwlock_rdlock(&shared));
	inside++;
	usleep(1);
	CHECK(pthread_rwlock_trywrlock(&shared) == EBUSY);
	inside--;
	CHECK(!pthread_rwlock_unlock(&shared));
	CHECK(!pthread_rwlock_wrlock(&shared) && !inside);
	usleep(1);
	CHECK(!inside && !pthread_rwlock_unlock(&shared));
	if (number == (void *)1)
		pthread_exit(number);
	return number;
}

static void have_their_own(void)
{
	pthread_t threads[4];
	pthread_attr_t attr;
	size_t size;

	pthread_attr_init(&attr);
	CHECK(pthread_attr_setstacksize(&attr, 1) == EINVAL);
	CHECK(!pthread_attr_setstacksize(&attr, 1 << 20) && !pthread_attr_getstacksize(&attr, &size) && size == 1 << 20);
	CHECK(!pthread_key_create(&key, destroy) && !pthread_getspecific(key));
	CHECK(!pthread_barrier_init(&barrier, NULL, 4));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], &attr, own, (void *)(intptr_t)(i + 1)));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(initialized == 1 && destroyed == 4 && serial == 1 && !pthread_getspecific(key));
}

static void lock_again(void)
{
	pthread_mutexattr_t attr;
	pthread_condattr_t clock;
	pthread_mutex_t again, checked;
	pthread_cond_t later;
	pthread_spinlock_t spin;
	struct timespec soon;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&again, &attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&checked, &attr);
	CHECK(!pthread_mutex_lock(&again) && !pthread_mutex_lock(&again) && !pthread_mutex_unlock(&again) && !pthread_mutex_unlock(&again));
	CHECK(pthread_mutex_unlock(&checked) == EPERM && !pthread_mutex_lock(&checked) && pthread_mutex_lock(&checked) == EDEADLK);
	clock_gettime(CLOCK_REALTIME, &soon);
	CHECK(!pthread_mutex_lock(&mutex) && pthread_mutex_timedlock(&mutex, &soon) == ETIMEDOUT && !pthread_mutex_unlock(&mutex));
	pthread_condattr_init(&clock);
	CHECK(!pthread_condattr_setclock(&clock, CLOCK_MONOTONIC) && !pthread_cond_init(&later, &clock));
	clock_gettime(CLOCK_MONOTONIC, &soon);
	CHECK(pthread_cond_timedwait(&later, &checked, &soon) == ETIMEDOUT);
	CHECK(!pthread_spin_init(&spin, 0) && !pthread_spin_lock(&spin) && pthread_spin_trylock(&spin) == EBUSY && !pthread_spin_unlock(&spin));
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *result;

	if (argc > 1 && !strcmp(argv[1], "overflow")) {
		CHECK(!pthread_create(&thread, NULL, overflow, NULL));
		pthread_join(thread, NULL);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "crowd")) {
		crowd();
		return 0;
	}
	take_turns();
	release_all();
	poll_descriptors();
	have_their_own();
	lock_again();
	CHECK(!pthread_create(&thread, NULL, wait_for_ever, NULL));
	usleep(1000);
	CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result) && result == PTHREAD_CANCELED);
	printf("threads: all that was promised holds\n");
	return 0;
}
