/*
 * Extended reliable connections made by the connection manager. Two threads of one process do what rdma_xserver and
 * rdma_xclient of librdmacm do, over both links.
 */
#include <arpa/inet.h>
#include <pthread.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/pair.h"

#define SIZE 3000 /* some packets */
#define TEXT "through a shared queue"

struct passive {
	struct core_provider *provider;
	struct rdma_cm_id *listener, *child;
	uint32_t queue; /* number of the shared queue, sent to the peer */
	char memory[SIZE];
};

static struct rdma_addrinfo *get_info(struct core_provider *provider, int flags, int type)
{
	struct rdma_addrinfo hints = {.ai_flags = flags | RAI_NUMERICHOST, .ai_port_space = RDMA_PS_IB, .ai_qp_type = type};
	struct rdma_addrinfo *info;

	CHECK(!provider->rdma_getaddrinfo("127.0.0.1", "7029", &hints, &info));
	CHECK(info->ai_qp_type == type && info->ai_port_space == RDMA_PS_IB);
	return info;
}

/* A shared queue of the id, created with the default domain and completion queue. */
static void make_shared_queue(struct passive *passive)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_sge sge = {(uintptr_t)passive->memory, SIZE, 0};
	struct ibv_recv_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1}, *bad;
	struct rdma_cm_id *id = passive->child;
	struct ibv_mr *mr = passive->provider->ibv_reg_mr(id->pd, passive->memory, SIZE, IBV_ACCESS_LOCAL_WRITE);

	CHECK(mr && !passive->provider->rdma_create_srq(id, NULL, &attr) && id->srq && id->recv_cq);
	CHECK(!ibv_get_srq_num(id->srq, &passive->queue));
	sge.lkey = mr->lkey;
	CHECK(!ibv_post_srq_recv(id->srq, &wr, &bad));
	id->context = mr;
}

static void *serve(void *argument)
{
	struct passive *passive = argument;
	struct core_provider *provider = passive->provider;
	struct rdma_conn_param param = {.private_data = &passive->queue, .private_data_len = sizeof(passive->queue)};
	struct ibv_wc wc;

	CHECK(!provider->rdma_get_request(passive->listener, &passive->child));
	CHECK(passive->child->qp && passive->child->qp->qp_type == IBV_QPT_XRC_RECV && passive->child->pd);
	make_shared_queue(passive);
	CHECK(!provider->rdma_accept(passive->child, &param));
	wc = poll_one(passive->child->recv_cq);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == 5 && wc.byte_len == SIZE);
	CHECK(wc.qp_num == passive->child->qp->qp_num && !strcmp(passive->memory, TEXT));
	CHECK(!provider->rdma_disconnect(passive->child));
	return NULL;
}

static void send_text(struct core_provider *provider, struct rdma_cm_id *id, uint32_t queue)
{
	static char memory[SIZE] = TEXT;
	struct ibv_mr *mr = provider->ibv_reg_mr(id->pd, memory, SIZE, 0);
	struct ibv_sge sge = {(uintptr_t)memory, SIZE, 0};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(mr);
	sge.lkey = mr->lkey;
	wr.qp_type.xrc.remote_srqn = queue;
	CHECK(!ibv_post_send(id->qp, &wr, &bad));
	CHECK(poll_one(id->send_cq).status == IBV_WC_SUCCESS && !provider->ibv_dereg_mr(mr));
}

static void test_endpoints(struct core_provider *provider)
{
	struct rdma_addrinfo *info = get_info(provider, RAI_PASSIVE, IBV_QPT_XRC_RECV);
	struct ibv_qp_init_attr receiver = {.cap = {.max_recv_wr = 1, .max_recv_sge = 1}};
	struct ibv_qp_init_attr sender = {.cap = {.max_send_wr = 1, .max_send_sge = 1}, .sq_sig_all = 1};
	struct passive passive = {.provider = provider};
	struct rdma_cm_id *client;
	struct ibv_qp_attr attr;
	uint32_t queue;
	pthread_t server;

	CHECK(!provider->rdma_create_ep(&passive.listener, info, NULL, &receiver));
	provider->rdma_freeaddrinfo(info);
	CHECK(!provider->rdma_listen(passive.listener, 0));
	CHECK(!pthread_create(&server, NULL, serve, &passive));

	info = get_info(provider, 0, IBV_QPT_XRC_SEND);
	CHECK(!provider->rdma_create_ep(&client, info, NULL, &sender));
	provider->rdma_freeaddrinfo(info);
	CHECK(client->qp->qp_type == IBV_QPT_XRC_SEND && client->send_cq && !client->recv_cq && !client->qp->recv_cq);
	CHECK(!provider->rdma_connect(client, NULL));
	CHECK(!provider->ibv_query_qp(client->qp, &attr, IBV_QP_STATE, &sender) && attr.qp_state == IBV_QPS_RTS);
	memcpy(&queue, client->event->param.conn.private_data, sizeof(queue));
	send_text(provider, client, queue);
	CHECK(!provider->rdma_disconnect(client));
	pthread_join(server, NULL);
	provider->rdma_destroy_ep(client);
	CHECK(!provider->ibv_dereg_mr(passive.child->context));
	provider->rdma_destroy_ep(passive.child);
	provider->rdma_destroy_ep(passive.listener);
}

/* A listener for one type of queue pair rejects requests of others. */
static void test_other_types(struct core_provider *provider)
{
	static const int types[] = {IBV_QPT_XRC_RECV, IBV_QPT_RC, IBV_QPT_UC};
	static const int others[][2] = {{IBV_QPT_RC, IBV_QPT_UC}, {IBV_QPT_XRC_SEND, IBV_QPT_UC}, {IBV_QPT_XRC_SEND, IBV_QPT_RC}};

	for (int row = 0; row < 3; row++) {
		struct rdma_addrinfo *info = get_info(provider, RAI_PASSIVE, types[row]);
		struct rdma_cm_id *listener;

		CHECK(!provider->rdma_create_ep(&listener, info, NULL, NULL));
		provider->rdma_freeaddrinfo(info);
		CHECK(!provider->rdma_listen(listener, 0));
		for (int column = 0; column < 2; column++) {
			struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_send_sge = 1}};
			struct rdma_cm_id *client;

			info = get_info(provider, 0, others[row][column]);
			CHECK(!provider->rdma_create_ep(&client, info, NULL, &attr));
			provider->rdma_freeaddrinfo(info);
			REFUSED(provider->rdma_connect(client, NULL), ECONNREFUSED);
			CHECK(client->event->event == RDMA_CM_EVENT_REJECTED && client->event->status == 28);
			provider->rdma_destroy_ep(client);
		}
		provider->rdma_destroy_ep(listener);
	}
}

int main(void)
{
	struct core_options links[] = {{.link = CORE_LINK_LOCAL}, {.link = CORE_LINK_PACKETS}};

	for (int link = 0; link < 2; link++) {
		struct core_provider provider = {0};

		CHECK(!soft_provider_open(&provider, &links[link]));
		provider.select(&provider);
		for (int round = 0; round < 2; round++)
			test_endpoints(&provider);
		test_other_types(&provider);
		soft_provider_close(&provider);
	}
	return 0;
}
