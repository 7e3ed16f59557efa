/* A program that closes every descriptor that it does not know: calls fail, and none crashes or hangs. */
#include <fcntl.h>
#include <sys/resource.h>

#include "exec_test.h"

static void close_all_but_standard(void)
{
	struct rlimit limit;

	REQUIRE(!getrlimit(RLIMIT_NOFILE, &limit));
	for (int fd = 3; fd < 4096 && fd < (int)limit.rlim_cur; fd++)
		close(fd);
}

int main(void)
{
	static struct endpoint endpoint;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_event_channel *channel;
	struct ibv_async_event async;
	struct rdma_cm_event *event;
	struct ibv_device **list;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	void *context;

	alarm(PATIENCE);
	endpoint_open(&endpoint, first_device(&list));
	ibv_free_device_list(list);
	REQUIRE(channel = rdma_create_event_channel());
	REQUIRE(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	close_all_but_standard();

	/* There is no event, and no descriptor to wait for one with. */
	REQUIRE(ibv_get_async_event(endpoint.context, &async) == -1);
	REQUIRE(ibv_get_cq_event(endpoint.channel, &cq, &context) == -1);
	REQUIRE(rdma_get_cm_event(channel, &event) == -1);
	/* What needs none goes on; what tells of it through one tells nobody. */
	REQUIRE(!ibv_req_notify_cq(endpoint.cq, 0));
	endpoint_transfer(&endpoint);
	rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000);

	/* Other files that have the numbers now are not ours to wait for either. */
	REQUIRE(open("/dev/null", O_RDWR) >= 0 && open("/dev/null", O_RDWR) >= 0);
	endpoint_transfer(&endpoint);
	REQUIRE(!rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	ibv_ack_cq_events(endpoint.cq, 0);
	endpoint_close(&endpoint);
	return 0;
}
