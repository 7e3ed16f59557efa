/* Functions of the real libraries that the soft provider has no part in: they refuse, and do not crash. */
#include <rdma/rsocket.h>

#include "exec_test.h"

int main(void)
{
	static struct endpoint endpoint;
	struct ibv_ah_attr address = {.port_num = 1};
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_flow_attr flow = {0};
	struct ibv_device **list;
	struct ibv_ece ece = {0};
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vid;

	alarm(PATIENCE);
	endpoint_open(&endpoint, first_device(&list));
	REQUIRE(ibv_get_device_index(*list) == -1);
	REQUIRE(ibv_query_ece(endpoint.qp, &ece) == EOPNOTSUPP);
	REQUIRE(ibv_set_ece(endpoint.qp, &ece) == EOPNOTSUPP);
	REQUIRE(ibv_query_qp_data_in_order(endpoint.qp, IBV_WR_RDMA_WRITE, 0) == 0);
	REQUIRE(ibv_resolve_eth_l2_from_gid(endpoint.context, &address, mac, &vid) == -1);
	REQUIRE(!ibv_import_device(0) && errno == EOPNOTSUPP);
	REQUIRE(!ibv_import_pd(endpoint.context, endpoint.pd->handle) && errno == EOPNOTSUPP);
	REQUIRE(!ibv_import_mr(endpoint.pd, endpoint.mr->handle) && errno == EOPNOTSUPP);
	REQUIRE(!ibv_import_dm(endpoint.context, 0) && errno == EOPNOTSUPP);
	REQUIRE(!ibv_reg_dmabuf_mr(endpoint.pd, 0, 64, 0, 0, 0) && errno == EOPNOTSUPP);
	REQUIRE(rsocket(AF_INET, SOCK_STREAM, 0) == -1 && errno == EOPNOTSUPP);
	/* Inline verbs, which ask the context whether it has them. */
	REQUIRE(!ibv_create_flow(endpoint.qp, &flow) && errno == EOPNOTSUPP);
	REQUIRE(!ibv_query_rt_values_ex(endpoint.context, &values));
	/* The strings are the real library's. */
	REQUIRE(!strcmp(ibv_wc_status_str(IBV_WC_SUCCESS), "success"));
	REQUIRE(!strcmp(rdma_event_str(RDMA_CM_EVENT_ESTABLISHED), "RDMA_CM_EVENT_ESTABLISHED"));
	endpoint_transfer(&endpoint);
	endpoint_close(&endpoint);
	ibv_free_device_list(list);
	return 0;
}
