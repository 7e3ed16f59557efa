/* Ways to wait for many descriptors that end in poll: select, epoll; and descriptors of time. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "internal.h"

/* ---- select ---- */

static bool is_in(int fd, const fd_set *set) { return set && FD_ISSET(fd, set); }

static int select_for(int count, fd_set *in, fd_set *out, fd_set *except, int64_t timeout_ns)
{
	struct pollfd *fds;
	unsigned used = 0;
	int found, bits = 0;

	if (count < 0 || count > FD_SETSIZE) {
		errno = EINVAL;
		return -1;
	}
	fds = calloc((size_t)count + 1, sizeof(*fds));
	if (!fds) {
		errno = ENOMEM;
		return -1;
	}
	for (int fd = 0; fd < count; fd++)
		if (is_in(fd, in) || is_in(fd, out))
			fds[used++] = (struct pollfd){.fd = fd, .events = (short)((is_in(fd, in) ? POLLIN : 0) | (is_in(fd, out) ? POLLOUT : 0))};
	found = poll_for(fds, used, timeout_ns);
	if (found >= 0) {
		if (in)
			FD_ZERO(in);
		if (out)
			FD_ZERO(out);
		if (except)
			FD_ZERO(except); /* nothing here has urgent data */
	}
	for (unsigned i = 0; found > 0 && i < used; i++) {
		if (fds[i].revents & POLLNVAL) {
			errno = EBADF;
			found = -1;
			break;
		}
		if (fds[i].events & POLLIN && fds[i].revents & (POLLIN | POLLHUP | POLLERR)) {
			FD_SET(fds[i].fd, in);
			bits++;
		}
		if (fds[i].events & POLLOUT && fds[i].revents & (POLLOUT | POLLERR)) {
			FD_SET(fds[i].fd, out);
			bits++;
		}
	}
	free(fds);
	return found < 0 ? -1 : bits;
}

int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except, struct timeval *restrict timeout)
{
	return select_for(count, in, out, except, timeout ? timeout->tv_sec * 1000000000ll + timeout->tv_usec * 1000ll : -1);
}

int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except, const struct timespec *restrict timeout,
	    const sigset_t *restrict mask)
{
	(void)mask; /* signals come where a thread waits, never before */
	return select_for(count, in, out, except, timeout ? timeout->tv_sec * 1000000000ll + timeout->tv_nsec : -1);
}

/* ---- epoll ---- */

struct epoll {
	struct pollfd *fds;
	struct epoll_event *events;
	unsigned count, room;
};

static void epoll_close(void *object)
{
	struct epoll *epoll = object;

	free(epoll->fds);
	free(epoll->events);
	free(epoll);
}

static struct epoll *epoll_of(int fd)
{
	struct descriptor *descriptor = descriptor_of(fd);

	if (descriptor && descriptor->close == epoll_close)
		return descriptor->object;
	errno = descriptor ? EINVAL : EBADF;
	return NULL;
}

int epoll_create1(int flags)
{
	struct epoll *epoll = calloc(1, sizeof(*epoll));
	struct descriptor descriptor = {.object = epoll, .close = epoll_close};
	int fd;

	(void)flags;
	if (!epoll) {
		errno = ENOMEM;
		return -1;
	}
	fd = new_descriptor(&descriptor);
	if (fd < 0)
		free(epoll);
	return fd;
}

int epoll_create(int size)
{
	if (size > 0)
		return epoll_create1(0);
	errno = EINVAL;
	return -1;
}

static bool add_watched(struct epoll *epoll, int fd)
{
	if (epoll->count == epoll->room) {
		unsigned room = epoll->room ? 2 * epoll->room : 8;
		struct pollfd *fds = realloc(epoll->fds, room * sizeof(*fds));
		struct epoll_event *events = fds ? realloc(epoll->events, room * sizeof(*events)) : NULL;

		epoll->fds = fds ? fds : epoll->fds;
		epoll->events = events ? events : epoll->events;
		if (!events) {
			errno = ENOMEM;
			return false;
		}
		epoll->room = room;
	}
	epoll->fds[epoll->count++] = (struct pollfd){.fd = fd};
	return true;
}

int epoll_ctl(int where, int operation, int fd, struct epoll_event *event)
{
	struct epoll *epoll = epoll_of(where);
	struct descriptor *descriptor;
	unsigned i = 0;

	if (!epoll)
		return -1;
	if (fd < FIRST_DESCRIPTOR) { /* files are always ready, as they are for Linux */
		errno = fd < 0 ? EBADF : EPERM;
		return -1;
	}
	descriptor = descriptor_of(fd);
	if (!descriptor && operation != EPOLL_CTL_DEL)
		return -1;
	if (descriptor && descriptor->close == epoll_close) {
		errno = EINVAL;
		return -1;
	}
	while (i < epoll->count && epoll->fds[i].fd != fd)
		i++;
	if ((operation == EPOLL_CTL_ADD) == (i < epoll->count) || operation < EPOLL_CTL_ADD || operation > EPOLL_CTL_MOD) {
		errno = operation < EPOLL_CTL_ADD || operation > EPOLL_CTL_MOD ? EINVAL : operation == EPOLL_CTL_ADD ? EEXIST : ENOENT;
		return -1;
	}
	if (operation == EPOLL_CTL_DEL) {
		epoll->fds[i] = epoll->fds[--epoll->count];
		epoll->events[i] = epoll->events[epoll->count];
		return 0;
	}
	if (!event) {
		errno = EFAULT;
		return -1;
	}
	if (operation == EPOLL_CTL_ADD && !add_watched(epoll, fd))
		return -1;
	epoll->events[i] = *event;
	epoll->fds[i].events = (short)(event->events & (EPOLLIN | EPOLLPRI | EPOLLOUT)); /* poll has the same bits */
	return 0;
}

/* A descriptor that was closed leaves the set by itself. */
static void drop_closed(struct epoll *epoll)
{
	for (unsigned i = epoll->count; i-- > 0;)
		if (epoll->fds[i].fd >= 0 && !descriptor_of(epoll->fds[i].fd)) {
			epoll->fds[i] = epoll->fds[--epoll->count];
			epoll->events[i] = epoll->events[epoll->count];
		}
}

static uint32_t epoll_events(short found)
{
	return (found & POLLIN ? EPOLLIN : 0) | (found & POLLOUT ? EPOLLOUT : 0) | (found & POLLERR ? EPOLLERR : 0) | (found & POLLHUP ? EPOLLHUP : 0);
}

int epoll_wait(int where, struct epoll_event *events, int room, int timeout_ms)
{
	struct epoll *epoll = epoll_of(where);
	struct pollfd *fds;
	unsigned count;
	int error, written = 0;

	if (!epoll)
		return -1;
	if (room <= 0) {
		errno = EINVAL;
		return -1;
	}
	error = errno;
	drop_closed(epoll);
	errno = error;
	count = epoll->count;
	fds = calloc((size_t)count + 1, sizeof(*fds)); /* others may change the set meanwhile */
	if (!fds) {
		errno = ENOMEM;
		return -1;
	}
	for (unsigned i = 0; i < count; i++) {
		fds[i] = epoll->fds[i];
		fds[i].events = (short)((epoll->events[i].events & EPOLLIN ? POLLIN : 0) | (epoll->events[i].events & EPOLLOUT ? POLLOUT : 0));
	}
	if (poll_for(fds, count, timeout_ms < 0 ? -1 : timeout_ms * 1000000ll) < 0) {
		free(fds);
		return -1;
	}
	for (unsigned i = 0; i < count && written < room; i++)
		for (unsigned k = 0; fds[i].revents && !(fds[i].revents & POLLNVAL) && k < epoll->count; k++)
			if (epoll->fds[k].fd == fds[i].fd) {
				events[written++] = (struct epoll_event){.events = epoll_events(fds[i].revents), .data = epoll->events[k].data};
				if (epoll->events[k].events & EPOLLONESHOT)
					epoll->events[k].events = 0;
				break;
			}
	free(fds);
	return written;
}

int epoll_pwait(int where, struct epoll_event *events, int room, int timeout_ms, const sigset_t *mask)
{
	(void)mask; /* signals come where a thread waits, never before */
	return epoll_wait(where, events, room, timeout_ms);
}

/* ---- timerfd ---- */

struct timer {
	clockid_t clock;
	int64_t at, every; /* on the run's clock; at: -1 if it is not set */
};

static short timer_ready(void *object)
{
	const struct timer *timer = object;

	return timer->at >= 0 && timer->at <= clock_now() ? POLLIN : 0;
}

static int64_t timer_deadline(void *object) { return ((struct timer *)object)->at; }

static bool timer_expired(void *object) { return timer_ready(object) != 0; }

static ssize_t timer_read(void *object, void *data, size_t size, bool nonblock)
{
	struct timer *timer = object;
	struct wait wait = {.ready = timer_expired, .object = timer};
	uint64_t expired = 1;
	int ended = 0;

	if (size < sizeof(expired)) {
		errno = EINVAL;
		return -1;
	}
	while (!timer_expired(timer)) {
		int64_t left = timer->at < 0 ? -1 : timer->at - clock_now();

		ended = nonblock ? EAGAIN : wait_for(&wait, left == 0 ? 1 : left);
		if (ended && ended != ETIMEDOUT) {
			errno = ended;
			return -1;
		}
	}
	if (timer->every) {
		expired = 1 + (uint64_t)((clock_now() - timer->at) / timer->every);
		timer->at += (int64_t)expired * timer->every;
	} else {
		timer->at = -1;
	}
	memcpy(data, &expired, sizeof(expired));
	return sizeof(expired);
}

static struct timer *timer_of(int fd)
{
	struct descriptor *descriptor = descriptor_of(fd);

	if (descriptor && descriptor->close == free && descriptor->read == timer_read)
		return descriptor->object;
	errno = descriptor ? EINVAL : EBADF;
	return NULL;
}

int timerfd_create(clockid_t clock, int flags)
{
	struct timer *timer = calloc(1, sizeof(*timer));
	struct descriptor descriptor = {.object = timer, .ready = timer_ready, .deadline = timer_deadline, .read = timer_read,
					.close = free, .nonblock = flags & TFD_NONBLOCK, .local = true};
	int fd;

	if (!timer) {
		errno = ENOMEM;
		return -1;
	}
	timer->clock = clock;
	timer->at = -1;
	fd = new_descriptor(&descriptor);
	if (fd < 0)
		free(timer);
	return fd;
}

static struct timespec timespec_of(int64_t nanoseconds)
{
	return (struct timespec){.tv_sec = nanoseconds / 1000000000, .tv_nsec = (long)(nanoseconds % 1000000000)};
}

static bool is_time(const struct timespec *time)
{
	return time->tv_sec >= 0 && time->tv_sec < INT64_MAX / 2000000000 && time->tv_nsec >= 0 && time->tv_nsec < 1000000000;
}

int timerfd_gettime(int fd, struct itimerspec *value)
{
	struct timer *timer = timer_of(fd);
	int64_t left;

	if (!timer)
		return -1;
	left = timer->at < 0 ? 0 : timer->at - clock_now();
	if (left < 0 && timer->every)
		left = timer->every + left % timer->every;
	*value = (struct itimerspec){.it_interval = timespec_of(timer->every), .it_value = timespec_of(left < 0 ? 0 : left)};
	return 0;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
	struct timer *timer = timer_of(fd);
	int64_t length;

	if (!timer || (old && timerfd_gettime(fd, old)))
		return -1;
	if (!is_time(&value->it_value) || !is_time(&value->it_interval)) {
		errno = EINVAL;
		return -1;
	}
	length = value->it_value.tv_sec * 1000000000ll + value->it_value.tv_nsec;
	timer->every = value->it_interval.tv_sec * 1000000000ll + value->it_interval.tv_nsec;
	if (!length) {
		timer->at = -1;
		return 0;
	}
	if (flags & TFD_TIMER_ABSTIME) {
		struct timespec now;

		clock_gettime(timer->clock, &now);
		length -= now.tv_sec * 1000000000ll + now.tv_nsec;
	}
	timer->at = clock_now() + (length < 0 ? 0 : length);
	return 0;
}
