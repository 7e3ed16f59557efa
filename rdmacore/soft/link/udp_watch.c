/*
 * A process that is stopped (SIGSTOP, a debugger) keeps its socket of a shared port, and the kernel goes on giving it its part of
 * the packets.  So the processes that share look which of them take packets, and give the kernel a program that chooses among
 * those only (SO_ATTACH_REUSEPORT_CBPF, socket(7), which needs no privilege).
 *
 * The program chooses by the place of a socket in the kernel's group, which nobody is told, and which changes when one leaves.
 * So one process sends a probe to each place, by the same program: a datagram of a form that is no packet names the place that
 * it is for.  Whoever gets one answers with its identity.  A place that answers is of a process that takes packets; a place that
 * does not, until the next round, gets none.  To be left out by mistake costs nothing: others pass on what is for a
 * process (udp_pass.c).
 *
 * Any of the processes may send probes; one that has received another's lately does not.  A process that sees only itself
 * looks less often: another may have come, and been stopped before it sent anything.
 *
 * A probe and its answer go between addresses of this host only, from and to the port, which is this user's.
 */
#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/link/udp_pass.h"
#include "soft/wire/fields.h"

#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif

/* A round, and as much again at random: a stopped process is found in two rounds, before connections give up (0.5 s). */
#define INTERVAL (60 * SOFT_MILLISECOND)
#define INTERVAL_ALONE (1000 * SOFT_MILLISECOND)
/* Places that are tried: those that are known to be few, as usual, and while nobody answers. */
#define PLACES_ALONE 4
#define PLACES 16
#define PLACES_MAX 64
/* The opcode would be one of reliable datagrams, which RoCE does not have. */
#define MAGIC 0x52444d70u
#define ANSWER 1
#define MULTIPLIER 0x9e3779b1u /* 2^32 by the golden ratio: spreads addresses and ports */
/* Where a program finds the sender: of a header without options. */
#define SOURCE_4 12
#define PORT_4 20
#define SOURCE_6 20 /* the last four bytes */
#define PORT_6 40

struct soft_udp_watch {
	struct soft_udp_watch *next;
	struct soft_udp_socket *socket;
	int fd; /* sends probes and gets answers: connected with the port, so that nobody else's come */
	uint64_t round; /* number of the probes that are answered; 0: none were sent */
	uint64_t live; /* places, a bit each */
	uint32_t answers[PLACES_MAX]; /* identities */
	bool alone, attached;
};

struct probe {
	uint32_t place, identity, kind;
	uint64_t round;
};

static void put_probe(const struct probe *probe, uint8_t bytes[SOFT_UDP_PROBE])
{
	uint8_t *place = soft_put32(bytes, MAGIC);

	memset(place, 0, SOFT_UDP_PROBE - 4);
	place = soft_put32(place, probe->place);
	place = soft_put64(place, probe->round);
	place = soft_put32(place, probe->identity);
	soft_put32(place, probe->kind);
}

static bool get_probe(const uint8_t bytes[SOFT_UDP_PROBE], struct probe *probe)
{
	*probe = (struct probe){soft_get32(bytes + 4), soft_get32(bytes + 16), soft_get32(bytes + 20), soft_get64(bytes + 8)};
	return soft_get32(bytes) == MAGIC;
}

static uint64_t now_of(struct soft_udp *udp)
{
	return udp->fabric->wall.now(&udp->fabric->wall);
}

bool soft_udp_watch_answer(struct soft_udp *udp, struct soft_udp_socket *socket, const struct soft_udp_came *came, const uint8_t *bytes)
{
	uint32_t identity = atomic_load_explicit(&udp->share->identity, memory_order_relaxed);
	uint8_t answer[SOFT_UDP_PROBE];
	union soft_udp_address to;
	struct probe probe;

	soft_lock_expect(&udp->receiving);
	if (!get_probe(bytes, &probe) || probe.kind || memcmp(&came->source.address, &socket->endpoint.address, sizeof(union ibv_gid)) != 0)
		return false;
	if (!identity)
		return true;
	if (probe.identity != identity)
		atomic_store_explicit(&socket->probed, now_of(udp), memory_order_relaxed);
	probe.identity = identity;
	probe.kind = ANSWER;
	put_probe(&probe, answer);
	soft_gid_to_sockaddr(&came->source.address, came->source.port, &to.any);
	if (to.any.sa_family == AF_INET6)
		to.ipv6.sin6_scope_id = soft_gid_interface(&udp->device->gid_table, &came->source.address);
	(void)soft_udp_sendto(socket->source.fd, answer, sizeof(answer), &to.any, soft_sockaddr_length(&to.any)); /* else the next is answered */
	return true;
}

/* --- the kernel's choice ---------------------------------------------------------------------------- */

#define LOAD(size, offset) BPF_STMT(BPF_LD | (size) | BPF_ABS, (uint32_t)(offset))
#define HEADER 14 /* instructions before the choice */

/*
 * A probe goes to the place that it names, anything else to one of those that live, the same for a sender's port.  A place that
 * does not exist leaves the choice to the kernel.
 */
static uint16_t write_program(uint64_t live, bool ipv6, struct sock_filter code[HEADER + 2 * PLACES_MAX + 1])
{
	const struct sock_filter header[HEADER] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOFT_UDP_PROBE, 0, 4),
		LOAD(BPF_W, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAGIC, 0, 2),
		LOAD(BPF_W, 4),
		BPF_STMT(BPF_RET | BPF_A, 0),
		LOAD(BPF_W, SKF_NET_OFF + (ipv6 ? SOURCE_6 : SOURCE_4)),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		LOAD(BPF_H, SKF_NET_OFF + (ipv6 ? PORT_6 : PORT_4)),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, MULTIPLIER),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, live ? (uint32_t)__builtin_popcountll(live) : 1),
		BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 0),
	};
	uint16_t length = HEADER;
	uint32_t index = 0;

	memcpy(code, header, sizeof(header));
	for (uint32_t place = 0; place < PLACES_MAX; place++) {
		if (!(live >> place & 1))
			continue;
		code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, index++, 0, 1);
		code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, place);
	}
	code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	return length;
}

/* False: the kernel has no such programs. */
static bool attach(struct soft_udp_watch *watch)
{
	struct sock_filter code[HEADER + 2 * PLACES_MAX + 1];
	struct sock_fprog program = {write_program(watch->live, !soft_gid_is_ipv4(&watch->socket->endpoint.address), code), code};

	watch->attached = !setsockopt(watch->socket->source.fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
	return watch->attached;
}

/* --- rounds ---------------------------------------------------------------------------------------- */

static void read_answers(struct soft_udp_watch *watch)
{
	uint8_t bytes[SOFT_UDP_PROBE];
	struct probe answer;
	ssize_t length;

	memset(watch->answers, 0, sizeof(watch->answers));
	for (int count = 0; count < 4 * PLACES_MAX; count++) {
		length = soft_udp_recvfrom(watch->fd, bytes, sizeof(bytes), NULL, NULL);
		if (length < 0 && errno != ECONNREFUSED)
			return;
		if (length == SOFT_UDP_PROBE && get_probe(bytes, &answer) && answer.kind == ANSWER && answer.round == watch->round &&
		    answer.place < PLACES_MAX)
			watch->answers[answer.place] = answer.identity;
	}
}

/* Of the places that one process answers for, the lowest is its own: for places that do not exist the kernel chooses. */
static void judge_answers(struct soft_udp_watch *watch, uint32_t own)
{
	watch->live = 0;
	watch->alone = true;
	for (uint32_t place = 0; place < PLACES_MAX; place++) {
		uint32_t before = 0;

		if (!watch->answers[place])
			continue;
		watch->alone &= watch->answers[place] == own;
		while (before < place && watch->answers[before] != watch->answers[place])
			before++;
		if (before == place)
			watch->live |= UINT64_C(1) << place;
	}
}

static void send_probes(struct soft_udp_watch *watch, uint32_t identity)
{
	uint32_t count = !watch->live ? PLACES_MAX : watch->alone ? PLACES_ALONE : PLACES;
	struct probe probe = {.identity = identity, .round = ++watch->round};
	uint8_t bytes[SOFT_UDP_PROBE];

	for (; probe.place < count; probe.place++) {
		put_probe(&probe, bytes);
		(void)soft_udp_sendto(watch->fd, bytes, sizeof(bytes), NULL, 0); /* what is lost, the next round finds */
	}
}

/* Whether the process looks often: not alone.  False as well where nothing can be found out. */
static bool look(struct soft_udp_share *share, struct soft_udp_watch *watch)
{
	uint32_t identity = atomic_load(&share->identity);
	uint64_t probed = atomic_load_explicit(&watch->socket->probed, memory_order_relaxed), now = now_of(share->udp);

	if (!identity || watch->fd < 0)
		return false;
	if (watch->attached) {
		uint64_t before = watch->live;

		read_answers(watch);
		judge_answers(watch, identity);
		if (watch->live != before)
			(void)attach(watch);
	}
	if (probed && now - probed < 3 * INTERVAL) {
		watch->attached = false; /* another's program is there now */
		return true;
	}
	if (watch->attached || attach(watch))
		send_probes(watch, identity);
	return !watch->alone;
}

static int open_probes(const struct soft_udp *udp, const struct soft_udp_socket *of)
{
	union soft_udp_address own, port;
	int fd;

	soft_gid_to_sockaddr(&of->endpoint.address, 0, &own.any);
	soft_gid_to_sockaddr(&of->endpoint.address, SOFT_WIRE_PORT, &port.any);
	if (own.any.sa_family == AF_INET6)
		own.ipv6.sin6_scope_id = port.ipv6.sin6_scope_id =
			soft_gid_interface(&udp->device->gid_table, &of->endpoint.address);
	fd = socket(own.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (bind(fd, &own.any, soft_sockaddr_length(&own.any)) || connect(fd, &port.any, soft_sockaddr_length(&port.any))) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct soft_udp_watch *watch_of(struct soft_udp_share *share, struct soft_udp_socket *socket)
{
	struct soft_udp_watch *watch = share->watches;

	while (watch && watch->socket != socket)
		watch = watch->next;
	if (watch)
		return watch;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return NULL;
	*watch = (struct soft_udp_watch){.next = share->watches, .socket = socket, .fd = open_probes(share->udp, socket)};
	share->watches = watch;
	return watch;
}

static void look_at_all(struct soft_timer *timer)
{
	struct soft_udp_share *share = soft_container_of(timer, struct soft_udp_share, watching);
	struct soft_udp *udp = share->udp;
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);
	uint64_t spread = (now_of(udp) ^ atomic_load(&share->identity) * (uint64_t)MULTIPLIER) % INTERVAL;
	bool often = false;

	for (uint32_t index = 0; index < count; index++) {
		struct soft_udp_socket *socket = atomic_load_explicit(&udp->sockets[index], memory_order_relaxed);
		struct soft_udp_watch *watch = socket->is_shared ? watch_of(share, socket) : NULL;

		if (watch)
			often |= look(share, watch);
	}
	/* Not the fabric's random numbers, of which a run with a seed draws the same ones each time. */
	(void)soft_timer_arm(&udp->fabric->timers, timer, (often ? INTERVAL : INTERVAL_ALONE) + spread);
}

int soft_udp_watch_init(struct soft_udp_share *share)
{
	return soft_timer_register(&share->udp->fabric->timers, &share->watching, look_at_all);
}

void soft_udp_watch_begin(struct soft_udp_share *share)
{
	(void)soft_timer_arm(&share->udp->fabric->timers, &share->watching, INTERVAL);
}

void soft_udp_watch_stop(struct soft_udp_share *share)
{
	struct soft_udp_watch *watch;

	soft_timer_unregister(&share->udp->fabric->timers, &share->watching);
	while ((watch = share->watches)) {
		share->watches = watch->next;
		if (watch->fd >= 0)
			close(watch->fd);
		free(watch);
	}
}
