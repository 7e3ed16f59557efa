/*
 * Sockets, as programs use them to tell each other their queue pairs: a stream of bytes from role to role, beside the
 * fabric.  A host is a role's name, a port a service of its.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "internal.h"

enum { UNBOUND = 49152 };
static const int64_t patience = 10000000000, pause_ns = 10000000; /* for a peer that does not listen yet, in nanoseconds */

struct socket {
	rdmarun_handle stream;
	uint16_t port;
	bool listens;
	struct rdmarun_address peer;
};

static uint32_t socket_entries(void *object, short events, struct rdmarun_poll_entry *entries, uint32_t room)
{
	const struct socket *socket = object;
	uint32_t wanted = (events & POLLIN ? RDMARUN_POLL_IN : 0) | (events & POLLOUT ? RDMARUN_POLL_OUT : 0);

	if (!room || !socket->stream)
		return 0;
	*entries = (struct rdmarun_poll_entry){.handle = socket->stream, .events = wanted};
	return 1;
}

struct transfer {
	rdmarun_handle stream;
	void *in;
	const void *out;
	uint32_t size;
	int32_t result;
};

static bool transfer_some(void *object)
{
	struct transfer *transfer = object;

	if (transfer->in)
		transfer->result = rdmarun_stream_read(transfer->stream, transfer->in, transfer->size, 0);
	else if (transfer->out)
		transfer->result = rdmarun_stream_write(transfer->stream, transfer->out, transfer->size, 0);
	else
		transfer->result = rdmarun_stream_accept(transfer->stream, 0);
	return transfer->result != -RDMARUN_ETIMEDOUT;
}

static ssize_t run(struct transfer *transfer, bool nonblock)
{
	uint32_t events = transfer->out ? RDMARUN_POLL_OUT : RDMARUN_POLL_IN;
	int ended = wait_for_handle(transfer_some, transfer, transfer->stream, events, nonblock ? 0 : -1);

	if (ended) {
		errno = nonblock ? EAGAIN : ended;
		return -1;
	}
	return cm_result(transfer->result) ? -1 : transfer->result;
}

static ssize_t socket_read(void *object, void *data, size_t size, bool nonblock)
{
	struct transfer transfer = {.stream = ((struct socket *)object)->stream, .in = data, .size = size};

	return run(&transfer, nonblock);
}

/* All of it, unless that is not waited for. */
static ssize_t socket_write(void *object, const void *data, size_t size, bool nonblock)
{
	size_t sent = 0;

	while (sent < size) {
		struct transfer transfer = {
			.stream = ((struct socket *)object)->stream, .out = (const char *)data + sent, .size = size - sent};
		ssize_t some = run(&transfer, nonblock);

		if (some < 0)
			return sent ? (ssize_t)sent : -1;
		sent += (size_t)some;
	}
	return (ssize_t)sent;
}

static void socket_close(void *object)
{
	struct socket *socket = object;

	if (socket->stream)
		rdmarun_stream_close(socket->stream);
	free(socket);
}

static struct socket *socket_of(int fd, struct descriptor **descriptor)
{
	struct descriptor *found = descriptor_of(fd);

	if (!found || found->close != socket_close) {
		errno = found ? ENOTSOCK : EBADF;
		return NULL;
	}
	if (descriptor)
		*descriptor = found;
	return found->object;
}

static int new_socket(rdmarun_handle stream)
{
	struct socket *socket = calloc(1, sizeof(*socket));
	struct descriptor descriptor = {
		.object = socket, .entries = socket_entries, .read = socket_read, .write = socket_write, .close = socket_close};
	int fd;

	if (!socket) {
		errno = ENOMEM;
		return -1;
	}
	socket->stream = stream;
	fd = new_descriptor(&descriptor);
	if (fd < 0)
		free(socket);
	return fd;
}

int socket(int family, int type, int protocol)
{
	(void)protocol;
	if (family != AF_INET && family != AF_INET6) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_STREAM) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return new_socket(0);
}

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	struct socket *socket = socket_of(fd, NULL);
	struct rdmarun_address host;

	(void)length;
	if (!socket)
		return -1;
	address_to_host(&host, address);
	socket->port = host.port;
	return 0;
}

int listen(int fd, int backlog)
{
	struct socket *socket = socket_of(fd, NULL);
	int32_t stream;

	if (!socket)
		return -1;
	stream = rdmarun_stream_listen(socket->port ? socket->port : UNBOUND, (uint32_t)(backlog < 1 ? 1 : backlog > 128 ? 128 : backlog));
	if (stream >= 0)
		socket->stream = (rdmarun_handle)stream;
	return cm_result(stream);
}

int accept(int fd, struct sockaddr *address, socklen_t *length)
{
	struct descriptor *descriptor;
	struct socket *socket = socket_of(fd, &descriptor);
	struct transfer transfer = {0};
	ssize_t stream;

	if (!socket)
		return -1;
	transfer.stream = socket->stream;
	stream = run(&transfer, descriptor->nonblock);
	if (stream < 0)
		return -1;
	if (address && length)
		memset(address, 0, *length);
	return new_socket((rdmarun_handle)stream);
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	struct socket *socket = socket_of(fd, NULL);
	struct timespec pause = {.tv_nsec = pause_ns};
	int64_t until = clock_now() + patience;
	const char *role;
	int32_t stream;

	(void)length;
	if (!socket)
		return -1;
	address_to_host(&socket->peer, address);
	role = role_of(&socket->peer);
	if (!role) { /* other addresses are no role's */
		errno = EHOSTUNREACH;
		return -1;
	}
	for (;;) {
		stream = rdmarun_stream_connect(role, strlen(role), socket->peer.port, 0);
		if (stream != -RDMARUN_ECONNREFUSED || clock_now() >= until)
			break;
		nanosleep(&pause, NULL);
	}
	if (stream >= 0)
		socket->stream = (rdmarun_handle)stream;
	return cm_result(stream);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
	(void)flags;
	return socket_of(fd, NULL) ? write(fd, data, size) : -1;
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
	char *to = data;
	size_t got = 0;

	if (!socket_of(fd, NULL))
		return -1;
	do {
		ssize_t some = read(fd, to + got, size - got);

		if (some <= 0)
			return got ? (ssize_t)got : some;
		got += (size_t)some;
	} while (flags & MSG_WAITALL && got < size);
	return (ssize_t)got;
}

int shutdown(int fd, int how)
{
	(void)how;
	return socket_of(fd, NULL) ? 0 : -1;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	(void)level, (void)name, (void)value, (void)length;
	return socket_of(fd, NULL) ? 0 : -1;
}
