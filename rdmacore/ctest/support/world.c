#include "ctest/support/world.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/udp_counts.h"
#include "soft/base/lock.h"
#include "soft/cm/id.h"
#include "soft/host.h"
#include "soft/udp/udp.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"

#define UNWRITTEN 0xa5

struct world *world;
struct actor world_server, world_good, world_local;
uint64_t *world_forged;

static char fabric[CORE_FABRIC_MAX + 1];

const char *world_fabric(void)
{
	return fabric;
}

struct process world_start(int notices)
{
	return process_start_with(fabric, (struct core_options){.notices = notices});
}

struct rdma_cm_id *world_listen(struct process *process, const char *text, uint16_t port)
{
	struct sockaddr_storage address = ipv4_address(text, port);
	struct rdma_cm_id *id = process_id(process, RDMA_PS_TCP);

	CHECK(!process->provider->rdma_bind_addr(id, (struct sockaddr *)&address));
	CHECK(!process->provider->rdma_listen(id, 0));
	return id;
}

static void create_queue_pair(struct process *process, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
					.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};

	CHECK(!process->provider->rdma_create_qp(id, NULL, &attr));
}

static struct rdma_conn_param parameters(void)
{
	return (struct rdma_conn_param){.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
}

static void leave(struct process *process, struct rdma_cm_id *id)
{
	if (id->qp)
		process->provider->rdma_destroy_qp(id);
	process_destroy(process, id);
}

static void note_end(struct world_end *end, struct rdma_cm_id *id)
{
	end->guid = soft_id(id)->cm->device->guid;
	end->transaction = soft_id(id)->transaction;
	end->local = soft_id(id)->local;
	end->remote = soft_id(id)->remote;
	end->qp_num = id->qp->qp_num;
}

/* --- the server ------------------------------------------------------------------------------------- */

static struct process server;
static struct rdma_cm_id *connection; /* of the server, or of the client */
static char memory[2 * WORLD_OPEN] __attribute__((aligned(4096)));

static bool is_third(const struct rdma_cm_id *id)
{
	struct sockaddr_storage third = ipv4_address(WORLD_THIRD, 0);

	return ((const struct sockaddr_in *)(const void *)&id->route.addr.dst_addr)->sin_addr.s_addr ==
	       ((struct sockaddr_in *)&third)->sin_addr.s_addr;
}

static void take_request(struct process *process, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = parameters();

	if (is_third(id)) {
		(void)process->provider->rdma_reject(id, NULL, 0);
		process_destroy(process, id);
		atomic_fetch_add(&world->refused, 1);
		return;
	}
	create_queue_pair(process, id);
	if (process->provider->rdma_accept(id, &param)) /* its peer took it back */
		leave(process, id);
}

void world_serve(struct process *process)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	CHECK(!process->provider->rdma_get_cm_event(process->channel, &event));
	type = event->event;
	id = event->id;
	CHECK(!process->provider->rdma_ack_cm_event(event));
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		take_request(process, id);
	} else if (type == RDMA_CM_EVENT_ESTABLISHED) {
		if (process == &server && !connection)
			connection = id;
	} else if (id == connection) {
		atomic_store(&world->lost, true);
	} else if (type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
		if (type == RDMA_CM_EVENT_DISCONNECTED)
			(void)process->provider->rdma_disconnect(id);
		leave(process, id);
	}
}

static void serve(void)
{
	world_serve(&server);
}

static void start_server(void)
{
	server = world_start(0);
	memset(memory, UNWRITTEN, sizeof(memory));
	(void)world_listen(&server, "0.0.0.0", WORLD_PORT);
	actor_watch(server.channel->fd, serve);
}

static void update_server(void)
{
	struct soft_qp *qp = soft_qp(connection->qp);

	soft_lock_take(&qp->responder.lock);
	world->server.psn = qp->responder.psn;
	soft_lock_release(&qp->responder.lock);
}

/* After the connection was made. */
static void publish_server(void)
{
	struct ibv_mr *mr;

	while (!connection)
		serve();
	mr = server.provider->ibv_reg_mr(connection->pd, memory, sizeof(memory),
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	world->address = (uintptr_t)memory;
	world->rkey = mr->rkey;
	note_end(&world->server, connection);
	update_server();
}

void world_await_write(void)
{
	uint32_t before = world->server.psn;

	for (int waited = 0; world->server.psn == before; waited++) {
		CHECK(waited < 20000);
		usleep(1000);
		update_server();
	}
	CHECK(memory[WORLD_OPEN] != (char)UNWRITTEN);
}

/* --- clients ---------------------------------------------------------------------------------------- */

static struct process good, again; /* the same with another channel */
static struct end end; /* its memory: what it writes, and what it has read from the server */
static struct ibv_mr servers_region;
static struct end servers_end;
static uint64_t received; /* packets, before world_post_good */

static struct rdma_cm_id *request_connection(struct process *process, const char *from, const char *to, uint16_t port)
{
	struct sockaddr_storage source = from ? ipv4_address(from, 0) : (struct sockaddr_storage){0}, destination = ipv4_address(to, port);
	struct rdma_conn_param param = parameters();
	struct rdma_cm_id *id = process_id(process, RDMA_PS_TCP);

	CHECK(!process->provider->rdma_resolve_addr(id, from ? (struct sockaddr *)&source : NULL, (struct sockaddr *)&destination, 5000));
	process_expect(process, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	CHECK(!process->provider->rdma_resolve_route(id, 5000));
	process_expect(process, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	create_queue_pair(process, id);
	CHECK(!process->provider->rdma_connect(id, &param));
	return id;
}

void world_connect(struct process *process, const char *from, const char *to, uint16_t port)
{
	struct rdma_cm_id *id = request_connection(process, from, to, port);

	process_expect(process, RDMA_CM_EVENT_ESTABLISHED, 0);
	CHECK(!process->provider->rdma_disconnect(id));
	process_expect(process, RDMA_CM_EVENT_DISCONNECTED, 0);
	leave(process, id);
}

static void start_good(void)
{
	size_t size = 4 * WORLD_OPEN;

	good = world_start(0);
	again = (struct process){good.provider, create_channel(good.provider)};
	connection = request_connection(&good, WORLD_GOOD, WORLD_SERVER, WORLD_PORT);
	process_expect(&good, RDMA_CM_EVENT_ESTABLISHED, 0);
	end = (struct end){.provider = good.provider, .id = connection, .memory = malloc(size), .size = size};
	CHECK(end.memory);
	end.mr = good.provider->ibv_reg_mr(connection->pd, end.memory, size, IBV_ACCESS_LOCAL_WRITE);
	CHECK(end.mr);
	note_end(&world->good, connection);
}

/* With the server's key, which it has published meanwhile. */
static void transfer(enum ibv_wr_opcode opcode, size_t offset, uint32_t length)
{
	servers_region.rkey = world->rkey;
	servers_end = (struct end){.memory = (char *)(uintptr_t)world->address, .mr = &servers_region};
	CHECK(!post_send(&end, opcode, 1, offset, length, &servers_end, 0));
}

static void expect_success(void)
{
	struct ibv_wc wc = poll_one(connection->send_cq);

	if (wc.status)
		fprintf(stderr, "status %d\n", wc.status);
	CHECK(wc.status == IBV_WC_SUCCESS);
}

/* The written data is there, and nothing else has changed. */
static void ping(void)
{
	static char byte;
	struct pollfd event = {.fd = good.channel->fd, .events = POLLIN};

	memset(end.memory, ++byte, WORLD_OPEN);
	transfer(IBV_WR_RDMA_WRITE, 0, WORLD_OPEN);
	expect_success();
	memset(end.memory + 2 * WORLD_OPEN, 0, 2 * WORLD_OPEN);
	transfer(IBV_WR_RDMA_READ, 2 * WORLD_OPEN, 2 * WORLD_OPEN);
	expect_success();
	for (size_t index = 0; index < WORLD_OPEN; index++) {
		CHECK(end.memory[2 * WORLD_OPEN + index] == byte);
		CHECK(end.memory[3 * WORLD_OPEN + index] == (char)UNWRITTEN);
	}
	if (poll(&event, 1, 0))
		atomic_store(&world->lost, true);
}

void world_connect_good(void)
{
	world_connect(&again, WORLD_GOOD, WORLD_SERVER, WORLD_PORT);
}

void world_connect_local(void)
{
	struct process process = world_start(0);

	world_connect(&process, NULL, "127.0.0.1", WORLD_PORT);
	world_connect(&process, NULL, WORLD_SERVER, WORLD_PORT);
	process_end(&process);
}

void world_refuse_good(void)
{
	struct rdma_cm_id *id = request_connection(&again, WORLD_GOOD, WORLD_SERVER, WORLD_PORT + 9);

	process_expect(&again, RDMA_CM_EVENT_REJECTED, 8);
	leave(&again, id);
}

static uint64_t count_received(void)
{
	return udp_count(((struct soft_host *)good.provider->host)->udp).received;
}

void world_post_good(void)
{
	struct soft_qp *qp = soft_qp(connection->qp);

	received = count_received();
	soft_lock_take(&qp->requester.lock);
	world->good.psn = qp->requester.psn;
	soft_lock_release(&qp->requester.lock);
	transfer(IBV_WR_RDMA_WRITE, 0, 64);
}

void world_await_packets_good(void)
{
	struct ibv_wc wc;

	for (int waited = 0; count_received() < received + *world_forged; waited++) {
		CHECK(waited < 20000);
		usleep(1000);
	}
	CHECK(!ibv_poll_cq(connection->send_cq, 1, &wc));
}

void world_complete_good(void)
{
	expect_success();
}

/* --- all of them ------------------------------------------------------------------------------------ */

void world_open(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(fabric, sizeof(fabric), "world-%d", getpid());
	world = mmap(NULL, sizeof(*world) + sizeof(*world_forged), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(world != MAP_FAILED);
	world_forged = (uint64_t *)(world + 1);
	actor_make_hosts(3);
	actor_configure(WORLD_SERVERS_HOST, "ip address add " WORLD_SECOND "/24 dev wire; ip route add default via " WORLD_THIRD);
	world_server = actor_start(WORLD_SERVERS_HOST, ALICE);
	world_good = actor_start(WORLD_GOOD_HOST, ALICE);
	world_local = actor_start(WORLD_SERVERS_HOST, ALICE);
	actor_do(&world_server, start_server);
	actor_do(&world_good, start_good);
	actor_do(&world_server, publish_server);
	world_check();
}

void world_check(void)
{
	actor_do(&world_good, ping);
	actor_do(&world_good, world_connect_good);
	actor_do(&world_local, world_connect_local);
	CHECK(!atomic_load(&world->lost));
	actor_do(&world_server, update_server);
}

void world_passed(const char *name)
{
	printf("  %s\n", name);
}

void world_attack(const char *name, struct actor *actor, void (*act)(void))
{
	actor_do(actor, act);
	world_check();
	world_passed(name);
}

void world_close(void)
{
	actor_end(&world_local);
	actor_end(&world_good);
	actor_end(&world_server);
}
