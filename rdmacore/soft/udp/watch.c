/*
 * A process that is stopped (SIGSTOP, a debugger) keeps its socket of a shared port, and the kernel goes on giving it its part of
 * the packets.  So the processes that share look which of them take packets, and give the kernel a program that chooses among
 * those only (SO_ATTACH_REUSEPORT_CBPF, socket(7), which needs no privilege).
 *
 * The program chooses by the slot of a socket in the kernel's group, which nobody is told, and which changes when one
 * leaves. So one process sends a probe to each slot, by the same program: a datagram of a form that is no packet names
 * the slot that it is for.  Whoever gets one answers with its identity.  A slot that answers is of a process that takes
 * packets; a slot that does not, until the next round, gets none.  To be left out by mistake costs nothing: others pass
 * on what is for a process (forward.c).
 *
 * By the same program a flood of requests for the communication manager does not fill the socket that data comes to: a process has
 * a second socket of the port, and what is for queue pair 1 goes to one of those.  It is opened once the program chooses among known
 * slots, so that data never goes there and back.  Where the kernel has no such programs there is one socket for all.
 *
 * A flood fills a socket, and its probes are lost with the rest.  So a slot that does not answer is still its process's
 * while that answers at its other slot; and this process's own, if nobody at all answers.
 *
 * Any of the processes may send probes; one that has received another's lately leaves most rounds to that.  A process that sees only
 * itself looks less often: another may have come, and been stopped before it sent anything.
 *
 * A probe and its answer go between addresses of this host only.  Answers come from the port, which is this user's.  Probes do not, so
 * those of another user could keep all from looking: nobody leaves all rounds to others.  Over IPv6 another host can answer where the
 * filter of udp_socket.c is forbidden.  So the numbers of rounds begin at random, and only a host that has seen a probe knows them.
 */
#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "soft/base/fabric.h"
#include "soft/udp/internal.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"

#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif

/* A round, and as much again at random: a stopped process is found in two rounds, before connections give up (0.5 s). */
#define INTERVAL (60 * SOFT_MILLISECOND)
#define INTERVAL_ALONE (1000 * SOFT_MILLISECOND)
/* Rounds that a process leaves to others, before it has one of its own. */
#define LEFT 8
/* The identity in probes of such a round, for which nobody leaves off. */
#define NO_CLAIM 0
/* Places that are tried: those that are known to be few, as usual, and while nobody answers. */
#define SLOTS_SOLE_OWNER 4
#define SLOTS 16
#define SLOTS_MAX 64
/* Without an answer a process looks so often, and less often then. */
#define ROUNDS_OFTEN 50
/* The opcode would be one of reliable datagrams, which RoCE does not have. */
#define MAGIC 0x52444d70u
#define ANSWER 1
/* In an identity: the slot is of a socket for management. */
#define MANAGEMENT (UINT32_C(1) << 31)
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
	uint64_t first, round; /* the last round is that many behind a random one */
	uint64_t data, management; /* slots that live, a bit each */
	uint32_t slots[SLOTS_MAX]; /* identities; 0: not one of those */
	uint32_t answers[SLOTS_MAX]; /* of the last round: a slot that does not exist is answered, too */
	uint32_t left; /* rounds in a row, to others */
	bool sole_owner, asks, attached;
};

struct probe {
	uint32_t slot, identity, kind;
	uint64_t round;
};

static void put_probe(const struct probe *probe, uint8_t bytes[SOFT_UDP_PROBE])
{
	uint8_t *slot = soft_put32(bytes, MAGIC);

	memset(slot, 0, SOFT_UDP_PROBE - 4);
	slot = soft_put32(slot, probe->slot);
	slot = soft_put64(slot, probe->round);
	slot = soft_put32(slot, probe->identity);
	soft_put32(slot, probe->kind);
}

static bool get_probe(const uint8_t bytes[SOFT_UDP_PROBE], struct probe *probe)
{
	*probe = (struct probe){soft_get32(bytes + 4), soft_get32(bytes + 16), soft_get32(bytes + 20), soft_get64(bytes + 8)};
	return soft_get32(bytes) == MAGIC;
}

bool soft_udp_watch_answer(struct soft_udp *udp, struct soft_udp_socket *socket, const struct soft_udp_rx_batch *rx,
			   const uint8_t *bytes)
{
	uint32_t identity = atomic_load_explicit(&udp->share->identity, memory_order_relaxed);
	uint8_t answer[SOFT_UDP_PROBE];
	union soft_udp_address to;
	struct probe probe;

	soft_lock_expect(&udp->receiving);
	if (!get_probe(bytes, &probe) || probe.kind || memcmp(&rx->source.address, &socket->endpoint.address,
							      sizeof(union ibv_gid)) != 0)
		return false;
	if (!identity)
		return true;
	if (probe.identity != identity && probe.identity != NO_CLAIM)
		atomic_store_explicit(&socket->probed, soft_fabric_wall_now(udp->fabric), memory_order_relaxed);
	probe.identity = identity | (socket->is_management ? MANAGEMENT : 0);
	probe.kind = ANSWER;
	put_probe(&probe, answer);
	soft_gid_to_sockaddr(&rx->source.address, rx->source.port, &to.any);
	if (to.any.sa_family == AF_INET6)
		to.ipv6.sin6_scope_id = soft_gid_interface(&udp->device->gid_table, &rx->source.address);
	(void)soft_udp_sendto(socket->source.fd, answer, sizeof(answer), &to.any, soft_sockaddr_length(&to.any)); /* else the next is answered */
	return true;
}

/* --- the kernel's choice ---------------------------------------------------------------------------- */

#define LOAD(size, offset) BPF_STMT(BPF_LD | (size) | BPF_ABS, (uint32_t)(offset))
#define HEADER 12 /* instructions before the choices */
#define CHOICE (8 + 2 * SLOTS_MAX + 1) /* of one */
#define PROGRAM (HEADER + 2 * CHOICE)
/* The last four of eight bytes that each packet has are a byte and the number of its queue pair (IBTA 9.2). */
#define NUMBERED 8
#define NUMBER 4

/* One of the slots, the same for a sender's port; the length of that. */
static uint16_t write_choice(uint64_t slots, bool ipv6, struct sock_filter *code)
{
	const struct sock_filter hash[] = {
		LOAD(BPF_W, SKF_NET_OFF + (ipv6 ? SOURCE_6 : SOURCE_4)),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		LOAD(BPF_H, SKF_NET_OFF + (ipv6 ? PORT_6 : PORT_4)),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, MULTIPLIER),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, slots ? (uint32_t)__builtin_popcountll(slots) : 1),
	};
	uint16_t length = sizeof(hash) / sizeof(hash[0]);
	uint32_t index = 0;

	memcpy(code, hash, sizeof(hash));
	for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
		if (!(slots >> slot & 1))
			continue;
		code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, index++, 0, 1);
		code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, slot);
	}
	code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	return length;
}

/*
 * A probe goes to the slot that it names, a packet for queue pair 1 to a live slot for management, and anything else to
 * one for data.  With no slot of one kind those of the other have all.  A slot that does not exist leaves the choice to
 * the kernel.
 */
static uint16_t write_program(const struct soft_udp_watch *watch, bool ipv6, struct sock_filter code[PROGRAM])
{
	const struct sock_filter header[HEADER] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOFT_UDP_PROBE, 0, 4),
		LOAD(BPF_W, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAGIC, 0, 2),
		LOAD(BPF_W, 4),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, NUMBERED, 0, 3),
		LOAD(BPF_W, NUMBER),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOFT_GSI_QUEUE_PAIR, 1, 0),
	};
	uint64_t data = watch->data ? watch->data : watch->management;
	uint16_t length;

	memcpy(code, header, sizeof(header));
	length = write_choice(watch->management ? watch->management : data, ipv6, code + HEADER);
	code[HEADER - 1] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, length);
	return (uint16_t)(HEADER + length + write_choice(data, ipv6, code + HEADER + length));
}

/* False: the kernel has no such programs. */
static bool attach(struct soft_udp_watch *watch)
{
	struct sock_filter code[PROGRAM];
	struct sock_fprog program = {write_program(watch, !soft_gid_is_ipv4(&watch->socket->endpoint.address), code), code};

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
	for (int count = 0; count < 4 * SLOTS_MAX; count++) {
		length = soft_udp_recvfrom(watch->fd, bytes, sizeof(bytes), NULL, NULL);
		if (length < 0 && errno != ECONNREFUSED)
			return;
		if (length == SOFT_UDP_PROBE && get_probe(bytes, &answer) && answer.kind == ANSWER &&
		    answer.round == watch->first + watch->round && answer.slot < SLOTS_MAX)
			watch->answers[answer.slot] = answer.identity;
	}
}

/* The first slot that answered with that identity; PLACES_MAX: none did. */
static uint32_t first_of(const struct soft_udp_watch *watch, uint32_t identity)
{
	uint32_t slot = 0;

	while (slot < SLOTS_MAX && watch->answers[slot] != identity)
		slot++;
	return slot;
}

/* With no answer from anybody, this process does. */
static bool takes_packets(const struct soft_udp_watch *watch, uint32_t identity, uint32_t own)
{
	static const uint32_t none[SLOTS_MAX];
	uint32_t process = identity & ~MANAGEMENT;

	if (!memcmp(watch->answers, none, sizeof(none)))
		return process == own;
	return first_of(watch, process) < SLOTS_MAX || first_of(watch, process | MANAGEMENT) < SLOTS_MAX;
}

/* Where a socket was, and nobody has answered there since: no answer has come from it that says it is elsewhere. */
static bool stays(const struct soft_udp_watch *watch, uint32_t slot, uint32_t own)
{
	uint32_t identity = watch->slots[slot];

	return identity && !watch->answers[slot] && first_of(watch, identity) > slot &&
		takes_packets(watch, identity, own);
}

/*
 * Of the slots that one socket answers for, the lowest is its own: for slots that do not exist the kernel chooses.  Its
 * slot becomes lower, when others leave, and never higher.
 */
static void reply_faults(struct soft_udp_watch *watch, uint32_t own)
{
	uint32_t slots[SLOTS_MAX] = {0};

	for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
		if (watch->answers[slot] && first_of(watch, watch->answers[slot]) == slot)
			slots[slot] = watch->answers[slot];
	for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
		uint32_t other = first_of(watch, watch->slots[slot]);

		if (!stays(watch, slot, own))
			continue;
		slots[slot] = watch->slots[slot];
		if (other < SLOTS_MAX)
			slots[other] = 0;
	}
	watch->data = watch->management = 0;
	watch->sole_owner = true;
	for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
		watch->slots[slot] = slots[slot];
		if (!slots[slot])
			continue;
		watch->sole_owner &= (slots[slot] & ~MANAGEMENT) == own;
		*(slots[slot] & MANAGEMENT ? &watch->management : &watch->data) |= UINT64_C(1) << slot;
	}
}

static bool knows(const struct soft_udp_watch *watch, uint32_t identity)
{
	uint32_t slot = 0;

	while (slot < SLOTS_MAX && watch->slots[slot] != identity)
		slot++;
	return slot < SLOTS_MAX;
}

static void send_probes(struct soft_udp_watch *watch, uint32_t identity)
{
	uint32_t count = !watch->data ? SLOTS_MAX : watch->sole_owner ? SLOTS_SOLE_OWNER : SLOTS;
	struct probe probe = {.identity = identity, .round = watch->first + ++watch->round};
	uint8_t bytes[SOFT_UDP_PROBE];

	for (; probe.slot < count; probe.slot++) {
		put_probe(&probe, bytes);
		(void)soft_udp_sendto(watch->fd, bytes, sizeof(bytes), NULL, 0); /* what is lost, the next round finds */
	}
}

/* What the answers say.  Until that is what was known before, this process has the next round as well. */
static void learn(struct soft_udp_watch *watch, uint32_t own)
{
	uint64_t data = watch->data, management = watch->management;
	bool same;

	read_answers(watch);
	reply_faults(watch, own);
	same = watch->data == data && watch->management == management;
	if (same)
		watch->left = 0;
	if (!same || !watch->attached)
		(void)attach(watch);
}

/*
 * Whether the process looks often: not alone, or its slots are not all known.  False as well where nothing can be found
 * out.
 */
static bool look(struct soft_udp_share *share, struct soft_udp_watch *watch)
{
	uint32_t identity = atomic_load(&share->identity);
	uint64_t probed = atomic_load_explicit(&watch->socket->probed, memory_order_relaxed);
	bool another = probed && soft_fabric_wall_now(share->udp->fabric) - probed < 3 * INTERVAL;

	if (!identity || watch->fd < 0)
		return false;
	if (watch->asks)
		learn(watch, identity);
	if (another && watch->left < LEFT) {
		watch->left++;
		watch->asks = watch->attached = false; /* another's program is there now */
		(void)share->udp->open_management(watch->socket);
		return true;
	}
	/* Another's program sends probes to their slots as well, and what it was made of is newer. */
	if (!watch->attached && !another && !attach(watch))
		return false;
	watch->asks = true;
	send_probes(watch, another ? NO_CLAIM : identity);
	if (!knows(watch, identity))
		return !watch->sole_owner || watch->round < ROUNDS_OFTEN;
	return (share->udp->open_management(watch->socket) && !knows(watch, identity | MANAGEMENT)) ||
		!watch->sole_owner;
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
	if (getrandom(&watch->first, sizeof(watch->first), 0) != sizeof(watch->first))
		watch->first = soft_fabric_wall_now(share->udp->fabric);
	share->watches = watch;
	return watch;
}

static void look_at_all(struct soft_timer *timer)
{
	struct soft_udp_share *share = soft_container_of(timer, struct soft_udp_share, watching);
	struct soft_udp *udp = share->udp;
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);
	uint64_t spread = (soft_fabric_wall_now(udp->fabric) ^ atomic_load(&share->identity) * (uint64_t)MULTIPLIER) % INTERVAL;
	bool often = false;

	for (uint32_t index = 0; index < count; index++) {
		struct soft_udp_socket *socket = atomic_load_explicit(&udp->sockets[index], memory_order_relaxed);
		struct soft_udp_watch *watch = socket->is_shared && !socket->is_management ? watch_of(share, socket) : NULL;

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
