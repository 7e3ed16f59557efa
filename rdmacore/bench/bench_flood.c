/*
 * Floods of forged connection requests from another host, and how clients get on meanwhile.  The hosts are network
 * namespaces, so it needs root and ip(8).
 *
 *   bench_flood RATE SOURCE [PLACES]
 *
 * SOURCE: random, one (which nobody has), or host (which answers, as it has a process of its own).  PLACES: connections that
 * the server takes; it rejects what comes after.  Prints one line: what was sent a second, how much the server grew, how many
 * requests its program saw, and how long clients took: five of hosts that were never seen, and one of them again.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"
#include "ctest/support/check.h"
#include "ctest/support/forge.h"
#include "ctest/support/pair.h"
#include "soft/base/random.h"

#define PORT 7474
#define SERVER "192.0.2.1"
#define HOST "192.0.2.20"
#define CLIENTS 5
#define LIVE_MAX 65536
#define BATCH 64
#define TIMEOUT_MS 20000

/* What the processes tell each other. */
static struct shared {
	_Atomic long idle, peak; /* KiB of the server */
	_Atomic uint64_t sent, nanoseconds;
	_Atomic uint32_t requests, rejected;
	_Atomic bool ready, flooding;
} *shared;

static struct core_provider *open_udp(void)
{
	struct core_options options = {.link = CORE_LINK_UDP};
	struct core_provider *provider;
	char why[512] = "";

	snprintf(options.fabric, sizeof(options.fabric), "flood-%d", getpid());
	CHECK(!core_open("soft", &options, &provider, why, sizeof(why)));
	return provider;
}

static struct sockaddr_storage address_of(const char *text, uint16_t port)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};
	struct sockaddr_in *in4 = (void *)&address;

	CHECK(inet_pton(AF_INET, text, &in4->sin_addr) == 1);
	in4->sin_port = htons(port);
	return address;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* --- the server -------------------------------------------------------------------------------------- */

static long resident(void)
{
	long total = 0, pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	CHECK(file && fscanf(file, "%ld %ld", &total, &pages) == 2);
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static uint32_t live;

static void end_connection(struct core_provider *provider, struct rdma_cm_id *id)
{
	if (id->qp)
		provider->rdma_destroy_qp(id);
	CHECK(!provider->rdma_destroy_id(id));
}

static void take_request(struct core_provider *provider, struct rdma_cm_id *id, uint32_t places)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};

	atomic_fetch_add(&shared->requests, 1);
	if (live >= places || provider->rdma_create_qp(id, NULL, &attr) || provider->rdma_accept(id, &param)) {
		atomic_fetch_add(&shared->rejected, 1);
		(void)provider->rdma_reject(id, NULL, 0);
		end_connection(provider, id);
		return;
	}
	live++;
}

static void serve(uint32_t places)
{
	struct sockaddr_storage address = address_of(SERVER, PORT);
	struct core_provider *provider = open_udp();
	struct rdma_event_channel *channel = create_channel(provider);
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;

	CHECK(!provider->rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(listener, (struct sockaddr *)&address));
	CHECK(!provider->rdma_listen(listener, 0));
	usleep(200000);
	atomic_store(&shared->idle, resident());
	atomic_store(&shared->ready, true);
	for (uint64_t looked = 0;;) {
		struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
		int any = poll(&readable, 1, 50);
		enum rdma_cm_event_type type;
		struct rdma_cm_id *id;

		if (now() - looked > 20000000) {
			long size = resident();

			looked = now();
			if (size > atomic_load(&shared->peak))
				atomic_store(&shared->peak, size);
		}
		if (any < 1)
			continue;
		CHECK(!provider->rdma_get_cm_event(channel, &event));
		type = event->event;
		id = event->id;
		CHECK(!provider->rdma_ack_cm_event(event));
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			take_request(provider, id, places);
		} else if (type != RDMA_CM_EVENT_ESTABLISHED && id != listener && type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
			end_connection(provider, id);
			live--;
		}
	}
}

/* --- who floods -------------------------------------------------------------------------------------- */

static void make_request(struct forged *forged, const uint8_t source[4], uint32_t number)
{
	struct soft_endpoint from = {.port = FORGE_PORT}, to = forge_endpoint(SERVER, SOFT_WIRE_PORT);
	struct soft_cm_message req = {
		.attribute = SOFT_CM_REQ, .transaction = number, .local = number, .guid = UINT64_C(0x0200000000abcdef) ^ number,
		.qp_num = number & 0xffffff, .port_space = RDMA_PS_TCP, .path = {.mtu = IBV_MTU_1024}, .responder_resources = 1,
		.initiator_depth = 1, .source = address_of(SERVER, 1000), .destination = address_of(SERVER, PORT),
	};

	memcpy(&((struct sockaddr_in *)&req.source)->sin_addr, source, 4);
	soft_gid_from_ipv4(&from.address, source);
	forge_message(forged, &from, &to, &req);
}

static void flood(uint64_t rate, const char *kind)
{
	struct sockaddr_storage to = address_of(SERVER, 0);
	static struct forged packets[BATCH];
	struct mmsghdr headers[BATCH] = {0};
	struct soft_random random = {.state = 1};
	struct iovec parts[BATCH];
	uint64_t begun, sent = 0;
	int fd = forge_socket();

	while (!atomic_load(&shared->flooding))
		usleep(1000);
	begun = now();
	while (atomic_load(&shared->flooding)) {
		uint64_t due = (now() - begun) * rate / 1000000000;
		int count = 0;

		for (; sent + (uint64_t)count < due && count < BATCH; count++) {
			uint32_t drawn = (uint32_t)soft_random_next(&random), number = (uint32_t)sent + (uint32_t)count + 1;
			uint8_t source[4] = {10, (uint8_t)(drawn >> 16), (uint8_t)(drawn >> 8), (uint8_t)drawn};

			if (!strcmp(kind, "one"))
				memcpy(source, (uint8_t[4]){198, 51, 100, 66}, 4);
			else if (!strcmp(kind, "host"))
				inet_pton(AF_INET, HOST, source);
			make_request(&packets[count], source, number);
			parts[count] = (struct iovec){packets[count].bytes, packets[count].length};
			headers[count].msg_hdr = (struct msghdr){.msg_name = &to, .msg_namelen = sizeof(struct sockaddr_in),
								 .msg_iov = &parts[count], .msg_iovlen = 1};
		}
		if (!count)
			usleep(100);
		else if (sendmmsg(fd, headers, (unsigned int)count, 0) > 0)
			sent += (uint64_t)count;
		atomic_store(&shared->sent, sent);
		atomic_store(&shared->nanoseconds, now() - begun);
	}
}

/* --- clients ----------------------------------------------------------------------------------------- */

/* The process of a host: it answers what other hosts ask it. */
static void be_host(const char *address)
{
	struct sockaddr_storage own = address_of(address, PORT);
	struct core_provider *provider = open_udp();
	struct rdma_event_channel *channel = create_channel(provider);
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&own));
	CHECK(!provider->rdma_listen(id, 0));
	for (;;)
		pause();
}

/* Whether that event came. */
static bool hears(struct core_provider *provider, struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	bool right;

	if (poll(&readable, 1, TIMEOUT_MS) < 1)
		return false;
	CHECK(!provider->rdma_get_cm_event(channel, &event));
	right = event->event == type;
	CHECK(!provider->rdma_ack_cm_event(event));
	return right;
}

/* Milliseconds from rdma_connect to ESTABLISHED; -1: not at all. */
static double connect_from(struct core_provider *provider, struct rdma_event_channel *channel, const char *address)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
	struct sockaddr_storage own = address_of(address, 0), to = address_of(SERVER, PORT);
	struct rdma_cm_id *id;
	double taken = -1;
	uint64_t begun;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_resolve_addr(id, (struct sockaddr *)&own, (struct sockaddr *)&to, 5000));
	CHECK(hears(provider, channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK(!provider->rdma_resolve_route(id, 5000));
	CHECK(hears(provider, channel, RDMA_CM_EVENT_ROUTE_RESOLVED));
	CHECK(!provider->rdma_create_qp(id, NULL, &attr));
	begun = now();
	CHECK(!provider->rdma_connect(id, &param));
	if (hears(provider, channel, RDMA_CM_EVENT_ESTABLISHED))
		taken = (double)(now() - begun) / 1e6;
	(void)provider->rdma_disconnect(id);
	provider->rdma_destroy_qp(id);
	CHECK(!provider->rdma_destroy_id(id));
	return taken;
}

static void run_clients(void)
{
	struct core_provider *provider = open_udp();
	struct rdma_event_channel *channel = create_channel(provider);
	char address[32];

	for (int client = 0; client <= CLIENTS; client++) {
		snprintf(address, sizeof(address), "192.0.2.%d", 30 + client % CLIENTS);
		usleep(500000);
		printf(" %.1f", connect_from(provider, channel, address));
	}
	provider->rdma_destroy_event_channel(channel);
	close_provider(provider);
}

/* --- all of it ---------------------------------------------------------------------------------------- */

static pid_t fork_one(void)
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child;
}

static void make_network(pid_t server)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "ip link set lo up && ip link add near type veth peer name far && ip link set far netns %d && "
		 "ip address add 192.0.2.9/24 dev near && ip link set near up && "
		 "for host in 20 30 31 32 33 34; do ip address add 192.0.2.$host/24 dev near; done && "
		 "nsenter -t %d -n sh -c 'ip link set lo up && ip address add " SERVER "/24 dev far && ip link set far up && "
		 "ip route add default via 192.0.2.9'",
		 server, server);
	CHECK(!system(command));
}

int main(int count, char **words)
{
	pid_t server, attacker, host;
	int ends[2];
	char byte;

	CHECK(count > 2);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED && !pipe(ends) && !unshare(CLONE_NEWNET));
	server = fork_one();
	if (!server) {
		CHECK(!unshare(CLONE_NEWNET) && write(ends[1], "s", 1) == 1);
		CHECK(!system("until ip route get 192.0.2.9 >/dev/null 2>&1; do sleep 0.05; done; sleep 0.2"));
		serve(count > 3 ? (uint32_t)atoi(words[3]) : LIVE_MAX);
	}
	CHECK(read(ends[0], &byte, 1) == 1);
	make_network(server);
	attacker = fork_one();
	if (!attacker) {
		flood(strtoull(words[1], NULL, 10), words[2]);
		_exit(0);
	}
	host = fork_one();
	if (!host)
		be_host(HOST);
	for (int waited = 0; !atomic_load(&shared->ready); waited++) {
		CHECK(waited < 20000);
		usleep(1000);
	}
	atomic_store(&shared->flooding, true);
	sleep(1);
	printf("%s %s: clients, ms:", words[1], words[2]);
	run_clients();
	printf("; %.0f requests a second, the server %+.1f MiB, its program saw %u, rejected %u\n",
	       (double)atomic_load(&shared->sent) * 1e9 / (double)(atomic_load(&shared->nanoseconds) + 1),
	       (double)(atomic_load(&shared->peak) - atomic_load(&shared->idle)) / 1024, atomic_load(&shared->requests),
	       atomic_load(&shared->rejected));
	atomic_store(&shared->flooding, false);
	for (int index = 0; index < 3; index++) {
		pid_t child = (pid_t[]){server, attacker, host}[index];

		kill(child, SIGKILL);
		CHECK(waitpid(child, NULL, 0) == child);
	}
	return 0;
}
