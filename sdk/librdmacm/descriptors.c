/*
 * Descriptors of what is not a file of WASI's: event channels, completion channels, eventfds, sockets.  poll waits for any of
 * them in one call of the host's; read, write, close and fcntl hand over to WASI what is its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <wasi/api.h>
#include "internal.h"

enum { MAX_DESCRIPTORS = 1024, MAX_POLLED = 256 };

static struct descriptor *descriptors[MAX_DESCRIPTORS];

int new_descriptor(const struct descriptor *descriptor)
{
	struct descriptor *copy = malloc(sizeof(*copy));

	for (int i = 0; copy && i < MAX_DESCRIPTORS; i++)
		if (!descriptors[i]) {
			*copy = *descriptor;
			descriptors[i] = copy;
			return FIRST_DESCRIPTOR + i;
		}
	errno = copy ? EMFILE : ENOMEM;
	free(copy);
	return -1;
}

struct descriptor *descriptor_of(int fd)
{
	unsigned i = (unsigned)fd - FIRST_DESCRIPTOR;

	if (i < MAX_DESCRIPTORS && descriptors[i])
		return descriptors[i];
	errno = EBADF;
	return NULL;
}

void free_descriptor(int fd)
{
	if (!descriptor_of(fd))
		return;
	free(descriptors[fd - FIRST_DESCRIPTOR]);
	descriptors[fd - FIRST_DESCRIPTOR] = NULL;
}

/* ---- poll ---- */

struct polled {
	struct pollfd *fds;
	nfds_t count;
	int found;
	struct rdmarun_poll_entry entries[MAX_POLLED];
	nfds_t of[MAX_POLLED]; /* the index of its entry */
	uint32_t entry_count;
};

static short events_here(uint32_t events)
{
	short here = 0;

	if (events & (RDMARUN_POLL_IN | RDMARUN_POLL_PRI))
		here |= POLLIN;
	if (events & RDMARUN_POLL_ERR)
		here |= POLLERR;
	if (events & RDMARUN_POLL_HUP)
		here |= POLLHUP;
	if (events & RDMARUN_POLL_NVAL)
		here |= POLLNVAL;
	return here;
}

static bool look(void *object)
{
	struct polled *polled = object;

	polled->found = 0;
	for (nfds_t i = 0; i < polled->count; i++) {
		struct pollfd *fd = &polled->fds[i];
		struct descriptor *descriptor = fd->fd < 0 ? NULL : descriptor_of(fd->fd);

		fd->revents = 0;
		if (fd->fd >= 0 && fd->fd < FIRST_DESCRIPTOR) /* WASI's files never block */
			fd->revents = fd->events & (POLLIN | POLLOUT);
		else if (fd->fd >= 0 && !descriptor)
			fd->revents = POLLNVAL;
		else if (descriptor && descriptor->ready)
			fd->revents = descriptor->ready(descriptor->object) & (fd->events | POLLERR | POLLHUP);
	}
	if (polled->entry_count && rdmarun_poll_set(polled->entries, polled->entry_count, 0) > 0)
		for (uint32_t i = 0; i < polled->entry_count; i++)
			polled->fds[polled->of[i]].revents |= events_here(polled->entries[i].revents);
	for (nfds_t i = 0; i < polled->count; i++)
		polled->found += polled->fds[i].revents != 0;
	return polled->found > 0;
}

int poll_for(struct pollfd *fds, unsigned count, int64_t timeout_ns)
{
	struct polled *polled = calloc(1, sizeof(*polled));
	struct wait wait = {.ready = look, .object = polled, .restart = RESTART_NEVER};
	int64_t until = timeout_ns < 0 ? -1 : clock_now() + timeout_ns;
	int ended, found;

	if (!polled) {
		errno = ENOMEM;
		return -1;
	}
	polled->fds = fds;
	polled->count = count;
	for (nfds_t i = 0; i < count; i++) {
		struct descriptor *descriptor = fds[i].fd < FIRST_DESCRIPTOR ? NULL : descriptor_of(fds[i].fd);
		uint32_t before = polled->entry_count;

		if (descriptor && descriptor->entries)
			polled->entry_count += descriptor->entries(descriptor->object, fds[i].events, polled->entries + before,
								   MAX_POLLED - before);
		for (uint32_t k = before; k < polled->entry_count; k++)
			polled->of[k] = i;
		wait.local |= descriptor && descriptor->local;
	}
	wait.entries = polled->entries;
	wait.count = polled->entry_count;
	do {
		int64_t next = until;

		for (nfds_t i = 0; i < count; i++) {
			struct descriptor *descriptor = fds[i].fd < FIRST_DESCRIPTOR ? NULL : descriptor_of(fds[i].fd);
			int64_t changes = descriptor && descriptor->deadline ? descriptor->deadline(descriptor->object) : -1;

			if (changes >= 0 && (next < 0 || changes < next))
				next = changes;
		}
		if (next > 0)
			next = next > clock_now() ? next - clock_now() : 0;
		ended = wait_for(&wait, next);
	} while (ended == ETIMEDOUT && !look(polled) && (until < 0 || clock_now() < until));
	found = polled->found;
	free(polled);
	if (!ended || ended == ETIMEDOUT)
		return found;
	errno = ended;
	return -1;
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms) { return poll_for(fds, count, timeout_ms < 0 ? -1 : timeout_ms * 1000000ll); }

/* For programs that have rsockets as a choice, and do not take it. */
int rpoll(struct pollfd *fds, nfds_t count, int timeout_ms) { return poll(fds, count, timeout_ms); }

/* ---- eventfd: between threads of this guest ---- */

struct counter {
	rdmarun_handle handle;
};

static uint32_t counter_entries(void *object, short events, struct rdmarun_poll_entry *entries, uint32_t room)
{
	const struct counter *counter = object;

	if (!room || !(events & POLLIN))
		return 0;
	*entries = (struct rdmarun_poll_entry){.handle = counter->handle, .events = RDMARUN_POLL_IN};
	return 1;
}

struct counter_read {
	struct counter *counter;
	uint64_t value;
	int32_t result;
};

static bool counter_take(void *object)
{
	struct counter_read *read = object;

	read->result = rdmarun_eventfd_read(read->counter->handle, &read->value);
	return read->result != -RDMARUN_EAGAIN;
}

static ssize_t counter_read(void *object, void *data, size_t size, bool nonblock)
{
	struct counter_read read = {.counter = object};
	int ended;

	if (size < sizeof(read.value)) {
		errno = EINVAL;
		return -1;
	}
	ended = wait_for_handle(counter_take, &read, read.counter->handle, RDMARUN_POLL_IN, nonblock ? 0 : -1);
	if (ended) {
		errno = nonblock ? EAGAIN : ended;
		return -1;
	}
	memcpy(data, &read.value, sizeof(read.value));
	return cm_result(read.result) ? -1 : (ssize_t)sizeof(read.value);
}

static ssize_t counter_write(void *object, const void *data, size_t size, bool nonblock)
{
	struct counter *counter = object;
	int64_t value;

	(void)nonblock;
	if (size < sizeof(value)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&value, data, sizeof(value));
	return cm_result(rdmarun_eventfd_write(counter->handle, value)) ? -1 : (ssize_t)sizeof(value);
}

static void counter_close(void *object)
{
	rdmarun_destroy_eventfd(((struct counter *)object)->handle);
	free(object);
}

int eventfd(unsigned value, int flags)
{
	struct counter *counter = calloc(1, sizeof(*counter));
	struct descriptor descriptor = {.object = counter,
					.entries = counter_entries,
					.read = counter_read,
					.write = counter_write,
					.close = counter_close,
					.nonblock = flags & EFD_NONBLOCK};
	int32_t handle = rdmarun_create_eventfd(value, flags & EFD_SEMAPHORE ? RDMARUN_EFD_SEMAPHORE : 0);
	int fd;

	if (!counter || cm_result(handle)) {
		free(counter);
		return -1;
	}
	counter->handle = (rdmarun_handle)handle;
	fd = new_descriptor(&descriptor);
	if (fd < 0)
		counter_close(counter);
	return fd;
}

int eventfd_write(int fd, eventfd_t value) { return write(fd, &value, sizeof(value)) == sizeof(value) ? 0 : -1; }

int eventfd_read(int fd, eventfd_t *value) { return read(fd, value, sizeof(*value)) == sizeof(*value) ? 0 : -1; }

/* ---- files ---- */

ssize_t write(int fd, const void *data, size_t size)
{
	struct descriptor *descriptor;
	__wasi_ciovec_t vector = {data, size};
	__wasi_size_t written;
	__wasi_errno_t error;

	if (fd < FIRST_DESCRIPTOR) {
		error = __wasi_fd_write(fd, &vector, 1, &written);
		if (!error)
			return (ssize_t)written;
		errno = error;
		return -1;
	}
	descriptor = descriptor_of(fd);
	if (descriptor && descriptor->write)
		return descriptor->write(descriptor->object, data, size, descriptor->nonblock);
	errno = EBADF;
	return -1;
}

ssize_t read(int fd, void *data, size_t size)
{
	struct descriptor *descriptor;
	__wasi_iovec_t vector = {data, size};
	__wasi_size_t got;
	__wasi_errno_t error;

	if (fd < FIRST_DESCRIPTOR) {
		error = __wasi_fd_read(fd, &vector, 1, &got);
		if (!error)
			return (ssize_t)got;
		errno = error;
		return -1;
	}
	descriptor = descriptor_of(fd);
	if (descriptor && descriptor->read)
		return descriptor->read(descriptor->object, data, size, descriptor->nonblock);
	errno = EBADF;
	return -1;
}

int close(int fd)
{
	struct descriptor *descriptor;

	if (fd < FIRST_DESCRIPTOR) {
		__wasi_errno_t error = __wasi_fd_close(fd);

		errno = error ? error : errno;
		return error ? -1 : 0;
	}
	descriptor = descriptor_of(fd);
	if (!descriptor)
		return -1;
	if (descriptor->close)
		descriptor->close(descriptor->object);
	free_descriptor(fd);
	return 0;
}

/* O_NONBLOCK is all that a program asks of these. */
int fcntl(int fd, int command, ...)
{
	struct descriptor *descriptor = fd < FIRST_DESCRIPTOR ? NULL : descriptor_of(fd);
	va_list arguments;

	if (!descriptor && fd >= FIRST_DESCRIPTOR)
		return -1;
	if (descriptor && command == F_SETFL) {
		va_start(arguments, command);
		descriptor->nonblock = va_arg(arguments, int) & O_NONBLOCK;
		va_end(arguments);
	}
	return command == F_GETFL && descriptor && descriptor->nonblock ? O_NONBLOCK : 0;
}
