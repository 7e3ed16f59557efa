/*
 * Sockets, as programs use them to exchange the numbers of their queue pairs: a stream of bytes between roles, outside
 * of the fabric.  A host is a role's name, a port a service of its.
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
static const int64_t wait_limit = 10000000000, pause_ns = 10000000; /* for a peer that does not listen yet, in nanoseconds */

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
	if (!socket->port)
		socket->port = UNBOUND;
	stream = rdmarun_stream_listen(socket->port, (uint32_t)(backlog < 1 ? 1 : backlog > 128 ? 128 : backlog));
	if (stream >= 0) {
		socket->stream = (rdmarun_handle)stream;
		socket->listens = true;
	}
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
	int64_t until = clock_now() + wait_limit;
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
	struct descriptor *descriptor;
	struct socket *socket = socket_of(fd, &descriptor);

	return socket ? socket_write(socket, data, size, descriptor->nonblock || flags & MSG_DONTWAIT) : -1;
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
	struct descriptor *descriptor;
	struct socket *socket = socket_of(fd, &descriptor);
	size_t got = 0;

	if (!socket)
		return -1;
	if (flags & MSG_PEEK) { /* what is read of a stream is gone */
		errno = EOPNOTSUPP;
		return -1;
	}
	do {
		ssize_t some = socket_read(socket, (char *)data + got, size - got, descriptor->nonblock || flags & MSG_DONTWAIT);

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

int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	int known = 0; /* SO_ERROR: connect has waited */

	if (!socket_of(fd, NULL))
		return -1;
	if (level != SOL_SOCKET || (name != SO_ERROR && name != SO_TYPE)) {
		errno = ENOPROTOOPT;
		return -1;
	}
	if (name == SO_TYPE)
		known = SOCK_STREAM;
	if (*length > sizeof(known))
		*length = sizeof(known);
	memcpy(value, &known, *length);
	return 0;
}

/* Writes as much of an address as there is room for, and how long it is. */
static void write_address(struct sockaddr *to, socklen_t *length, const struct rdmarun_address *address)
{
	struct sockaddr_storage storage = {.ss_family = AF_INET};
	socklen_t size = address_from_host((void *)&storage, address);

	if (!size)
		size = sizeof(struct sockaddr_in);
	memcpy(to, &storage, size < *length ? size : *length);
	*length = size;
}

int getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	struct socket *socket = socket_of(fd, NULL);
	struct rdmarun_address own = {0};

	if (!socket)
		return -1;
	rdmarun_device_address(0, &own); /* without a device it is 0.0.0.0 */
	own.port = socket->port;
	write_address(address, length, &own);
	return 0;
}

/* Of a socket that accept made it is 0.0.0.0: the host does not say which role it was. */
int getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
	struct socket *socket = socket_of(fd, NULL);

	if (!socket)
		return -1;
	if (!socket->stream || socket->listens) {
		errno = ENOTCONN;
		return -1;
	}
	write_address(address, length, &socket->peer);
	return 0;
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *address, socklen_t length)
{
	(void)address, (void)length; /* of a stream it is not looked at */
	return send(fd, data, size, flags);
}

ssize_t recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *address, socklen_t *length)
{
	(void)address;
	if (length)
		*length = 0; /* a stream's peer is getpeername's */
	return recv(fd, data, size, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t sent = 0;

	if (message->msg_controllen) { /* descriptors stay in their guest */
		errno = EOPNOTSUPP;
		return -1;
	}
	for (int i = 0; i < message->msg_iovlen; i++) {
		ssize_t some = send(fd, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len, flags);

		if (some < 0)
			return sent ? sent : -1;
		sent += some;
		if ((size_t)some < message->msg_iov[i].iov_len)
			break;
	}
	return sent;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t got = 0;

	message->msg_namelen = message->msg_controllen = 0;
	message->msg_flags = 0;
	for (int i = 0; i < message->msg_iovlen; i++) {
		/* After the first bytes only what is there already, unless all is wanted. */
		ssize_t some = recv(fd, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len, got && !(flags & MSG_WAITALL) ? flags | MSG_DONTWAIT : flags);

		if (some < 0)
			return got ? got : -1;
		got += some;
		if ((size_t)some < message->msg_iov[i].iov_len)
			break;
	}
	return got;
}
