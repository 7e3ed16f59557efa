#include "soft/ipc/ipc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_MAX 16 /* connections that are kept for the next id */
#define SEND_BUFFER (4 << 20) /* the kernel grants up to net.core.wmem_max */
#define UNKNOWN_PROCESS UINT32_C(0x80000000) /* numbers of peers of unknown processes */

static struct soft_ipc_peer **bucket_of(struct soft_ipc *ipc, const struct soft_ipc_port *port,
					const struct sockaddr_storage *destination)
{
	const uint8_t *bytes = (const void *)destination;
	uint32_t hash = (uint32_t)port->space + port->for_hosts;

	for (size_t index = 0; index < sizeof(struct sockaddr_in6); index++)
		hash = hash * 31 + bytes[index];
	return &ipc->routes[hash % SOFT_IPC_ROUTES];
}

/* Destinations come from ids and messages. Their unused bytes are zero. */
static struct soft_ipc_peer *find_route(struct soft_ipc *ipc, const struct soft_ipc_port *port,
					const struct sockaddr_storage *destination)
{
	struct soft_ipc_peer *peer = *bucket_of(ipc, port, destination);

	while (peer && (peer->port.space != port->space || peer->port.for_hosts != port->for_hosts ||
			memcmp(&peer->destination, destination, sizeof(*destination)) != 0))
		peer = peer->route_next;
	return peer;
}

static void add_route(struct soft_ipc_peer *peer, const struct soft_ipc_port *port,
		      const struct sockaddr_storage *destination)
{
	struct soft_ipc_peer **bucket = bucket_of(peer->ipc, port, destination);

	peer->port = *port;
	peer->destination = *destination;
	peer->route_next = *bucket;
	*bucket = peer;
	peer->has_route = true;
}

static void forget_route(struct soft_ipc_peer *peer)
{
	struct soft_ipc_peer **link;

	if (!peer->has_route)
		return;
	link = bucket_of(peer->ipc, &peer->port, &peer->destination);
	while (*link != peer)
		link = &(*link)->route_next;
	*link = peer->route_next;
	peer->has_route = false;
}

bool soft_ipc_is_same(const struct soft_ipc_peer *a, const struct soft_ipc_peer *b)
{
	return a == b || (a && b && a->process == b->process && a->instance == b->instance);
}

void soft_ipc_hold(struct soft_ipc_peer *peer)
{
	if (peer)
		peer->references++;
}

void soft_ipc_release(struct soft_ipc_peer *peer)
{
	if (!peer || --peer->references)
		return;
	free(peer->out);
	free(peer);
}

/* The process at the other end of fd, as the kernel reports it. */
static void identify(struct soft_ipc_peer *peer)
{
	struct ucred credentials = {.uid = (uid_t)-1};
	socklen_t length = sizeof(credentials);

	getsockopt(peer->socket.fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length);
	peer->user = credentials.uid;
	/* 0 is a process of another PID namespace. */
	peer->process = credentials.pid > 0 ? (uint32_t)credentials.pid : UNKNOWN_PROCESS | peer->ipc->serial;
}

int soft_peer_add(struct soft_ipc *ipc, int fd, bool outgoing, struct soft_ipc_peer **out)
{
	struct soft_ipc_peer *peer = calloc(1, sizeof(*peer));
	int size = SEND_BUFFER, error = ENOMEM;

	if (!peer)
		goto close_socket;
	peer->socket.fd = fd;
	peer->ipc = ipc;
	peer->outgoing = outgoing;
	peer->used = ++ipc->serial;
	identify(peer);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	error = soft_ipc_watch(ipc, &peer->socket, EPOLLIN);
	if (error)
		goto free_peer;
	peer->references = 1;
	LIST_INSERT_HEAD(&ipc->peers, peer, entry);
	ipc->peer_count++;
	*out = peer;
	return 0;

free_peer:
	free(peer);
close_socket:
	close(fd);
	return error;
}

void soft_peer_close(struct soft_ipc_peer *peer)
{
	struct soft_ipc *ipc = peer->ipc;

	soft_mutex_expect(ipc->lock);
	soft_ipc_close(ipc, &peer->socket);
	forget_route(peer);
	soft_peer_forget_unsent(peer);
	LIST_REMOVE(peer, entry);
	ipc->peer_count--;
}

/* Connections without ids. */

/*
 * Notify the other process that this process has not ended. The other may still have ids of the connection. The end of
 * the connection follows.
 */
static void end_peer(struct soft_ipc_peer *peer)
{
	uint8_t record[SOFT_RECORD_MAX];
	size_t length = soft_record_encode_end(peer->ipc->instance, record);

	if (peer->out_count || send(peer->socket.fd, record, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	forget_route(peer);
	shutdown(peer->socket.fd, SHUT_RDWR); /* the next soft_ipc_progress closes it */
}

static void limit_idle(struct soft_ipc *ipc)
{
	struct soft_ipc_peer *peer, *oldest = NULL;
	uint32_t count = 0;

	LIST_FOREACH(peer, &ipc->peers, entry) {
		if (!peer->outgoing || peer->users || !peer->has_route)
			continue;
		count++;
		if (!oldest || (int32_t)(peer->used - oldest->used) < 0)
			oldest = peer;
	}
	if (count > IDLE_MAX)
		end_peer(oldest);
}

void soft_ipc_use(struct soft_ipc_peer *peer)
{
	if (!peer)
		return;
	soft_ipc_hold(peer);
	peer->users++;
	peer->used = ++peer->ipc->serial;
}

void soft_ipc_leave(struct soft_ipc_peer *peer)
{
	if (!peer)
		return;
	soft_mutex_expect(peer->ipc->lock);
	if (!--peer->users && peer->outgoing && peer->has_route)
		limit_idle(peer->ipc);
	soft_ipc_release(peer);
}

int soft_ipc_connect(struct soft_ipc *ipc, const struct soft_ipc_port *port, const struct sockaddr_storage *destination,
		     bool anew, const struct soft_local_list *list, struct soft_ipc_peer **out, bool *made)
{
	struct soft_ipc_peer *known = find_route(ipc, port, destination);
	uid_t untrusted_user;
	int error, fd;

	soft_mutex_expect(ipc->lock);
	*made = !known || anew;
	*out = known;
	if (!*made)
		return 0;
	error = soft_claim_connect(ipc, port, (const struct sockaddr *)destination, list, &fd, &untrusted_user);
	if (error && untrusted_user != (uid_t)-1 && !port->for_hosts)
		soft_notice_text(&ipc->fabric->notices,
				 "not connected to port %u: a process of user %u listens there, and this fabric is not shared; both processes need --fabric NAME --shared",
				 port->number, untrusted_user);
	if (!error)
		error = soft_peer_add(ipc, fd, true, out);
	if (known && (!error || error == ECONNREFUSED))
		forget_route(known);
	if (!error)
		add_route(*out, port, destination);
	return error;
}

bool soft_ipc_pass_on(struct soft_ipc *ipc, int port_space, const struct soft_cm_message *message,
		      const struct soft_local_list *list)
{
	struct soft_ipc_port port = soft_ipc_port(port_space, (const struct sockaddr *)&message->destination, true);
	struct soft_ipc_peer *peer;
	bool made, is_ours;

	soft_mutex_expect(ipc->lock);
	if (!list && !find_route(ipc, &port, &message->destination))
		return false;
	if (soft_ipc_connect(ipc, &port, &message->destination, false, list, &peer, &made))
		return false;
	soft_ipc_use(peer);
	is_ours = peer->user == ipc->user;
	if (is_ours)
		soft_ipc_send(peer, message);
	soft_ipc_leave(peer);
	return is_ours;
}
