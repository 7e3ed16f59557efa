/* Synchronous ids and endpoints: calls that wait, and the same calls that must not. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"

#define PORT 7021

static void text_of(const struct sockaddr_storage *address, char *text, size_t size)
{
	CHECK(inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, text,
			(socklen_t)size));
}

static struct rdma_addrinfo *get_info(struct core_provider *provider, const char *service, int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags | RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP};
	struct sockaddr_storage address = local_address(0);
	struct rdma_addrinfo *info;
	char text[64];

	text_of(&address, text, sizeof(text));
	CHECK(!provider->rdma_getaddrinfo(text, service, &hints, &info));
	return info;
}

static void test_getaddrinfo(struct core_provider *provider)
{
	struct rdma_addrinfo *info = get_info(provider, "7021", RAI_PASSIVE);
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_UDP};

	CHECK(info->ai_flags == RAI_PASSIVE && info->ai_family == AF_INET);
	CHECK(info->ai_src_len == sizeof(struct sockaddr_in) && !info->ai_dst_len && !info->ai_dst_addr);
	CHECK(info->ai_qp_type == IBV_QPT_RC && info->ai_port_space == RDMA_PS_TCP && !info->ai_next);
	CHECK(((struct sockaddr_in *)(void *)info->ai_src_addr)->sin_port == htons(PORT));
	provider->rdma_freeaddrinfo(info);

	info = get_info(provider, "7021", 0);
	CHECK(info->ai_dst_len == sizeof(struct sockaddr_in) && !info->ai_src_len && !info->ai_flags);
	provider->rdma_freeaddrinfo(info);

	CHECK(!provider->rdma_getaddrinfo("127.0.0.1", "7021", &hints, &info));
	CHECK(info->ai_qp_type == IBV_QPT_UD && info->ai_port_space == RDMA_PS_UDP);
	provider->rdma_freeaddrinfo(info);

	REFUSED(provider->rdma_getaddrinfo(NULL, NULL, NULL, &info), EINVAL);
	hints.ai_flags = RAI_NUMERICHOST;
	CHECK(provider->rdma_getaddrinfo("no.such.name", "1", &hints, &info) == EAI_NONAME);
}

static struct ibv_qp_init_attr usual_queues(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = 1,
	};
}

struct passive {
	struct core_provider *provider;
	struct rdma_cm_id *listener, *child;
};

/* The passive side of test_endpoints: all calls block, and only their events end them. */
static void *serve(void *argument)
{
	struct passive *passive = argument;
	struct core_provider *provider = passive->provider;

	CHECK(!provider->rdma_get_request(passive->listener, &passive->child));
	CHECK(passive->child->qp && passive->child->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(passive->child->channel != passive->listener->channel);
	CHECK(passive->child->send_cq_channel && passive->child->recv_cq);
	CHECK(!memcmp(passive->child->event->param.conn.private_data, "hi", 3));
	CHECK(!provider->rdma_accept(passive->child, NULL));
	CHECK(passive->child->event->event == RDMA_CM_EVENT_ESTABLISHED);
	/* The next event is the other side's disconnect: the call's own would come later. */
	CHECK(!provider->rdma_disconnect(passive->child));
	CHECK(passive->child->event->event == RDMA_CM_EVENT_DISCONNECTED);
	return NULL;
}

static void test_endpoints(struct core_provider *provider)
{
	struct rdma_addrinfo *info = get_info(provider, "7021", RAI_PASSIVE);
	struct ibv_qp_init_attr attr = usual_queues();
	struct rdma_conn_param param = {.private_data = "hi", .private_data_len = 2, .retry_count = 7};
	struct passive passive = {.provider = provider};
	struct rdma_cm_id *client;
	pthread_t server;

	CHECK(!provider->rdma_create_ep(&passive.listener, info, NULL, &attr));
	CHECK(passive.listener->channel && !passive.listener->qp);
	CHECK(!provider->rdma_listen(passive.listener, 0));
	provider->rdma_freeaddrinfo(info);
	CHECK(!pthread_create(&server, NULL, serve, &passive));

	info = get_info(provider, "7021", 0);
	attr = usual_queues();
	CHECK(!provider->rdma_create_ep(&client, info, NULL, &attr));
	provider->rdma_freeaddrinfo(info);
	CHECK(client->qp && client->qp_type == IBV_QPT_RC && client->verbs && client->pd);
	CHECK(attr.send_cq == client->send_cq && attr.recv_cq == client->recv_cq && client->send_cq);
	CHECK(!provider->rdma_connect(client, &param));
	CHECK(client->event->event == RDMA_CM_EVENT_ESTABLISHED);
	CHECK(client->event->param.conn.private_data_len == 196);
	CHECK(!provider->rdma_disconnect(client));
	CHECK(client->event->event == RDMA_CM_EVENT_DISCONNECTED);
	pthread_join(server, NULL);
	provider->rdma_destroy_ep(client);
	provider->rdma_destroy_ep(passive.child);
	provider->rdma_destroy_ep(passive.listener);
}

/* Without qp_init_attr there is no queue pair, and the protection domain is ignored. */
static void test_endpoint_without_queues(struct core_provider *provider)
{
	struct rdma_addrinfo *info = get_info(provider, "7021", 0);
	struct rdma_conn_param param = usual_param();
	struct rdma_cm_id *client;

	CHECK(!provider->rdma_create_ep(&client, info, NULL, NULL));
	CHECK(!client->qp && client->pd);
	/* No listener: the event has the reason, and errno follows from it. */
	REFUSED(provider->rdma_connect(client, &param), ECONNREFUSED);
	CHECK(client->event->event == RDMA_CM_EVENT_REJECTED && client->event->status == 8);
	REFUSED(provider->rdma_connect(client, &param), EINVAL);
	provider->rdma_destroy_ep(client);
	provider->rdma_freeaddrinfo(info);
}

static void set_nonblocking(struct rdma_cm_id *id)
{
	CHECK(!fcntl(id->channel->fd, F_SETFL, O_NONBLOCK));
}

/* An id with an address has a device, which a protection domain needs. */
static struct rdma_cm_id *id_on_device(struct core_provider *provider)
{
	struct sockaddr_storage address = local_address(0);
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&address));
	CHECK(id->verbs);
	return id;
}

/* The protection domain that an endpoint is given is that of its queue pair, and of its children's. */
static void test_endpoint_domain(struct core_provider *provider)
{
	struct rdma_addrinfo *active = get_info(provider, "7021", 0), *info = get_info(provider, "7021", RAI_PASSIVE);
	struct rdma_cm_id *device = id_on_device(provider), *listener, *child, *client;
	struct ibv_pd *own = provider->ibv_alloc_pd(device->verbs), *other = provider->ibv_alloc_pd(device->verbs);
	struct ibv_qp_init_attr attr = usual_queues();
	struct rdma_conn_param param = usual_param();

	CHECK(own && other);
	CHECK(!provider->rdma_create_ep(&listener, info, other, &attr));
	CHECK(listener->pd == other && !listener->qp);
	CHECK(!provider->rdma_listen(listener, 1));
	attr = usual_queues();
	CHECK(!provider->rdma_create_ep(&client, active, own, &attr));
	CHECK(client->pd == own && client->qp && client->qp->pd == own);
	set_nonblocking(client);
	REFUSED(provider->rdma_connect(client, &param), EAGAIN);
	CHECK(!provider->rdma_get_request(listener, &child));
	CHECK(child->qp && child->pd == other && child->qp->pd == other);
	provider->rdma_destroy_ep(client);
	provider->rdma_destroy_ep(child);
	provider->rdma_destroy_ep(listener);
	/* They stay their maker's. */
	CHECK(!provider->ibv_dealloc_pd(own) && !provider->ibv_dealloc_pd(other));
	CHECK(!provider->rdma_destroy_id(device));
	provider->rdma_freeaddrinfo(info);
	provider->rdma_freeaddrinfo(active);
}

/* An endpoint that cannot be created is freed, and errno is that of the step that failed. */
static void test_endpoint_errors(struct core_provider *provider)
{
	struct rdma_addrinfo *active = get_info(provider, "7021", 0), *info = get_info(provider, "7021", RAI_PASSIVE);
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP}, *foreign;
	struct rdma_cm_id *device = id_on_device(provider), *listener, *id;
	struct ibv_context *second = provider->ibv_open_device(device->verbs->device);
	struct ibv_pd *elsewhere = provider->ibv_alloc_pd(second);
	struct ibv_qp_init_attr attr = usual_queues();

	CHECK(second && elsewhere);
	CHECK(!provider->rdma_create_ep(&listener, info, NULL, &attr));
	REFUSED(provider->rdma_create_ep(&id, info, NULL, &attr), EADDRINUSE);
	CHECK(!provider->rdma_getaddrinfo("198.51.100.7", "7021", &hints, &foreign));
	REFUSED(provider->rdma_create_ep(&id, foreign, NULL, &attr), EADDRNOTAVAIL);
	attr.cap.max_send_sge = 100000;
	REFUSED(provider->rdma_create_ep(&id, active, NULL, &attr), EINVAL);
	attr = usual_queues();
	REFUSED(provider->rdma_create_ep(&id, active, elsewhere, &attr), EINVAL);
	provider->rdma_destroy_ep(listener);
	/* None of them has kept the port. */
	CHECK(!provider->rdma_create_ep(&listener, info, NULL, NULL));
	provider->rdma_destroy_ep(listener);
	CHECK(!provider->ibv_dealloc_pd(elsewhere) && !provider->ibv_close_device(second));
	CHECK(!provider->rdma_destroy_id(device));
	provider->rdma_freeaddrinfo(foreign);
	provider->rdma_freeaddrinfo(info);
	provider->rdma_freeaddrinfo(active);
}

/* The context that an id was made with is its own, and that of a listener its children's. */
static void test_context(struct core_provider *provider)
{
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_conn_param param = usual_param();
	struct rdma_cm_id *listener, *child, *client;
	char passive, active;

	CHECK(!provider->rdma_create_id(NULL, &listener, &passive, RDMA_PS_TCP));
	CHECK(!provider->rdma_create_id(NULL, &client, &active, RDMA_PS_TCP));
	CHECK(listener->context == &passive && client->context == &active);
	CHECK(!provider->rdma_bind_addr(listener, (struct sockaddr *)&address));
	CHECK(!provider->rdma_listen(listener, 1));
	CHECK(!provider->rdma_resolve_addr(client, NULL, (struct sockaddr *)&address, 2000));
	CHECK(!provider->rdma_resolve_route(client, 2000));
	set_nonblocking(client);
	REFUSED(provider->rdma_connect(client, &param), EAGAIN);
	CHECK(!provider->rdma_get_request(listener, &child));
	CHECK(child->context == &passive && listener->context == &passive && client->context == &active);
	CHECK(!provider->rdma_destroy_id(child));
	CHECK(!provider->rdma_destroy_id(client));
	CHECK(!provider->rdma_destroy_id(listener));
}

/* With O_NONBLOCK a call gives its command and EAGAIN; the event comes later, for the caller to keep. */
static void take_event(struct core_provider *provider, struct rdma_cm_id *id,
		       enum rdma_cm_event_type type)
{
	if (id->event)
		CHECK(!provider->rdma_ack_cm_event(id->event));
	wait_readable(id->channel);
	CHECK(!provider->rdma_get_cm_event(id->channel, &id->event));
	CHECK(id->event->event == type);
}

static void test_nonblocking(struct core_provider *provider)
{
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_conn_param param = usual_param();
	struct rdma_cm_id *listener, *child, *client;

	core_select(provider);
	CHECK(!provider->rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP));
	set_nonblocking(listener);
	CHECK(!provider->rdma_bind_addr(listener, (struct sockaddr *)&address));
	/* It is not checked whether the id listens. */
	REFUSED(provider->rdma_get_request(listener, &child), EAGAIN);
	CHECK(!provider->rdma_listen(listener, 3));
	REFUSED(provider->rdma_get_request(listener, &child), EAGAIN);
	CHECK(!provider->rdma_create_id(NULL, &client, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_resolve_addr(client, NULL, (struct sockaddr *)&address, 2000));
	CHECK(client->event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!provider->rdma_resolve_route(client, 2000));
	set_nonblocking(client);
	REFUSED(provider->rdma_connect(client, &param), EAGAIN);
	CHECK(!client->event); /* that of the route was acknowledged */
	wait_readable(listener->channel);
	CHECK(!provider->rdma_get_request(listener, &child));
	set_nonblocking(child);
	param.qp_num++;
	REFUSED(provider->rdma_accept(child, &param), EAGAIN);
	take_event(provider, client, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(!provider->rdma_establish(client));
	take_event(provider, child, RDMA_CM_EVENT_ESTABLISHED);
	REFUSED(provider->rdma_disconnect(client), EAGAIN);
	take_event(provider, child, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!provider->rdma_destroy_id(child));
	/* An event that is not a request is read as well, and kept as the last one. */
	wait_readable(client->channel);
	REFUSED(provider->rdma_get_request(client, &child), EINVAL);
	CHECK(client->event && client->event->event == RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!provider->rdma_destroy_id(client));
	CHECK(!provider->rdma_destroy_id(listener));
}

static void test_migrate(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);
	struct rdma_event_channel *other = create_channel(provider);

	/* An unread event moves along, and later events go to the new channel. */
	CHECK(!provider->rdma_reject(setup.child, "no", 2));
	wait_readable(setup.active);
	CHECK(!provider->rdma_migrate_id(setup.client, other));
	CHECK(setup.client->channel == other);
	expect_silence(setup.active);
	expect_status(&setup, other, RDMA_CM_EVENT_REJECTED, 28);
	destroy_id(&setup, &setup.client);
	finish(&setup);

	setup = connecting(provider, PORT);
	/* To synchronous and back. */
	CHECK(!provider->rdma_migrate_id(setup.client, NULL));
	CHECK(setup.client->channel != setup.active);
	REFUSED(provider->rdma_migrate_id(setup.client, NULL), EINVAL);
	CHECK(!provider->rdma_migrate_id(setup.client, other));
	take_request(&setup);
	CHECK(!accept_request(&setup));
	expect_status(&setup, other, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	destroy_id(&setup, &setup.client);
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_REJECTED, 28);

	/* The requests of a listener that moves are read on its new channel, which is that of their ids. */
	CHECK(!provider->rdma_migrate_id(setup.listener, other));
	destroy_id(&setup, &setup.child);
	setup.client = resolved_client(provider, setup.active, PORT);
	{
		struct rdma_conn_param param = usual_param();
		struct rdma_cm_event *event;

		CHECK(!provider->rdma_connect(setup.client, &param));
		event = expect_event(provider, other, RDMA_CM_EVENT_CONNECT_REQUEST);
		CHECK(event->id->channel == other);
		setup.child = event->id;
		CHECK(!provider->rdma_ack_cm_event(event));
	}
	finish(&setup);
	provider->rdma_destroy_event_channel(other);
}

/* The channel of a synchronous id goes with it: a listener that moved there loses its port and its requests. */
static void test_destroy_with_guests(struct core_provider *provider)
{
	struct setup setup = connecting(provider, PORT);
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_cm_id *owner;

	CHECK(!provider->rdma_create_id(NULL, &owner, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_migrate_id(setup.listener, owner->channel));
	CHECK(!provider->rdma_destroy_id(owner));
	CHECK(!setup.listener->channel);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	CHECK(!provider->rdma_create_id(setup.passive, &owner, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(owner, (struct sockaddr *)&address));
	CHECK(!provider->rdma_destroy_id(owner));
	finish(&setup);
}

/* Where librdmacm would wait forever, the call fails with a sentence that says what it waits for. */
static void test_bounds(struct core_provider *provider)
{
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_cm_id *id, *child;

	core_select(provider);
	CHECK(!provider->rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	REFUSED(provider->rdma_disconnect(id), EINVAL);
	CHECK(!provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
	CHECK(!provider->rdma_resolve_route(id, 2000));
	{
		struct rdma_conn_param param = usual_param();

		REFUSED(provider->rdma_connect(id, &param), ECONNREFUSED);
	}
	REFUSED(provider->rdma_disconnect(id), ENOTCONN);
	CHECK(strstr(provider->refusal(provider), "wait for ever"));
	REFUSED(provider->rdma_get_request(id, &child), EINVAL);
	CHECK(strstr(provider->refusal(provider), "wait for ever"));
	CHECK(!provider->rdma_destroy_id(id));
	/* Once more: EINVAL, not a use of freed memory. */
	REFUSED(provider->rdma_destroy_id(id), EINVAL);
	REFUSED(provider->rdma_bind_addr(id, (struct sockaddr *)&address), EINVAL);
	REFUSED(provider->rdma_get_request(NULL, &id), EINVAL);
}

int main(void)
{
	struct core_provider *provider = open_provider();

	core_select(provider);
	test_getaddrinfo(provider);
	test_endpoints(provider);
	test_endpoint_without_queues(provider);
	test_endpoint_domain(provider);
	test_endpoint_errors(provider);
	test_context(provider);
	test_nonblocking(provider);
	test_migrate(provider);
	if (on_soft("channels of ids that moved"))
		test_destroy_with_guests(provider);
	if (on_soft("waits without an end"))
		test_bounds(provider);
	close_provider(provider);
	return 0;
}
