/*
 * Hostile processes against a live one, for SECONDS, generated from SEED: of its user and of another one. They
 * connect to the names of its listeners and send records: right ones, changed ones and any bytes. They listen where
 * its ids connect, and answer in the same way. And they bind names that begin like those of its ports. With an even
 * SEED the live process is root's, and its listeners accept all users.
 *
 *   ipc SECONDS [SEED]
 *
 * Meanwhile another process of the user connects to it. The test checks that it is served, that the sanitizers find
 * nothing, and that memory and descriptors stay bounded.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ctest/support/actor.h"
#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/process.h"
#include "fuzz/hostile.h"
#include "soft/base/local_name.h"
#include "soft/base/random.h"
#include "soft/cm/id.h"
#include "soft/host.h"
#include "soft/ipc/ipc.h"

#define PORT 7481
#define LURES 3 /* following ports, where hostile processes listen */
#define USER 65533
#define OTHER 65534
#define HOSTILE 2 /* processes of each user */
#define CONNECTIONS 24 /* of each hostile process */
#define NAMES 32
#define HELD 64 /* requests that the program has accepted */
#define TIMEOUT_MS 60000
/* Three processes have blocks of numbers, each with two sockets, and claim more as ids come and go. */
#define MORE_DESCRIPTORS (3 * 2 * SOFT_TABLE_BLOCKS + 8)
#define GROWTH (192l << 20) /* bytes of memory, most of which the sanitizer keeps for a while */

static const uint8_t far_ip[4] = {198, 51, 100, 9};

static char fabric[CORE_FABRIC_MAX + 1];
static uid_t user;

static struct shared {
	_Atomic bool over;
	_Atomic uint64_t records, connections, answers;
} *shared;

/* --- hostile processes ------------------------------------------------------------------------------- */

/* What it has seen in answers, to use it in later records. */
static struct {
	uint32_t local, remote, qp_num;
	uint64_t guid, transaction;
} seen;

static struct {
	int fd;
	uint64_t instance;
} connections[CONNECTIONS];

static int lures[LURES], names[NAMES];

static struct sockaddr_storage any_address(uint16_t port)
{
	struct sockaddr_storage address = local_address(port);
	struct sockaddr_in6 *ipv6 = (void *)&address;

	if (!below(8))
		memcpy(&((struct sockaddr_in *)&address)->sin_addr, far_ip, 4);
	if (below(64))
		return address;
	*ipv6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_loopback,
				      .sin6_scope_id = (uint32_t)below(3)};
	return address;
}

static void make_message(struct soft_cm_message *message)
{
	static const enum soft_cm_attribute attributes[] = {SOFT_CM_REQ, SOFT_CM_REQ, SOFT_CM_MRA, SOFT_CM_REJ, SOFT_CM_REP, SOFT_CM_RTU,
							    SOFT_CM_DREQ, SOFT_CM_DREP, SOFT_CM_SIDR_REQ, SOFT_CM_SIDR_REP};

	*message = (struct soft_cm_message){
		.attribute = attributes[below(sizeof(attributes) / sizeof(attributes[0]))], .transaction = below(2) ? seen.transaction : below(99),
		.between_hosts = !below(8), .local = near(below(2) ? seen.remote : 7), .remote = below(4) ? near(seen.local) : 0,
		.guid = below(2) ? seen.guid : below(4), .qp_num = near(below(2) ? seen.qp_num : 9),
		.port_space = below(2) ? RDMA_PS_TCP : RDMA_PS_UDP, .transport = below(4), .reason = (uint32_t)below(40),
		.answered = below(4), .path.mtu = (uint8_t)below(8), .ack_timeout = (uint8_t)below(32), .service_timeout = (uint8_t)below(32),
		.responder_resources = (uint8_t)below(256), .initiator_depth = (uint8_t)below(256), .private_data_len = 56,
		.source = any_address((uint16_t)below(65536)), .destination = any_address((uint16_t)(below(4) ? PORT + below(2) : below(65536))),
	};
	if (message->between_hosts && below(4)) {
		message->source.ss_family = message->destination.ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)&message->source)->sin_addr, far_ip, 4);
	}
}

/* Returns its length, which may be 0. */
static size_t make_record(uint8_t record[2 * SOFT_RECORD_MAX], uint64_t instance)
{
	struct soft_cm_message message;
	size_t length;

	switch (below(128)) {
	case 0:
		for (length = 0; length < 2 * SOFT_RECORD_MAX; length++)
			record[length] = (uint8_t)soft_random_next(&random_state);
		return below(2 * SOFT_RECORD_MAX + 1);
	case 1:
		return soft_record_encode_end(instance, record);
	default:
		break;
	}
	make_message(&message);
	length = soft_record_encode(&message, below(128) ? instance : below(3), record);
	for (uint64_t changes = below(2) ? below(4) : 0; changes; changes--)
		record[below(64) ? SOFT_RECORD_MAX - SOFT_MAD + below(SOFT_MAD) : below(length)] = (uint8_t)soft_random_next(&random_state);
	return below(128) ? length : below(length + 16);
}

/* With a descriptor, which the receiver does not expect. */
static void send_descriptor(int fd, const uint8_t *record, size_t length)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control = {{0}};
	struct iovec part = {(void *)(uintptr_t)record, length};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	(void)sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void read_answers(int fd)
{
	uint8_t record[SOFT_RECORD_MAX];
	struct soft_cm_message message;
	uint64_t instance;
	ssize_t length;

	while ((length = recv(fd, record, sizeof(record), MSG_DONTWAIT)) > 0) {
		if (soft_record_decode(record, (size_t)length, &instance, &message) != SOFT_RECORD_MESSAGE)
			continue;
		seen.local = message.local;
		seen.remote = message.remote;
		seen.transaction = message.transaction;
		seen.guid = message.guid;
		seen.qp_num = message.qp_num;
		atomic_fetch_add(&shared->answers, 1);
	}
}

static void send_records(int slot)
{
	uint8_t record[2 * SOFT_RECORD_MAX];

	for (uint64_t count = 1 + below(16); count; count--) {
		size_t length = make_record(record, connections[slot].instance);

		if (!below(64))
			send_descriptor(connections[slot].fd, record, length);
		else if (send(connections[slot].fd, record, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break; /* it is closed, or full */
		atomic_fetch_add(&shared->records, 1);
	}
}

/* Connect to a name of the server: in the fabric, for other hosts, or for datagrams. */
static int connect_to_server(void)
{
	const struct soft_local_trust all = {.all = true};
	char name[SOFT_LOCAL_NAME];
	uid_t stranger;

	if (!below(4))
		snprintf(name, sizeof(name), "rdmarun//%u/%x/%u/4/0.0.0.0", user, RDMA_PS_TCP, PORT + 1);
	else
		snprintf(name, sizeof(name), "rdmarun/%s/%x/%u/4/127.0.0.1", fabric, below(2) ? RDMA_PS_TCP : RDMA_PS_UDP, PORT);
	return soft_local_connect(name, &all, &stranger);
}

static void set_connection(int slot, int fd)
{
	if (connections[slot].fd >= 0)
		close(connections[slot].fd);
	connections[slot].fd = fd;
	connections[slot].instance = 1 + below(3);
	atomic_fetch_add(&shared->connections, fd >= 0);
}

static bool is_closed(int fd)
{
	struct pollfd state = {.fd = fd};

	return poll(&state, 1, 0) == 1 && state.revents & (POLLHUP | POLLERR);
}

static void use_connection(int slot)
{
	int fd = connections[slot].fd;

	if (fd < 0 || is_closed(fd) || !below(256)) {
		set_connection(slot, connect_to_server());
	} else if (!below(256)) {
		shutdown(fd, (int)below(3));
	} else {
		send_records(slot);
		if (below(4)) /* it may read none of them for a long time */
			read_answers(fd);
	}
}

/* Accept at a port that the server's ids connect to: the connection is used like others. */
static void use_lure(int index)
{
	char name[SOFT_LOCAL_NAME];
	int fd;

	if (lures[index] < 0 || !below(256)) {
		if (lures[index] >= 0)
			close(lures[index]);
		snprintf(name, sizeof(name), "rdmarun/%s/%x/%u/%s", fabric, RDMA_PS_TCP, PORT + 2 + index,
			 below(2) ? "4/127.0.0.1" : "46/::");
		lures[index] = soft_local_bind(name);
		if (lures[index] >= 0)
			CHECK(!listen(lures[index], (int)below(4)));
		return;
	}
	fd = accept4(lures[index], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0 && !below(8))
		close(fd);
	else if (fd >= 0)
		set_connection((int)below(CONNECTIONS), fd);
}

static void use_name(int index)
{
	static const char *const middles[] = {"4/", "46/", "6/", "4/127.0.0.", "46/::", "=", "4/127.0.0.1=", "", "4/127.0.0.1/"};
	char name[SOFT_LOCAL_NAME], owner[16];
	size_t length;

	if (names[index] >= 0)
		close(names[index]);
	snprintf(owner, sizeof(owner), "/%u", user);
	length = (size_t)snprintf(name, sizeof(name), "rdmarun/%s/%x/%u/%s", below(2) ? fabric : owner, RDMA_PS_TCP,
				  PORT + (unsigned int)below(2), middles[below(sizeof(middles) / sizeof(middles[0]))]);
	for (uint64_t more = below(2) ? below(64) : 0; more && length < sizeof(name) - 1; more--)
		name[length++] = (char)(below(2) ? '0' + (char)below(10) : 1 + (char)below(127));
	name[length < sizeof(name) ? length : sizeof(name) - 1] = 0;
	names[index] = soft_local_bind(name);
	if (names[index] >= 0 && below(2))
		CHECK(!listen(names[index], (int)below(3)));
}

static void attack(void)
{
	random_state.state ^= (uint64_t)getpid();
	for (int index = 0; index < CONNECTIONS; index++)
		connections[index].fd = -1;
	for (int index = 0; index < LURES; index++)
		lures[index] = -1;
	for (int index = 0; index < NAMES; index++)
		names[index] = -1;
	while (!atomic_load(&shared->over)) {
		use_connection((int)below(CONNECTIONS));
		if (!below(4))
			use_lure((int)below(LURES));
		if (!below(16))
			use_name((int)below(NAMES));
		sched_yield();
	}
}

/* --- the live process and its client ---------------------------------------------------------------- */

static struct process server, client, lured;
static struct rdma_cm_id *listeners[3], *held[HELD];
static uint32_t held_count;
static uint64_t served, requests;

static struct process start(void)
{
	struct process process = {.provider = process_open(fabric, 1 + below(1 << 30))};

	process.channel = create_channel(process.provider);
	return process;
}

static bool is_readable(struct process *process)
{
	struct pollfd readable = {.fd = process->channel->fd, .events = POLLIN};

	return poll(&readable, 1, 0) == 1;
}

static void forget(struct rdma_cm_id *id)
{
	for (uint32_t index = 0; index < held_count; index++)
		if (held[index] == id)
			held[index] = held[--held_count];
	process_destroy(&server, id);
}

/*
 * Accept some requests of hostile processes and keep them for a while. The client's, which has a nonce, is accepted:
 * true.
 */
static bool take_up(struct rdma_cm_id *id, bool is_clients)
{
	struct rdma_conn_param param = usual_param();

	requests++;
	if (is_clients) {
		CHECK(!server.provider->rdma_accept(id, &param));
		return true;
	}
	if (below(2) && !server.provider->rdma_accept(id, &param)) {
		if (held_count == HELD)
			forget(held[below(HELD)]);
		held[held_count++] = id;
	} else {
		process_destroy(&server, id);
	}
	return false;
}

/* Read the events of the server: the id of the client's request, once it has come. */
static struct rdma_cm_id *read_server(const char nonce[16])
{
	struct rdma_cm_id *found = NULL;

	for (int count = 0; count < 256 && is_readable(&server); count++) {
		struct rdma_cm_event *event;
		enum rdma_cm_event_type type;
		bool is_clients, is_datagram;
		struct rdma_cm_id *id;

		CHECK(!server.provider->rdma_get_cm_event(server.channel, &event));
		type = event->event;
		id = event->id;
		is_datagram = id->ps == RDMA_PS_UDP;
		is_clients = type == RDMA_CM_EVENT_CONNECT_REQUEST && !is_datagram && nonce && event->param.conn.private_data_len >= 16 &&
			     !memcmp(event->param.conn.private_data, nonce, 16);
		CHECK(!server.provider->rdma_ack_cm_event(event));
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			if (take_up(id, is_clients))
				found = id;
		} else if (type != RDMA_CM_EVENT_ESTABLISHED && below(2)) {
			forget(id);
		}
	}
	return found;
}

/* Ids that connect to hostile processes. */
static struct rdma_cm_id *astray[8];

static void read_lured(void)
{
	while (is_readable(&lured)) {
		struct rdma_cm_event *event;
		enum rdma_cm_event_type type;
		struct rdma_cm_id *id;

		CHECK(!lured.provider->rdma_get_cm_event(lured.channel, &event));
		type = event->event;
		id = event->id;
		CHECK(!lured.provider->rdma_ack_cm_event(event));
		if (type == RDMA_CM_EVENT_CONNECT_RESPONSE)
			(void)lured.provider->rdma_establish(id);
	}
}

static void await_lured(void)
{
	for (int waited = 0; !is_readable(&lured); waited++) {
		CHECK(waited < TIMEOUT_MS);
		usleep(1000);
	}
}

static void use_lured(void)
{
	struct rdma_cm_id **id = &astray[below(sizeof(astray) / sizeof(astray[0]))];
	struct sockaddr_storage address = local_address((uint16_t)(PORT + 2 + below(LURES)));
	struct rdma_conn_param param = usual_param();

	read_lured();
	if (*id) {
		process_destroy(&lured, *id);
		*id = NULL;
		return;
	}
	*id = process_id(&lured, RDMA_PS_TCP);
	CHECK(!lured.provider->rdma_resolve_addr(*id, NULL, (struct sockaddr *)&address, 2000));
	await_lured();
	read_lured();
	CHECK(!lured.provider->rdma_resolve_route(*id, 2000));
	await_lured();
	read_lured();
	CHECK(!lured.provider->rdma_connect(*id, &param));
}

static void end_lured(void)
{
	for (size_t index = 0; index < sizeof(astray) / sizeof(astray[0]); index++)
		if (astray[index])
			process_destroy(&lured, astray[index]);
}

static int64_t milliseconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* The client gets a connection, whatever the hostile processes do. */
static void serve_client(void)
{
	struct rdma_cm_id *id = process_resolve(&client, RDMA_PS_TCP, PORT), *child = NULL;
	struct rdma_conn_param param = usual_param();
	int64_t begun = milliseconds();
	char nonce[16];

	for (size_t byte = 0; byte < sizeof(nonce); byte++)
		nonce[byte] = (char)soft_random_next(&random_state);
	param.private_data = nonce;
	param.private_data_len = sizeof(nonce);
	CHECK(!client.provider->rdma_connect(id, &param));
	while (!is_readable(&client)) {
		struct rdma_cm_id *found = read_server(nonce);

		child = found ? found : child;
		CHECK(milliseconds() - begun < TIMEOUT_MS);
	}
	process_expect(&client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	CHECK(child);
	CHECK(!client.provider->rdma_establish(id));
	process_destroy(&client, id);
	forget(child);
	served++;
}

static int count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	CHECK(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void open_listeners(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT + 1)};

	listeners[0] = process_listen(&server, PORT);
	listeners[1] = process_listen_in(&server, RDMA_PS_UDP, PORT);
	listeners[2] = process_id(&server, RDMA_PS_TCP);
	CHECK(!server.provider->rdma_bind_addr(listeners[2], (struct sockaddr *)&any));
	CHECK(!server.provider->rdma_listen(listeners[2], 0));
}

static uint32_t count_peers(struct process *process)
{
	struct soft_ipc *ipc = process_ipc(process->provider);
	uint32_t count;

	soft_mutex_lock(ipc->lock);
	count = ipc->peer_count;
	soft_mutex_unlock(ipc->lock);
	return count;
}

/* When the hostile processes have ended, nothing of them is left. */
static void expect_nothing_left(int descriptors)
{
	do {
		(void)read_server(NULL);
		while (held_count)
			process_destroy(&server, held[--held_count]);
	} while (is_readable(&server));
	for (int waited = 0; count_peers(&server) > 2 || count_peers(&lured); waited++) {
		CHECK(waited < TIMEOUT_MS);
		(void)read_server(NULL);
		while (held_count)
			process_destroy(&server, held[--held_count]);
		usleep(1000);
	}
	CHECK(count_descriptors() <= descriptors + MORE_DESCRIPTORS);
}

int main(int count, char **words)
{
	int64_t seconds = count > 1 ? atoll(words[1]) : 10, until;
	uint64_t seed = count > 2 ? strtoull(words[2], NULL, 10) : 1;
	struct actor hostile[2 * HOSTILE];
	int descriptors;
	long before;

	actor_need_root(words);
	actor_make_hosts(0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	snprintf(fabric, sizeof(fabric), "fuzz-%d", getpid());
	user = seed % 2 ? USER : 0;
	for (int index = 0; index < 2 * HOSTILE; index++) {
		random_state.state = seed * 100 + (uint64_t)index;
		hostile[index] = actor_start(ACTOR_HERE, index % 2 ? OTHER : user);
	}
	random_state.state = seed;
	CHECK(!setresgid(user, user, user) && !setresuid(user, user, user));
	server = start();
	client = start();
	lured = start();
	open_listeners();
	serve_client();
	descriptors = count_descriptors();
	before = resident();
	for (int index = 0; index < 2 * HOSTILE; index++)
		actor_begin(&hostile[index], attack);
	for (until = milliseconds() + 1000 * seconds; milliseconds() < until;) {
		(void)read_server(NULL);
		use_lured();
		serve_client();
		CHECK(resident() - before < GROWTH);
	}
	atomic_store(&shared->over, true);
	for (int index = 0; index < 2 * HOSTILE; index++) {
		actor_await(&hostile[index]);
		actor_end(&hostile[index]);
	}
	end_lured();
	expect_nothing_left(descriptors);
	serve_client();
	printf("%llu records over %llu connections, %llu answers, %llu requests; %llu connections of the client; %ld MiB\n",
	       (unsigned long long)atomic_load(&shared->records), (unsigned long long)atomic_load(&shared->connections),
	       (unsigned long long)atomic_load(&shared->answers), (unsigned long long)requests, (unsigned long long)served, resident() >> 20);
	for (int index = 0; index < 3; index++)
		process_destroy(&server, listeners[index]);
	process_end(&lured);
	process_end(&client);
	process_end(&server);
	return 0;
}
