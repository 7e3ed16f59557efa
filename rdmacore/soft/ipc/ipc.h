/*
 * Processes of one machine connect to each other's ids.
 *
 * A process owns a port by a name: @rdmarun/FABRIC/PORT SPACE/PORT/FAMILY/ADDRESS, of a SOCK_SEQPACKET socket. To
 * connect to a port, a process connects to that name. The connection remains for further messages in both
 * directions.
 *
 * Any user can bind any name, so both ends ask the kernel for the user of the other end (SO_PEERCRED). An id
 * connects to listeners of its own user and of root. A listener accepts processes of its own user and root, and a
 * listener of root those of all users. In a fabric that is declared shared, all users are trusted.
 *
 * For other hosts, all fabrics of a user share their ports, and the name contains the user instead of a fabric.
 * Processes of one user get the requests of other hosts at one UDP port (soft/udp/share.c). A process that gets a
 * request for another process connects to that process's name and forwards it.
 *
 * All of it is guarded by cm.lock, the lock of the communication manager. The sockets are in an epoll instance of
 * their own, which is one source of the fabric's poller. So a socket may be closed wherever cm.lock is held.
 */
#ifndef SOFT_IPC_IPC_H
#define SOFT_IPC_IPC_H

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "provider/provider.h"
#include "soft/base/fabric.h"
#include "soft/base/local_name.h"
#include "soft/ipc/record.h"

#define SOFT_IPC_ROUTES 256 /* buckets */
#define SOFT_IPC_NAME SOFT_LOCAL_NAME

struct soft_ipc_peer;

struct soft_ipc_port {
	int space;
	uint16_t number; /* host byte order */
	bool for_hosts; /* for other hosts; otherwise for processes of the fabric */
};

/* A socket in the epoll instance; fd is -1 after it is closed. */
struct soft_ipc_socket {
	int fd;
	bool is_claim; /* otherwise of a connection */
};

/* A port of this process, which other processes cannot bind, and can connect to while an id listens. */
struct soft_claim {
	struct soft_ipc_socket socket;
	struct soft_ipc *ipc;
	LIST_ENTRY(soft_claim) entry; /* soft_ipc.claims */
	bool shared; /* with other shared claims (RDMA_OPTION_ID_REUSEADDR); ids cannot listen on it */
	char name[SOFT_IPC_NAME]; /* without the zero byte at its beginning */
};

/* Errors in what other processes sent. */
struct soft_ipc_counts {
	uint64_t invalid; /* malformed records, each of which ends its connection */
	uint64_t refused; /* connections over the limit */
	uint64_t untrusted_users; /* connections of untrusted users */
	uint64_t dropped; /* messages over the limit of queued ones */
};

struct soft_ipc {
	struct soft_mutex *lock; /* cm.lock */
	struct soft_fabric *fabric;
	char name[CORE_FABRIC_MAX + 1]; /* of the fabric */
	uid_t user; /* of this process, when soft was opened */
	struct soft_local_trust trust; /* ids connect to listeners of these users */
	struct soft_source source;
	void (*ready)(struct soft_source *source, uint32_t events);
	bool watched; /* source is in the fabric's poller */
	int epoll;
	struct soft_timer pause; /* claims are watched again after it; armed when there are no descriptors */
	LIST_HEAD(, soft_claim) claims;
	LIST_HEAD(, soft_ipc_peer) peers;
	struct soft_ipc_peer *routes[SOFT_IPC_ROUTES]; /* those that this process connected, by destination */
	struct soft_ipc_peer *unsent; /* those with messages for soft_ipc_flush */
	uint32_t peer_count, peer_limit;
	uint32_t queued; /* queued messages of all peers */
	uint32_t serial; /* number of the last peer */
	uint64_t instance; /* distinguishes providers of one process; does not depend on a seed */
	struct soft_ipc_counts counts;
	/* Callbacks of the communication manager: a message, and the end of a connection. */
	void (*receive)(struct soft_ipc *ipc, struct soft_cm_message *message);
	void (*lost)(struct soft_ipc *ipc, struct soft_ipc_peer *peer);
};

/* A connection to another process. */
struct soft_ipc_peer {
	struct soft_ipc_socket socket;
	struct soft_ipc *ipc;
	LIST_ENTRY(soft_ipc_peer) entry; /* soft_ipc.peers */
	uint32_t references; /* ids, messages, and the list while it is open */
	uint32_t users; /* references by ids */
	uint32_t process; /* the same for all connections to one process; no other process can have it */
	uint64_t instance; /* soft_ipc.instance of the other process, known from its first record */
	uid_t user;
	bool outgoing; /* this process connected; only that end sends requests */
	bool ended; /* SOFT_RECORD_END came */
	bool watches_out; /* EPOLLOUT */
	uint32_t used; /* soft_ipc.serial at its last use */

	/* outgoing: the destination */
	struct soft_ipc_peer *route_next;
	bool has_route;
	struct soft_ipc_port port;
	struct sockaddr_storage destination;

	/* Queued messages: a ring. */
	uint8_t (*out)[SOFT_RECORD_MAX];
	uint32_t out_first, out_count, out_capacity;
	bool is_unsent;
	struct soft_ipc_peer *unsent_next;
};

/* --- rules of ports ------------------------------------------------------------------------------- */

/* Two ids that bind one port of one port space. */
struct soft_port_pair {
	bool both_reuse; /* RDMA_OPTION_ID_REUSEADDR */
	bool families_apart; /* one is IPv4 and one IPv6, and both are restricted to their family */
	bool one_is_any; /* one has the wildcard address */
	bool same_address;
};

/* Like cma_check_port of Linux: 0, EADDRNOTAVAIL with a wildcard, or EADDRINUSE. */
static inline int soft_port_conflict(const struct soft_port_pair *pair)
{
	if (pair->both_reuse || pair->families_apart)
		return 0;
	if (pair->one_is_any)
		return EADDRNOTAVAIL;
	return pair->same_address ? EADDRINUSE : 0;
}

/* --- life.c --------------------------------------------------------------------------------------- */

/*
 * shared: trust all users; otherwise this user and root. ready: called by the fabric's poller when soft_ipc_progress
 * has something to do. -EINVAL for an invalid name.
 */
int soft_ipc_create(struct soft_fabric *fabric, struct soft_mutex *lock, const char *name, bool shared,
		    void (*ready)(struct soft_source *source, uint32_t events), struct soft_ipc **ipc);
/* Receive nothing from other processes any more. */
void soft_ipc_stop(struct soft_ipc *ipc);
/* Needs no lock: all ids and claims are destroyed, and soft_ipc_stop was called. */
void soft_ipc_destroy(struct soft_ipc *ipc);

/* The callers of the functions below hold cm.lock. */

/* --- progress.c ----------------------------------------------------------------------------------- */

/*
 * Serve one socket that is ready: read a batch, or accept connections. Calls receive and lost, which may release
 * cm.lock for a while.
 */
void soft_ipc_progress(struct soft_ipc *ipc);

/* --- peer.c --------------------------------------------------------------------------------------- */

/*
 * The connection to the process that listens there: 0; ECONNREFUSED if there is none; another errno if it is not
 * possible now. anew: make a new connection, because an existing one may be to a process that listens no more. *made:
 * it is new.
 */
int soft_ipc_connect(struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct sockaddr_storage *destination,
		     bool anew, const struct soft_local_list *list, struct soft_ipc_peer **peer, bool *made);
/*
 * Forward a request of another host, or the REJ that cancels it, to the process of this user that listens for it. The
 * process is in the list. NULL: only to a process that an earlier request went to. False: no such process was found.
 */
bool soft_ipc_pass_on(struct soft_ipc *ipc, int port_space, const struct soft_cm_message *message,
		      const struct soft_local_list *list);
/* NULL is allowed: this process. */
void soft_ipc_hold(struct soft_ipc_peer *peer);
void soft_ipc_release(struct soft_ipc_peer *peer);
/* The same for an id. */
void soft_ipc_use(struct soft_ipc_peer *peer);
void soft_ipc_leave(struct soft_ipc_peer *peer);
/* Whether two connections are to the same provider of the same process. */
bool soft_ipc_is_same(const struct soft_ipc_peer *a, const struct soft_ipc_peer *b);
/* Takes fd, and closes it on failure: 0 or a positive errno. */
int soft_peer_add(struct soft_ipc *ipc, int fd, bool outgoing, struct soft_ipc_peer **peer);
/* The connection ends. The caller handles its ids and the list's reference. */
void soft_peer_close(struct soft_ipc_peer *peer);

/* --- send.c --------------------------------------------------------------------------------------- */

/* Queue for the next soft_ipc_flush. The message is lost if the connection ends, or too many are queued. */
void soft_ipc_send(struct soft_ipc_peer *peer, const struct soft_cm_message *message);
/* Send what the kernel accepts; the rest follows when it accepts more. */
void soft_ipc_flush(struct soft_ipc *ipc);
void soft_peer_push(struct soft_ipc_peer *peer);
/* Drop all queued messages. */
void soft_peer_forget_unsent(struct soft_ipc_peer *peer);

/* --- claim.c -------------------------------------------------------------------------------------- */

/* The port of that address. */
struct soft_ipc_port soft_ipc_port(int space, const struct sockaddr *address, bool for_hosts);

/*
 * Claim a port for this process and others that may share it: 0 or a positive errno, EADDRINUSE and EADDRNOTAVAIL
 * like cma_check_port of Linux. Afterwards the caller reads the list of all names, with no lock held, and calls
 * soft_claim_check, or releases the claim. Because the name is bound before other names are read, at least one of
 * two simultaneous claims sees the other.
 */
int soft_claim_make(struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct sockaddr *address, bool only_family,
		    bool shared, struct soft_claim **claim);
/* Whether no other process in the list has the port: the same errors. */
int soft_claim_check(const struct soft_claim *claim, const struct soft_ipc_port *port, const struct sockaddr *address, bool only_family,
		     const struct soft_local_list *list);
/* From now on other processes can connect. */
int soft_claim_listen(struct soft_claim *claim);
void soft_claim_release(struct soft_claim *claim);
/*
 * A connected socket to a listener of a trusted user, ECONNREFUSED or another errno. list: of the kernel's sockets,
 * for a port of other hosts. *untrusted_user: an untrusted user that listens there; (uid_t)-1: none.
 */
int soft_claim_connect(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct sockaddr *destination,
		       const struct soft_local_list *list, int *fd, uid_t *untrusted_user);
/* Whether the list has a process of any user that listens on the port, or the list is unknown. */
bool soft_claim_may_listen(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct soft_local_list *list);
/* Whether the list has a process of a trusted user that listens on the port, at any address. */
bool soft_claim_has_listener(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct soft_local_list *list);

/* --- set.c: the epoll instance ---------------------------------------------------------------------- */

/* Add socket. The first socket adds the epoll instance to the fabric's poller. 0 or a positive errno. */
int soft_ipc_watch(struct soft_ipc *ipc, struct soft_ipc_socket *socket, uint32_t events);
/* Change the events; 0: none. */
void soft_ipc_rewatch(struct soft_ipc *ipc, struct soft_ipc_socket *socket, uint32_t events);
/* Close the socket, even if a forked child has a copy of its descriptor. */
void soft_ipc_close(struct soft_ipc *ipc, struct soft_ipc_socket *socket);

#endif
