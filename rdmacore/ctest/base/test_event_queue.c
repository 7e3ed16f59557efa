/*
 * Event queues: each event is taken once, and the descriptor is readable exactly while there are events, however
 * threads wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "soft/base/event_queue.h"

#define NODES 4
#define PUSHES 20000 /* of each node */
#define TAKERS 3

static struct soft_event_queue queue;
static struct soft_event_node nodes[NODES];
static _Atomic uint32_t taken, stopped;

static bool readable(int milliseconds)
{
	struct pollfd fd = {.fd = queue.fd, .events = POLLIN};

	return poll(&fd, 1, milliseconds) == 1;
}

static void open_queue(void)
{
	memset(&queue, 0, sizeof(queue));
	memset(nodes, 0, sizeof(nodes));
	CHECK(!soft_event_queue_init(&queue, NULL));
}

/* Taken one by one: several deliveries of a node are as many events. */
static void test_alone(void)
{
	open_queue();
	CHECK(!readable(0) && !soft_event_queue_try_pop(&queue));
	soft_event_queue_push(&queue, &nodes[0]);
	soft_event_queue_push(&queue, &nodes[1]);
	soft_event_queue_push(&queue, &nodes[0]);
	CHECK(readable(0) && !soft_event_queue_wait(&queue));
	CHECK(soft_event_queue_pop(&queue) == &nodes[0] && readable(0));
	CHECK(soft_event_queue_pop(&queue) == &nodes[1] && readable(0));
	CHECK(soft_event_queue_pop(&queue) == &nodes[0] && !readable(0));
	soft_event_queue_push(&queue, &nodes[2]);
	CHECK(readable(0) && soft_event_queue_remove(&queue, &nodes[2]) == 0 && !readable(0));
	soft_event_queue_destroy(&queue);
}

static void ignore(int number)
{
	(void)number;
}

/* Operations that do not wait. */
static void test_no_wait(void)
{
	struct sigaction action = {.sa_handler = ignore};
	int fd;

	open_queue();
	CHECK(!sigaction(SIGALRM, &action, NULL));
	alarm(1);
	CHECK(!soft_event_queue_pop(&queue) && errno == EINTR);
	CHECK(!fcntl(queue.fd, F_SETFL, O_NONBLOCK) && !soft_event_queue_blocks(&queue));
	CHECK(!soft_event_queue_pop(&queue) && errno == EAGAIN);
	CHECK(soft_event_queue_wait(&queue) == -1 && errno == EAGAIN);
	soft_event_queue_push(&queue, &nodes[0]);
	CHECK(soft_event_queue_pop(&queue) == &nodes[0] && !readable(0));
	fd = dup(queue.fd);
	CHECK(fd >= 0 && !close(queue.fd));
	CHECK(!soft_event_queue_pop(&queue) && errno == EBADF);
	queue.fd = fd;
	soft_event_queue_destroy(&queue);
}

static void *take_one(void *argument)
{
	(void)argument;
	CHECK(soft_event_queue_pop(&queue));
	return NULL;
}

/* A waiting thread is cancelled, and the descriptor still shows whether there are events. */
static void test_cancelled(void)
{
	pthread_t thread;
	void *result;

	open_queue();
	for (int turn = 0; turn < 50; turn++) {
		CHECK(!pthread_create(&thread, NULL, take_one, NULL));
		if (turn % 2)
			usleep(1000);
		CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result) && result == PTHREAD_CANCELED);
		soft_event_queue_push(&queue, &nodes[0]);
		CHECK(readable(0) && soft_event_queue_pop(&queue) && !readable(0));
	}
	soft_event_queue_destroy(&queue);
}

static void *push_all(void *argument)
{
	for (int push = 0; push < PUSHES; push++)
		soft_event_queue_push(&queue, argument);
	return NULL;
}

/* Three ways: take; wait and then take; poll the descriptor first. */
static void *take_all(void *argument)
{
	uintptr_t way = (uintptr_t)argument;

	while (atomic_load(&taken) < NODES * PUSHES) {
		struct soft_event_node *node = NULL;

		if (way == 0)
			node = soft_event_queue_pop(&queue);
		else if (way == 1 && !soft_event_queue_wait(&queue))
			node = soft_event_queue_try_pop(&queue);
		else if (way == 2 && readable(1))
			node = soft_event_queue_try_pop(&queue);
		if (node)
			atomic_fetch_add(&taken, 1);
	}
	atomic_fetch_add(&stopped, 1);
	return NULL;
}

static void test_together(void)
{
	pthread_t pushers[NODES], takers[TAKERS];
	uint32_t sum = 0;

	open_queue();
	for (uintptr_t way = 0; way < TAKERS; way++)
		CHECK(!pthread_create(&takers[way], NULL, take_all, (void *)way));
	for (int node = 0; node < NODES; node++)
		CHECK(!pthread_create(&pushers[node], NULL, push_all, &nodes[node]));
	for (int node = 0; node < NODES; node++)
		CHECK(!pthread_join(pushers[node], NULL));
	while (atomic_load(&taken) < NODES * PUSHES)
		usleep(1000);
	for (int node = 0; node < NODES; node++)
		sum += nodes[node].taken;
	CHECK(sum == NODES * PUSHES);
	/* Threads that still wait get one more event. */
	while (atomic_load(&stopped) < TAKERS) {
		soft_event_queue_push(&queue, &nodes[0]);
		usleep(1000);
	}
	for (int way = 0; way < TAKERS; way++)
		CHECK(!pthread_join(takers[way], NULL));
	while (soft_event_queue_try_pop(&queue))
		;
	CHECK(!readable(0));
	soft_event_queue_destroy(&queue);
}

int main(void)
{
	test_alone();
	test_no_wait();
	test_cancelled();
	test_together();
	return 0;
}
