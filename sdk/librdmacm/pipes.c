/* Pipes, between threads of this guest: there is no other process. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"

enum { CAPACITY = 64 << 10, ATOMIC = 4096 };

struct pipe {
	bool read_end, write_end; /* open */
	size_t first, count;
	char data[CAPACITY];
};

static short readable(void *object)
{
	const struct pipe *pipe = object;

	return (short)((pipe->count ? POLLIN : 0) | (pipe->write_end ? 0 : POLLHUP));
}

static short writable(void *object)
{
	const struct pipe *pipe = object;

	return (short)((CAPACITY - pipe->count >= ATOMIC ? POLLOUT : 0) | (pipe->read_end ? 0 : POLLERR));
}

static bool may_read(void *object) { return readable(object) != 0; }

static ssize_t pipe_read(void *object, void *data, size_t size, bool nonblock)
{
	struct pipe *pipe = object;
	struct wait wait = {.ready = may_read, .object = pipe};
	size_t got = 0;
	int ended = size ? wait_for(&wait, nonblock ? 0 : -1) : 0;

	if (ended) {
		errno = nonblock ? EAGAIN : ended;
		return -1;
	}
	while (got < size && pipe->count) {
		((char *)data)[got++] = pipe->data[pipe->first];
		pipe->first = (pipe->first + 1) % CAPACITY;
		pipe->count--;
	}
	return (ssize_t)got;
}

struct writing {
	struct pipe *pipe;
	size_t least; /* so much has to fit in at once */
};

static bool may_write(void *object)
{
	const struct writing *writing = object;

	return !writing->pipe->read_end || CAPACITY - writing->pipe->count >= writing->least;
}

static ssize_t pipe_write(void *object, const void *data, size_t size, bool nonblock)
{
	struct pipe *pipe = object;
	struct writing writing = {.pipe = pipe, .least = size <= ATOMIC ? size : 1};
	struct wait wait = {.ready = may_write, .object = &writing};
	size_t sent = 0;

	while (sent < size) {
		int ended = wait_for(&wait, nonblock ? 0 : -1);

		if (ended && sent)
			break;
		if (ended) {
			errno = nonblock ? EAGAIN : ended;
			return -1;
		}
		if (!pipe->read_end) {
			raise(SIGPIPE);
			errno = EPIPE;
			return -1;
		}
		while (sent < size && pipe->count < CAPACITY)
			pipe->data[(pipe->first + pipe->count++) % CAPACITY] = ((const char *)data)[sent++];
	}
	return (ssize_t)sent;
}

static void close_end(struct pipe *pipe, bool *end)
{
	*end = false;
	if (!pipe->read_end && !pipe->write_end)
		free(pipe);
}

static void close_read(void *object) { close_end(object, &((struct pipe *)object)->read_end); }

static void close_write(void *object) { close_end(object, &((struct pipe *)object)->write_end); }

int pipe2(int ends[2], int flags)
{
	struct pipe *pipe = calloc(1, sizeof(*pipe));
	struct descriptor in = {.object = pipe, .ready = readable, .read = pipe_read, .close = close_read,
				.nonblock = flags & O_NONBLOCK, .local = true};
	struct descriptor out = {.object = pipe, .ready = writable, .write = pipe_write, .close = close_write,
				 .nonblock = flags & O_NONBLOCK, .local = true};

	if (!pipe) {
		errno = ENOMEM;
		return -1;
	}
	pipe->read_end = pipe->write_end = true;
	ends[0] = new_descriptor(&in);
	ends[1] = ends[0] < 0 ? -1 : new_descriptor(&out);
	if (ends[1] >= 0)
		return 0;
	if (ends[0] >= 0)
		free_descriptor(ends[0]);
	free(pipe);
	return -1;
}

int pipe(int ends[2]) { return pipe2(ends, 0); }
