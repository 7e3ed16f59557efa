/*
 * Processes of one user share SOFT_WIRE_PORT of the host's addresses, which is where other hosts send.
 *
 * Each process binds it (SO_REUSEPORT requires the same user), and the kernel gives a packet to any of them. A
 * process that gets a packet of another one forwards it. Queue pair numbers and communication ids belong to blocks,
 * and the process of a block listens on @rdmarun//USER/block/NUMBER (unix(7), abstract). No process owns the port:
 * a process that ends leaves the port first, and forwards what its sockets have queued. What a killed process has
 * queued is lost, and the kernel gives later packets to the others. A stopped process keeps its sockets, and the
 * kernel skips it until it continues (watch.c).
 *
 * Both ends of a connection check the user of the other process (SO_PEERCRED), so processes of other users neither
 * send nor get packets here. A packet that cannot be forwarded at once is lost, as on any network. A stopped
 * process fills only the connections to it.
 */
#include "soft/udp/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/fabric.h"
#include "soft/wire/address.h"

#define FORWARD_INS 256 /* connections of other processes to blocks of this one */
#define BATCH 16 /* records received, or connections accepted, in one callback */
#define LEAVE_ATTEMPTS 1000 /* to take a lock at the end of the process: 50 ms and more */

/* A listener of a block of this process, or a connection of a process that forwards to this one. */
struct soft_udp_end {
	struct soft_udp_end *next, **link; /* soft_udp_share.ends */
	int fd;
	bool is_block;
};

/* Packets from this host, or not for its addresses, are never forwarded. */
static bool read_header(struct soft_udp *udp, const struct soft_udp_record *header, struct soft_udp_rx_batch *rx)
{
	*rx = (struct soft_udp_rx_batch){
		.source = {header->source, header->port},
		.destination = {header->destination, SOFT_WIRE_PORT},
		.segment = header->segment,
		.first = header->first,
		.hops = header->hops,
		.traffic_class = header->traffic_class,
	};
	return header->magic == SOFT_UDP_MAGIC && rx->segment && !soft_device_owns(udp->device, &rx->source.address) &&
	       soft_device_owns(udp->device, &rx->destination.address) &&
	       !soft_gid_is_this_host_only(&rx->destination.address);
}

/* Receive one record; false when the connection has ended, or is empty. */
static bool take_record(struct soft_udp *udp, int fd, bool *ended)
{
	struct soft_udp_record header;
	struct iovec parts[2] = {{&header, sizeof(header)}, {udp->arrived, SOFT_UDP_ARRIVED}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	ssize_t length = soft_udp_recvmsg(fd, &message);
	struct soft_udp_rx_batch rx;

	*ended = length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR);
	if (length <= 0)
		return false;
	if ((size_t)length <= sizeof(header) || message.msg_flags & MSG_TRUNC || !read_header(udp, &header, &rx)) {
		soft_udp_drop(udp, SOFT_NOTICE_MALFORMED, &soft_udp_loopback); /* another process of this host */
		*ended = true; /* the sender is not a process of this user */
		return false;
	}
	soft_udp_take(udp, &rx, udp->arrived, (size_t)length - sizeof(header));
	return true;
}

/* Add fd to the epoll instance. On failure closes fd. 0 or a positive errno. */
static int add_end(struct soft_udp_share *share, int fd, bool is_block)
{
	struct soft_udp_end *end = calloc(1, sizeof(*end));
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = end};
	int error = ENOMEM;

	if (!end)
		goto close_socket;
	*end = (struct soft_udp_end){.fd = fd, .is_block = is_block};
	soft_mutex_lock(&share->udp->lock);
	error = epoll_ctl(share->source.fd, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
	if (!error) {
		end->next = share->ends;
		end->link = &share->ends;
		if (end->next)
			end->next->link = &end->next;
		share->ends = end;
		share->forward_in_count += !is_block;
	}
	soft_mutex_unlock(&share->udp->lock);
	if (!error)
		return 0;
	free(end);
close_socket:
	close(fd);
	return error;
}

static void remove_end(struct soft_udp_share *share, struct soft_udp_end *end)
{
	soft_mutex_lock(&share->udp->lock);
	*end->link = end->next;
	if (end->next)
		end->next->link = end->link;
	share->forward_in_count -= !end->is_block;
	soft_mutex_unlock(&share->udp->lock);
	epoll_ctl(share->source.fd, EPOLL_CTL_DEL, end->fd, NULL); /* a forked child may have a copy */
	shutdown(end->fd, SHUT_RDWR);
	close(end->fd);
	free(end);
}

/* Accept one connection; false: there is none. */
static bool accept_forward(struct soft_udp_share *share, const struct soft_udp_end *block)
{
	int fd = accept4(block->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return false;
	if (soft_local_user(fd) == share->user && share->forward_in_count < FORWARD_INS)
		(void)add_end(share, fd, false);
	else
		close(fd);
	return true;
}

/* Receive a batch of records; false when the connection has ended. */
static bool take_records(struct soft_udp *udp, const struct soft_udp_end *forward_in)
{
	bool ended = false;

	soft_lock_take(&udp->receiving);
	for (int records = 0; records < BATCH && take_record(udp, forward_in->fd, &ended); records++)
		;
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
	return !ended;
}

/* One end in each callback, so that other sources get the thread, too. epoll(7) reports the ends in turn. */
static void ready(struct soft_source *source, uint32_t events)
{
	struct soft_udp_share *share = soft_container_of(source, struct soft_udp_share, source);
	struct epoll_event event;
	struct soft_udp_end *end;

	(void)events;
	if (epoll_wait(source->fd, &event, 1, 0) != 1)
		return;
	end = event.data.ptr;
	if (end->is_block)
		for (int count = 0; count < BATCH && accept_forward(share, end); count++)
			;
	else if (!take_records(share->udp, end))
		remove_end(share, end);
}

int soft_udp_share_block(struct soft_udp *udp, uint32_t block)
{
	struct soft_udp_share *share = udp->share;
	char name[SOFT_LOCAL_NAME];
	bool is_taken;
	uid_t holder;
	int fd, error;

	if (!share)
		return 0;
	soft_udp_block_name(share, block, name);
	fd = soft_local_bind_own(name, soft_fabric_wall_now(udp->fabric), &is_taken, &holder);
	if (fd < 0)
		return -fd;
	if (is_taken)
		soft_notice_port_owner(&udp->fabric->notices, name, holder);
	if (listen(fd, FORWARD_INS)) {
		error = errno;
		close(fd);
		return error;
	}
	error = add_end(share, fd, true);
	if (!error && !atomic_load(&share->identity))
		atomic_store(&share->identity, block + 1);
	if (!error)
		atomic_fetch_or_explicit(&share->own[block / 64], UINT64_C(1) << block % 64, memory_order_relaxed);
	return error;
}

/*
 * The list is read on the timers' thread. Any host can cause that by packets to unknown blocks, and a thread that
 * holds udp.receiving would not receive meanwhile. Packets that came meanwhile are delivered again.
 */
static void read_list(struct soft_timer *timer)
{
	struct soft_udp_share *share = soft_container_of(timer, struct soft_udp_share, listing);
	uint64_t begun = soft_clock_of_thread();
	struct soft_local_list list;
	struct soft_udp_kept *kept;

	soft_local_list_read(&list, &share->udp->fabric->without_users);
	soft_lock_take(&share->udp->receiving);
	kept = soft_udp_renew_list(share, &list, soft_clock_of_thread() - begun);
	for (struct soft_udp_kept *each = kept; each; each = each->next)
		soft_udp_take_shared(share->udp, &each->rx, each->bytes, each->length);
	soft_udp_acknowledge(share->udp);
	soft_lock_release(&share->udp->receiving);
	soft_udp_free_kept(kept);
	soft_local_list_free(&list);
}

int soft_udp_share_create(struct soft_udp *udp)
{
	struct soft_udp_share *share = calloc(1, sizeof(*share));
	int result = -ENOMEM, epoll;

	if (!share)
		return result;
	share->udp = udp;
	share->user = geteuid();
	for (uint32_t block = 0; block < SOFT_UDP_BLOCKS; block++)
		share->forward_out[block].fd = -1;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0) {
		result = -errno;
		goto free_share;
	}
	result = soft_poller_add(&udp->fabric->poller, &share->source, epoll, EPOLLIN, ready);
	if (result)
		goto close_epoll;
	result = soft_udp_watch_init(share);
	if (result)
		goto remove_source;
	result = soft_timer_register(&udp->fabric->timers, &share->listing, read_list);
	if (result)
		goto stop_watch;
	share->last_kept = &share->kept;
	udp->share = share;
	return 0;

stop_watch:
	soft_udp_watch_stop(share);
remove_source:
	soft_poller_remove(&udp->fabric->poller, &share->source);
close_epoll:
	close(epoll);
free_share:
	free(share);
	return result;
}

/*
 * False: the lock stays taken. The program may call exit(3) in a signal handler that interrupted a poll, and then the
 * lock is this thread's own.
 */
static bool take_receiving(struct soft_udp *udp)
{
	bool taken = false;

	for (unsigned int attempt = 0; attempt < LEAVE_ATTEMPTS && !taken; attempt++) {
		taken = soft_lock_try(&udp->receiving);
		if (!taken)
			soft_lock_backoff(attempt);
	}
	return taken;
}

/* A socket that cannot leave is not emptied: it may never be empty. */
void soft_udp_share_leave(struct soft_udp *udp)
{
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);

	if (!udp->share || udp->share->left)
		return;
	udp->share->left = true;
	soft_udp_watch_stop(udp->share);
	for (uint32_t index = 0; index < count; index++) {
		struct soft_udp_socket *socket = atomic_load_explicit(&udp->sockets[index], memory_order_relaxed);

		if (!socket->is_shared || !soft_udp_leave_port(socket))
			continue;
		if (!take_receiving(udp))
			continue;
		while (soft_udp_receive(udp, socket))
			;
		soft_udp_acknowledge(udp);
		soft_lock_release(&udp->receiving);
	}
}

void soft_udp_share_stop(struct soft_udp *udp)
{
	if (!udp->share)
		return;
	soft_timer_unregister(&udp->fabric->timers, &udp->share->listing);
	soft_poller_remove(&udp->fabric->poller, &udp->share->source);
}

void soft_udp_share_destroy(struct soft_udp *udp)
{
	struct soft_udp_share *share = udp->share;

	if (!share)
		return;
	while (share->ends)
		remove_end(share, share->ends);
	soft_udp_pass_destroy(share);
	close(share->source.fd);
	free(share);
	udp->share = NULL;
}
