/* How processes give each other packets: what udp_pass and udp_share have in common. */
#ifndef SOFT_LINK_UDP_PASS_H
#define SOFT_LINK_UDP_PASS_H

#include <stdio.h>

#include "soft/base/local_name.h"
#include "soft/link/udp_socket.h"

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
	struct soft_timer watching; /* udp_watch.c; the list is of its thread */
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

/* --- udp_pass.c ------------------------------------------------------------------------------------ */

/*
 * A list that was read, which took so much of the processor.  *list is the one before it then.  What has waited for it is for the caller
 * to take, and to free.  udp.receiving is held.
 */
struct soft_udp_kept *soft_udp_renew_list(struct soft_udp_share *share, struct soft_local_list *list, uint64_t took);
void soft_udp_free_kept(struct soft_udp_kept *kept);
void soft_udp_pass_destroy(struct soft_udp_share *share);

/* --- udp_watch.c: processes that share and are stopped ----------------------------------------------- */

int soft_udp_watch_init(struct soft_udp_share *share);
void soft_udp_watch_stop(struct soft_udp_share *share);
/* Whether a datagram of SOFT_UDP_PROBE bytes is a probe, which then is answered.  udp.receiving is held. */
bool soft_udp_watch_answer(struct soft_udp *udp, struct soft_udp_socket *socket, const struct soft_udp_rx_batch *rx,
			   const uint8_t *bytes);

/* The name of a block: of this user, as only its processes share the port. */
static inline void soft_udp_block_name(const struct soft_udp_share *share, uint32_t block, char name[SOFT_LOCAL_NAME])
{
	snprintf(name, SOFT_LOCAL_NAME, "rdmarun//%u/block/%u", share->user, block);
}

#endif
