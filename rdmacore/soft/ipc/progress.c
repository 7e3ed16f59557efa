/* Receive from other processes, and accept their connections. */
#include "soft/ipc/ipc.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH 32 /* messages received, or connections accepted, in one call */
#define PAUSE (100 * SOFT_MILLISECOND)

/* Close the connection, and notify its ids. */
static void lose(struct soft_ipc_peer *peer)
{
	soft_peer_close(peer);
	if (peer->users && !peer->ended)
		peer->ipc->lost(peer->ipc, peer);
	soft_ipc_release(peer); /* the reference of the list */
}

/* False: the record is malformed, so the connection must end. */
static bool take(struct soft_ipc_peer *peer, const uint8_t *record, size_t length)
{
	struct soft_cm_message message;
	uint64_t instance = 0;
	enum soft_record_kind kind = soft_record_decode(record, length, &instance, &message);

	if (!peer->instance)
		peer->instance = instance;
	if (instance != peer->instance)
		kind = SOFT_RECORD_INVALID;
	/* Only processes of this user forward messages of other hosts, and only on connections that they opened. */
	if (kind == SOFT_RECORD_FROM_HOST && (peer->user != peer->ipc->user || peer->outgoing))
		kind = SOFT_RECORD_INVALID;
	switch (kind) {
	case SOFT_RECORD_FROM_HOST:
		message.arrived = true;
		peer->ipc->receive(peer->ipc, &message);
		return true;
	case SOFT_RECORD_MESSAGE:
		message.peer_process = peer;
		message.arrived = true;
		peer->ipc->receive(peer->ipc, &message);
		return true;
	case SOFT_RECORD_END:
		peer->ended = true;
		return false;
	default:
		peer->ipc->counts.invalid++;
		return false;
	}
}

/* Receive a batch. False: the connection has ended. */
static bool receive_batch(struct soft_ipc_peer *peer)
{
	uint8_t records[BATCH][SOFT_RECORD_MAX];
	struct mmsghdr headers[BATCH] = {0};
	struct iovec bytes[BATCH];
	int count;

	for (int index = 0; index < BATCH; index++) {
		bytes[index] = (struct iovec){records[index], SOFT_RECORD_MAX};
		headers[index].msg_hdr = (struct msghdr){.msg_iov = &bytes[index], .msg_iovlen = 1};
	}
	count = recvmmsg(peer->socket.fd, headers, BATCH, MSG_DONTWAIT, NULL);
	/* ECONNRESET: it closed with unread messages. Messages that it sent before can still be read. */
	if (count < 0)
		return errno == EAGAIN || errno == EINTR || errno == ECONNRESET;
	for (int index = 0; index < count; index++) {
		size_t length = headers[index].msg_len;

		if (headers[index].msg_hdr.msg_flags & MSG_TRUNC)
			length = 0;
		if (!length || !take(peer, records[index], length))
			return false;
	}
	return true;
}

#define ANYBODY ((uid_t)-1)

static uint32_t count_peers(const struct soft_ipc *ipc, uid_t user)
{
	const struct soft_ipc_peer *peer;
	uint32_t count = 0;

	LIST_FOREACH(peer, &ipc->peers, entry)
		count += user == ANYBODY || peer->user == user;
	return count;
}

/* The accepted connection of a user that has had no ids for the longest time. */
static struct soft_ipc_peer *oldest_idle(struct soft_ipc *ipc, uid_t user)
{
	struct soft_ipc_peer *peer, *oldest = NULL;

	LIST_FOREACH(peer, &ipc->peers, entry)
		if (!peer->users && !peer->outgoing && (user == ANYBODY || peer->user == user) &&
		    (!oldest || (int32_t)(peer->used - oldest->used) < 0))
			oldest = peer;
	return oldest;
}

/*
 * Close an accepted connection without ids in favour of the new one, or else the new one itself. Each other user has
 * at most a quarter of the connections.
 */
static void limit_peers(struct soft_ipc *ipc, struct soft_ipc_peer *peer)
{
	uid_t user = peer->user == ipc->user ? ANYBODY : peer->user;
	uint32_t limit = user == ANYBODY ? ipc->peer_limit : ipc->peer_limit / 4;

	if (count_peers(ipc, user) <= limit && ipc->peer_count <= ipc->peer_limit)
		return;
	ipc->counts.refused++;
	lose(oldest_idle(ipc, user)); /* the new one has no ids either */
}

/* Listeners of root accept all users, as a kernel does. */
static bool is_allowed(struct soft_claim *claim, uid_t user)
{
	struct soft_ipc *ipc = claim->ipc;

	if (!ipc->user || soft_local_trusts(&ipc->trust, user))
		return true;
	ipc->counts.untrusted_users++;
	soft_notice_text(&ipc->fabric->notices,
			 "refused processes of user %u: this fabric is not shared; both processes need --fabric NAME --shared", user);
	return false;
}

/* Accept one connection. False: there is none. */
static bool accept_one(struct soft_claim *claim)
{
	struct soft_ipc *ipc = claim->ipc;
	struct soft_ipc_peer *peer;
	int fd = accept4(claim->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0 && !is_allowed(claim, soft_local_user(fd))) {
		close(fd);
		return true;
	}
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			soft_ipc_rewatch(ipc, &claim->socket, 0);
			soft_timer_arm(&ipc->fabric->timers, &ipc->pause, PAUSE);
		}
		return false;
	}
	if (soft_peer_add(ipc, fd, false, &peer))
		return false;
	limit_peers(ipc, peer);
	return true;
}

/*
 * Serve one socket, so that other threads get cm.lock: sockets that are still ready move to the end of the kernel's
 * list. No event is stored while the lock is released, because claims may be closed meanwhile. A peer is closed
 * only by its own event.
 */
void soft_ipc_progress(struct soft_ipc *ipc)
{
	struct epoll_event event;
	struct soft_ipc_socket *socket;
	struct soft_ipc_peer *peer;

	soft_mutex_expect(ipc->lock);
	if (epoll_wait(ipc->epoll, &event, 1, 0) != 1)
		return;
	socket = event.data.ptr;
	if (socket->is_claim) {
		for (int index = 0; index < BATCH && accept_one((struct soft_claim *)(void *)socket); index++)
			;
		return;
	}
	peer = (struct soft_ipc_peer *)(void *)socket;
	if (event.events & EPOLLOUT)
		soft_peer_push(peer);
	if (event.events & ~(uint32_t)EPOLLOUT && !receive_batch(peer))
		lose(peer);
}
