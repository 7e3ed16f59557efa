/* Mistakes with connections and their events. */
#include "mistakes.h"

/* A connection from this process to itself: an event channel, its listener, and both ends. */
struct pair {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *server, *client;
	char memory[64];
	struct ibv_mr *mr;
};

/* The next event, which is of that kind. It is acknowledged by the caller. */
static struct rdma_cm_event *next_event(struct pair *p, enum rdma_cm_event_type kind)
{
	struct rdma_cm_event *event;

	REQUIRE(!rdma_get_cm_event(p->channel, &event));
	if (event->event != kind)
		fprintf(stderr, "%s, not %s\n", rdma_event_str(event->event), rdma_event_str(kind));
	REQUIRE(event->event == kind);
	return event;
}

static void acknowledge(struct pair *p, enum rdma_cm_event_type kind)
{
	REQUIRE(!rdma_ack_cm_event(next_event(p, kind)));
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};

	REQUIRE(!rdma_create_qp(id, NULL, &attr));
}

/* Up to the request to connect, which the server has then. */
static void pair_request(struct pair *p, struct rdma_conn_param *param)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = own_address};
	struct rdma_cm_event *event;

	REQUIRE(p->channel = rdma_create_event_channel());
	REQUIRE(!rdma_create_id(p->channel, &p->listener, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_bind_addr(p->listener, (struct sockaddr *)&address) && !rdma_listen(p->listener, 1));
	address.sin_port = rdma_get_src_port(p->listener);
	REQUIRE(!rdma_create_id(p->channel, &p->client, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_resolve_addr(p->client, NULL, (struct sockaddr *)&address, 2000));
	acknowledge(p, RDMA_CM_EVENT_ADDR_RESOLVED);
	REQUIRE(!rdma_resolve_route(p->client, 2000));
	acknowledge(p, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(p->client);
	REQUIRE(!rdma_connect(p->client, param));
	event = next_event(p, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = event->id;
	REQUIRE(!rdma_ack_cm_event(event));
	make_qp(p->server);
	REQUIRE(p->mr = ibv_reg_mr(p->server->pd, p->memory, sizeof(p->memory), IBV_ACCESS_LOCAL_WRITE));
}

static void pair_receive(struct pair *p)
{
	struct ibv_sge part = {.addr = (uintptr_t)p->memory, .length = sizeof(p->memory), .lkey = p->mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &part, .num_sge = 1}, *bad;

	REQUIRE(!ibv_post_recv(p->server->qp, &receive, &bad)); /* finding: receive_late */
}

static void pair_accept(struct pair *p, uint8_t retries)
{
	struct rdma_conn_param param = {.rnr_retry_count = retries};

	REQUIRE(!rdma_accept(p->server, &param)); /* finding: retry_forever */
	acknowledge(p, RDMA_CM_EVENT_ESTABLISHED);
	acknowledge(p, RDMA_CM_EVENT_ESTABLISHED);
}

static void pair_free(struct pair *p)
{
	rdma_destroy_qp(p->client);
	rdma_destroy_qp(p->server);
	REQUIRE(!ibv_dereg_mr(p->mr));
	REQUIRE(!rdma_destroy_id(p->server) && !rdma_destroy_id(p->client) && !rdma_destroy_id(p->listener));
	rdma_destroy_event_channel(p->channel);
}

static void pair_end(struct pair *p)
{
	REQUIRE(!rdma_disconnect(p->client));
	acknowledge(p, RDMA_CM_EVENT_DISCONNECTED);
	REQUIRE(!rdma_disconnect(p->server));
	acknowledge(p, RDMA_CM_EVENT_DISCONNECTED);
	pair_free(p);
}

void connected(struct endpoint *e)
{
	struct rdma_conn_param param = {0};
	struct pair p = {0};

	(void)e;
	pair_request(&p, &param);
	pair_receive(&p);
	pair_accept(&p, 0);
	pair_end(&p);
}

/* https://github.com/meta-pytorch/torchcomms/pull/3345: the peer could send before the receives were posted. */
void receive_late(struct endpoint *e)
{
	struct rdma_conn_param param = {0};
	struct pair p = {0};

	(void)e;
	pair_request(&p, &param);
	pair_accept(&p, 0);
	pair_receive(&p);
	pair_end(&p);
}

/* https://github.com/ydb-platform/nbs/issues/5790: with an RNR retry count of 7, requests took seconds. */
void retry_forever(struct endpoint *e)
{
	struct rdma_conn_param param = {0};
	struct pair p = {0};

	(void)e;
	pair_request(&p, &param);
	pair_receive(&p);
	pair_accept(&p, 7);
	pair_end(&p);
}

void private_data_long(struct endpoint *e)
{
	char data[200] = {0};
	struct rdma_conn_param param = {.private_data = data, .private_data_len = sizeof(data)};
	struct rdma_conn_param none = {0};
	struct pair p = {0};

	(void)e;
	pair_request(&p, &none);
	REQUIRE(rdma_accept(p.server, &param)); /* finding: private_data_long */
	acknowledge(&p, RDMA_CM_EVENT_REJECTED);
	pair_free(&p);
}

/* https://github.com/ovis-hpc/ldms/pull/2259: rdma_connect's data was longer than InfiniBand's 56 bytes. */
void private_data_long__connect(struct endpoint *e)
{
	char data[64] = {0};
	struct rdma_conn_param param = {.private_data = data, .private_data_len = sizeof(data)};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = own_address, .sin_port = 1};
	struct pair p = {0};

	(void)e;
	REQUIRE(p.channel = rdma_create_event_channel());
	REQUIRE(!rdma_create_id(p.channel, &p.client, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_resolve_addr(p.client, NULL, (struct sockaddr *)&address, 2000));
	acknowledge(&p, RDMA_CM_EVENT_ADDR_RESOLVED);
	REQUIRE(!rdma_resolve_route(p.client, 2000));
	acknowledge(&p, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(p.client);
	REQUIRE(rdma_connect(p.client, &param)); /* finding: private_data_long__connect */
	rdma_destroy_qp(p.client);
	REQUIRE(!rdma_destroy_id(p.client));
	rdma_destroy_event_channel(p.channel);
}

/* https://github.com/linux-rdma/perftest/pull/60: rdma_destroy_id waited for events that nothing acknowledged. */
void event_unacked(struct endpoint *e)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = own_address, .sin_port = 1};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	(void)e;
	REQUIRE(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	REQUIRE(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
	REQUIRE(!rdma_get_cm_event(channel, &event));
	alarm(2);
	rdma_destroy_id(id); /* finding: event_unacked */
}

/* https://github.com/openucx/ucx/issues/1039: events were acknowledged for the wrong completion queue. */
void event_unacked__queue(struct endpoint *e)
{
	struct ibv_sge part = segment(e, 0, 8);
	struct ibv_send_wr send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_cq *cq;
	void *context;

	REQUIRE(!ibv_req_notify_cq(e->cq, 0));
	endpoint_expect(e, e->mr, e->memory + 64, 8);
	endpoint_post(e, &send);
	endpoint_complete(e, 2);
	REQUIRE(!ibv_get_cq_event(e->channel, &cq, &context));
	REQUIRE(!ibv_destroy_qp(e->qp));
	alarm(2);
	ibv_destroy_cq(e->cq); /* finding: event_unacked__queue */
}

void connection_over(struct endpoint *e)
{
	struct rdma_conn_param param = {0};
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad;
	struct pair p = {0};

	(void)e;
	pair_request(&p, &param);
	pair_receive(&p);
	pair_accept(&p, 0);
	REQUIRE(!rdma_disconnect(p.client));
	acknowledge(&p, RDMA_CM_EVENT_DISCONNECTED);
	ibv_post_send(p.server->qp, &send, &bad); /* finding: connection_over */
	REQUIRE(!rdma_disconnect(p.server));
	acknowledge(&p, RDMA_CM_EVENT_DISCONNECTED);
	pair_free(&p);
}

/* https://github.com/ydb-platform/nbs/pull/6286: memory of a connection was freed before the peer was done. */
void timewait_ignored(struct endpoint *e)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct rdma_conn_param param = {0};
	struct pair p = {0};

	(void)e;
	pair_request(&p, &param);
	pair_receive(&p);
	pair_accept(&p, 0);
	REQUIRE(!rdma_disconnect(p.client));
	acknowledge(&p, RDMA_CM_EVENT_DISCONNECTED);
	REQUIRE(!rdma_disconnect(p.server));
	acknowledge(&p, RDMA_CM_EVENT_DISCONNECTED);
	/* for the next connection */
	REQUIRE(!ibv_modify_qp(p.client->qp, &reset, IBV_QP_STATE)); /* finding: timewait_ignored */
	pair_free(&p);
}
