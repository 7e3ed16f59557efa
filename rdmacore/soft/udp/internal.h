/* What the files of this package share: sockets, blocks, routes, and the calls of each file.  Others include udp.h. */
#ifndef SOFT_UDP_INTERNAL_H
#define SOFT_UDP_INTERNAL_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "soft/base/local_name.h"
#include "soft/base/lock.h"
#include "soft/base/mutex.h"
#include "soft/base/poller.h"
#include "soft/base/table.h"
#include "soft/base/timer.h"
#include "soft/capture/capture.h"
#include "soft/link/calls.h"
#include "soft/objects/device.h"
#include "soft/wire/datagram.h"

/* The last 4096 before the end of what is not for a host's own choice (ip_local_port_range ends at 60999). */
#define SOFT_UDP_PORTS 61000
#define SOFT_UDP_BLOCKS 4096
#define SOFT_UDP_SOCKETS 1024 /* of one device: its blocks on its addresses, and its groups */

/* What one system call sends at most. */
#define SOFT_UDP_SEGMENTS 60 /* older kernels take 64 */
#define SOFT_UDP_BYTES 65507
#define SOFT_UDP_BUFFERS 16 /* bursts that may be under way at once; others send packets one by one */
#define SOFT_UDP_ACK_QUEUE 64 /* queue pairs with a pending acknowledgement */

union soft_udp_address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

/* A datagram, or many of one sender that the kernel has put together. */
#define SOFT_UDP_ARRIVED 65536

struct soft_packets;
struct soft_udp_share;

struct soft_udp_socket {
	struct soft_source source; /* its descriptor; under udp.lock */
	struct soft_udp *udp;
	struct soft_endpoint endpoint;
	bool is_shared; /* other processes of the user may have it, too (share.c) */
	/* Of a shared address, which has two of these: what is for queue pair 1, when the kernel tells it apart (watch.c). */
	bool is_management;
	_Atomic(struct soft_udp_socket *) management; /* the other one; NULL: there is none */
	_Atomic uint64_t probed; /* when another process that shares it sent a probe (watch.c) */
	_Atomic bool shows_headers; /* time to live and type of service, for the GRH of datagrams */
	bool gro; /* the kernel puts packets together (receive.c); under receiving */
	uint32_t gro_singles, gro_run; /* packets that came alone, less those in pairs; receives since a look in vain */
};

/* What a host that counts identifications had last. */
struct soft_udp_peer {
	bool known;
	uint16_t identification;
	uint64_t since; /* nanoseconds of the wall clock */
	union ibv_gid address;
};

#define SOFT_UDP_PEERS 64

/* Between whom the last packets went: the next mostly do, too. */
struct soft_udp_pair {
	struct soft_endpoint source, destination;
	struct soft_icrc_headers headers;
	bool is_foreign; /* no process of this host may send from there, and none else to there */
};

/* Where the packets of a connected queue pair go, or those of a datagram. */
struct soft_udp_route {
	struct soft_udp_socket *socket;
	struct soft_endpoint peer;
	union soft_udp_address to; /* the same */
	struct soft_icrc_headers headers;
	uint8_t traffic_class, hop_limit; /* 0: as usual */
	bool is_own; /* the peer is of this process */
};

struct soft_udp_burst {
	const struct soft_udp_route *route;
	struct soft_udp_route own; /* of a datagram */
	uint32_t used; /* bytes */
	uint32_t segment; /* length of each packet but the last, which may be shorter */
	bool closed; /* it was */
	uint32_t room;
	uint8_t *bytes; /* one packet behind another */
};

/* What came with one system call: packets of one sender, each but the last of one length. */
struct soft_udp_rx_batch {
	struct soft_endpoint source, destination;
	size_t segment;
	uint16_t first; /* place of the first packet in its burst, which most senders give it as identification */
	uint8_t hops, traffic_class;
};

/* Whose numbers are of our blocks; each has all of them in turn. */
enum soft_udp_numbers { SOFT_UDP_QUEUE_PAIRS, SOFT_UDP_COMMUNICATION, SOFT_UDP_NUMBERS };

struct soft_udp_block_source {
	struct soft_table_block_source block_source;
	struct soft_udp *udp;
	enum soft_udp_numbers numbers;
};

/* What the kernel gives to what IPv4 sockets send (identification.c). */
enum soft_udp_identifications {
	SOFT_UDP_NOT_ASKED,
	SOFT_UDP_AS_MEANT, /* or nobody can tell */
	SOFT_UDP_SEGMENTS_DIFFER, /* those of bursts do, or there are no bursts */
	SOFT_UDP_DATAGRAMS_DIFFER,
};

struct soft_udp_block {
	uint32_t number;
	bool used[SOFT_UDP_NUMBERS];
};

struct soft_udp {
	struct soft_link link;
	struct soft_progress progress;
	struct soft_udp_block_source block_sources[SOFT_UDP_NUMBERS];
	struct soft_udp_share *share; /* NULL: SOFT_WIRE_PORT of an address is one process's alone */
	struct soft_fabric *fabric;
	struct soft_device *device;

	void (*ready)(struct soft_source *source, uint32_t events); /* of each socket's source */
	bool (*open_management)(struct soft_udp_socket *socket); /* soft_udp_open_management */
	enum soft_udp_identifications (*ask_identifications)(int fd); /* of the first socket that other hosts send to */
	struct soft_mutex lock; /* guards who adds a socket, and waiting, and blocks */
	_Atomic enum soft_udp_identifications identifications;
	struct soft_udp_block blocks[SOFT_UDP_SOCKETS]; /* those of this process */
	uint32_t block_count;
	_Atomic(struct soft_udp_socket *) sockets[SOFT_UDP_SOCKETS];
	_Atomic uint32_t socket_count;
	int32_t buffer_wanted; /* receive buffer of a socket, in bytes */
	_Atomic int32_t buffer_bytes; /* what the kernel granted the last one; queue pairs read it without the lock */

	/* Who takes packets from the kernel: see progress.c. */
	struct soft_packets *delay_queue; /* where packets wait while there are faults */
	struct soft_lock receiving; /* guards what follows, until peers */
	uint8_t *arrived;
	uint32_t hot, next; /* sockets: where packets came from last, and which other one is looked at next */
	uint32_t turn, management_turn, management_next; /* which looks are at a socket for management, and at which one next */
	struct soft_qp *ack_queue[SOFT_UDP_ACK_QUEUE]; /* held */
	uint32_t ack_queue_count, acks_delayed; /* the first of them let their acknowledgements wait */
	uint64_t idle_since; /* polls find nothing since then, and acknowledgements wait; or 0 */
	struct {
		struct soft_qp *first, **last; /* held: they answer a READ in parts, in turn */
		uint32_t room; /* packets of answers in one pass */
		uint32_t waiting; /* requests that came behind those READs */
		bool deferred; /* timer will end a pass */
		struct soft_timer timer;
	} reads;
	struct soft_udp_pair pair;
	struct soft_qp *receiver; /* held: what the last packet was for, while the program polls; or NULL */
	struct soft_udp_peer peers[SOFT_UDP_PEERS];
	_Atomic uint32_t polls; /* of empty completion queues */
	_Atomic bool slept; /* a thread armed a completion queue, and none has polled since */
	_Atomic uint64_t polling_since; /* polls since then, between any two wake-ups of the poller's thread */
	uint32_t polls_at_wakeup; /* at the last of them */
	_Atomic uint64_t active_until; /* it is not idle before */
	uint64_t active; /* how long, the last time */
	_Atomic bool poller_idle; /* the poller's thread leaves the sockets to those who poll */
	uint32_t activity_seen; /* by the timer */
	bool rechecking; /* it checks whether the program polls again at once */
	uint32_t recheck_turn; /* counts checks that found polls */
	uint32_t idle_checks; /* checks without a poll, one after another */
	uint64_t check_interval, idle_at; /* until the next check; when the poller's thread became idle */
	struct soft_timer watch;

	struct {
		struct soft_lock lock;
		uint32_t used; /* a bit each */
		uint8_t *bytes;
	} buffers;
	_Atomic uint32_t segments; /* SOFT_UDP_SEGMENTS, or 1 where the kernel cuts no segments, or not as meant */
	_Atomic uint32_t management_psn;
	struct {
		_Atomic uint64_t sent, received, calls_to_send, calls_to_receive, unsent, dropped, passed, not_passed;
	} counters;
};

/* --- processes that share SOFT_WIRE_PORT ------------------------------------------------------------ */

#define SOFT_UDP_MAGIC 0x52445031u
#define SOFT_UDP_PROBE 32 /* bytes of a probe */

/* What goes before the packets of a record. */
struct soft_udp_record {
	uint32_t magic;
	uint16_t segment, first;
	uint16_t port; /* of the sender */
	uint8_t hops, traffic_class;
	union ibv_gid source, destination;
};

/* Packets for a process that has not been found yet. */
struct soft_udp_kept {
	struct soft_udp_kept *next;
	struct soft_udp_rx_batch rx;
	size_t length;
	uint8_t bytes[];
};

struct soft_udp_end;
struct soft_udp_watch;

struct soft_udp_share {
	struct soft_udp *udp;
	uid_t user;
	_Atomic uint32_t identity; /* of this process among those that share: its first block, plus 1; 0: none yet */
	_Atomic uint64_t own[SOFT_UDP_BLOCKS / 64]; /* blocks of this process, a bit each */
	struct soft_timer watching; /* watch.c; the list is of its thread */
	struct soft_udp_watch *watches;
	struct soft_source source; /* an epoll set of the ends */
	/* The next two under udp.lock. */
	struct soft_udp_end *ends;
	uint32_t forward_in_count;
	/* The rest under udp.receiving. */
	struct {
		int fd; /* -1: there is none */
		uint64_t absent_until;
	} forward_out[SOFT_UDP_BLOCKS];
	uint32_t forward_out_count, attempts; /* attempts that are left */
	uint64_t attempts_until;
	struct soft_local_list list; /* the kernel's of sockets, as it was read last */
	uint64_t list_until; /* it is not read again before */
	struct soft_timer listing; /* reads it */
	struct soft_udp_kept *kept, **last_kept; /* what waits for that */
	size_t kept_bytes;
};

/* The name of a block: of this user, as only its processes share the port. */
static inline void soft_udp_block_name(const struct soft_udp_share *share, uint32_t block, char name[SOFT_LOCAL_NAME])
{
	snprintf(name, SOFT_LOCAL_NAME, "rdmarun//%u/block/%u", share->user, block);
}

/* The poller's thread leaves the sockets to those who poll. */
static inline bool soft_udp_poller_is_idle(struct soft_udp *udp)
{
	return atomic_load(&udp->poller_idle);
}

/* --- socket.c --------------------------------------------------------------------------------- */

extern const union ibv_gid soft_udp_loopback; /* ::ffff:127.0.0.1 */

static inline struct soft_udp *soft_udp_of(struct soft_link *link)
{
	return soft_container_of(link, struct soft_udp, link);
}

/*
 * recvmsg(2), recvfrom(2), sendmsg(2) and sendto(2), without waiting.  Not the C library's: those are cancellation points,
 * and a thread that is cancelled would leave with locks of ours.  The thread sanitizer knows only the library's.
 */
#ifdef __SANITIZE_THREAD__
#define soft_udp_recvmsg(fd, message) recvmsg(fd, message, MSG_DONTWAIT)
#define soft_udp_recvfrom(fd, bytes, length, from, from_length)                                                        \
	recvfrom(fd, bytes, length, MSG_DONTWAIT, from, from_length)
#define soft_udp_sendmsg(fd, message) sendmsg(fd, message, MSG_DONTWAIT | MSG_NOSIGNAL)
#define soft_udp_sendto(fd, bytes, length, to, to_length)                                                              \
	sendto(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, to, to_length)
#else
#define soft_udp_recvmsg(fd, message) syscall(SYS_recvmsg, fd, message, MSG_DONTWAIT)
#define soft_udp_recvfrom(fd, bytes, length, from, from_length)                                                        \
	syscall(SYS_recvfrom, fd, bytes, length, MSG_DONTWAIT, from, from_length)
#define soft_udp_sendmsg(fd, message) syscall(SYS_sendmsg, fd, message, MSG_DONTWAIT | MSG_NOSIGNAL)
#define soft_udp_sendto(fd, bytes, length, to, to_length)                                                              \
	syscall(SYS_sendto, fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, to, to_length)
#endif

static inline uint16_t soft_udp_port_of(uint32_t qp_num)
{
	return (uint16_t)(SOFT_UDP_PORTS + (qp_num >> SOFT_TABLE_BLOCK_BITS));
}

static inline bool soft_udp_is_block(uint16_t port)
{
	return port >= SOFT_UDP_PORTS && port < SOFT_UDP_PORTS + SOFT_UDP_BLOCKS;
}

/* The address that packets have which are from or for that GID: all of 127.0.0.0/8 is the first of it. */
union ibv_gid soft_udp_address_of(const union ibv_gid *gid);
static inline socklen_t soft_udp_length(const union soft_udp_address *address)
{
	return soft_sockaddr_length(&address->any);
}

/* The socket of the queue pair at that address, which is opened if need be; NULL and a positive errno in *error. */
struct soft_udp_socket *soft_udp_open(struct soft_udp *udp, const union ibv_gid *address, uint16_t port, int *error);
struct soft_udp_socket *soft_udp_find(struct soft_udp *udp, const union ibv_gid *address, uint16_t port);
/* Whether a shared socket has one for management, which is opened if need be. */
bool soft_udp_open_management(struct soft_udp_socket *socket);
/* 0, or EOPNOTSUPP with a sentence: what leaves from that address no other host would take. */
int soft_udp_check_identifications(struct soft_udp *udp, const union ibv_gid *source);
/* That port of the first loopback address, which nobody else has then; NULL and a positive errno in *error. */
struct soft_udp_socket *soft_udp_bind_block(struct soft_udp *udp, uint16_t port, int *error);
/*
 * Write a packet into the file of what is captured, if there is one: with port SOFT_WIRE_PORT, by which readers of such
 * files know RoCE, and so with another ICRC.
 */
void soft_udp_record(struct soft_udp *udp, const struct soft_endpoint *from, const struct soft_endpoint *to,
		     const struct ibv_global_route *route, const uint8_t *bytes, size_t length, bool inbound,
		     const struct soft_capture_outcome *outcome);
/* What arrives there is told with its time to live and type of service. */
void soft_udp_show_headers(struct soft_udp_socket *socket);
/* Whether the kernel puts packets of one sender together there; false when it cannot be changed. */
bool soft_udp_set_gro(struct soft_udp_socket *socket, bool join);

/* Count what came from there and is dropped. */
void soft_udp_drop(struct soft_udp *udp, enum soft_notice fault, const union ibv_gid *source);

/* --- owner.c ---------------------------------------------------------------------------------- */

/* SOFT_WIRE_PORT of the address is somebody else's: EADDRINUSE, with a sentence that says whose. */
int soft_udp_refuse_port(const union ibv_gid *address);
/* No port of the blocks is free: the same. */
int soft_udp_refuse_blocks(void);

/* --- watch.c: processes that share and are stopped ----------------------------------------------- */

int soft_udp_watch_init(struct soft_udp_share *share);
void soft_udp_watch_stop(struct soft_udp_share *share);
/* Whether a datagram of SOFT_UDP_PROBE bytes is a probe, which then is answered.  udp.receiving is held. */
bool soft_udp_watch_answer(struct soft_udp *udp, struct soft_udp_socket *socket, const struct soft_udp_rx_batch *rx,
			   const uint8_t *bytes);
/* A socket that is shared was opened. */
void soft_udp_watch_begin(struct soft_udp_share *share);

/* --- identification.c ------------------------------------------------------------------------- */

/* Of a bound IPv4 socket, which sends a few packets to its own host for that. */
enum soft_udp_identifications soft_udp_ask_identifications(int fd);

/* --- send.c ----------------------------------------------------------------------------------- */

int soft_udp_send_init(struct soft_udp *udp);
void soft_udp_send_destroy(struct soft_udp *udp);
/* The route from a socket to that port; false without a socket. */
bool soft_udp_route_from(struct soft_udp_socket *socket, const union ibv_gid *to, uint16_t port,
			 struct soft_udp_route *route);
/* The route from that address and queue pair: 0 or a positive errno. */
int soft_udp_route(struct soft_udp *udp, const union ibv_gid *from, uint32_t number, const union ibv_gid *to,
		   uint32_t to_number, struct soft_udp_route *route);
uint8_t *soft_udp_begin(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
			const struct soft_packet *packet, size_t length);
void soft_udp_send(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
		   const struct soft_packet *packet, uint8_t *bytes, size_t length);
void soft_udp_flush(struct soft_link *link, struct soft_burst *burst);
/* One packet now, with its ICRC. */
void soft_udp_send_alone(struct soft_udp *udp, const struct soft_udp_route *route, uint8_t *bytes, size_t length);

/* --- share.c: SOFT_WIRE_PORT with other processes ---------------------------------------------- */

/* -ENOMEM, or an errno of a descriptor. */
int soft_udp_share_create(struct soft_udp *udp);
/* No socket for management is opened any more. */
void soft_udp_share_end_watch(struct soft_udp *udp);
/* Once nothing is received from sockets: other processes pass nothing on either. */
void soft_udp_share_stop(struct soft_udp *udp);
void soft_udp_share_destroy(struct soft_udp *udp);
/* Others find this process by the block: 0 or a positive errno. */
int soft_udp_share_block(struct soft_udp *udp, uint32_t block);

/* --- management.c: the device's management datagrams -------------------------------------------- */

void soft_udp_management_init(struct soft_udp *udp);

/* --- faults.c: what arrives from elsewhere meets the faults of this fabric ---------------------- */

/*
 * All of 127.0.0.0/8 is one address on the wire; a connected queue pair knows which of them it and its peer have.  Of a packet to
 * one that has arrived, and is as long as a BTH at least.
 */
void soft_udp_name_ends(struct soft_udp *udp, const uint8_t *bytes, union ibv_gid *from, union ibv_gid *to);
/* soft_packets_sender.way of a packet: between the peer and the queue pair that it is for. */
uint64_t soft_udp_flow(const union ibv_gid *peer, const uint8_t *bytes, bool inbound);
/* What faults do to a packet that has arrived, which is as long as a BTH and an ICRC at least. */
struct soft_fault_result soft_udp_apply_faults(struct soft_udp *udp, const struct soft_arrival *arrival,
					       const uint8_t *bytes,
					 size_t length);
/*
 * Whether it arrives later, by deliver from a thread that holds nothing, or not at all; else nothing disturbs it, and nothing
 * that came before it waits.
 */
bool soft_udp_hold_back(struct soft_udp *udp, const struct soft_fault_result *fault_result,
			const struct soft_arrival *arrival,
			const uint8_t *bytes, size_t length,
			void (*deliver)(struct soft_udp *udp, struct soft_arrival *arrival, uint8_t *bytes, size_t length));

/* --- progress.c ------------------------------------------------------------------------------- */

int soft_udp_progress_init(struct soft_udp *udp);
/* Once the poller waits for no socket: nothing receives from them any more. */
void soft_udp_progress_stop(struct soft_udp *udp);
void soft_udp_progress_destroy(struct soft_udp *udp);
/* The source of a socket. */
void soft_udp_ready(struct soft_source *source, uint32_t events);

/* --- receive.c: udp.receiving is held ----------------------------------------------------------- */

bool soft_udp_queue_ack(struct soft_link *link, struct soft_qp *qp);
/* Send what is pending. */
void soft_udp_acknowledge(struct soft_udp *udp);
/* Send nothing of it: nobody takes packets any more, and no lock is needed. */
void soft_udp_drop_acks(struct soft_udp *udp);
/* Take what one system call gives; false when there is nothing. */
bool soft_udp_receive(struct soft_udp *udp, struct soft_udp_socket *socket);
/* Give packets to those they are for. */
void soft_udp_take(struct soft_udp *udp, const struct soft_udp_rx_batch *rx, uint8_t *bytes, size_t length);
/* The same of a socket that is shared, for whichever process.  came is used up. */
void soft_udp_take_shared(struct soft_udp *udp, struct soft_udp_rx_batch *rx, uint8_t *bytes, size_t length);

/* --- reads.c: answers to READs, in parts; udp.receiving is held --------------------------------- */

/* expire ends a pass in which nothing came.  -ENOMEM. */
int soft_udp_reads_init(struct soft_udp *udp, void (*expire)(struct soft_timer *timer));
void soft_udp_reads_stop(struct soft_udp *udp);
void soft_udp_answer_later(struct soft_link *link, struct soft_qp *qp);
void soft_udp_request_later(struct soft_link *link, struct soft_qp *qp, const struct soft_arrival *arrival,
			    const uint8_t *bytes, size_t length);
/* A pass over what has come ends: go on with answers, and give the next pass its room. */
void soft_udp_end_pass(struct soft_udp *udp);

/* --- forward.c: packets of other processes; udp.receiving is held ---------------------------------- */

/*
 * Of what came to a socket that is shared, the length of what is for one process, from the first packet on.  *passed: it is
 * another's, and was passed on; else it is for this process to take.
 */
size_t soft_udp_pass_on(struct soft_udp *udp, const struct soft_udp_rx_batch *rx, uint8_t *bytes, size_t length,
			bool *passed);
/*
 * A list that was read, which took so much of the processor.  *list is the one before it then.  What has waited for it is for the caller
 * to take, and to free.  udp.receiving is held.
 */
struct soft_udp_kept *soft_udp_renew_list(struct soft_udp_share *share, struct soft_local_list *list, uint64_t took);
void soft_udp_free_kept(struct soft_udp_kept *kept);
void soft_udp_pass_destroy(struct soft_udp_share *share);

#endif
