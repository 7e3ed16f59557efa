/*
 * A program that forks. The child has a device of its own, cannot use its parent's objects, and may end in any way.
 * The parent continues.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "exec_test.h"

#define FORKS 40

static void wait_for(pid_t child)
{
	int status;

	REQUIRE(child > 0);
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* In the child: everything of the parent's is refused, and nothing waits. */
static void use_inherited(struct endpoint *parents, struct rdma_event_channel *channel,
			  struct rdma_cm_id *id)
{
	struct ibv_device_attr attr;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
	struct ibv_recv_wr receive = {0}, *bad_receive = NULL;
	struct rdma_cm_event *event;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	REQUIRE(ibv_query_device(parents->context, &attr) == ENODEV);
	REQUIRE(!ibv_alloc_pd(parents->context) && errno == ENODEV);
	REQUIRE(!ibv_alloc_td(parents->context, &(struct ibv_td_init_attr){0}));
	REQUIRE(!ibv_alloc_null_mr(parents->pd) && errno == EOPNOTSUPP);
	REQUIRE(ibv_poll_cq(parents->cq, 1, &wc) < 0);
	REQUIRE(ibv_req_notify_cq(parents->cq, 0) == ENODEV);
	REQUIRE(ibv_post_send(parents->qp, &send, &bad_send) == ENODEV && bad_send == &send);
	REQUIRE(ibv_post_recv(parents->qp, &receive, &bad_receive) == ENODEV &&
		bad_receive == &receive);
	REQUIRE(ibv_get_cq_event(parents->channel, &cq, &context) == -1 && errno == ENODEV);
	REQUIRE(rdma_get_cm_event(channel, &event) == -1 && errno == ENODEV);
	REQUIRE(rdma_listen(id, 1) == -1 && errno == ENODEV);
	REQUIRE(rdma_destroy_id(id) == -1 && errno == ENODEV);
	rdma_destroy_event_channel(channel);
	REQUIRE(ibv_destroy_qp(parents->qp) == ENODEV);
	REQUIRE(ibv_dereg_mr(parents->mr) == ENODEV);
	REQUIRE(ibv_destroy_cq(parents->cq) == ENODEV);
	REQUIRE(ibv_destroy_comp_channel(parents->channel) == ENODEV);
	REQUIRE(ibv_dealloc_pd(parents->pd) == ENODEV);
	REQUIRE(ibv_close_device(parents->context) == ENODEV);
}

/* In the child: device memory is its own, with any process's context. */
static void use_device_memory(struct ibv_context *context)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_device_attr_ex device;
	char text[8] = "child";
	struct ibv_dm *dm;

	REQUIRE(!ibv_query_device_ex(context, NULL, &device) && device.max_dm_size >= attr.length);
	REQUIRE(dm = ibv_alloc_dm(context, &attr));
	REQUIRE(!ibv_memcpy_to_dm(dm, 56, text, 8) && !ibv_memcpy_from_dm(text, dm, 0, 8));
	REQUIRE(!text[0]);
	REQUIRE(!ibv_free_dm(dm));
}

/* In the child: a device from the parent's list, and one from a list of its own. */
static void use_own(struct ibv_device *device)
{
	static struct endpoint endpoint;
	struct ibv_device **list;

	endpoint_open(&endpoint, device);
	endpoint_transfer(&endpoint);
	endpoint_close(&endpoint);
	endpoint_open(&endpoint, first_device(&list));
	ibv_free_device_list(list);
	endpoint_transfer(&endpoint);
}

static atomic_bool stop;

static void *hammer(void *argument)
{
	while (!stop)
		endpoint_transfer(argument);
	return NULL;
}

/* Forks while another thread is inside the library's locks as good as always. */
static void fork_beside_traffic(struct endpoint *endpoint, struct ibv_device *device)
{
	pthread_t thread;

	REQUIRE(!pthread_create(&thread, NULL, hammer, endpoint));
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();

		if (child == 0) {
			struct ibv_wc wc;

			alarm(PATIENCE);
			REQUIRE(ibv_poll_cq(endpoint->cq, 1, &wc) < 0);
			use_device_memory(endpoint->context);
			use_own(device);
			if (i % 2)
				_exit(0);
			exit(0);
		}
		wait_for(child);
	}
	stop = true;
	pthread_join(thread, NULL);
}

int main(void)
{
	static struct endpoint endpoint;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_event_channel *channel;
	struct ibv_device **list, *device;
	struct rdma_cm_id *id;
	pid_t child;

	alarm(PATIENCE);
	REQUIRE(!ibv_fork_init());
	REQUIRE(ibv_is_fork_initialized() != IBV_FORK_DISABLED);
	device = first_device(&list);
	endpoint_open(&endpoint, device);
	endpoint_transfer(&endpoint);
	REQUIRE(channel = rdma_create_event_channel());
	REQUIRE(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_bind_addr(id, (struct sockaddr *)&address));

	child = fork();
	if (child == 0) {
		alarm(PATIENCE);
		use_inherited(&endpoint, channel, id);
		use_device_memory(endpoint.context);
		use_own(device);
		/* A child of the child is no different. */
		child = fork();
		if (child == 0) {
			alarm(PATIENCE);
			use_inherited(&endpoint, channel, id);
			use_device_memory(endpoint.context);
			use_own(device);
			exit(0);
		}
		wait_for(child);
		exit(0); /* with objects alive */
	}
	wait_for(child);
	endpoint_transfer(&endpoint);
	REQUIRE(system("true") == 0);
	fork_beside_traffic(&endpoint, device);

	endpoint_transfer(&endpoint);
	REQUIRE(!rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	endpoint_close(&endpoint);
	ibv_free_device_list(list);
	return 0;
}
