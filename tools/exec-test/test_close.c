/*
 * A program that closes every descriptor that it does not know. Calls that need one of the program's descriptors fail,
 * and none crashes or hangs. The device has its own, which no other code can close or take, and continues.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "exec_test.h"

/* In glibc since 2.34; the library has them whatever the C library. */
int close_range(unsigned int first, unsigned int last, int flags);
void closefrom(int first);

enum { SINGLY, BY_RANGE, FROM, WAYS };

static void close_all_but_standard(int way)
{
	struct rlimit limit;

	REQUIRE(!getrlimit(RLIMIT_NOFILE, &limit));
	if (way == BY_RANGE)
		REQUIRE(!close_range(3, ~0u, 0));
	if (way == FROM)
		closefrom(3);
	for (int fd = 3; way == SINGLY && fd < 8192 && fd < (int)limit.rlim_cur; fd++)
		close(fd);
}

/* Descriptors from 3 on, which the program cannot close; each is called for each. */
static int count_left(void (*each)(int fd))
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	int left = 0;

	REQUIRE(folder);
	while ((entry = readdir(folder))) {
		int fd = atoi(entry->d_name);

		if (fd < 3 || fd == dirfd(folder))
			continue;
		left++;
		if (each)
			each(fd);
	}
	closedir(folder);
	return left;
}

static void try_to_take(int fd)
{
	REQUIRE(close(fd) == -1 && errno == EBADF);
	REQUIRE(dup2(0, fd) == -1 && errno == EBUSY);
	REQUIRE(dup3(0, fd, O_CLOEXEC) == -1 && errno == EBUSY);
	REQUIRE(fcntl(fd, F_GETFD) == FD_CLOEXEC);
}

/* A child has no use for them, and need not keep them. */
static void close_in_child(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		close_all_but_standard(SINGLY);
		_exit(count_left(NULL));
	}
	REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(void)
{
	struct endpoint *endpoint = calloc(WAYS, sizeof(*endpoint));
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	REQUIRE(endpoint);
	alarm(PATIENCE);
	for (int way = 0; way < WAYS; way++, endpoint++) {
		struct rdma_event_channel *channel;
		struct ibv_async_event async;
		struct rdma_cm_event *event;
		struct ibv_device **list;
		struct rdma_cm_id *id;
		struct ibv_cq *cq;
		void *context;

		endpoint_open(endpoint, first_device(&list));
		ibv_free_device_list(list);
		REQUIRE(channel = rdma_create_event_channel());
		REQUIRE(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
		close_all_but_standard(way);

		/* There is no event, and no descriptor to wait for one with. */
		REQUIRE(ibv_get_async_event(endpoint->context, &async) == -1);
		REQUIRE(ibv_get_cq_event(endpoint->channel, &cq, &context) == -1);
		REQUIRE(rdma_get_cm_event(channel, &event) == -1);
		/* Calls without a descriptor continue. Events that need one are not reported. */
		REQUIRE(!ibv_req_notify_cq(endpoint->cq, 0));
		endpoint_transfer(endpoint);
		rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000);
		count_left(try_to_take);

		/* The device must not wait for other files that have the numbers now. */
		REQUIRE(open("/dev/null", O_RDWR) >= 0 && open("/dev/null", O_RDWR) >= 0);
		endpoint_transfer(endpoint);
		close_in_child();
		REQUIRE(!rdma_destroy_id(id));
		rdma_destroy_event_channel(channel);
		ibv_ack_cq_events(endpoint->cq, 0);
		endpoint_close(endpoint);
		close_all_but_standard(way);
	}
	return 0;
}
