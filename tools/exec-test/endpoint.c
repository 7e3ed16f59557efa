#include "exec_test.h"

#define PORT 1

struct ibv_device *first_device(struct ibv_device ***list)
{
	int count;

	*list = ibv_get_device_list(&count);
	REQUIRE(*list && count >= 1);
	return **list;
}

void endpoint_connect(struct endpoint *endpoint, const union ibv_gid *gid, uint32_t qp_num)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct ibv_qp_attr ready_to_receive = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = PORT, .grh = {.hop_limit = 1, .dgid = *gid}},
	};
	struct ibv_qp_attr ready_to_send = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 17,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	REQUIRE(!ibv_modify_qp(endpoint->qp, &init,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	REQUIRE(!ibv_modify_qp(endpoint->qp, &ready_to_receive,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER));
	REQUIRE(!ibv_modify_qp(endpoint->qp, &ready_to_send,
			       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

void endpoint_make(struct endpoint *endpoint, struct ibv_device *device)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};

	REQUIRE(endpoint->context = ibv_open_device(device));
	REQUIRE(endpoint->pd = ibv_alloc_pd(endpoint->context));
	REQUIRE(endpoint->channel = ibv_create_comp_channel(endpoint->context));
	REQUIRE(endpoint->cq = ibv_create_cq(endpoint->context, 64, NULL, endpoint->channel, 0));
	REQUIRE(endpoint->mr = ibv_reg_mr(endpoint->pd, endpoint->memory, sizeof(endpoint->memory),
					  IBV_ACCESS_LOCAL_WRITE));
	attr.send_cq = attr.recv_cq = endpoint->cq;
	REQUIRE(endpoint->qp = ibv_create_qp(endpoint->pd, &attr));
	REQUIRE(!ibv_query_gid(endpoint->context, PORT, 0, &endpoint->gid));
}

void endpoint_open(struct endpoint *endpoint, struct ibv_device *device)
{
	endpoint_make(endpoint, device);
	endpoint_connect(endpoint, &endpoint->gid, endpoint->qp->qp_num);
}

void endpoint_post(struct endpoint *endpoint, struct ibv_send_wr *send)
{
	struct ibv_send_wr *bad;

	send->send_flags |= IBV_SEND_SIGNALED;
	REQUIRE(!ibv_post_send(endpoint->qp, send, &bad));
}

void endpoint_expect(struct endpoint *endpoint, struct ibv_mr *mr, void *address, size_t length)
{
	struct ibv_sge to = {.addr = (uintptr_t)address, .length = (uint32_t)length, .lkey = mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1}, *bad;

	REQUIRE(!ibv_post_recv(endpoint->qp, &receive, &bad));
}

void endpoint_complete(struct endpoint *endpoint, int count)
{
	struct ibv_wc wc;

	while (count) {
		int polled = ibv_poll_cq(endpoint->cq, 1, &wc);

		REQUIRE(polled >= 0);
		if (polled && wc.status != IBV_WC_SUCCESS)
			fprintf(stderr, "a request of opcode %d: %s\n", wc.opcode, ibv_wc_status_str(wc.status));
		REQUIRE(!polled || wc.status == IBV_WC_SUCCESS);
		count -= polled;
	}
}

void endpoint_transfer(struct endpoint *endpoint)
{
	static const char text[] = "to myself";
	char *to = endpoint->memory + sizeof(endpoint->memory) / 2;
	struct ibv_sge from = {
		.addr = (uintptr_t)endpoint->memory,
		.length = sizeof(text),
		.lkey = endpoint->mr->lkey,
	};
	struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND};

	memset(endpoint->memory, 0, sizeof(endpoint->memory));
	memcpy(endpoint->memory, text, sizeof(text));
	endpoint_expect(endpoint, endpoint->mr, to, sizeof(text));
	endpoint_post(endpoint, &send);
	endpoint_complete(endpoint, 2);
	REQUIRE(!memcmp(to, text, sizeof(text)));
}

void endpoint_close(struct endpoint *endpoint)
{
	REQUIRE(!ibv_destroy_qp(endpoint->qp));
	REQUIRE(!ibv_dereg_mr(endpoint->mr));
	REQUIRE(!ibv_destroy_cq(endpoint->cq));
	REQUIRE(!ibv_destroy_comp_channel(endpoint->channel));
	REQUIRE(!ibv_dealloc_pd(endpoint->pd));
	REQUIRE(!ibv_close_device(endpoint->context));
}
