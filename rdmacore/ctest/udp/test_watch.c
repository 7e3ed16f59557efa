/*
 * Three processes share the port for other hosts. One of them is stopped: it gets nothing until it receives again,
 * whatever probes another user sends. The management socket of one is full: packets for its queue pairs still
 * arrive. One ends while it opens that socket: none of them stays open. Packets come from this host, from ports
 * that the kernel would distribute over all sockets.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/network.h"
#include "ctest/support/process.h"
#include "soft/host.h"
#include "soft/udp/internal.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"
#include "soft/wire/packet.h"

#define PORT 7471
#define SHARERS 3
#define PORTS 64
#define ATTEMPTS 20000 /* of some milliseconds */
#define SOME_QUEUE_PAIR 0x123456
#define FULL (1 << 15) /* datagrams, more than any buffer takes */
#define PROBES 4 /* more rounds than an unanswered slot needs */
#define ROUNDS 20
#define LATE 100 /* milliseconds */
#define FORGED 8 /* places: more than there are */
#define ATTACH 51 /* SO_ATTACH_REUSEPORT_CBPF */

static struct process sharers[SHARERS];
static struct rdma_cm_id *listeners[SHARERS];

static struct soft_udp *udp_of(int sharer)
{
	return ((struct soft_host *)sharers[sharer].provider->host)->udp;
}

static uint64_t now_of(int sharer)
{
	return udp_of(sharer)->fabric->wall.now(&udp_of(sharer)->fabric->wall);
}

static union ibv_gid address_of(bool ipv6)
{
	union ibv_gid gid;
	uint8_t address[4];

	if (ipv6) {
		CHECK(inet_pton(AF_INET6, NETWORK_ADDRESS_6, gid.raw) == 1);
	} else {
		CHECK(inet_pton(AF_INET, NETWORK_ADDRESS, address) == 1);
		soft_gid_from_ipv4(&gid, address);
	}
	return gid;
}

static struct soft_udp_socket *socket_of(int sharer, bool ipv6)
{
	union ibv_gid gid = address_of(ipv6);
	int error = 0;
	struct soft_udp_socket *socket = soft_udp_open(udp_of(sharer), &gid, SOFT_WIRE_PORT, &error);

	CHECK(socket);
	return socket;
}

static int descriptor_of(int sharer, bool ipv6)
{
	return socket_of(sharer, ipv6)->source.fd;
}

/* Which is opened when the kernel is known to choose among places. */
static int management_of(int sharer, bool ipv6)
{
	struct soft_udp_socket *socket = socket_of(sharer, ipv6), *management;

	for (int attempt = 0; !(management = atomic_load(&socket->management)); usleep(1000))
		CHECK(++attempt < ATTEMPTS);
	return management->source.fd;
}

/* Send packets without an ICRC from one port, for one queue pair. */
static void send_for(uint32_t number, bool ipv6, int count)
{
	union ibv_gid gid = address_of(ipv6);
	uint8_t bytes[SOFT_WIRE_BTH] = {0};
	union soft_udp_address to;
	int fd;

	soft_gid_to_sockaddr(&gid, SOFT_WIRE_PORT, &to.any);
	fd = socket(to.any.sa_family, SOCK_DGRAM, 0);
	soft_put24(bytes + 5, number);
	CHECK(fd >= 0);
	while (count--)
		CHECK(sendto(fd, bytes, sizeof(bytes), 0, &to.any, soft_udp_length(&to)) == sizeof(bytes));
	CHECK(!close(fd));
}

/* From another port each: for a queue pair, and for the communication manager. */
static void send_from_all(bool ipv6)
{
	for (int port = 0; port < PORTS; port++) {
		send_for(SOME_QUEUE_PAIR, ipv6, 1);
		send_for(SOFT_GSI_QUEUE_PAIR, ipv6, 1);
	}
}

/* Packets that wait, which are taken. */
struct waiting {
	int data, management, probes;
	uint64_t round; /* of the last probe */
};

static void take_waiting(int fd, struct waiting *waiting)
{
	uint8_t bytes[2048];
	ssize_t length;

	while ((length = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) >= 0) {
		if (length == SOFT_UDP_PROBE) {
			waiting->probes++;
			waiting->round = soft_get64(bytes + 8);
		}
		/* Those of one sender may have come together. */
		for (ssize_t packet = 0; length != SOFT_UDP_PROBE && packet < length; packet += SOFT_WIRE_BTH)
			++*(soft_get24(bytes + packet + 5) == SOFT_GSI_QUEUE_PAIR ? &waiting->management : &waiting->data);
	}
}

/* What another user of this host may send: probes of an unknown process, for each slot. */
static void forge_probes(bool ipv6)
{
	union ibv_gid gid = address_of(ipv6);
	uint8_t bytes[SOFT_UDP_PROBE] = {0x52, 0x44, 0x4d, 0x70};
	union soft_udp_address to, from;
	int fd;

	soft_gid_to_sockaddr(&gid, SOFT_WIRE_PORT, &to.any);
	soft_gid_to_sockaddr(&gid, 0, &from.any);
	fd = socket(to.any.sa_family, SOCK_DGRAM, 0);
	CHECK(fd >= 0 && !bind(fd, &from.any, soft_udp_length(&from)));
	soft_put32(bytes + 16, UINT32_MAX >> 1);
	for (uint32_t place = 0; place < FORGED; place++) {
		soft_put32(bytes + 4, place);
		CHECK(sendto(fd, bytes, sizeof(bytes), 0, &to.any, soft_udp_length(&to)) == sizeof(bytes));
	}
	CHECK(!close(fd));
}

static bool gets_nothing(int fd, int management, bool ipv6)
{
	int waiting[2] = {0};

	take_waiting(fd, &(struct waiting){0});
	take_waiting(management, &(struct waiting){0});
	send_from_all(ipv6);
	CHECK(!ioctl(fd, FIONREAD, &waiting[0]) && !ioctl(management, FIONREAD, &waiting[1]));
	return !waiting[0] && !waiting[1];
}

/* Whether each of its sockets gets all packets for it, and no others. The provider receives nothing meanwhile. */
static bool is_distinguished(int fd, int management, bool ipv6)
{
	struct waiting at_data = {0}, at_management = {0};

	take_waiting(fd, &(struct waiting){0});
	take_waiting(management, &(struct waiting){0});
	send_from_all(ipv6);
	take_waiting(fd, &at_data);
	take_waiting(management, &at_management);
	return at_data.data == PORTS && at_management.management == PORTS && !at_data.management && !at_management.data;
}

/* A flood of requests fills its socket, for many rounds in which no probe gets through: data has another, and gets all of it. */
static void test_flooded(bool ipv6)
{
	int fd = descriptor_of(0, ipv6), management = management_of(0, ipv6), attempt = 0;
	struct waiting waiting = {0};

	bare_hold(&udp_of(0)->receiving);
	while (!is_distinguished(fd, management, ipv6)) { /* until it knows its slots */
		CHECK(++attempt < ATTEMPTS);
		bare_let_go(&udp_of(0)->receiving);
		usleep(1000);
		bare_hold(&udp_of(0)->receiving);
	}
	for (int sent = 0; sent < FULL; sent += PORTS)
		send_for(SOFT_GSI_QUEUE_PAIR, ipv6, PORTS);
	for (attempt = 0; waiting.probes < PROBES; usleep(1000)) {
		CHECK(++attempt < ATTEMPTS);
		take_waiting(fd, &waiting);
	}
	CHECK(!waiting.management && !waiting.data);
	CHECK(waiting.round >> 32); /* no count, which another host could guess */
	send_from_all(ipv6);
	take_waiting(fd, &waiting);
	CHECK(!waiting.management && waiting.data == PORTS);
	bare_let_go(&udp_of(0)->receiving);
}

static uint64_t dropped_by(int sharer)
{
	return atomic_load(&udp_of(sharer)->counters.dropped);
}

static void test_stopped(int sharer, bool ipv6)
{
	int fd = descriptor_of(sharer, ipv6), management = management_of(sharer, ipv6), attempt = 0;
	uint64_t before;

	bare_hold(&udp_of(sharer)->receiving);
	while (!gets_nothing(fd, management, ipv6)) {
		CHECK(++attempt < ATTEMPTS);
		forge_probes(ipv6);
		/* If a process is stopped, its timers are, too. */
		atomic_store(&socket_of(sharer, ipv6)->probed, now_of(sharer));
		usleep(1000);
	}
	bare_let_go(&udp_of(sharer)->receiving);
	before = dropped_by(sharer);
	for (attempt = 0; dropped_by(sharer) == before; usleep(1000)) {
		CHECK(++attempt < ATTEMPTS);
		send_from_all(ipv6);
	}
}

/* From now on no thread of this process can attach such a program, as in a container that forbids it. */
static void refuse_programs(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])), /* its lower half: the processors are little-endian */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ATTACH, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
	CHECK(setsockopt(0, SOL_SOCKET, ATTACH, &program, sizeof(program)) && errno == ENOPROTOOPT);
}

/*
 * Without a program the kernel chooses: one socket has all packets of a process. A stopped process keeps its part,
 * the others get theirs, and it continues with its own.
 */
static void test_without_program(int stopped, bool ipv6)
{
	struct soft_udp_socket *socket = socket_of(stopped, ipv6);
	uint64_t before[SHARERS];

	bare_hold(&udp_of(stopped)->receiving);
	for (int sharer = 0; sharer < SHARERS; sharer++)
		before[sharer] = dropped_by(sharer);
	for (int round = 0; round < ROUNDS; round++) {
		struct waiting waiting = {0};

		send_from_all(ipv6);
		take_waiting(socket->source.fd, &waiting);
		CHECK(waiting.data && waiting.management && !waiting.probes);
	}
	send_from_all(ipv6);
	CHECK(dropped_by(stopped) == before[stopped] && !atomic_load(&socket->management));
	bare_let_go(&udp_of(stopped)->receiving);
	for (int sharer = 0; sharer < SHARERS; sharer++)
		for (int attempt = 0; dropped_by(sharer) == before[sharer]; usleep(1000))
			CHECK(++attempt < ATTEMPTS);
}

/* A probe of another form, or from elsewhere, is ignored, and answers are not answered. */
static void test_no_probes(void)
{
	struct soft_udp *udp = udp_of(0);
	struct soft_udp_socket *socket;
	struct soft_udp_rx_batch rx = {.source.port = 5, .segment = SOFT_UDP_PROBE};
	uint8_t bytes[SOFT_UDP_PROBE] = {0x52, 0x44, 0x4d, 0x70}, own[4], far[4];

	CHECK(inet_pton(AF_INET, NETWORK_ADDRESS, own) == 1 && inet_pton(AF_INET, NETWORK_FAR, far) == 1);
	soft_gid_from_ipv4(&rx.source.address, own);
	socket = soft_udp_find(udp, &rx.source.address, SOFT_WIRE_PORT);
	soft_lock_take(&udp->receiving);
	CHECK(soft_udp_watch_answer(udp, socket, &rx, bytes));
	bytes[0] ^= 1;
	CHECK(!soft_udp_watch_answer(udp, socket, &rx, bytes));
	bytes[0] ^= 1;
	bytes[23] = 1; /* an answer */
	CHECK(!soft_udp_watch_answer(udp, socket, &rx, bytes));
	bytes[23] = 0;
	soft_gid_from_ipv4(&rx.source.address, far);
	CHECK(!soft_udp_watch_answer(udp, socket, &rx, bytes));
	soft_lock_release(&udp->receiving);
}

static void start_sharer(int sharer)
{
	sharers[sharer] = process_start((uint64_t)sharer + 1);
	listeners[sharer] = process_listen(&sharers[sharer], (uint16_t)(PORT + sharer));
}

static int count_descriptors(void)
{
	struct dirent *entry;
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	CHECK(folder);
	while ((entry = readdir(folder)))
		count++;
	CHECK(!closedir(folder));
	return count;
}

static atomic_bool opens_late;

/* Like soft_udp_open_management, after the other sockets are no longer polled, or while its caller is waited for. */
static bool open_late(struct soft_udp_socket *socket)
{
	struct soft_poller *poller = &socket->udp->fabric->poller;
	bool waited_for = true;

	atomic_store(&opens_late, true);
	for (int attempt = 0; waited_for && attempt < LATE; attempt++) {
		usleep(1000);
		soft_mutex_lock(&poller->lock);
		waited_for = socket->source.slot;
		soft_mutex_unlock(&poller->lock);
	}
	return soft_udp_open_management(socket);
}

/* The device ends while the timers' thread opens a socket for management, which is closed as the others are. */
static void test_ended_while_opening(void)
{
	int descriptors = count_descriptors();
	struct process process = process_start(1);
	struct soft_udp *udp = ((struct soft_host *)process.provider->host)->udp;
	union ibv_gid gid = address_of(false);
	struct rdma_cm_id *listener;
	int error = 0;

	udp->open_management = open_late;
	listener = process_listen(&process, PORT);
	CHECK(soft_udp_open(udp, &gid, SOFT_WIRE_PORT, &error));
	for (int attempt = 0; !atomic_load(&opens_late); usleep(1000))
		CHECK(++attempt < ATTEMPTS);
	process_destroy(&process, listener);
	process_end(&process);
	CHECK(count_descriptors() == descriptors);
}

static void stop_each(void (*test)(int sharer, bool ipv6))
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		for (int sharer = 0; sharer < SHARERS; sharer++)
			(void)descriptor_of(sharer, ipv6); /* each has a socket before one is stopped */
		for (int sharer = 0; sharer < SHARERS; sharer++)
			test(sharer, ipv6);
	}
}

static void end_sharers(void)
{
	for (int sharer = 0; sharer < SHARERS; sharer++) {
		process_destroy(&sharers[sharer], listeners[sharer]);
		process_end(&sharers[sharer]);
	}
}

int main(void)
{
	if (!network_of_own())
		return 0;
	for (int sharer = 0; sharer < SHARERS; sharer++) {
		start_sharer(sharer);
		for (int ipv6 = 0; ipv6 < 2 && !sharer; ipv6++)
			test_flooded(ipv6);
	}
	test_no_probes();
	stop_each(test_stopped);
	end_sharers();
	test_ended_while_opening();
	refuse_programs();
	for (int sharer = 0; sharer < SHARERS; sharer++)
		start_sharer(sharer);
	stop_each(test_without_program);
	end_sharers();
	return 0;
}
