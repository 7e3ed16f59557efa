/*
 * A process that is stopped (SIGSTOP, a debugger) keeps its socket of a shared port. The kernel still gives it its
 * part of the packets. So the processes that share the port find out which of them receive. They give the kernel a
 * program that chooses among those only (SO_ATTACH_REUSEPORT_CBPF, socket(7)), which needs no privilege.
 *
 * The program chooses a slot: the index of a socket in the kernel's group. No system call returns a socket's slot, and
 * slots change when a socket leaves. So one process sends a probe to each slot, by the same program. A probe is a
 * datagram that is not a valid packet and names its slot. The process that gets a probe answers with its identity. A
 * slot that answers belongs to a process that receives. A slot that does not answer gets no packets until the next
 * round. Leaving out a slot by mistake is harmless: other processes forward its packets (forward.c).
 *
 * The same program keeps a flood of connection requests from filling the socket for data. A process has a second
 * socket of the port, and packets for queue pair 1 go to such sockets. It is opened once the program chooses among
 * known slots, so that no data goes to it. Where the kernel has no such programs, one socket gets all packets.
 *
 * A flood fills a socket, and probes are lost with the rest. So a slot that does not answer still belongs to its
 * process while the process's other slot answers. If no slot answers, this process keeps its own.
 *
 * Each process may send probes. One that received a probe of another process lately leaves most rounds to it. A
 * process that is alone checks less often; it still checks, because another process may have started and been stopped
 * before it sent anything.
 *
 * Probes and answers go between addresses of this host only. Answers come from the port, which belongs to this user.
 * Probes may come from other users and could keep all processes from sending their own, so a process never leaves all
 * rounds to others. Over IPv6, another host can answer where the filter of socket.c is forbidden. So round numbers
 * begin at random, and only a host that has seen a probe knows them.
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

/*
 * Time between rounds; as much again is added at random. A stopped process is found within two rounds, before
 * connections time out (0.5 s).
 */
#define INTERVAL (60 * SOFT_MILLISECOND)
#define INTERVAL_ALONE (1000 * SOFT_MILLISECOND)
/* After that many rounds of others, a process sends its own: half a second at INTERVAL. */
#define LEFT 8
/* The identity in the probes of such a round. Other processes do not leave rounds to it. */
#define NO_CLAIM 0
/* Slots that are probed: if the process is alone, usually, and while no slot answers. */
#define SLOTS_SOLE_OWNER 4
#define SLOTS 16
#define SLOTS_MAX 64
/* A process that gets no answer checks that often at INTERVAL, which takes 4.5 s, and then at INTERVAL_ALONE. */
#define ROUNDS_OFTEN 50
/* Read as a BTH, its first byte would be an opcode of the reliable datagram service, which RoCE does not have. */
#define MAGIC 0x52444d70u
#define ANSWER 1
/* Flag in an identity: the slot is of a management socket. */
#define MANAGEMENT (UINT32_C(1) << 31)
#define MULTIPLIER 0x9e3779b1u /* 2^32 by the golden ratio: distributes addresses and ports evenly */
/* Offsets of the sender in a packet without IP options. */
#define SOURCE_4 12
#define PORT_4 20
#define SOURCE_6 20 /* the last four bytes */
#define PORT_6 40

struct soft_udp_watch {
	struct soft_udp_watch *next;
	struct soft_udp_socket *socket;
	int fd; /* sends probes and receives answers; connected with the port, so that no other sender reaches it */
	uint64_t first, round; /* first is random, and round counts from there */
	uint64_t data, management; /* slots that receive, a bit each */
	uint32_t slots[SLOTS_MAX]; /* identities; 0: not a slot of these processes */
	/* of the last round; a probe to a slot that does not exist is answered by another one */
	uint32_t answers[SLOTS_MAX];
	uint32_t left; /* consecutive rounds that were left to others */
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
	/* if it is lost, the next probe is answered */
	(void)soft_udp_sendto(socket->source.fd, answer, sizeof(answer), &to.any, soft_sockaddr_length(&to.any));
	return true;
}

/* --- the program that the kernel chooses by -------------------------------------------------------- */

#define LOAD(size, offset) BPF_STMT(BPF_LD | (size) | BPF_ABS, (uint32_t)(offset))
#define HEADER 12 /* instructions before the choices */
#define CHOICE (8 + 2 * SLOTS_MAX + 1) /* instructions of one choice */
#define PROGRAM (HEADER + 2 * CHOICE)
/* Offset of the eight bytes of a BTH that end with a reserved byte and the queue pair number (IBTA 9.2). */
#define NUMBERED 8
#define NUMBER 4

/* Choose one of the slots, always the same one for a sender's port. Returns the number of instructions. */
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
 * A probe goes to the slot that it names. A packet for queue pair 1 goes to a management slot that receives, and any
 * other packet to a data slot. If one kind has no slots, the other kind gets its packets. For a slot that does not
 * exist the kernel chooses.
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

/* The first slot that answered with that identity; SLOTS_MAX: none did. */
static uint32_t first_of(const struct soft_udp_watch *watch, uint32_t identity)
{
	uint32_t slot = 0;

	while (slot < SLOTS_MAX && watch->answers[slot] != identity)
		slot++;
	return slot;
}

/* If no process answered, this one still receives. */
static bool takes_packets(const struct soft_udp_watch *watch, uint32_t identity, uint32_t own)
{
	static const uint32_t none[SLOTS_MAX];
	uint32_t process = identity & ~MANAGEMENT;

	if (!memcmp(watch->answers, none, sizeof(none)))
		return process == own;
	return first_of(watch, process) < SLOTS_MAX || first_of(watch, process | MANAGEMENT) < SLOTS_MAX;
}

/* A slot that has not answered keeps its identity, unless the process answered from another slot. */
static bool stays(const struct soft_udp_watch *watch, uint32_t slot, uint32_t own)
{
	uint32_t identity = watch->slots[slot];

	return identity && !watch->answers[slot] && first_of(watch, identity) > slot &&
		takes_packets(watch, identity, own);
}

/*
 * A socket may answer for several slots, because the kernel chooses for slots that do not exist. The lowest one is
 * its own. When other sockets leave, its slot becomes lower, never higher.
 */
static void update_slots(struct soft_udp_watch *watch, uint32_t own)
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
		/* the next round repeats lost probes */
		(void)soft_udp_sendto(watch->fd, bytes, sizeof(bytes), NULL, 0);
	}
}

/* Take over what the answers say. If it is new, this process sends the next round as well. */
static void learn(struct soft_udp_watch *watch, uint32_t own)
{
	uint64_t data = watch->data, management = watch->management;
	bool same;

	read_answers(watch);
	update_slots(watch, own);
	same = watch->data == data && watch->management == management;
	if (same)
		watch->left = 0;
	if (!same || !watch->attached)
		(void)attach(watch);
}

/*
 * Whether the process checks often: it is not alone, or not all of its slots are known. False as well if nothing can
 * be found out.
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
		watch->asks = watch->attached = false; /* another process has attached its program */
		(void)share->udp->open_management(watch->socket);
		return true;
	}
	/* The program of the other process sends probes to its slots as well, and is newer. */
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
	/* Not the fabric's random numbers: a run with a seed always draws the same ones. */
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
