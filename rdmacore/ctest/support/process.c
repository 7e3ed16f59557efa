#include "ctest/support/process.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "soft/cm/cm.h"
#include "soft/host.h"
#include "soft/ipc/ipc.h"

static struct core_provider *open_with(const char *fabric, struct core_options options)
{
	struct core_provider *provider;
	char why[512] = "";

	options.link = CORE_LINK_UDP;
	snprintf(options.fabric, sizeof(options.fabric), "%s", fabric);
	CHECK(!core_open("soft", &options, &provider, why, sizeof(why)));
	return provider;
}

struct core_provider *process_open(const char *fabric, uint64_t seed)
{
	return open_with(fabric, (struct core_options){.seeded = seed, .seed = seed});
}

const char *process_fabric(void)
{
	static char name[CORE_FABRIC_MAX + 1];

	snprintf(name, sizeof(name), "test-%d", getpid());
	return name;
}

struct soft_ipc *process_ipc(struct core_provider *provider)
{
	return ((struct soft_host *)provider->host)->cm->ipc;
}

struct process process_start_with(const char *fabric, struct core_options options)
{
	struct process process = {.provider = open_with(fabric, options)};

	process.channel = create_channel(process.provider);
	return process;
}

struct process process_start(uint64_t seed)
{
	return process_start_with(process_fabric(), (struct core_options){.seeded = seed, .seed = seed});
}

void process_end(struct process *process)
{
	process->provider->rdma_destroy_event_channel(process->channel);
	close_provider(process->provider);
}

void process_kill(struct process *process)
{
	struct soft_ipc *ipc = process_ipc(process->provider);
	struct soft_ipc_peer *peer;
	struct soft_claim *claim;

	soft_mutex_lock(ipc->lock);
	LIST_FOREACH(claim, &ipc->claims, entry)
		shutdown(claim->socket.fd, SHUT_RDWR); /* no process can connect */
	LIST_FOREACH(peer, &ipc->peers, entry)
		shutdown(peer->socket.fd, SHUT_RDWR);
	soft_mutex_unlock(ipc->lock);
}

void process_wait_alone(struct process *process)
{
	struct soft_ipc *ipc = process_ipc(process->provider);

	for (int attempt = 0; attempt < 20000; attempt++) {
		bool alone;

		soft_mutex_lock(ipc->lock);
		alone = LIST_EMPTY(&ipc->peers);
		soft_mutex_unlock(ipc->lock);
		if (alone)
			return;
		usleep(1000);
	}
	CHECK(!"connections that do not end");
}

struct rdma_cm_id *process_id(struct process *process, enum rdma_port_space port_space)
{
	struct rdma_cm_id *id;

	CHECK(!process->provider->rdma_create_id(process->channel, &id, NULL, port_space));
	return id;
}

struct rdma_cm_id *process_listen_in(struct process *process, enum rdma_port_space port_space, uint16_t port)
{
	struct sockaddr_storage address = local_address(port);
	struct rdma_cm_id *id = process_id(process, port_space);

	CHECK(!process->provider->rdma_bind_addr(id, (struct sockaddr *)&address));
	CHECK(!process->provider->rdma_listen(id, 0));
	return id;
}

struct rdma_cm_id *process_listen(struct process *process, uint16_t port)
{
	return process_listen_in(process, RDMA_PS_TCP, port);
}

struct rdma_cm_id *process_resolve(struct process *process, enum rdma_port_space port_space, uint16_t port)
{
	struct sockaddr_storage address = local_address(port);
	struct rdma_cm_id *id = process_id(process, port_space);

	CHECK(!process->provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
	process_expect(process, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	CHECK(!process->provider->rdma_resolve_route(id, 2000));
	process_expect(process, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

struct rdma_cm_id *process_connect_in(struct process *process, enum rdma_port_space port_space, uint16_t port)
{
	struct rdma_conn_param param = usual_param();
	struct rdma_cm_id *id = process_resolve(process, port_space, port);

	param.private_data = "hello";
	param.private_data_len = 5;
	CHECK(!process->provider->rdma_connect(id, &param));
	return id;
}

struct rdma_cm_id *process_connect(struct process *process, uint16_t port)
{
	return process_connect_in(process, RDMA_PS_TCP, port);
}

struct rdma_cm_id *process_request_in(struct process *process, enum rdma_port_space port_space)
{
	struct rdma_cm_event *event = expect_event(process->provider, process->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	const struct rdma_conn_param *conn = &event->param.conn;
	struct rdma_cm_id *child = event->id;

	if (port_space == RDMA_PS_UDP) {
		CHECK(event->param.ud.private_data_len == 180 && !memcmp(event->param.ud.private_data, "hello\0", 7));
	} else {
		CHECK(conn->responder_resources == 2 && conn->initiator_depth == 3);
		CHECK(conn->retry_count == 7 && conn->rnr_retry_count == 5);
		CHECK(conn->private_data_len == 56 && !memcmp(conn->private_data, "hello\0", 7));
	}
	CHECK(!process->provider->rdma_ack_cm_event(event));
	return child;
}

struct rdma_cm_id *process_request(struct process *process)
{
	return process_request_in(process, RDMA_PS_TCP);
}

void process_destroy(struct process *process, struct rdma_cm_id *id)
{
	CHECK(!process->provider->rdma_destroy_id(id));
}

void process_expect(struct process *process, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = expect_event(process->provider, process->channel, type);

	if (event->status != status)
		fprintf(stderr, "event %d has status %d\n", type, event->status);
	CHECK(event->status == status);
	CHECK(!process->provider->rdma_ack_cm_event(event));
}

void process_accept(struct process *process, struct rdma_cm_id *child)
{
	struct rdma_conn_param param = usual_param();

	param.private_data = "welcome";
	param.private_data_len = 7;
	CHECK(!process->provider->rdma_accept(child, &param));
}
