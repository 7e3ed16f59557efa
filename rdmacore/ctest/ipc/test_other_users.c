/*
 * Another user of the server's host binds, takes names, connects and sends any bytes. The server reports what hides a
 * listener. Its clients, of this host and of another one, are served.
 */
#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "ctest/support/forge.h"
#include "ctest/support/world.h"
#include "soft/base/local_name.h"
#include "soft/ipc/record.h"
#include "soft/udp/internal.h"

#define SECOND_PORT (WORLD_PORT + 1)
#define HIDDEN "192.0.2.12" /* where the other user has the UDP port */
#define HIDDEN_PORT (WORLD_PORT + 2)
#define HELD_MAX (SOFT_UDP_BLOCKS + 64)
#define BLOCKS 4096

static struct actor bob, second;

/* --- what the other user holds ---------------------------------------------------------------------- */

static int held[HELD_MAX];
static uint32_t held_count;

static void hold(int fd)
{
	CHECK(fd >= 0 && held_count < HELD_MAX);
	held[held_count++] = fd;
}

static void release(void)
{
	while (held_count)
		CHECK(!close(held[--held_count]));
}

static void hold_name(const char *name, int backlog)
{
	int fd = soft_local_bind(name);

	hold(fd);
	CHECK(backlog < 0 || !listen(fd, backlog));
}

/* Narrower names of the server's port, for all addresses that its clients connect to; the server listens on any. */
static void hold_narrower_names(int backlog)
{
	static const char *const addresses[] = {"127.0.0.1", WORLD_SERVER, WORLD_SECOND};
	char name[SOFT_LOCAL_NAME];

	for (size_t index = 0; index < sizeof(addresses) / sizeof(addresses[0]); index++) {
		snprintf(name, sizeof(name), "rdmarun/%s/106/%u/4/%s", world_fabric(), WORLD_PORT, addresses[index]);
		hold_name(name, backlog);
		snprintf(name, sizeof(name), "rdmarun//%u/106/%u/4/%s", ALICE, WORLD_PORT, addresses[index]);
		hold_name(name, backlog);
	}
}

static void take_narrower_names(void)
{
	hold_narrower_names(16);
}

static void fill_narrower_names(void)
{
	const struct soft_local_trust own = {.user = BOB};
	char name[SOFT_LOCAL_NAME];
	uid_t stranger;
	int fd;

	hold_narrower_names(0);
	snprintf(name, sizeof(name), "rdmarun/%s/106/%u/4/127.0.0.1", world_fabric(), WORLD_PORT);
	while ((fd = soft_local_connect(name, &own, &stranger)) >= 0)
		hold(fd);
	CHECK(fd == -EAGAIN);
}

static void bind_by_the_provider(void)
{
	static const char *const addresses[] = {"127.0.0.1", WORLD_SERVER, WORLD_SECOND, "0.0.0.0"};
	struct process process = world_start(0);

	for (size_t index = 0; index < sizeof(addresses) / sizeof(addresses[0]); index++) {
		struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(WORLD_PORT)};
		struct rdma_cm_id *id = process_id(&process, RDMA_PS_TCP);

		CHECK(inet_pton(AF_INET, addresses[index], &address.sin_addr) == 1);
		core_forget_refusal(process.provider);
		errno = 0;
		CHECK(process.provider->rdma_bind_addr(id, (struct sockaddr *)&address) && errno == EADDRNOTAVAIL);
		CHECK(strstr(core_refusal(process.provider), "a process of user 65533 has port 7471 of this fabric"));
		process_destroy(&process, id);
	}
	process_end(&process);
}

static void connect_by_the_provider(void)
{
	struct process process = world_start(0);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(WORLD_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_conn_param param = {.responder_resources = 1, .qp_num = 5};
	struct rdma_cm_id *id = process_id(&process, RDMA_PS_TCP);

	CHECK(!process.provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 5000));
	process_expect(&process, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	CHECK(!process.provider->rdma_resolve_route(id, 5000));
	process_expect(&process, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	CHECK(!process.provider->rdma_connect(id, &param));
	process_expect(&process, RDMA_CM_EVENT_REJECTED, 8);
	process_destroy(&process, id);
	process_end(&process);
}

/* A connection to the name, or to the name towards other hosts, ends before a byte of an answer comes. */
static void connect_by_hand(void)
{
	const struct soft_local_trust all = {.all = true};
	struct soft_cm_message messages[2] = {{.attribute = SOFT_CM_REQ}, {.attribute = SOFT_CM_DREQ}};

	for (int for_hosts = 0; for_hosts < 2; for_hosts++) {
		char name[SOFT_LOCAL_NAME], fabric[32];
		uint8_t record[SOFT_RECORD_MAX];
		uid_t stranger;
		ssize_t length;
		int fd;

		snprintf(fabric, sizeof(fabric), "/%u", ALICE);
		snprintf(name, sizeof(name), "rdmarun/%s/106/%u/4/0.0.0.0", for_hosts ? fabric : world_fabric(), WORLD_PORT);
		fd = soft_local_connect(name, &all, &stranger);
		CHECK(fd >= 0);
		for (int index = 0; index < 2; index++) {
			struct soft_cm_message *message = &messages[index];

			*message = (struct soft_cm_message){
				.attribute = message->attribute, .port_space = RDMA_PS_TCP, .guid = world->good.guid, .local = world->good.local,
				.remote = world->server.local, .qp_num = index ? world->server.qp_num : world->good.qp_num,
				.between_hosts = for_hosts, .source = local_address(1000), .destination = local_address(WORLD_PORT),
			};
			length = (ssize_t)soft_record_encode(message, 1, record);
			(void)send(fd, record, (size_t)length, MSG_NOSIGNAL); /* it may be closed already */
		}
		while ((length = recv(fd, record, sizeof(record), 0)) < 0 && errno == EAGAIN)
			usleep(1000);
		CHECK(length <= 0);
		CHECK(!close(fd));
	}
}

/* --- UDP ------------------------------------------------------------------------------------------------- */

/* From a port of its own, which may be that of a block, to one of the server's. */
static void send_from(const char *address, uint16_t port, const struct soft_endpoint *to, bool message)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct soft_cm_message dreq = {
		.attribute = SOFT_CM_DREQ, .transaction = world->good.transaction, .local = world->good.local, .remote = world->server.local,
		.qp_num = world->server.qp_num,
	};
	struct soft_packet packet = {
		.opcode = SOFT_RELIABLE_CONNECTION | SOFT_RDMA_WRITE_ONLY, .partition = SOFT_WIRE_PARTITION, .acknowledge = true,
		.destination = world->server.qp_num, .psn = world->server.psn, .rkey = world->rkey, .message_length = 1, .length = 1,
		.remote_address = world->address + WORLD_OPEN, .num_segments = 1, .segments = {{"", 1}},
	};
	struct soft_endpoint from = forge_endpoint(address, port);
	socklen_t size = sizeof(own);
	struct forged forged;

	CHECK(fd >= 0 && inet_pton(AF_INET, address, &own.sin_addr) == 1);
	CHECK(!bind(fd, (struct sockaddr *)&own, sizeof(own)) && !getsockname(fd, (struct sockaddr *)&own, &size));
	from.port = ntohs(own.sin_port);
	if (message)
		forge_message(&forged, &from, to, &dreq);
	else
		forge_packet(&forged, &from, to, &packet);
	forge_send_payload(fd, &forged, to);
	CHECK(!close(fd));
}

/* A block that no process has. */
static uint16_t free_block(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	for (uint32_t block = 0; block < SOFT_UDP_BLOCKS; block++) {
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		bool bound;

		address.sin_port = htons((uint16_t)(SOFT_UDP_PORTS + block));
		CHECK(fd >= 0);
		bound = !bind(fd, (struct sockaddr *)&address, sizeof(address));
		CHECK(!close(fd));
		if (bound)
			return ntohs(address.sin_port);
	}
	CHECK(!"a block that nobody has");
	return 0;
}

static void send_to_blocks(void)
{
	struct soft_endpoint block = forge_endpoint("127.0.0.1", soft_udp_port_of(world->server.qp_num));

	for (int message = 0; message < 2; message++) {
		send_from("127.0.0.1", 0, &block, message);
		send_from("127.0.0.2", 0, &block, message);
		send_from("127.0.0.1", free_block(), &block, message);
		/* That of the peer, which has it on its own host. */
		if (world->good.qp_num >> 12 != world->server.qp_num >> 12)
			send_from("127.0.0.2", soft_udp_port_of(world->good.qp_num), &block, message);
	}
}

static void send_as_other_hosts(void)
{
	struct soft_endpoint server = forge_endpoint(WORLD_SERVER, SOFT_WIRE_PORT);

	for (int message = 0; message < 2; message++) {
		send_from(WORLD_SERVER, 0, &server, message);
		send_from(WORLD_SECOND, 0, &server, message);
		send_from("127.0.0.1", 0, &server, message);
	}
}

/* --- a second process of the server's user ------------------------------------------------------------------ */

static struct process late;
static struct rdma_cm_id *late_listener;
static int notices = -1;

static void serve_late(void)
{
	world_serve(&late);
}

static void start_late(void)
{
	notices = memfd_create("notices", MFD_CLOEXEC);
	CHECK(notices > 0);
	late = world_start(notices);
	actor_watch(late.channel->fd, serve_late);
}

static void listen_at_any(void)
{
	start_late();
	late_listener = world_listen(&late, "0.0.0.0", SECOND_PORT);
}

static void listen_at_hidden(void)
{
	start_late();
	late_listener = world_listen(&late, HIDDEN, HIDDEN_PORT);
}

/* The user got that notice. */
static void end_late(const char *expected)
{
	char text[4096];
	ssize_t length;

	actor_watch(-1, NULL);
	process_destroy(&late, late_listener);
	process_end(&late); /* pending notices are written now */
	length = pread(notices, text, sizeof(text) - 1, 0);
	CHECK(length >= 0);
	text[length] = 0;
	if (!strstr(text, expected))
		fprintf(stderr, "refused with: %s\n", text);
	CHECK(strstr(text, expected));
	CHECK(!close(notices));
}

static void end_squatted(void)
{
	end_late("user 65534 has taken the name @rdmarun//65533/106/7472/4/0.0.0.0 of this user");
}

static void end_blocks(void)
{
	end_late("user 65534 has taken the name @rdmarun//65533/block/");
}

static void end_hidden(void)
{
	end_late("UDP port 4791 of " HIDDEN " is user 65534's");
}

static void connect_second_good(void)
{
	struct process process = world_start(0);

	for (int count = 0; count < 8; count++) /* whichever process of the server's user gets the packets */
		world_connect(&process, WORLD_GOOD, WORLD_SERVER, SECOND_PORT);
	process_end(&process);
}

static void connect_hidden(void)
{
	struct process process = world_start(0);

	world_connect(&process, NULL, HIDDEN, HIDDEN_PORT);
	process_end(&process);
}

static void take_names_for_hosts(void)
{
	char name[SOFT_LOCAL_NAME];

	snprintf(name, sizeof(name), "rdmarun//%u/106/%u/4/0.0.0.0", ALICE, SECOND_PORT);
	hold_name(name, 16);
	snprintf(name, sizeof(name), "rdmarun//%u/106/%u/46/::", ALICE, SECOND_PORT);
	hold_name(name, -1);
}

/* All that are free. */
static void take_names_of_blocks(void)
{
	char name[SOFT_LOCAL_NAME];

	for (unsigned int block = 0; block < BLOCKS; block++) {
		int fd;

		snprintf(name, sizeof(name), "rdmarun//%u/block/%u", ALICE, block);
		fd = soft_local_bind(name);
		if (fd >= 0 && !listen(fd, 1))
			hold(fd);
	}
}

/* False: another has it. */
static bool hold_port(const char *text, uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), yes = 1;

	CHECK(fd >= 0 && inet_pton(AF_INET, text, &address.sin_addr) == 1);
	CHECK(!setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &yes, sizeof(yes)));
	if (!bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		hold(fd);
		return true;
	}
	CHECK(!close(fd));
	return false;
}

/* At an address that the host does not have yet: before the server can take it. */
static void take_4791(void)
{
	CHECK(hold_port(HIDDEN, SOFT_WIRE_PORT));
}

static void take_ports_of_blocks(void)
{
	for (uint32_t block = 0; block < SOFT_UDP_BLOCKS; block++)
		(void)hold_port("127.0.0.1", (uint16_t)(SOFT_UDP_PORTS + block));
}

/* The error names the owner of the ports, and the remedy. */
static void fail_without_ports(void)
{
	struct process process = world_start(0);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(SECOND_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *id;

	core_forget_refusal(process.provider);
	if (!process.provider->rdma_create_id(process.channel, &id, NULL, RDMA_PS_TCP)) {
		CHECK(process.provider->rdma_bind_addr(id, (struct sockaddr *)&address));
		process_destroy(&process, id);
	}
	CHECK(strstr(core_refusal(process.provider), "by user 65534") && strstr(core_refusal(process.provider), "end those programs"));
	process_end(&process);
}

/* --- tests -------------------------------------------------------------------------------------------------- */

/* What the other user has taken stays taken while others are served; then it is released. */
static void test_taken(const char *name, void (*take)(void))
{
	world_attack(name, &bob, take);
	actor_do(&bob, release);
}

static void test_second(const char *name, void (*take)(void), void (*end)(void))
{
	actor_do(&bob, take);
	actor_do(&second, listen_at_any);
	world_check();
	actor_do(&world_good, connect_second_good);
	actor_do(&second, end);
	actor_do(&bob, release);
	world_passed(name);
}

/* Other hosts cannot reach it, and the user gets a notice; this host can. */
static void test_hidden(void)
{
	actor_do(&bob, take_4791);
	actor_configure(WORLD_SERVERS_HOST, "ip address add " HIDDEN "/24 dev wire");
	actor_do(&second, listen_at_hidden);
	actor_do(&world_local, connect_hidden);
	actor_do(&second, end_hidden);
	world_check();
	actor_do(&bob, release);
	world_passed("UDP port 4791 is taken: a notice reports it, and this host is served");
}

/* Existing processes continue; new ones get an error with the reason. */
static void test_no_ports(void)
{
	actor_do(&bob, take_ports_of_blocks);
	actor_do(&second, fail_without_ports);
	actor_do(&bob, release);
	world_check();
	world_passed("all UDP ports of blocks are taken: a client gets the reason");
}

int main(int count, char **words)
{
	const struct rlimit many = {2 * BLOCKS, 2 * BLOCKS};

	(void)count;
	actor_need_root(words);
	CHECK(!setrlimit(RLIMIT_NOFILE, &many));
	world_open();
	bob = actor_start(WORLD_SERVERS_HOST, BOB);
	second = actor_start(WORLD_SERVERS_HOST, ALICE);
	test_taken("names of narrower addresses", take_narrower_names);
	test_taken("names of narrower addresses that answer nobody", fill_narrower_names);
	world_attack("a bind to the port, at narrower addresses and at any", &bob, bind_by_the_provider);
	world_attack("a connection to the server", &bob, connect_by_the_provider);
	world_attack("records at its names", &bob, connect_by_hand);
	world_attack("packets to its block, from wrong ports and addresses", &bob, send_to_blocks);
	world_attack("packets to UDP port 4791 from this host", &bob, send_as_other_hosts);
	test_second("names towards other hosts are taken: a notice reports it, and other hosts are served", take_names_for_hosts, end_squatted);
	test_second("all names of blocks are taken: a notice reports it, and other hosts are served", take_names_of_blocks, end_blocks);
	test_hidden();
	test_no_ports();
	actor_end(&second);
	actor_end(&bob);
	world_close();
	return 0;
}
