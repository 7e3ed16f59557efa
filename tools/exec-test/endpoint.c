#include "exec_test.h"

#define PORT 1

struct ibv_device *first_device(struct ibv_device ***list)
{
	int count;

	*list = ibv_get_device_list(&count);
	REQUIRE(*list && count >= 1);
	return **list;
}

static void connect_to_itself(struct endpoint *endpoint)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
	struct ibv_qp_attr ready_to_receive = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = endpoint->qp->qp_num,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = PORT, .grh = {.hop_limit = 1}},
	};
	struct ibv_qp_attr ready_to_send = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	REQUIRE(!ibv_query_gid(endpoint->context, PORT, 0, &ready_to_receive.ah_attr.grh.dgid));
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

void endpoint_open(struct endpoint *endpoint, struct ibv_device *device)
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
	connect_to_itself(endpoint);
}

void endpoint_transfer(struct endpoint *endpoint)
{
	static const char text[] = "to myself";
	struct ibv_sge from = {
		.addr = (uintptr_t)endpoint->memory,
		.length = sizeof(text),
		.lkey = endpoint->mr->lkey,
	};
	struct ibv_sge to = from;
	struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1}, *bad_receive;
	struct ibv_send_wr send = {
		.sg_list = &from,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad_send;
	struct ibv_wc wc;
	int done = 0;

	to.addr += sizeof(endpoint->memory) / 2;
	memset(endpoint->memory, 0, sizeof(endpoint->memory));
	memcpy(endpoint->memory, text, sizeof(text));
	REQUIRE(!ibv_post_recv(endpoint->qp, &receive, &bad_receive));
	REQUIRE(!ibv_post_send(endpoint->qp, &send, &bad_send));
	while (done < 2) {
		int polled = ibv_poll_cq(endpoint->cq, 1, &wc);

		REQUIRE(polled >= 0);
		REQUIRE(!polled || wc.status == IBV_WC_SUCCESS);
		done += polled;
	}
	REQUIRE(!memcmp(endpoint->memory + sizeof(endpoint->memory) / 2, text, sizeof(text)));
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
