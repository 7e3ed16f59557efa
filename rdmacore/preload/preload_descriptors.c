/*
 * Descriptors of the device, of which the program knows nothing. An adapter has none in the program's table. So a
 * program that closes all unknown descriptors (closefrom(3), a daemon) loses nothing there. Here it would lose the
 * device, and a file that it opens later could get the number of one of its sockets.
 *
 * Descriptors that the provider opens are noted (the linker's --wrap, tools/preload.mk) and have high numbers.
 * Closing one of them by other code fails as if it did not exist. Descriptors that the program gets, to wait for
 * events, belong to the program. A forked child, which has a device of its own, may close its parent's.
 */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOTED 65536 /* higher ones are treated as ordinary ones */
#define FIRST 1024 /* few programs choose numbers from here on */

/* Global, like the table of descriptors. */
static _Atomic uint64_t noted[NOTED / 64];

static bool is_ours(int fd)
{
	return fd >= 0 && fd < NOTED && atomic_load_explicit(&noted[fd / 64], memory_order_relaxed) >> fd % 64 & 1;
}

static int first_number(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > 2 * FIRST)
		return FIRST;
	return (int)limit.rlim_cur / 2;
}

static long close_now(int fd)
{
	return syscall(SYS_close, fd);
}

/* -1 and errno are passed through. */
static int note(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, first_number());

	if (high >= 0) {
		close_now(fd);
		fd = high;
	}
	if (fd >= 0 && fd < NOTED)
		atomic_fetch_or(&noted[fd / 64], UINT64_C(1) << fd % 64);
	return fd;
}

void preload_descriptors_forget(void)
{
	for (int word = 0; word < NOTED / 64; word++)
		atomic_store(&noted[word], 0);
}

/* --- calls of the provider -------------------------------------------------------------------------- */

int __real_socket(int domain, int type, int protocol);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __real_epoll_create1(int flags);
int __real_eventfd(unsigned int value, int flags);
int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_epoll_create1(int flags);
int __wrap_eventfd(unsigned int value, int flags);
int __wrap_open(const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_close(int fd);

int __wrap_socket(int domain, int type, int protocol)
{
	return note(__real_socket(domain, type, protocol));
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	return note(__real_accept4(fd, address, length, flags));
}

int __wrap_epoll_create1(int flags)
{
	return note(__real_epoll_create1(flags));
}

/* A blocking one is for the program, which waits for events. */
int __wrap_eventfd(unsigned int value, int flags)
{
	int fd = __real_eventfd(value, flags);

	return flags & EFD_NONBLOCK ? note(fd) : fd;
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list rest;
	mode_t mode = 0;

	va_start(rest, flags);
	if (flags & O_CREAT)
		mode = va_arg(rest, mode_t);
	va_end(rest);
	return note(__real_openat(AT_FDCWD, path, flags, mode));
}

int __wrap_openat(int folder, const char *path, int flags, ...)
{
	va_list rest;
	mode_t mode = 0;

	va_start(rest, flags);
	if (flags & O_CREAT)
		mode = va_arg(rest, mode_t);
	va_end(rest);
	return note(__real_openat(folder, path, flags, mode));
}

int __wrap_close(int fd)
{
	if (is_ours(fd))
		atomic_fetch_and(&noted[fd / 64], ~(UINT64_C(1) << fd % 64));
	return (int)close_now(fd);
}

/* --- calls of the program --------------------------------------------------------------------------- */

/* The functions of these names without this library; NULL until they are looked up, and then a system call is made. */
static struct {
	int (*close)(int);
	int (*dup2)(int, int);
	int (*dup3)(int, int, int);
} next;

/* Not at the first call: dlsym takes a lock, and the child of a program with threads closes descriptors. */
static __attribute__((constructor)) void find_next(void)
{
	*(void **)&next.close = dlsym(RTLD_NEXT, "close");
	*(void **)&next.dup2 = dlsym(RTLD_NEXT, "dup2");
	*(void **)&next.dup3 = dlsym(RTLD_NEXT, "dup3");
}

int preload_close(int fd) SYMBOL(close);
int preload_close_range(unsigned int first, unsigned int last, int flags) SYMBOL(close_range);
void preload_closefrom(int first) SYMBOL(closefrom);
int preload_dup2(int from, int to) SYMBOL(dup2);
int preload_dup3(int from, int to, int flags) SYMBOL(dup3);

int preload_close(int fd)
{
	if (is_ours(fd)) {
		errno = EBADF;
		return -1;
	}
	return next.close ? next.close(fd) : (int)close_now(fd);
}

/* Close a range without descriptors of the soft device. Kernels before 5.9 have no such call and return ENOSYS. */
static int close_part(unsigned int first, unsigned int last, int flags)
{
	return first > last ? 0 : (int)syscall(SYS_close_range, first, last, flags);
}

int preload_close_range(unsigned int first, unsigned int last, int flags)
{
	if (first > last) {
		errno = EINVAL;
		return -1;
	}
	for (unsigned int fd = first; fd <= last && fd < NOTED; fd++) {
		if (!is_ours((int)fd))
			continue;
		if (fd > first && close_part(first, fd - 1, flags))
			return -1;
		first = fd + 1;
	}
	return close_part(first, last, flags);
}

void preload_closefrom(int first)
{
	struct rlimit limit = {.rlim_cur = NOTED};
	int error = errno;

	first = first < 0 ? 0 : first;
	if (preload_close_range((unsigned int)first, UINT32_MAX, 0)) {
		getrlimit(RLIMIT_NOFILE, &limit);
		for (int fd = first; fd < NOTED && (rlim_t)fd < limit.rlim_cur; fd++)
			preload_close(fd);
	}
	errno = error;
}

/* dup(2) returns EBUSY for a number that another thread is about to get. */
int preload_dup3(int from, int to, int flags)
{
	if (is_ours(to)) {
		errno = EBUSY;
		return -1;
	}
	return next.dup3 ? next.dup3(from, to, flags) : (int)syscall(SYS_dup3, from, to, flags);
}

int preload_dup2(int from, int to)
{
	if (is_ours(to)) {
		errno = EBUSY;
		return -1;
	}
	if (next.dup2)
		return next.dup2(from, to);
	if (from == to)
		return fcntl(from, F_GETFD) < 0 ? -1 : to;
	return (int)syscall(SYS_dup3, from, to, 0);
}
