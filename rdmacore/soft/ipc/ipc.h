/*
 * Processes of one machine that connect to each other's ids.
 *
 * A port belongs to a process by a name: @rdmarun/FABRIC/PORT SPACE/PORT/FAMILY/ADDRESS, of a SOCK_SEQPACKET socket.  Who
 * wants to connect to a port connects to that name, and the connection stays for further messages of both ways.
 *
 * Any user can bind any name, so both ends ask the kernel who is at the other (SO_PEERCRED).  An id connects to listeners of
 * its own user and of root; a listener takes those of its own user and root, and root's those of all users.  In a fabric that
 * is declared shared every user is trusted.
 *
 * Towards other hosts a port is of all fabrics of a user together, and its name has the user in place of a fabric.  Processes of one user get the requests of
 * other hosts at one UDP port (soft/udp/share.c): who gets one connects to the name of whom it is for, and passes it on.
 *
 * All of it is guarded by the lock of the communication manager, cm.lock.  The sockets are in an epoll set of their own, and
 * that set is one source of the fabric's poller: so a socket may be closed wherever cm.lock is held.
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
	bool for_hosts; /* what other hosts connect to, and not what those of the fabric do */
};

/* A socket in the set; fd is -1 once it is closed. */
struct soft_ipc_socket {
	int fd;
	bool is_claim; /* else a connection's */
};

/* A port of this process that others must not have, and may connect to once somebody listens. */
struct soft_claim {
	struct soft_ipc_socket socket;
	struct soft_ipc *ipc;
	LIST_ENTRY(soft_claim) entry; /* soft_ipc.claims */
	bool shared; /* with others that may share it, too (RDMA_OPTION_ID_REUSEADDR); it cannot be listened on */
	char name[SOFT_IPC_NAME]; /* without the zero at its begin, ends with one */
};

/* What went wrong with what others sent, since the begin. */
struct soft_ipc_counts {
	uint64_t invalid; /* records that were none, each the end of its connection */
	uint64_t refused; /* connections over the bound */
	uint64_t untrusted_users; /* connections of users that are not trusted */
	uint64_t dropped; /* messages over the bound of what waits to be sent */
};

struct soft_ipc {
	struct soft_mutex *lock; /* cm.lock */
	struct soft_fabric *fabric;
	char name[CORE_FABRIC_MAX + 1]; /* of the fabric */
	uid_t user; /* of this process, when soft was opened */
	struct soft_local_trust trust; /* whose listeners ids connect to */
	struct soft_source source;
	void (*ready)(struct soft_source *source, uint32_t events);
	bool watched; /* source is in the fabric's poller */
	int epoll;
	struct soft_timer pause; /* claims are watched again, after want of descriptors */
	LIST_HEAD(, soft_claim) claims;
	LIST_HEAD(, soft_ipc_peer) peers;
	struct soft_ipc_peer *routes[SOFT_IPC_ROUTES]; /* those that this process connected, by where to */
	struct soft_ipc_peer *unsent; /* those with messages for soft_ipc_flush */
	uint32_t peer_count, peer_limit;
	uint32_t queued; /* messages that wait to be sent, of all peers */
	uint32_t serial; /* of peers */
	uint64_t instance; /* tells providers of one process from each other, and is of no seed */
	struct soft_ipc_counts counts;
	/* What the communication manager does with messages, and with connections that others have lost. */
	void (*receive)(struct soft_ipc *ipc, struct soft_cm_message *message);
	void (*lost)(struct soft_ipc *ipc, struct soft_ipc_peer *peer);
};

/* A connection to another process. */
struct soft_ipc_peer {
	struct soft_ipc_socket socket;
	struct soft_ipc *ipc;
	LIST_ENTRY(soft_ipc_peer) entry; /* soft_ipc.peers */
	uint32_t references; /* ids, messages, and the list while it is open */
	uint32_t users; /* ids among them */
	uint32_t process; /* the same for all connections to one process, and nobody can take another's */
	uint64_t instance; /* soft_ipc.instance of the other process, once one of its records came */
	uid_t user;
	bool outgoing; /* this process connected, and only it sends requests */
	bool ended; /* SOFT_RECORD_END came */
	bool watches_out; /* EPOLLOUT */
	uint32_t used; /* serial of its last use */

	/* outgoing: where to */
	struct soft_ipc_peer *route_next;
	bool has_route;
	struct soft_ipc_port port;
	struct sockaddr_storage destination;

	/* what waits to be sent: a ring */
	uint8_t (*out)[SOFT_RECORD_MAX];
	uint32_t out_first, out_count, out_capacity;
	bool is_unsent;
	struct soft_ipc_peer *unsent_next;
};

/* --- rules of ports ------------------------------------------------------------------------------- */

/* Two that bind one port of one port space. */
struct soft_port_pair {
	bool both_reuse; /* RDMA_OPTION_ID_REUSEADDR */
	bool families_apart; /* one is of IPv4 and one of IPv6, and both are restricted to their family */
	bool one_is_any; /* the address of one is the wildcard */
	bool same_address;
};

/* As cma_check_port of Linux: 0, EADDRNOTAVAIL with a wildcard, or EADDRINUSE. */
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
 * shared: with processes of all users, else with those of this user and root.  ready: of the fabric's poller, when
 * soft_ipc_progress has something to do.  -EINVAL for a name that cannot be.
 */
int soft_ipc_create(struct soft_fabric *fabric, struct soft_mutex *lock, const char *name, bool shared,
		    void (*ready)(struct soft_source *source, uint32_t events), struct soft_ipc **ipc);
/* Nothing of other processes is received any more. */
void soft_ipc_stop(struct soft_ipc *ipc);
/* Needs no lock: every id and every claim is gone, and soft_ipc_stop was called. */
void soft_ipc_destroy(struct soft_ipc *ipc);

/* cm.lock is held by the callers of the others. */

/* --- progress.c ----------------------------------------------------------------------------------- */

/*
 * Serve one socket that is ready: read a batch, or accept who connects.  receive and lost are called, which may release
 * cm.lock for a while.
 */
void soft_ipc_progress(struct soft_ipc *ipc);

/* --- peer.c --------------------------------------------------------------------------------------- */

/*
 * The connection to the process that listens there: 0; ECONNREFUSED when there is none; another errno when it cannot be
 * made now.  anew: a connection that was made before may be to a process that listens no more.  *made: it is new.
 */
int soft_ipc_connect(struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct sockaddr_storage *destination,
		     bool anew, const struct soft_local_list *list, struct soft_ipc_peer **peer, bool *made);
/*
 * Pass a request of another host, or the REJ that takes it back, on to the process of this user that listens for it, which is
 * on the list.  NULL: only to one that an earlier request went to.  False: there is none that could be found now.
 */
bool soft_ipc_pass_on(struct soft_ipc *ipc, int port_space, const struct soft_cm_message *message,
		      const struct soft_local_list *list);
/* NULL is allowed: the own process. */
void soft_ipc_hold(struct soft_ipc_peer *peer);
void soft_ipc_release(struct soft_ipc_peer *peer);
/* The same for an id. */
void soft_ipc_use(struct soft_ipc_peer *peer);
void soft_ipc_leave(struct soft_ipc_peer *peer);
/* Whether two connections are to one provider of one process. */
bool soft_ipc_is_same(const struct soft_ipc_peer *a, const struct soft_ipc_peer *b);
/* Takes fd, and closes it when it fails: 0 or a positive errno. */
int soft_peer_add(struct soft_ipc *ipc, int fd, bool outgoing, struct soft_ipc_peer **peer);
/* There is no connection any more.  Its ids and the list's reference are the caller's to care for. */
void soft_peer_close(struct soft_ipc_peer *peer);

/* --- send.c --------------------------------------------------------------------------------------- */

/* Send at the next soft_ipc_flush.  It is lost when the connection is, or when too many wait. */
void soft_ipc_send(struct soft_ipc_peer *peer, const struct soft_cm_message *message);
/* Give the kernel what it takes; the rest follows when it takes more. */
void soft_ipc_flush(struct soft_ipc *ipc);
void soft_peer_push(struct soft_ipc_peer *peer);
/* What waits to be sent is lost. */
void soft_peer_forget_unsent(struct soft_ipc_peer *peer);

/* --- claim.c -------------------------------------------------------------------------------------- */

/* The port of that address. */
struct soft_ipc_port soft_ipc_port(int space, const struct sockaddr *address, bool for_hosts);

/*
 * Make a port this process's own, but for processes that may share it: 0 or a positive errno, EADDRINUSE and EADDRNOTAVAIL as
 * cma_check_port of Linux.  Whoever has made it then reads a list of all names, with no lock held, and has it checked, or releases
 * it: first the name and then a look at others, so that of two at once one at least sees the other.
 */
int soft_claim_make(struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct sockaddr *address, bool only_family,
		    bool shared, struct soft_claim **claim);
/* Whether no other process on the list has the port: the same errors. */
int soft_claim_check(const struct soft_claim *claim, const struct soft_ipc_port *port, const struct sockaddr *address, bool only_family,
		     const struct soft_local_list *list);
/* From now on others can connect. */
int soft_claim_listen(struct soft_claim *claim);
void soft_claim_release(struct soft_claim *claim);
/*
 * A connected socket to a listener of a trusted user, ECONNREFUSED or another errno.  list: of the kernel's sockets, for a port
 * of other hosts.  *stranger: a user who listens there and
 * is not trusted; (uid_t)-1: there is none.
 */
int soft_claim_connect(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct sockaddr *destination,
		       const struct soft_local_list *list, int *fd, uid_t *untrusted_user);
/* Whether the list has a process of any user that listens on the port, or is not known. */
bool soft_claim_may_listen(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct soft_local_list *list);
/* Whether a process of a trusted user that is on the list listens on the port, if only for other addresses. */
bool soft_claim_has_listener(const struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct soft_local_list *list);

/* --- set.c: the epoll set ------------------------------------------------------------------------- */

/* socket comes into the set, which comes into the fabric's poller with its first one.  0 or a positive errno. */
int soft_ipc_watch(struct soft_ipc *ipc, struct soft_ipc_socket *socket, uint32_t events);
/* For these events from now on; 0: none. */
void soft_ipc_rewatch(struct soft_ipc *ipc, struct soft_ipc_socket *socket, uint32_t events);
/* Close it, whatever copies there are of its descriptor. */
void soft_ipc_close(struct soft_ipc *ipc, struct soft_ipc_socket *socket);

#endif
