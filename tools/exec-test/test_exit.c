/* A program that ends in each way there is while objects, timers and threads are alive. */
#include <pthread.h>
#include <sys/wait.h>

#include "exec_test.h"

/* A connection request without an answer keeps a timer armed, and the timers' thread alive. */
static void begin(void)
{
	static struct endpoint endpoint;
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(7471),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	struct ibv_device **list;
	struct rdma_conn_param param = {.retry_count = 7};
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	endpoint_open(&endpoint, first_device(&list));
	endpoint_transfer(&endpoint);
	REQUIRE(channel = rdma_create_event_channel());
	REQUIRE(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_bind_addr(listener, (struct sockaddr *)&address));
	REQUIRE(!rdma_listen(listener, 1));
	REQUIRE(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000));
	REQUIRE(!rdma_resolve_route(id, 1000));
	REQUIRE(!rdma_create_qp(id, NULL, &attr));
	REQUIRE(!rdma_migrate_id(id, channel));
	REQUIRE(!rdma_connect(id, &param));
}

static void by_return(void)
{
}

static void by_exit(void)
{
	exit(0);
}

static void by_quick_exit(void)
{
	quick_exit(0);
}

static void *exit_thread(void *argument)
{
	(void)argument;
	usleep(10000);
	exit(0);
}

/* The process lives until its last thread, and the library's own must not keep it. */
static void by_last_thread(void)
{
	pthread_t thread;

	REQUIRE(!pthread_create(&thread, NULL, exit_thread, NULL));
	pthread_exit(NULL);
}

static void by_exec(void)
{
	execlp("true", "true", NULL);
	REQUIRE(!"exec");
}

static void call_at_exit(void)
{
	struct ibv_device **list;

	REQUIRE(first_device(&list));
	ibv_free_device_list(list);
}

/* Destructors of C++ objects, of Python modules...: the library still answers them. */
static void by_handler(void)
{
	REQUIRE(!atexit(call_at_exit));
	exit(0);
}

int main(void)
{
	static void (*const ways[])(void) = {by_return, by_exit, by_quick_exit, by_last_thread, by_exec,
					     by_handler};

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		pid_t child = fork();
		int status;

		REQUIRE(child >= 0);
		if (child == 0) {
			alarm(PATIENCE);
			begin();
			ways[i]();
			return 0;
		}
		REQUIRE(waitpid(child, &status, 0) == child);
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			fprintf(stderr, "way %zu: status %#x\n", i, (unsigned int)status);
			return 1;
		}
	}
	return 0;
}
