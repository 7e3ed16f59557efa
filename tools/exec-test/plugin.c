/* What test_dlclose loads: it leaves objects and an armed timer behind. */
#include "exec_test.h"

void plugin_run(void);

void plugin_run(void)
{
	struct endpoint *endpoint = calloc(1, sizeof(*endpoint));
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(7471),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct rdma_event_channel *channel;
	struct ibv_device **list;
	struct rdma_cm_id *id;

	REQUIRE(endpoint);
	endpoint_open(endpoint, first_device(&list));
	ibv_free_device_list(list);
	endpoint_transfer(endpoint);
	REQUIRE(channel = rdma_create_event_channel());
	REQUIRE(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000));
}
