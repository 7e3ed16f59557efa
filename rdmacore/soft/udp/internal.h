/* What the files of this package share: sockets, blocks, routes, and the calls of each file. Others include udp.h. */
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

/* The first of 4096 ports above the default range of ephemeral ports (ip_local_port_range ends at 60999). */
#define SOFT_UDP_PORTS 61000
#define SOFT_UDP_BLOCKS 4096
#define SOFT_UDP_SOCKETS 1024 /* of one device: its blocks on each address, and its multicast groups */

/* Limits of one system call that sends. */
#define SOFT_UDP_SEGMENTS 60 /* old kernels allow 64 (UDP_MAX_SEGMENTS) */
#define SOFT_UDP_BYTES 65507
#define SOFT_UDP_BUFFERS 16 /* bursts that are written at the same time; a further one sends each packet by itself */
#define SOFT_UDP_ACK_QUEUE 64 /* queue pairs with a pending acknowledgement */

union soft_udp_address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

/* One datagram, or several of one sender that the kernel coalesced (GRO). */
#define SOFT_UDP_ARRIVED 65536

struct soft_packets;
struct soft_udp_share;

struct soft_udp_socket {
	struct soft_source source; /* its descriptor; under udp.lock */
	struct soft_udp *udp;
	struct soft_endpoint endpoint;
	bool is_shared; /* other processes of the user may have bound it, too (share.c) */
	/*
	 * A shared address has two sockets. This one gets the packets for queue pair 1, if the kernel can select
	 * them (watch.c).
	 */
	bool is_management;
	_Atomic(struct soft_udp_socket *) management; /* the socket for queue pair 1 of this address, or NULL */
	_Atomic uint64_t probed; /* when a probe of another process that shares the port came last (watch.c) */
	_Atomic bool shows_headers; /* receives time to live and type of service, for the GRH of datagrams */
	bool gro; /* the kernel coalesces packets (gro.c); under receiving */
	/* packets that came alone, less those in pairs; receives since the last one that found nothing */
	uint32_t gro_singles, gro_run;
};

/* The last identification of a host that counts them. */
struct soft_udp_peer {
	bool known;
	uint16_t identification;
	uint64_t since; /* nanoseconds of the wall clock */
	union ibv_gid address;
};

#define SOFT_UDP_PEERS 64 /* by hash: two hosts in one slot may lose each other a packet */

/* The ends of the last packet, kept because the next packet mostly has the same ends. */
struct soft_udp_pair {
	struct soft_endpoint source, destination;
	struct soft_icrc_headers headers;
	bool is_foreign; /* the sender's address and port do not fit the receiver's (is_foreign) */
};

/* The route of the packets of a connected queue pair, or of a datagram. */
struct soft_udp_route {
	struct soft_udp_socket *socket;
	struct soft_endpoint peer;
	union soft_udp_address to; /* peer as a socket address */
	struct soft_icrc_headers headers;
	uint8_t traffic_class, hop_limit; /* 0: the default */
	bool is_own; /* the peer is in this process */
};

struct soft_udp_burst {
	const struct soft_udp_route *route;
	struct soft_udp_route own; /* route of a datagram */
	uint32_t used; /* bytes */
	uint32_t segment; /* length of each packet but the last, which may be shorter */
	bool closed; /* a shorter segment was added, which must be the last one */
	uint32_t room;
	uint8_t *bytes; /* the packets, one after the other */
};

/* What one system call received: packets of one sender, all of the same length but the last. */
struct soft_udp_rx_batch {
	struct soft_endpoint source, destination;
	size_t segment;
	uint16_t first; /* index of the first packet in its burst; most senders use the index as identification */
	uint8_t hops, traffic_class;
};

/* The users of block numbers. Each user has all numbers of a block. */
enum soft_udp_numbers { SOFT_UDP_QUEUE_PAIRS, SOFT_UDP_COMMUNICATION, SOFT_UDP_NUMBERS };

struct soft_udp_block_source {
	struct soft_table_block_source block_source;
	struct soft_udp *udp;
	enum soft_udp_numbers numbers;
};

/* Which IP identifications the kernel gives to IPv4 packets of soft's sockets (identification.c). */
enum soft_udp_identifications {
	SOFT_UDP_NOT_ASKED,
	SOFT_UDP_AS_MEANT, /* as the ICRC assumes, or it cannot be found out */
	SOFT_UDP_SEGMENTS_DIFFER, /* those of segments differ, or the kernel sends no bursts */
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
	struct soft_udp_share *share; /* NULL: this process does not share SOFT_WIRE_PORT */
	struct soft_fabric *fabric;
	struct soft_device *device;

	void (*ready)(struct soft_source *source, uint32_t events); /* callback of each socket's source */
	bool (*open_management)(struct soft_udp_socket *socket); /* soft_udp_open_management */
	/* called with the first socket that sends to other hosts */
	enum soft_udp_identifications (*ask_identifications)(int fd);
	struct soft_mutex lock; /* guards blocks, the adding of sockets, and what the poller waits for */
	_Atomic enum soft_udp_identifications identifications;
	struct soft_udp_block blocks[SOFT_UDP_SOCKETS]; /* of this process */
	uint32_t block_count;
	_Atomic(struct soft_udp_socket *) sockets[SOFT_UDP_SOCKETS];
	_Atomic uint32_t socket_count;
	int32_t buffer_wanted; /* receive buffer of a socket, in bytes */
	/* what the kernel granted the last socket; queue pairs read it without the lock */
	_Atomic int32_t buffer_bytes;

	/* Fields of progress.c, which decides which thread receives. */
	struct soft_packets *delay_queue; /* packets that injected faults delay */
	struct soft_lock receiving; /* guards the fields from here to peers */
	uint8_t *arrived;
	uint32_t hot, next; /* indexes of sockets: the one that had packets last, and the next other one to read */
	/* count reads, to select those of management sockets; and the next management socket */
	uint32_t turn, management_turn, management_next;
	struct soft_qp *ack_queue[SOFT_UDP_ACK_QUEUE]; /* references */
	uint32_t ack_queue_count, acks_delayed; /* the first acks_delayed of them wait for an answer */
	uint64_t idle_since; /* since when polls find nothing while acknowledgements wait; or 0 */
	struct {
		struct soft_qp *first, **last; /* references: queue pairs that answer READs in parts, in turn */
		uint32_t room; /* packets of READ responses that may still be sent in this pass */
		uint32_t waiting; /* requests that wait for those READs */
		bool deferred; /* the timer will end the pass */
		struct soft_timer timer;
	} reads;
	struct soft_udp_pair pair;
	struct soft_qp *receiver; /* reference to the receiver of the last packet, while the program polls; or NULL */
	struct soft_udp_peer peers[SOFT_UDP_PEERS];
	_Atomic uint32_t polls; /* polls of empty completion queues */
	_Atomic bool slept; /* a thread armed a completion queue, and no thread has polled since */
	_Atomic uint64_t polling_since; /* since then, polls occur between any two wake-ups of the poller's thread */
	uint32_t polls_at_wakeup; /* value of polls at the last wake-up */
	_Atomic uint64_t active_until; /* the poller's thread does not become idle before */
	uint64_t active; /* how long it stayed active the last time */
	_Atomic bool poller_idle; /* the poller's thread leaves the sockets to polling threads */
	uint32_t activity_seen; /* value of activity() at the last timer check */
	bool rechecking; /* the next check is the second one, shortly after a poll */
	uint32_t recheck_turn; /* checks that found polls */
	uint32_t idle_checks; /* consecutive checks without a poll */
	uint64_t check_interval, idle_at; /* time until the next check; when the poller's thread became idle */
	struct soft_timer watch;

	struct {
		struct soft_lock lock;
		uint32_t used; /* a bit for each buffer */
		uint8_t *bytes;
	} buffers;
	_Atomic uint32_t segments; /* SOFT_UDP_SEGMENTS, or 1 where the kernel cannot send bursts as needed */
	_Atomic uint32_t management_psn;
	struct {
		_Atomic uint64_t sent, received, calls_to_send, calls_to_receive, unsent, dropped, passed, not_passed;
	} counters;
};

/* --- processes that share SOFT_WIRE_PORT ------------------------------------------------------------ */

#define SOFT_UDP_MAGIC 0x52445031u /* "RDP1" */
#define SOFT_UDP_PROBE 32 /* bytes of a probe; no RoCE packet is that short and has its opcode */

/* Header of a record, which the packets follow. */
struct soft_udp_record {
	uint32_t magic;
	uint16_t segment, first;
	uint16_t port; /* of the sender */
	uint8_t hops, traffic_class;
	union ibv_gid source, destination;
};

/* Packets that wait until their process is found. */
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
	bool left; /* soft_udp_share_leave was called */
	_Atomic uint32_t identity; /* first block of this process, plus 1; 0: none yet */
	_Atomic uint64_t own[SOFT_UDP_BLOCKS / 64]; /* a bit for each block of this process */
	struct soft_timer watching; /* timer of watch.c; its thread owns the list */
	struct soft_udp_watch *watches;
	struct soft_source source; /* an epoll instance with all ends */
	/* The next two under udp.lock. */
	struct soft_udp_end *ends;
	uint32_t forward_in_count;
	/* The rest under udp.receiving. */
	struct {
		int fd; /* -1: no connection */
		uint64_t absent_until;
	} forward_out[SOFT_UDP_BLOCKS];
	uint32_t forward_out_count, attempts; /* attempts: how many are left until attempts_until */
	uint64_t attempts_until;
	struct soft_local_list list; /* the kernel's list of sockets, as last read */
	uint64_t list_until; /* the list is not read again before */
	struct soft_timer listing; /* reads the list */
	struct soft_udp_kept *kept, **last_kept; /* packets that wait for the list */
	size_t kept_bytes;
};

/* The name of a block, with the user's number: only processes of one user share the port. */
static inline void soft_udp_block_name(const struct soft_udp_share *share, uint32_t block, char name[SOFT_LOCAL_NAME])
{
	snprintf(name, SOFT_LOCAL_NAME, "rdmarun//%u/block/%u", share->user, block);
}

/* Adds to a counter that is written under udp.receiving. */
static inline void soft_udp_add(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

/* Whether the poller's thread leaves the sockets to polling threads. */
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
 * recvmsg(2), recvfrom(2), sendmsg(2) and sendto(2), without blocking. The functions of the C library are cancellation
 * points, and a thread that is cancelled there would keep its locks. ThreadSanitizer intercepts only those functions,
 * so its builds use them.
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

/* The address in packets from or to that GID. All of 127.0.0.0/8 is sent as 127.0.0.1. */
union ibv_gid soft_udp_address_of(const union ibv_gid *gid);
static inline socklen_t soft_udp_length(const union soft_udp_address *address)
{
	return soft_sockaddr_length(&address->any);
}

/* The socket of that address and port, opened if necessary; NULL and a positive errno in *error. */
struct soft_udp_socket *soft_udp_open(struct soft_udp *udp, const union ibv_gid *address, uint16_t port, int *error);
struct soft_udp_socket *soft_udp_find(struct soft_udp *udp, const union ibv_gid *address, uint16_t port);
/* Whether a shared socket has a management socket, opened if necessary. */
bool soft_udp_open_management(struct soft_udp_socket *socket);
/* 0, or EOPNOTSUPP with a sentence if other hosts would drop every packet from that address. */
int soft_udp_check_identifications(struct soft_udp *udp, const union ibv_gid *source);
/* Bind that port of the first loopback address, exclusively; NULL and a positive errno in *error. */
struct soft_udp_socket *soft_udp_bind_block(struct soft_udp *udp, uint16_t port, int *error);
/*
 * Write a packet to the capture, if there is one. It gets the port SOFT_WIRE_PORT, by which readers of captures
 * recognise RoCE, and so another ICRC.
 */
void soft_udp_record(struct soft_udp *udp, const struct soft_endpoint *from, const struct soft_endpoint *to,
		     const struct ibv_global_route *route, const uint8_t *bytes, size_t length, bool inbound,
		     const struct soft_capture_outcome *outcome);
/* Receive time to live and type of service with each packet of that socket. */
void soft_udp_show_headers(struct soft_udp_socket *socket);
/* Receive no more packets of other hosts; the kernel gives them to other sockets of the port. False if that fails. */
bool soft_udp_leave_port(struct soft_udp_socket *socket);
/* Turn GRO of a socket on or off; false if that fails. */
bool soft_udp_set_gro(struct soft_udp_socket *socket, bool join);

/* Count a dropped packet of that sender, and report it. */
void soft_udp_drop(struct soft_udp *udp, enum soft_notice fault, const union ibv_gid *source);

/* --- owner.c ---------------------------------------------------------------------------------- */

/* SOFT_WIRE_PORT of the address belongs to another user: EADDRINUSE, with a sentence that names the user. */
int soft_udp_refuse_port(const union ibv_gid *address);
/* No port of the blocks is free: the same. */
int soft_udp_refuse_blocks(void);

/* --- watch.c: processes that share and are stopped ----------------------------------------------- */

int soft_udp_watch_init(struct soft_udp_share *share);
void soft_udp_watch_stop(struct soft_udp_share *share);
/* Whether a datagram of SOFT_UDP_PROBE bytes is a probe; if so, it is answered. udp.receiving is held. */
bool soft_udp_watch_answer(struct soft_udp *udp, struct soft_udp_socket *socket, const struct soft_udp_rx_batch *rx,
			   const uint8_t *bytes);
/* A shared socket was opened. */
void soft_udp_watch_begin(struct soft_udp_share *share);

/* --- identification.c ------------------------------------------------------------------------- */

/* fd: a bound IPv4 socket. It sends a few packets to its own host to find out. */
enum soft_udp_identifications soft_udp_ask_identifications(int fd);

/* --- send.c ----------------------------------------------------------------------------------- */

int soft_udp_send_init(struct soft_udp *udp);
void soft_udp_send_destroy(struct soft_udp *udp);
/* The route from a socket to that port; false if socket is NULL. */
bool soft_udp_route_from(struct soft_udp_socket *socket, const union ibv_gid *to, uint16_t port,
			 struct soft_udp_route *route);
/* The route from a queue pair at that address: 0 or a positive errno. */
int soft_udp_route(struct soft_udp *udp, const union ibv_gid *from, uint32_t number, const union ibv_gid *to,
		   uint32_t to_number, struct soft_udp_route *route);
uint8_t *soft_udp_begin(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
			const struct soft_packet *packet, size_t length);
void soft_udp_send(struct soft_link *link, struct soft_burst *burst, struct soft_qp *qp,
		   const struct soft_packet *packet, uint8_t *bytes, size_t length);
void soft_udp_flush(struct soft_link *link, struct soft_burst *burst);
/* Send one packet at once, with its ICRC. */
void soft_udp_send_alone(struct soft_udp *udp, const struct soft_udp_route *route, uint8_t *bytes, size_t length);

/* --- share.c: SOFT_WIRE_PORT with other processes ---------------------------------------------- */

/* -ENOMEM, or a negative errno of a descriptor. */
int soft_udp_share_create(struct soft_udp *udp);
/*
 * Open no more management sockets, let the other processes have the port, and forward what was queued for them. The
 * second call does nothing.
 */
void soft_udp_share_leave(struct soft_udp *udp);
/* Stop receiving from other processes. Nothing is received from sockets any more. */
void soft_udp_share_stop(struct soft_udp *udp);
void soft_udp_share_destroy(struct soft_udp *udp);
/* Listen under the name of the block, so that other processes find this one: 0 or a positive errno. */
int soft_udp_share_block(struct soft_udp *udp, uint32_t block);

/* --- connect.c: functions of struct soft_link ----------------------------------------------------- */

int soft_udp_connect(struct soft_link *link, struct soft_qp *qp, const struct soft_path *path);
bool soft_udp_is_peer(const struct soft_qp *qp, const struct soft_arrival *arrival);
int soft_udp_join_group(struct soft_link *link, const union ibv_gid *group);

/* --- blocks.c: blocks of queue pair numbers ------------------------------------------------------- */

void soft_udp_init_block_source(struct soft_udp *udp, enum soft_udp_numbers numbers);
/* Whether the port of the endpoint is that of a block of this process. */
bool soft_udp_has_block(struct soft_udp *udp, const struct soft_endpoint *endpoint);

/* --- management.c: the device's management datagrams -------------------------------------------- */

void soft_udp_management_init(struct soft_udp *udp);

/* --- faults.c: injected faults of received packets ------------------------------------------------ */

/*
 * All of 127.0.0.0/8 is one address on the wire. A connected queue pair knows its own address and its peer's in that
 * network; from and to become these. bytes: a received packet, at least as long as a BTH.
 */
void soft_udp_name_ends(struct soft_udp *udp, const uint8_t *bytes, union ibv_gid *from, union ibv_gid *to);
/* soft_packets_sender.way of a packet: the flow between the peer and the receiving queue pair. */
uint64_t soft_udp_flow(const union ibv_gid *peer, const uint8_t *bytes, bool inbound);
/* Apply faults to a received packet, which is at least as long as a BTH and an ICRC. */
struct soft_fault_result soft_udp_apply_faults(struct soft_udp *udp, const struct soft_arrival *arrival,
					       const uint8_t *bytes,
					 size_t length);
/*
 * Whether the packet is delayed or lost. A delayed packet is passed to deliver later, by a thread that holds no
 * lock. False: no fault applies, and no earlier packet of its flow waits.
 */
bool soft_udp_hold_back(struct soft_udp *udp, const struct soft_fault_result *fault_result,
			const struct soft_arrival *arrival,
			const uint8_t *bytes, size_t length,
			void (*deliver)(struct soft_udp *udp, struct soft_arrival *arrival, uint8_t *bytes, size_t length));

/* --- progress.c ------------------------------------------------------------------------------- */

int soft_udp_progress_init(struct soft_udp *udp);
/* Nothing receives from sockets any more. The poller no longer waits for them. */
void soft_udp_progress_stop(struct soft_udp *udp);
void soft_udp_progress_destroy(struct soft_udp *udp);
/* Callback of a socket's source. */
void soft_udp_ready(struct soft_source *source, uint32_t events);

/* --- receive.c: one system call; udp.receiving is held ------------------------------------------- */

/* Receive with one system call, and deliver the packets; false when there is nothing. */
bool soft_udp_receive(struct soft_udp *udp, struct soft_udp_socket *socket);

/* --- gro.c: whether the kernel puts packets together; udp.receiving is held ---------------------- */

/* A system call received that many packets. */
void soft_udp_note_arrival(struct soft_udp_socket *socket, size_t packets);
/* A system call received nothing. */
void soft_udp_note_nothing(struct soft_udp_socket *socket);

/* --- arrival.c: packets that have come; udp.receiving is held ------------------------------------ */

/* Deliver packets to their queue pairs. */
void soft_udp_take(struct soft_udp *udp, const struct soft_udp_rx_batch *rx, uint8_t *bytes, size_t length);
/* The same for a shared socket: packets of other processes are forwarded. Changes rx. */
void soft_udp_take_shared(struct soft_udp *udp, struct soft_udp_rx_batch *rx, uint8_t *bytes, size_t length);

/* --- acks.c: pending acknowledgements; udp.receiving is held -------------------------------------- */

bool soft_udp_queue_ack(struct soft_link *link, struct soft_qp *qp);
/* Send all pending acknowledgements. */
void soft_udp_acknowledge(struct soft_udp *udp);
/* Drop all pending acknowledgements. No thread receives any more, so no lock is needed. */
void soft_udp_drop_acks(struct soft_udp *udp);

/* --- reads.c: answers to READs, in parts; udp.receiving is held --------------------------------- */

/* expire ends a pass in which nothing came. -ENOMEM. */
int soft_udp_reads_init(struct soft_udp *udp, void (*expire)(struct soft_timer *timer));
void soft_udp_reads_stop(struct soft_udp *udp);
void soft_udp_answer_later(struct soft_link *link, struct soft_qp *qp);
void soft_udp_request_later(struct soft_link *link, struct soft_qp *qp, const struct soft_arrival *arrival,
			    const uint8_t *bytes, size_t length);
/* A pass over received packets ends: continue READ responses, and reset what the next pass may send. */
void soft_udp_end_pass(struct soft_udp *udp);

/* --- forward.c: packets of other processes; udp.receiving is held ---------------------------------- */

/*
 * The length of the first packets of a burst that are for the same process. *passed: they belong to another process,
 * and were forwarded. Otherwise this process must deliver them.
 */
size_t soft_udp_pass_on(struct soft_udp *udp, const struct soft_udp_rx_batch *rx, uint8_t *bytes, size_t length,
			bool *passed);
/*
 * A list was read, which took that much processor time. *list becomes the previous list. Returns the packets that
 * waited for it, which the caller delivers and frees. udp.receiving is held.
 */
struct soft_udp_kept *soft_udp_renew_list(struct soft_udp_share *share, struct soft_local_list *list, uint64_t took);
void soft_udp_free_kept(struct soft_udp_kept *kept);
void soft_udp_pass_destroy(struct soft_udp_share *share);

#endif
