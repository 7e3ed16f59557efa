/* Sources are called while they are there, and never again. */
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "soft/base/poller.h"

#define SOURCES 40 /* more than there is room for at first */

struct reader {
	struct soft_source source; /* first: ready gets it */
	struct soft_poller *poller;
	int pipe[2];
	bool removes_itself;
	_Atomic int calls;
	sem_t called, go_on; /* go_on is waited for when slow */
	bool slow;
};

static void ready(struct soft_source *source, uint32_t events)
{
	struct reader *reader = (struct reader *)source;
	char byte;

	CHECK(events & EPOLLIN);
	CHECK(read(reader->pipe[0], &byte, 1) == 1);
	if (reader->removes_itself)
		soft_poller_remove(reader->poller, source);
	sem_post(&reader->called);
	if (reader->slow)
		sem_wait(&reader->go_on);
	atomic_fetch_add(&reader->calls, 1);
}

static void open_reader(struct reader *reader, struct soft_poller *poller)
{
	memset(reader, 0, sizeof(*reader));
	reader->poller = poller;
	sem_init(&reader->called, 0, 0);
	sem_init(&reader->go_on, 0, 0);
	CHECK(pipe(reader->pipe) == 0);
	CHECK(soft_poller_add(poller, &reader->source, reader->pipe[0], EPOLLIN, ready) == 0);
}

static void send_byte(struct reader *reader)
{
	CHECK(write(reader->pipe[1], "x", 1) == 1);
}

static void close_reader(struct reader *reader)
{
	soft_poller_remove(reader->poller, &reader->source);
	close(reader->pipe[0]);
	close(reader->pipe[1]);
	sem_destroy(&reader->called);
	sem_destroy(&reader->go_on);
}

static void test_each_is_called(struct soft_poller *poller)
{
	struct reader readers[SOURCES];

	for (int index = 0; index < SOURCES; index++)
		open_reader(&readers[index], poller);
	for (int index = 0; index < SOURCES; index++) {
		send_byte(&readers[index]);
		sem_wait(&readers[index].called);
	}
	for (int index = 0; index < SOURCES; index++) {
		close_reader(&readers[index]);
		CHECK(atomic_load(&readers[index].calls) == 1);
	}
}

static void test_silent_while_nothing_is_asked(struct soft_poller *poller)
{
	struct reader silent, other;

	open_reader(&silent, poller);
	open_reader(&other, poller);
	soft_poller_change(poller, &silent.source, 0);
	send_byte(&silent);
	send_byte(&other);
	sem_wait(&other.called);
	CHECK(sem_trywait(&silent.called) != 0);
	soft_poller_change(poller, &silent.source, EPOLLIN);
	sem_wait(&silent.called);
	close_reader(&silent);
	close_reader(&other);
}

static void test_removed_by_itself(struct soft_poller *poller)
{
	struct reader reader, other;

	open_reader(&reader, poller);
	open_reader(&other, poller);
	reader.removes_itself = true;
	send_byte(&reader);
	sem_wait(&reader.called);
	send_byte(&reader);
	send_byte(&other);
	sem_wait(&other.called);
	close_reader(&other);
	close_reader(&reader);
	CHECK(atomic_load(&reader.calls) == 1);
}

/* After removal the memory may be freed: removal waits for a running callback. */
static void *let_go_on(void *argument)
{
	struct reader *reader = argument;

	usleep(20000);
	sem_post(&reader->go_on);
	return NULL;
}

static void test_removal_waits(struct soft_poller *poller)
{
	struct reader reader;
	pthread_t thread;

	open_reader(&reader, poller);
	reader.slow = true;
	send_byte(&reader);
	sem_wait(&reader.called);
	CHECK(pthread_create(&thread, NULL, let_go_on, &reader) == 0);
	soft_poller_remove(poller, &reader.source);
	CHECK(atomic_load(&reader.calls) == 1);
	pthread_join(thread, NULL);
	close_reader(&reader);
}

int main(void)
{
	struct soft_poller poller;

	soft_poller_init(&poller);
	test_each_is_called(&poller);
	test_silent_while_nothing_is_asked(&poller);
	test_removed_by_itself(&poller);
	test_removal_waits(&poller);
	soft_poller_destroy(&poller);
	soft_poller_init(&poller); /* without a source there is no thread to stop */
	soft_poller_destroy(&poller);
	return 0;
}
