/*
 * The channel to the rdmarun that runs this program as a role. It carries faults to the program. The provider counts in
 * memory that rdmarun reads. RDMARUN_EXEC_CONTROL names the socket. Whatever happens to the channel, the program
 * continues as without it.
 */
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "provider/control.h"
#include "soft/base/mutex.h"

#define WELCOME_TIME 2000 /* milliseconds that a program waits for the first message */
#define READY_TIME 2 /* seconds that it waits for the faults that are in force */

/* Of this process. After preload_control_begin, the thread alone uses it. */
static struct {
	int fd; /* -1: there is no channel */
	struct core_provider *provider;
	sem_t ready;
} control = {.fd = -1};

/*
 * connect(2) does not wait for room in the backlog. Any user may bind a name that is free, so the peer must be of this
 * user or root.
 */
int preload_control_connect(const char *name, int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX}; /* abstract: the name begins with a 0 */
	size_t length = strlen(name);
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int fd;

	if (!length || length >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path + 1, name, length);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (!connect(fd, (const struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) &&
	    !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && (!peer.uid || peer.uid == geteuid()))
		return fd;
	close(fd);
	return -1;
}

/* While the program runs, a full socket fails: an rdmarun that does not read must not delay it. */
static bool say(const void *message, size_t size)
{
	return send(control.fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

static bool say_hello(void)
{
	struct core_control_hello hello = {.version = CORE_CONTROL_VERSION, .fault_size = sizeof(struct core_fault)};
	struct core_counter counters[CORE_COUNTERS_MAX];
	int count = control.provider->counters(control.provider, counters);

	for (int row = 0; row < count; row++) {
		strncpy(hello.counter[row].name, counters[row].name, CORE_CONTROL_NAME - 1);
		hello.counter[row].index = counters[row].index;
	}
	hello.counters = count < 0 ? 0 : (uint32_t)count;
	return say(&hello, sizeof(hello));
}

/* False ends the channel. */
static bool answer_to(const struct core_control_request *request)
{
	struct core_control_answer answer = {.kind = request->kind, .number = request->number};

	switch (request->kind) {
	case CORE_CONTROL_READY:
		sem_post(&control.ready);
		return true;
	case CORE_CONTROL_FAULT_ADD:
		answer.result = control.provider->fault_add(control.provider, &request->fault);
		break;
	case CORE_CONTROL_FAULT_REMOVE:
		answer.result = control.provider->fault_remove(control.provider, (int)request->rule, &answer.count);
		break;
	case CORE_CONTROL_HOLD_EVENTS:
		answer.count = preload_events_hold(control.provider, request->hold);
		break;
	default:
		answer.result = -EOPNOTSUPP;
	}
	return say(&answer, sizeof(answer));
}

/* Until rdmarun ends the channel. */
static void *serve(void *argument)
{
	struct core_control_request request;
	ssize_t length;

	do {
		/* One more byte would be another version. */
		length = recv(control.fd, &request, sizeof(request), MSG_TRUNC);
	} while ((length == sizeof(request) && answer_to(&request)) || (length < 0 && errno == EINTR));
	preload_events_hold(control.provider, false);
	sem_post(&control.ready);
	return argument;
}

/* The file in memory that comes with the first message; -1 if none does. */
static int receive_tally(int fd)
{
	struct core_control_welcome welcome;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} rights;
	struct iovec part = {&welcome, sizeof(welcome)};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &rights,
		.msg_controllen = sizeof(rights),
	};
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	struct cmsghdr *header;
	struct stat status;
	int file;

	if (poll(&readable, 1, WELCOME_TIME) != 1 || recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != sizeof(welcome))
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&file, CMSG_DATA(header), sizeof(file));
	if (welcome.version == CORE_CONTROL_VERSION && welcome.tally_size == sizeof(struct core_tally) &&
	    !fstat(file, &status) && status.st_size >= (off_t)sizeof(struct core_tally))
		return file;
	close(file);
	return -1;
}

struct core_tally *preload_control_open(void)
{
	const char *name = getenv("RDMARUN_EXEC_CONTROL");
	void *tally = MAP_FAILED;
	int file;

	control.fd = name ? preload_control_connect(name, SOCK_SEQPACKET) : -1;
	if (control.fd < 0)
		return NULL;
	file = receive_tally(control.fd);
	if (file >= 0) {
		tally = mmap(NULL, sizeof(struct core_tally), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		close(file);
	}
	/* Also without it, the next message reports the version of this library. */
	return tally == MAP_FAILED ? NULL : tally;
}

void preload_control_begin(struct core_provider *provider)
{
	struct timespec end;
	pthread_t thread;

	if (control.fd < 0)
		return;
	control.provider = provider;
	sem_init(&control.ready, 0, 0);
	if (fcntl(control.fd, F_SETFL, 0) || !say_hello() || soft_thread_create(&thread, serve, NULL)) {
		preload_control_forget();
		return;
	}
	pthread_detach(thread);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += READY_TIME;
	while (sem_timedwait(&control.ready, &end) && errno == EINTR)
		;
}

void preload_control_forget(void)
{
	if (control.fd >= 0)
		close(control.fd);
	control.fd = -1;
}
