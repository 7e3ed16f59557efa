/*
 * Floods of forged connection requests from another host, and how clients are served meanwhile. The hosts are
 * network namespaces, so it needs root and ip(8).
 *
 *   bench_flood RATE SOURCE [PLACES [BUFFER]]
 *
 * SOURCE: random, one (an address without a host), or host (a process that answers). PLACES: connections that the
 * server accepts (0: all); it rejects further ones. BUFFER: bytes that each socket requests, as if net.core.rmem_max
 * were no more.
 *
 * Prints one line: packets sent in a second, growth of the server, requests that its program got, and how long clients
 * took. The clients are five of new hosts, and one of them again. A second line is about a connection that existed
 * before. It has READs of 8 bytes, one after another, and WRITEs of 64 KiB, before and during the flood. Its last
 * value is the longest time from the end of one WRITE to the end of the next.
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
#include "soft/host.h"
#include "soft/udp/internal.h"

#define PORT 7474
#define SERVER "192.0.2.1"
#define HOST "192.0.2.20"
#define CLIENTS 5
#define LIVE_MAX 65536
#define BATCH 64
#define TIMEOUT_MS 20000
#define ESTABLISHED_HOST "192.0.2.21" /* of the connection before the flood */
#define MEMORY (1 << 20)
#define READ_BYTES 8
#define WRITE_BYTES 65536
#define WRITES 12 /* at once */
#define READS_MAX 1000000
#define MEASURED 1000000000 /* nanoseconds of each */

/* What the processes share. */
static struct shared {
	_Atomic long idle, peak; /* KiB of the server */
	_Atomic uint64_t sent, nanoseconds;
	_Atomic uint32_t requests, rejected;
	_Atomic bool ready, flooding;
	uint64_t address; /* of the server's memory */
	_Atomic uint32_t rkey; /* 0: the first connection has not come */
	_Atomic int wanted, measured; /* how often the first connection must be measured, and was */
	struct {
		double median, most, longest; /* READ in us: median, 99th percentile, maximum */
		double megabytes, gap; /* WRITE: MB/s, and the longest time between two, in us */
	} results[2];
} *shared;

static int32_t buffer; /* 0: the default */

static struct core_provider *open_udp(void)
{
	struct core_options options = {.link = CORE_LINK_UDP};
	struct core_provider *provider;
	char why[512] = "";

	snprintf(options.fabric, sizeof(options.fabric), "flood-%d", getpid());
	CHECK(!core_open("soft", &options, &provider, why, sizeof(why)));
	if (buffer)
		((struct soft_host *)provider->host)->udp->buffer_wanted = buffer;
	return provider;
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

/* The first connection, which stays and does not count as one of PLACES. */
static struct rdma_cm_id *established;

static void register_memory(struct core_provider *provider, struct rdma_cm_id *id)
{
	char *memory = calloc(1, MEMORY);
	struct ibv_mr *mr = provider->ibv_reg_mr(id->pd, memory, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);

	CHECK(memory && mr);
	established = id;
	shared->address = (uintptr_t)memory;
	atomic_store(&shared->rkey, mr->rkey);
}

static void take_request(struct core_provider *provider, struct rdma_cm_id *id, uint32_t places)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};

	if (!established) {
		CHECK(!provider->rdma_create_qp(id, NULL, &attr) && !provider->rdma_accept(id, &param));
		register_memory(provider, id);
		return;
	}
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
	struct sockaddr_storage address = ipv4_address(SERVER, PORT);
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
		} else if (type != RDMA_CM_EVENT_ESTABLISHED && id != listener && id != established && type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
			end_connection(provider, id);
			live--;
		}
	}
}

/* --- the flooding host ------------------------------------------------------------------------------ */

static void make_request(struct forged *forged, const uint8_t source[4], uint32_t number)
{
	struct soft_endpoint from = {.port = FORGE_PORT}, to = forge_endpoint(SERVER, SOFT_WIRE_PORT);
	struct soft_cm_message req = {
		.attribute = SOFT_CM_REQ, .transaction = number, .local = number, .guid = UINT64_C(0x0200000000abcdef) ^ number,
		.qp_num = number & 0xffffff, .port_space = RDMA_PS_TCP, .path = {.mtu = IBV_MTU_1024}, .responder_resources = 1,
		.initiator_depth = 1, .source = ipv4_address(SERVER, 1000), .destination = ipv4_address(SERVER, PORT),
	};

	memcpy(&((struct sockaddr_in *)&req.source)->sin_addr, source, 4);
	soft_gid_from_ipv4(&from.address, source);
	forge_message(forged, &from, &to, &req);
}

static void flood(uint64_t rate, const char *kind)
{
	struct sockaddr_storage to = ipv4_address(SERVER, 0);
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

/* The process of a host, which answers other hosts. */
static void be_host(const char *address)
{
	struct sockaddr_storage own = ipv4_address(address, PORT);
	struct core_provider *provider = open_udp();
	struct rdma_event_channel *channel = create_channel(provider);
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&own));
	CHECK(!provider->rdma_listen(id, 0));
	for (;;)
		pause();
}

/* Whether that event comes. */
static bool gets_event(struct core_provider *provider, struct rdma_event_channel *channel, enum rdma_cm_event_type type)
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

/* Milliseconds from rdma_connect to ESTABLISHED; -1: not established. */
static double connect_from(struct core_provider *provider, struct rdma_event_channel *channel, const char *address, struct rdma_cm_id **out)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
	struct sockaddr_storage own = ipv4_address(address, 0), to = ipv4_address(SERVER, PORT);
	struct rdma_cm_id *id;
	double taken = -1;
	uint64_t begun;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_resolve_addr(id, (struct sockaddr *)&own, (struct sockaddr *)&to, 5000));
	CHECK(gets_event(provider, channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK(!provider->rdma_resolve_route(id, 5000));
	CHECK(gets_event(provider, channel, RDMA_CM_EVENT_ROUTE_RESOLVED));
	CHECK(!provider->rdma_create_qp(id, NULL, &attr));
	begun = now();
	CHECK(!provider->rdma_connect(id, &param));
	if (gets_event(provider, channel, RDMA_CM_EVENT_ESTABLISHED))
		taken = (double)(now() - begun) / 1e6;
	*out = id;
	return taken;
}

static void run_clients(void)
{
	struct core_provider *provider = open_udp();
	struct rdma_event_channel *channel = create_channel(provider);
	struct rdma_cm_id *id;
	char address[32];

	for (int client = 0; client <= CLIENTS; client++) {
		snprintf(address, sizeof(address), "192.0.2.%d", 30 + client % CLIENTS);
		usleep(500000);
		printf(" %.1f", connect_from(provider, channel, address, &id));
		(void)provider->rdma_disconnect(id);
		end_connection(provider, id);
	}
	provider->rdma_destroy_event_channel(channel);
	close_provider(provider);
}

/* --- the connection that existed before --------------------------------------------------------------- */

static struct end end;

static void post(enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_mr region = {.rkey = atomic_load(&shared->rkey)};
	struct end peer = {.memory = (char *)(uintptr_t)shared->address, .mr = &region};

	CHECK(!post_send(&end, opcode, 1, 0, length, &peer, 0));
}

static int compare(const void *a, const void *b)
{
	return (*(const uint32_t *)a > *(const uint32_t *)b) - (*(const uint32_t *)a < *(const uint32_t *)b);
}

static void measure(int index)
{
	static uint32_t times[READS_MAX];
	uint64_t begun = now(), last = begun, writes = 0, gap = 0;
	int count = 0, posted = 0;

	for (; count < READS_MAX && last - begun < MEASURED; count++) {
		uint64_t before = last;

		post(IBV_WR_RDMA_READ, READ_BYTES);
		CHECK(poll_one(end.id->send_cq).status == IBV_WC_SUCCESS);
		last = now();
		times[count] = (uint32_t)(last - before);
	}
	qsort(times, (size_t)count, sizeof(times[0]), compare);
	shared->results[index].median = times[count / 2] / 1e3;
	shared->results[index].most = times[(size_t)count * 99 / 100] / 1e3;
	shared->results[index].longest = times[count - 1] / 1e3;
	begun = last = now();
	for (; now() - begun < MEASURED || posted; writes++, posted--) {
		for (; posted < WRITES && now() - begun < MEASURED; posted++)
			post(IBV_WR_RDMA_WRITE, WRITE_BYTES);
		CHECK(poll_one(end.id->send_cq).status == IBV_WC_SUCCESS);
		gap = now() - last > gap ? now() - last : gap;
		last = now();
	}
	shared->results[index].gap = (double)gap / 1e3;
	shared->results[index].megabytes = (double)(writes * WRITE_BYTES) * 1e3 / (double)(now() - begun);
}

static void stay_connected(void)
{
	struct core_provider *provider = open_udp();
	struct rdma_event_channel *channel = create_channel(provider);

	end = (struct end){.provider = provider, .memory = calloc(1, MEMORY)};
	CHECK(end.memory && connect_from(provider, channel, ESTABLISHED_HOST, &end.id) >= 0);
	end.mr = provider->ibv_reg_mr(end.id->pd, end.memory, MEMORY, IBV_ACCESS_LOCAL_WRITE);
	CHECK(end.mr);
	while (!atomic_load(&shared->rkey))
		usleep(1000);
	for (;;) {
		int index = atomic_load(&shared->measured);

		if (index < atomic_load(&shared->wanted)) {
			measure(index);
			atomic_store(&shared->measured, index + 1);
		}
		usleep(1000);
	}
}

static void await_measured(void)
{
	int wanted = atomic_fetch_add(&shared->wanted, 1) + 1;

	for (int waited = 0; atomic_load(&shared->measured) < wanted; waited++) {
		CHECK(waited < 60000);
		usleep(1000);
	}
}

/* --- main --------------------------------------------------------------------------------------------- */

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
		 "for host in 20 21 30 31 32 33 34; do ip address add 192.0.2.$host/24 dev near; done && "
		 "nsenter -t %d -n sh -c 'ip link set lo up && ip address add " SERVER "/24 dev far && ip link set far up && "
		 "ip route add default via 192.0.2.9'",
		 server, server);
	CHECK(!system(command));
}

int main(int count, char **words)
{
	pid_t server, attacker, host, connected;
	int ends[2];
	char byte;

	CHECK(count > 2);
	buffer = count > 4 ? atoi(words[4]) : 0;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED && !pipe(ends) && !unshare(CLONE_NEWNET));
	server = fork_one();
	if (!server) {
		CHECK(!unshare(CLONE_NEWNET) && write(ends[1], "s", 1) == 1);
		CHECK(!system("until ip route get 192.0.2.9 >/dev/null 2>&1; do sleep 0.05; done; sleep 0.2"));
		serve(count > 3 && atoi(words[3]) ? (uint32_t)atoi(words[3]) : LIVE_MAX);
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
	connected = fork_one();
	if (!connected)
		stay_connected();
	await_measured();
	atomic_store(&shared->flooding, true);
	sleep(1);
	await_measured();
	printf("%s %s: clients, ms:", words[1], words[2]);
	run_clients();
	printf("; %.0f requests a second, the server %+.1f MiB, its program saw %u, rejected %u\n",
	       (double)atomic_load(&shared->sent) * 1e9 / (double)(atomic_load(&shared->nanoseconds) + 1),
	       (double)(atomic_load(&shared->peak) - atomic_load(&shared->idle)) / 1024, atomic_load(&shared->requests),
	       atomic_load(&shared->rejected));
	for (int index = 0; index < 2; index++)
		printf("%s READ of %d bytes %.1f us, of 99 in 100 %.1f, longest %.0f; WRITE %.0f MB/s, longest %.0f", index ? "; in the flood" : "established:",
		       READ_BYTES, shared->results[index].median, shared->results[index].most, shared->results[index].longest,
		       shared->results[index].megabytes, shared->results[index].gap);
	printf("\n");
	atomic_store(&shared->flooding, false);
	for (int index = 0; index < 4; index++) {
		pid_t child = (pid_t[]){connected, server, attacker, host}[index];

		kill(child, SIGKILL);
		CHECK(waitpid(child, NULL, 0) == child);
	}
	return 0;
}
