/* Messages to other processes: queued in a ring for each while the kernel accepts no more. */
#include "soft/ipc/ipc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BATCH 32 /* messages that are sent in one call */

/* Limits of memory that other processes can make this one use. */
#define QUEUED_MAX (1u << 18) /* queued messages, 80 MB */
#define QUEUED_PEER (1u << 16) /* to one peer */
#define QUEUED_UNTRUSTED (1u << 12) /* to one of another user */

/* Drop all queued messages. */
static void drop_out(struct soft_ipc_peer *peer)
{
	peer->ipc->queued -= peer->out_count;
	peer->out_count = 0;
}

void soft_peer_forget_unsent(struct soft_ipc_peer *peer)
{
	struct soft_ipc_peer **link = &peer->ipc->unsent;

	soft_mutex_expect(peer->ipc->lock);
	drop_out(peer);
	if (!peer->is_unsent)
		return;
	while (*link != peer)
		link = &(*link)->unsent_next;
	*link = peer->unsent_next;
	peer->is_unsent = false;
}

static void watch_out(struct soft_ipc_peer *peer, bool on)
{
	if (peer->watches_out == on)
		return;
	peer->watches_out = on;
	soft_ipc_rewatch(peer->ipc, &peer->socket, on ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Remove the first count records of the ring. */
static void sent(struct soft_ipc_peer *peer, uint32_t count)
{
	peer->out_first = (peer->out_first + count) % peer->out_capacity;
	peer->out_count -= count;
	peer->ipc->queued -= count;
}

/* Send a batch of the ring: false if no more can be sent now. */
static bool send_batch(struct soft_ipc_peer *peer)
{
	struct mmsghdr headers[BATCH] = {0};
	struct iovec bytes[BATCH];
	uint32_t count = peer->out_count < BATCH ? peer->out_count : BATCH;
	int result;

	for (uint32_t index = 0; index < count; index++) {
		uint8_t *record = peer->out[(peer->out_first + index) % peer->out_capacity];

		bytes[index] = (struct iovec){record, SOFT_RECORD_MAX};
		headers[index].msg_hdr = (struct msghdr){.msg_iov = &bytes[index], .msg_iovlen = 1};
	}
	do
		result = sendmmsg(peer->socket.fd, headers, count, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (result < 0 && errno == EINTR);
	if (result > 0)
		sent(peer, (uint32_t)result);
	else if (errno != EAGAIN)
		drop_out(peer); /* the other process has ended, which reading reports */
	return result == (int)count;
}

void soft_peer_push(struct soft_ipc_peer *peer)
{
	soft_mutex_expect(peer->ipc->lock);
	while (peer->out_count && send_batch(peer))
		;
	watch_out(peer, peer->out_count);
	if (!peer->out_count && peer->out_capacity > BATCH) {
		free(peer->out);
		peer->out = NULL;
		peer->out_capacity = 0;
	}
}

void soft_ipc_flush(struct soft_ipc *ipc)
{
	struct soft_ipc_peer *peer;

	soft_mutex_expect(ipc->lock);
	while ((peer = ipc->unsent)) {
		ipc->unsent = peer->unsent_next;
		peer->is_unsent = false;
		if (!peer->watches_out) /* otherwise EPOLLOUT will report room */
			soft_peer_push(peer);
	}
}

static bool make_room(struct soft_ipc_peer *peer)
{
	uint32_t capacity = peer->out_capacity ? 2 * peer->out_capacity : BATCH;
	uint32_t limit = peer->user == peer->ipc->user ? QUEUED_PEER : QUEUED_UNTRUSTED;
	uint8_t (*out)[SOFT_RECORD_MAX];

	if (peer->out_count >= limit || peer->ipc->queued >= QUEUED_MAX)
		return false;
	if (peer->out_count < peer->out_capacity)
		return true;
	out = malloc(capacity * sizeof(*out));
	if (!out)
		return false;
	for (uint32_t index = 0; index < peer->out_count; index++)
		memcpy(out[index], peer->out[(peer->out_first + index) % peer->out_capacity], sizeof(*out));
	free(peer->out);
	peer->out = out;
	peer->out_first = 0;
	peer->out_capacity = capacity;
	return true;
}

void soft_ipc_send(struct soft_ipc_peer *peer, const struct soft_cm_message *message)
{
	struct soft_ipc *ipc = peer->ipc;

	soft_mutex_expect(ipc->lock);
	if (peer->socket.fd < 0)
		return;
	if (!make_room(peer)) {
		ipc->counts.dropped++;
		return;
	}
	soft_record_encode(message, ipc->instance, peer->out[(peer->out_first + peer->out_count) % peer->out_capacity]);
	peer->out_count++;
	ipc->queued++;
	if (!peer->is_unsent) {
		peer->is_unsent = true;
		peer->unsent_next = ipc->unsent;
		ipc->unsent = peer;
	}
}

