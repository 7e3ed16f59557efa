/* Datagram services: their resolution (SIDR), and multicast groups that ids join. */
#include <arpa/inet.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"

#define PORT 7051

struct service {
	struct core_provider *provider;
	struct rdma_event_channel *passive, *active;
	struct rdma_cm_id *listener, *client, *child;
};

static void make_queues(struct core_provider *provider, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};

	CHECK(!provider->rdma_create_qp(id, NULL, &attr));
	CHECK(id->qp->state == IBV_QPS_RTS || id->qp->qp_type == IBV_QPT_UD);
}

static struct rdma_cm_id *datagram_client(struct service *service, uint16_t port)
{
	struct sockaddr_storage address = local_address(port);
	struct core_provider *provider = service->provider;
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(service->active, &id, NULL, RDMA_PS_UDP));
	CHECK(id->qp_type == IBV_QPT_UD);
	CHECK(!provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
	expect_and_acknowledge(provider, service->active, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!provider->rdma_resolve_route(id, 2000));
	expect_and_acknowledge(provider, service->active, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static struct service asked(struct core_provider *provider)
{
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_conn_param param = {.private_data = "who", .private_data_len = 3, .qp_num = 77};
	struct service service = {.provider = provider};
	struct rdma_cm_event *event;

	service.passive = create_channel(provider);
	service.active = create_channel(provider);
	CHECK(!provider->rdma_create_id(service.passive, &service.listener, NULL, RDMA_PS_UDP));
	CHECK(!provider->rdma_bind_addr(service.listener, (struct sockaddr *)&address));
	CHECK(!provider->rdma_listen(service.listener, 2));
	service.client = datagram_client(&service, PORT);
	CHECK(!provider->rdma_connect(service.client, &param));
	event = expect_event(provider, service.passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(event->listen_id == service.listener && event->status == 0);
	CHECK(event->param.ud.private_data_len == 180);
	CHECK(!memcmp(event->param.ud.private_data, "who\0\0", 5));
	service.child = event->id;
	CHECK(service.child->qp_type == IBV_QPT_UD && service.child->ps == RDMA_PS_UDP);
	CHECK(!provider->rdma_ack_cm_event(event));
	return service;
}

static void finish_service(struct service *service)
{
	struct rdma_cm_id *ids[] = {service->child, service->client, service->listener};

	for (int index = 0; index < 3; index++) {
		if (!ids[index])
			continue;
		if (ids[index]->qp)
			service->provider->rdma_destroy_qp(ids[index]);
		CHECK(!service->provider->rdma_destroy_id(ids[index]));
	}
	service->provider->rdma_destroy_event_channel(service->active);
	service->provider->rdma_destroy_event_channel(service->passive);
}

static void test_resolved(struct core_provider *provider)
{
	struct service service = asked(provider);
	struct rdma_conn_param param = {.private_data = "me", .private_data_len = 2};
	struct rdma_cm_event *event;

	make_queues(provider, service.child);
	CHECK(!provider->rdma_accept(service.child, &param));
	event = expect_event(provider, service.active, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(event->status == 0 && event->param.ud.private_data_len == 136);
	CHECK(!memcmp(event->param.ud.private_data, "me\0", 3));
	CHECK(event->param.ud.qp_num == service.child->qp->qp_num);
	CHECK(event->param.ud.qkey == RDMA_UDP_QKEY);
	CHECK(event->param.ud.ah_attr.is_global && event->param.ud.ah_attr.port_num == 1);
	CHECK(!provider->rdma_ack_cm_event(event));
	expect_silence(service.passive); /* there is no connection that could end */
	REFUSED(provider->rdma_accept(service.child, &param), EINVAL); /* once */
	finish_service(&service);
}

static void test_refused(struct core_provider *provider)
{
	struct service service = asked(provider);
	struct setup setup = {.provider = provider};
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *other;
	static const char data[200];

	REFUSED(provider->rdma_reject(service.child, data, 137), EINVAL);
	CHECK(!provider->rdma_reject(service.child, "no", 2));
	expect_status(&setup, service.active, RDMA_CM_EVENT_UNREACHABLE, 2);
	finish_service(&service);

	service = asked(provider); /* gone unanswered */
	CHECK(!provider->rdma_destroy_id(service.child));
	service.child = NULL;
	expect_status(&setup, service.active, RDMA_CM_EVENT_UNREACHABLE, 2);
	/* There is no listener. */
	other = datagram_client(&service, PORT + 1);
	CHECK(!provider->rdma_connect(other, &param));
	expect_status(&setup, service.active, RDMA_CM_EVENT_UNREACHABLE, 1);
	CHECK(!provider->rdma_destroy_id(other));
	/* The private data is too long. */
	other = datagram_client(&service, PORT);
	param.private_data = data;
	param.private_data_len = 181;
	REFUSED(provider->rdma_connect(other, &param), EINVAL);
	CHECK(!provider->rdma_destroy_id(other));
	finish_service(&service);
}

static void join(struct service *service, struct rdma_cm_id *id, struct sockaddr_storage *group,
		 uint32_t flags)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)group,
	};
	struct rdma_cm_event *event;
	union ibv_gid source;

	CHECK(!service->provider->rdma_join_multicast_ex(id, &attr, service));
	event = expect_event(service->provider, service->active, RDMA_CM_EVENT_MULTICAST_JOIN);
	CHECK(event->status == 0 && event->param.ud.private_data == service);
	CHECK(event->param.ud.qp_num == 0xffffff && event->param.ud.qkey == RDMA_UDP_QKEY);
	CHECK(event->param.ud.ah_attr.is_global);
	CHECK(!memcmp(&event->param.ud.ah_attr.grh.dgid.raw[12],
		      &((struct sockaddr_in *)(void *)group)->sin_addr, 4));
	/* Datagrams leave from the address of the id. */
	CHECK(!service->provider->ibv_query_gid(id->verbs, 1, event->param.ud.ah_attr.grh.sgid_index, &source));
	CHECK(!memcmp(&source.raw[12], &id->route.addr.src_sin.sin_addr, 4));
	CHECK(!service->provider->rdma_ack_cm_event(event));
}

static void test_groups(struct core_provider *provider)
{
	struct sockaddr_storage group = ipv4_address("239.1.2.3", 0), other = ipv4_address("239.9.9.9", 0);
	struct sockaddr_storage address = local_address(0);
	struct in_addr *own = &((struct sockaddr_in *)(void *)&address)->sin_addr;
	struct rdma_cm_join_mc_attr_ex bad = {.comp_mask = 1 << 5};
	struct service service = {.provider = provider};
	struct rdma_cm_id *connected;

	if (ntohl(own->s_addr) >> 24 == IN_LOOPBACKNET)
		own->s_addr = htonl(INADDR_LOOPBACK + 8); /* not the first that the device has */
	service.active = create_channel(provider);
	service.passive = create_channel(provider);
	CHECK(!provider->rdma_create_id(service.active, &service.client, NULL, RDMA_PS_UDP));
	REFUSED(provider->rdma_join_multicast(service.client, (struct sockaddr *)&group, NULL), EINVAL);
	CHECK(!provider->rdma_bind_addr(service.client, (struct sockaddr *)&address));
	make_queues(provider, service.client);
	join(&service, service.client, &group, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	REFUSED(provider->rdma_leave_multicast(service.client, (struct sockaddr *)&other), EADDRNOTAVAIL);
	CHECK(!provider->rdma_leave_multicast(service.client, (struct sockaddr *)&group));
	REFUSED(provider->rdma_leave_multicast(service.client, (struct sockaddr *)&group), EADDRNOTAVAIL);
	join(&service, service.client, &group, RDMA_MC_JOIN_FLAG_FULLMEMBER); /* and once more, left by destroy */
	REFUSED(provider->rdma_join_multicast_ex(service.client, &bad, NULL), ENOTSUP);
	bad = (struct rdma_cm_join_mc_attr_ex){.comp_mask = 3, .join_flags = 9,
					       .addr = (struct sockaddr *)&group};
	REFUSED(provider->rdma_join_multicast_ex(service.client, &bad, NULL), EINVAL);
	CHECK(!provider->rdma_create_id(service.active, &connected, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(connected, (struct sockaddr *)&address));
	REFUSED(provider->rdma_join_multicast(connected, (struct sockaddr *)&group, NULL), EINVAL);
	CHECK(!provider->rdma_destroy_id(connected));
	if (!on_soft("groups that nobody left"))
		CHECK(!provider->rdma_leave_multicast(service.client, (struct sockaddr *)&group));
	finish_service(&service);
}

int main(void)
{
	struct core_provider *provider = open_provider();

	core_select(provider);
	test_resolved(provider);
	test_refused(provider);
	test_groups(provider);
	close_provider(provider);
	return 0;
}
