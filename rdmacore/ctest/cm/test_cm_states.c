/* Calls of connection management in each state: the events of each side, and the errors. */
#include <arpa/inet.h>
#include <poll.h>
#include <stddef.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"

#define PORT 7031

static void next_event(struct setup *setup, struct rdma_event_channel *channel,
		       enum rdma_cm_event_type type)
{
	expect_status(setup, channel, type, 0);
}

/* A second connection of a queue pair number that has one: refused, and the first is ended. */
static void test_stale(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);
	struct rdma_conn_param param = usual_param();
	struct rdma_cm_id *second;

	establish(&setup);
	second = resolved_client(provider, setup.active, PORT);
	param.qp_num = setup.qp_num;
	CHECK(!provider->rdma_connect(second, &param));
	{
		struct rdma_cm_event *event;
		bool rejected = false, disconnected = false;

		for (int count = 0; count < 2; count++) {
			wait_readable(setup.active);
			CHECK(!provider->rdma_get_cm_event(setup.active, &event));
			if (event->id == second)
				rejected = event->event == RDMA_CM_EVENT_REJECTED && event->status == 10;
			else
				disconnected = event->event == RDMA_CM_EVENT_DISCONNECTED;
			CHECK(!provider->rdma_ack_cm_event(event));
		}
		CHECK(rejected && disconnected);
	}
	CHECK(!provider->rdma_destroy_id(second));
	finish(&setup);
}

static void test_accept_again(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);
	struct rdma_conn_param param = usual_param();

	/* What librdmacm rejects itself does not change the request. */
	param.responder_resources = 200;
	REFUSED(provider->rdma_accept(setup.child, &param), EINVAL);
	CHECK(!accept_request(&setup));
	next_event(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE);
	/* What the kernel rejects ends it. */
	REFUSED(accept_request(&setup), EINVAL);
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	REFUSED(accept_request(&setup), EINVAL);
	REFUSED(provider->rdma_reject(setup.child, NULL, 0), EINVAL);
	finish(&setup);
}

static void test_reject_accepted(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);

	CHECK(!accept_request(&setup));
	next_event(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(!provider->rdma_reject(setup.child, "late", 4)); /* REP sent */
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	REFUSED(provider->rdma_establish(setup.client), EINVAL);
	finish(&setup);
}

static void test_reject_late(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);

	CHECK(!accept_request(&setup));
	next_event(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(!provider->rdma_reject(setup.client, "no", 2)); /* REP received */
	expect_status(&setup, setup.passive, RDMA_CM_EVENT_REJECTED, 28);
	finish(&setup);

	setup = requested(provider, PORT);
	establish(&setup);
	REFUSED(provider->rdma_reject(setup.client, NULL, 0), EINVAL);
	REFUSED(provider->rdma_reject(setup.child, NULL, 0), EINVAL);
	REFUSED(provider->rdma_reject(setup.listener, NULL, 0), EINVAL);
	REFUSED(provider->rdma_establish(setup.client), EINVAL);
	REFUSED(accept_request(&setup), EINVAL);
	expect_silence(setup.active);
	finish(&setup);
}

static void test_reject_ece(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);
	struct ibv_ece ece = {.vendor_id = 0x1234, .options = 0x5678};
	struct rdma_conn_param param = usual_param();
	struct rdma_cm_event *event;
	struct rdma_cm_id *second;

	CHECK(!provider->rdma_reject_ece(setup.child, "x", 1));
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 35);
	REFUSED(provider->rdma_set_local_ece(setup.client, NULL), EINVAL);

	second = resolved_client(provider, setup.active, PORT);
	CHECK(!provider->rdma_set_local_ece(second, &ece));
	CHECK(!provider->rdma_connect(second, &param));
	event = expect_event(provider, setup.passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	ece = (struct ibv_ece){0};
	CHECK(!provider->rdma_get_remote_ece(event->id, &ece));
	CHECK(ece.vendor_id == 0x1234 && ece.options == 0x5678 && !ece.comp_mask);
	ece.vendor_id = 0;
	REFUSED(provider->rdma_set_local_ece(event->id, &ece), EINVAL);
	destroy_id(&setup, &setup.child);
	setup.child = event->id;
	CHECK(!provider->rdma_ack_cm_event(event));
	CHECK(!provider->rdma_destroy_id(second));
	finish(&setup);
}

static void test_disconnect_early(struct core_provider *provider)
{
	struct setup setup = connecting(provider, PORT);
	struct sockaddr_storage address = local_address(0);
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(setup.active, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&address));
	REFUSED(provider->rdma_disconnect(id), EINVAL);
	CHECK(!provider->rdma_destroy_id(id));
	id = resolved_client(provider, setup.active, PORT);
	REFUSED(provider->rdma_disconnect(id), EINVAL);
	REFUSED(provider->rdma_reject(id, NULL, 0), EINVAL);
	REFUSED(provider->rdma_establish(id), EINVAL);
	CHECK(!provider->rdma_destroy_id(id));

	CHECK(!provider->rdma_disconnect(setup.client)); /* REQ sent */
	take_request(&setup);
	CHECK(!provider->rdma_disconnect(setup.child)); /* REQ received */
	CHECK(!accept_request(&setup));
	CHECK(!provider->rdma_disconnect(setup.child)); /* REP sent */
	next_event(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(!provider->rdma_disconnect(setup.client)); /* REP received */
	CHECK(!provider->rdma_establish(setup.client));
	next_event(&setup, setup.passive, RDMA_CM_EVENT_ESTABLISHED);
	expect_silence(setup.active);
	finish(&setup);
}

/* A connection ends once for each side, whichever side ends it and how often. */
static void test_disconnect_both(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);

	establish(&setup);
	CHECK(!provider->rdma_disconnect(setup.client));
	CHECK(!provider->rdma_disconnect(setup.child));
	next_event(&setup, setup.active, RDMA_CM_EVENT_DISCONNECTED);
	next_event(&setup, setup.passive, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!provider->rdma_disconnect(setup.client));
	CHECK(!provider->rdma_disconnect(setup.child));
	next_event(&setup, setup.active, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	next_event(&setup, setup.passive, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	CHECK(!provider->rdma_disconnect(setup.client));
	finish(&setup);

	setup = requested(provider, PORT);
	establish(&setup);
	CHECK(!provider->rdma_disconnect(setup.client));
	next_event(&setup, setup.passive, RDMA_CM_EVENT_DISCONNECTED);
	destroy_id(&setup, &setup.child); /* answers as well */
	next_event(&setup, setup.active, RDMA_CM_EVENT_DISCONNECTED);
	finish(&setup);
}

static void test_establish_early(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);

	REFUSED(provider->rdma_establish(setup.client), EINVAL); /* REQ sent */
	REFUSED(provider->rdma_establish(setup.client), EINVAL);
	finish(&setup);

	setup = requested(provider, PORT);
	REFUSED(provider->rdma_establish(setup.child), EINVAL); /* REQ received */
	expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
	finish(&setup);
}

static void test_notify(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);

	REFUSED(provider->rdma_notify(setup.client, IBV_EVENT_COMM_EST), EINVAL);
	REFUSED(provider->rdma_notify(setup.child, IBV_EVENT_COMM_EST), EINVAL);
	CHECK(!accept_request(&setup));
	REFUSED(provider->rdma_notify(setup.child, IBV_EVENT_QP_FATAL), EINVAL);
	CHECK(!provider->rdma_notify(setup.child, IBV_EVENT_COMM_EST));
	next_event(&setup, setup.passive, RDMA_CM_EVENT_ESTABLISHED);
	REFUSED(provider->rdma_notify(setup.child, IBV_EVENT_COMM_EST), EISCONN);
	next_event(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(!provider->rdma_establish(setup.client));
	CHECK(!provider->rdma_disconnect(setup.child));
	next_event(&setup, setup.active, RDMA_CM_EVENT_DISCONNECTED);
	expect_silence(setup.passive); /* the RTU came too late to count */
	finish(&setup);
}

static int attr_error(struct core_provider *provider, struct rdma_cm_id *id, enum ibv_qp_state state,
		      struct ibv_qp_attr *attr, int *mask)
{
	*attr = (struct ibv_qp_attr){.qp_state = state};
	*mask = 0;
	return provider->rdma_init_qp_attr(id, attr, mask) ? errno : 0;
}

static void check_connected(struct core_provider *provider, struct rdma_cm_id *id, uint8_t retry)
{
	struct ibv_qp_attr attr;
	int mask;

	CHECK(!attr_error(provider, id, IBV_QPS_INIT, &attr, &mask));
	CHECK(mask == (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	CHECK(attr.qp_access_flags ==
	      (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
	CHECK(!attr_error(provider, id, IBV_QPS_RTR, &attr, &mask));
	CHECK(mask == (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	CHECK(attr.dest_qp_num && attr.max_dest_rd_atomic == 3 && !attr.min_rnr_timer);
	CHECK(attr.ah_attr.is_global && attr.ah_attr.port_num == 1);
	CHECK(!attr_error(provider, id, IBV_QPS_RTS, &attr, &mask));
	CHECK(mask == (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
	CHECK(attr.max_rd_atomic == 2 && attr.retry_cnt == 7 && attr.rnr_retry == retry);
	CHECK(attr.timeout == 19);
}

static void test_init_qp_attr(struct core_provider *provider)
{
	struct setup setup = connecting(provider, PORT);
	struct rdma_cm_id *other = resolved_client(provider, setup.active, PORT);
	struct ibv_qp_attr attr;
	uint32_t rq_psn;
	int mask;

	/* Before a connection, any state gives what INIT needs. */
	CHECK(!attr_error(provider, other, IBV_QPS_INIT, &attr, &mask));
	CHECK(mask == (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	CHECK(!attr.qp_access_flags && attr.port_num == 1);
	CHECK(!attr_error(provider, other, IBV_QPS_RTR, &attr, &mask));
	CHECK(!attr_error(provider, other, IBV_QPS_RTS, &attr, &mask));
	CHECK(attr_error(provider, other, IBV_QPS_ERR + 1, &attr, &mask) == EINVAL);
	CHECK(!provider->rdma_destroy_id(other));

	CHECK(!attr_error(provider, setup.client, IBV_QPS_INIT, &attr, &mask));
	CHECK(attr_error(provider, setup.client, IBV_QPS_RTR, &attr, &mask) == EINVAL);
	CHECK(attr_error(provider, setup.client, IBV_QPS_RTS, &attr, &mask) == EINVAL);
	take_request(&setup);
	CHECK(!attr_error(provider, setup.child, IBV_QPS_RTR, &attr, &mask));
	CHECK(attr.dest_qp_num == setup.qp_num);
	rq_psn = attr.rq_psn;
	CHECK(!attr_error(provider, setup.child, IBV_QPS_RTS, &attr, &mask));
	CHECK(attr.max_rd_atomic == 3 && attr.retry_cnt == 7 && attr.rnr_retry == 5);
	CHECK(attr_error(provider, setup.child, IBV_QPS_ERR, &attr, &mask) == EINVAL);
	establish(&setup);
	check_connected(provider, setup.child, 5);
	/* A queue pair of the user's own may be ready to receive before it is accepted. */
	CHECK(!attr_error(provider, setup.child, IBV_QPS_RTR, &attr, &mask) && attr.rq_psn == rq_psn);
	CHECK(!attr_error(provider, setup.client, IBV_QPS_RTS, &attr, &mask) && attr.sq_psn == rq_psn);
	CHECK(!provider->rdma_disconnect(setup.client));
	next_event(&setup, setup.passive, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(attr_error(provider, setup.child, IBV_QPS_RTR, &attr, &mask) == EINVAL);
	CHECK(attr_error(provider, setup.client, IBV_QPS_INIT, &attr, &mask) == EINVAL);
	finish(&setup);
}

static int option_error(struct core_provider *provider, struct rdma_cm_id *id, int level, int name,
			int value, size_t length)
{
	return provider->rdma_set_option(id, level, name, &value, length) ? errno : 0;
}

static void test_options(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);
	struct rdma_cm_id *idle, *datagrams;

	CHECK(!provider->rdma_create_id(setup.active, &idle, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_create_id(setup.active, &datagrams, NULL, RDMA_PS_UDP));
	CHECK(option_error(provider, idle, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 8, 1) == 0);
	CHECK(option_error(provider, idle, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 8, 4) == EINVAL);
	CHECK(option_error(provider, idle, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, 4) == 0);
	CHECK(option_error(provider, idle, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 0, 4) == 0);
	CHECK(option_error(provider, idle, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, 1) == EINVAL);
	CHECK(option_error(provider, idle, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 1, 4) == 0);
	CHECK(option_error(provider, idle, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 1, 8) == EINVAL);
	CHECK(option_error(provider, idle, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 10, 1) == 0);
	CHECK(option_error(provider, idle, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 10, 4) == EINVAL);
	CHECK(option_error(provider, idle, RDMA_OPTION_ID, 77, 1, 4) == ENOSYS);
	CHECK(option_error(provider, idle, 77, 1, 1, 4) == ENOSYS);
	CHECK(option_error(provider, idle, RDMA_OPTION_IB, 77, 1, 4) == ENOSYS);
	CHECK(option_error(provider, idle, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 1, 4) == EINVAL);
	CHECK(option_error(provider, datagrams, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 1) ==
	      EINVAL);
	CHECK(option_error(provider, setup.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, 4) ==
	      EINVAL);
	CHECK(option_error(provider, setup.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 0, 4) ==
	      EINVAL);
	CHECK(option_error(provider, setup.client, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, 4) == 0);
	CHECK(option_error(provider, setup.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 1, 4) ==
	      EINVAL);
	CHECK(option_error(provider, setup.client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 8, 1) == 0);
	CHECK(!provider->rdma_destroy_id(idle));
	CHECK(!provider->rdma_destroy_id(datagrams));
	finish(&setup);
}

/* The ACK timeout of the option is that of the queue pair, and goes to the peer with the path. */
static void test_ack_timeout(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);
	struct sockaddr_storage address = local_address(PORT);
	struct rdma_conn_param param = usual_param();
	struct ibv_qp_attr attr;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id, *child;
	int mask;

	CHECK(!provider->rdma_create_id(setup.active, &id, NULL, RDMA_PS_TCP));
	CHECK(!option_error(provider, id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 17, 1));
	CHECK(!provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
	next_event(&setup, setup.active, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!provider->rdma_resolve_route(id, 2000));
	next_event(&setup, setup.active, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CHECK(id->route.num_paths == 1 && id->route.path_rec->packet_life_time == 16);
	CHECK(id->route.path_rec->pkey == 0xffff && id->route.path_rec->hop_limit);
	CHECK(!memcmp(&id->route.path_rec->sgid, &id->route.addr.addr.ibaddr.sgid, 16));
	CHECK(!provider->rdma_connect(id, &param));
	event = expect_event(provider, setup.passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	child = event->id;
	CHECK(!provider->rdma_ack_cm_event(event));
	param.qp_num += 100000;
	CHECK(!provider->rdma_accept(child, &param));
	next_event(&setup, setup.active, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(!attr_error(provider, id, IBV_QPS_RTS, &attr, &mask) && attr.timeout == 17);
	CHECK(!attr_error(provider, child, IBV_QPS_RTS, &attr, &mask) && attr.timeout == 17);
	CHECK(!provider->rdma_destroy_id(id));
	CHECK(!provider->rdma_destroy_id(child));
	finish(&setup);
}

static struct rdma_cm_id *new_id(struct setup *setup, enum rdma_port_space port_space)
{
	struct rdma_cm_id *id;

	CHECK(!setup->provider->rdma_create_id(setup->active, &id, NULL, port_space));
	return id;
}

static int bind_any(struct setup *setup, struct rdma_cm_id *id, int family, uint16_t port)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	return setup->provider->rdma_bind_addr(id, family == AF_INET ? (struct sockaddr *)&in :
								       (struct sockaddr *)&in6) ?
		       errno : 0;
}

static int bind_here(struct setup *setup, struct rdma_cm_id *id, uint16_t port)
{
	struct sockaddr_storage address = local_address(port);

	return setup->provider->rdma_bind_addr(id, (struct sockaddr *)&address) ? errno : 0;
}

static void reuse(struct setup *setup, struct rdma_cm_id *id)
{
	CHECK(!option_error(setup->provider, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, 4));
}

static void family_only(struct setup *setup, struct rdma_cm_id *id, int only)
{
	CHECK(!option_error(setup->provider, id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, only, 4));
}

/* Which ids may share a port: wildcards, families, reuse, port spaces. */
static void test_sharing(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);
	struct rdma_cm_id *a = new_id(&setup, RDMA_PS_TCP), *b = new_id(&setup, RDMA_PS_TCP);

	CHECK(bind_here(&setup, a, PORT) == EADDRINUSE);
	CHECK(bind_any(&setup, a, AF_INET, PORT) == EADDRNOTAVAIL);
	CHECK(bind_any(&setup, a, AF_INET6, PORT) == EADDRNOTAVAIL);
	CHECK(!provider->rdma_destroy_id(a));
	a = new_id(&setup, RDMA_PS_IB); /* another port space, other ports */
	CHECK(bind_here(&setup, a, PORT) == 0);
	CHECK(bind_here(&setup, a, PORT + 1) == EINVAL); /* bound already */
	CHECK(!provider->rdma_destroy_id(a));

	/* Both share the port: both are bound, but only one that is alone may listen. */
	a = new_id(&setup, RDMA_PS_TCP);
	reuse(&setup, a);
	reuse(&setup, b);
	CHECK(bind_here(&setup, a, PORT + 1) == 0 && bind_here(&setup, b, PORT + 1) == 0);
	REFUSED(provider->rdma_listen(a, 1), EADDRINUSE);
	CHECK(!provider->rdma_destroy_id(b));
	CHECK(!provider->rdma_listen(a, 1));
	REFUSED(provider->rdma_listen(a, 1), EINVAL);
	CHECK(!provider->rdma_destroy_id(a));

	/* Separate families: an IPv4 id always, an IPv6 id by option. */
	a = new_id(&setup, RDMA_PS_TCP);
	b = new_id(&setup, RDMA_PS_TCP);
	CHECK(bind_any(&setup, a, AF_INET, PORT + 2) == 0);
	CHECK(bind_any(&setup, b, AF_INET6, PORT + 2) == EADDRNOTAVAIL);
	CHECK(!provider->rdma_destroy_id(b));
	b = new_id(&setup, RDMA_PS_TCP);
	family_only(&setup, b, 1);
	CHECK(bind_any(&setup, b, AF_INET6, PORT + 2) == 0);
	CHECK(!provider->rdma_listen(a, 1) && !provider->rdma_listen(b, 1));
	CHECK(!provider->rdma_destroy_id(a));
	CHECK(!provider->rdma_destroy_id(b));
	finish(&setup);
}

/*
 * An IPv6 wildcard accepts IPv4 connections unless an option forbids it. Then they are rejected, but not with the
 * reason for a missing listener, because the port is in use.
 */
static void test_wildcards(struct core_provider *provider)
{
	for (int only = 0; only < 2; only++) {
		struct setup setup = requested(provider, PORT);
		struct rdma_cm_id *listener = new_id(&setup, RDMA_PS_TCP);
		struct rdma_cm_id *client = resolved_client(provider, setup.active, PORT + 3);
		struct rdma_conn_param param = usual_param();

		family_only(&setup, listener, only);
		CHECK(bind_any(&setup, listener, AF_INET6, PORT + 3) == 0);
		CHECK(!provider->rdma_listen(listener, 1) && !listener->verbs);
		CHECK(!provider->rdma_connect(client, &param));
		if (only)
			expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
		else
			wait_readable(setup.active); /* the listener's channel, too */
		CHECK(!provider->rdma_destroy_id(listener));
		if (!only)
			expect_status(&setup, setup.active, RDMA_CM_EVENT_REJECTED, 28);
		CHECK(!provider->rdma_destroy_id(client));
		finish(&setup);
	}
}

/* In a process of its own, because a channel is opened with the privileges of its process. */
static int bind_without_rights(struct core_provider *provider)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct setup setup = {.provider = provider};

	if (syscall(SYS_capget, &header, data))
		return 1;
	data[CAP_TO_INDEX(CAP_NET_BIND_SERVICE)].effective &= ~CAP_TO_MASK(CAP_NET_BIND_SERVICE);
	if (syscall(SYS_capset, &header, data))
		return 2;
	setup.active = create_channel(provider);
	if (bind_here(&setup, new_id(&setup, RDMA_PS_TCP), 1023) != EACCES)
		return 3;
	return bind_here(&setup, new_id(&setup, RDMA_PS_TCP), 1024) ? 4 : 0;
}

static void test_privileged_ports(struct core_provider *provider)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0)
		_exit(bind_without_rights(provider));
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void test_order(struct core_provider *provider)
{
	struct setup setup = requested(provider, PORT);
	struct sockaddr_storage address = local_address(PORT), port9 = local_address(9);
	struct rdma_cm_id *id = resolved_client(provider, setup.active, PORT), *child;
	struct rdma_conn_param param = usual_param();
	struct rdma_cm_event *event;

	REFUSED(provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000), EINVAL);
	REFUSED(provider->rdma_resolve_route(id, 1000), EINVAL);
	REFUSED(provider->rdma_listen(id, 1), EINVAL);
	REFUSED(provider->rdma_bind_addr(id, (struct sockaddr *)&address), EINVAL);
	REFUSED(accept_request(&(struct setup){.provider = provider, .child = id}), EINVAL);
	CHECK(!provider->rdma_connect(id, &param));
	REFUSED(provider->rdma_connect(id, &param), EINVAL);
	/* Otherwise a slow kernel may give the request to the listener of the next test. */
	event = expect_event(provider, setup.passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	child = event->id;
	CHECK(!provider->rdma_ack_cm_event(event));
	CHECK(!provider->rdma_destroy_id(child));
	CHECK(!provider->rdma_destroy_id(id));
	id = new_id(&setup, RDMA_PS_TCP);
	CHECK(!provider->rdma_listen(id, 0)); /* unbound: any address, some port */
	CHECK(ntohs(provider->rdma_get_src_port(id)) >= 1024);
	REFUSED(provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000), EINVAL);
	CHECK(!provider->rdma_destroy_id(id));
	id = new_id(&setup, RDMA_PS_TCP);
	((struct sockaddr *)&port9)->sa_family = AF_UNIX;
	REFUSED(provider->rdma_bind_addr(id, (struct sockaddr *)&port9), EINVAL);
	REFUSED(provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&port9, 1000), EINVAL);
	CHECK(!provider->rdma_destroy_id(id));
	REFUSED(provider->rdma_create_id(setup.active, &id, NULL, 0x999), EINVAL);
	finish(&setup);
}

int main(void)
{
	struct core_provider *provider = open_provider();

	core_select(provider);
	test_privileged_ports(provider);
	test_order(provider);
	test_stale(provider);
	if (on_soft("messages that are taken back")) {
		test_accept_again(provider);
		test_reject_accepted(provider);
		test_establish_early(provider);
	}
	test_reject_late(provider);
	test_reject_ece(provider);
	test_disconnect_early(provider);
	test_disconnect_both(provider);
	test_notify(provider);
	test_init_qp_attr(provider);
	test_options(provider);
	test_ack_timeout(provider);
	test_sharing(provider);
	test_wildcards(provider);
	close_provider(provider);
	return 0;
}
