/*
 * Processes of one user share SOFT_WIRE_PORT of the host's addresses, where other hosts send everything.
 *
 * Each of them binds it (SO_REUSEPORT, for which they must be of one user), and the kernel gives a packet to any of them.
 * Who gets what is another's passes it on: a queue pair's number and a communication id are of a block, and who has the
 * block listens on @rdmarun//USER/block/NUMBER (unix(7), abstract).  Nobody owns the port, so nobody's death is more than his
 * own: his sockets are closed, and the kernel gives his share of the packets to the others.  Who is stopped keeps his sockets,
 * and is passed by until he goes on (watch.c).
 *
 * Both ends of a connection ask the kernel whose process is at the other (SO_PEERCRED), so no other user's process gives or
 * gets packets.  What cannot be passed on at once is lost, as on any network; a process that is stopped fills nothing but the
 * connections to it.
 */
#include "soft/udp/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/fabric.h"
#include "soft/wire/address.h"

#define FORWARD_INS 256 /* connections of others to blocks of ours */
#define BATCH 16 /* records taken, or connections accepted, in one go */

/* A block of ours, which others connect to, or another process that passes packets on to us. */
struct soft_udp_end {
	struct soft_udp_end *next, **link; /* soft_udp_share.ends */
	int fd;
	bool is_block;
};

/* Nobody passes on what this host has sent, nor what is not for its addresses. */
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

/* One record; false when the connection has ended, or has none now. */
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
		*ended = true; /* it is none of ours, whoever it is */
		return false;
	}
	soft_udp_take(udp, &rx, udp->arrived, (size_t)length - sizeof(header));
	return true;
}

/* From now on the set tells of it; takes fd, which it closes when that fails: 0 or a positive errno. */
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

/* One of those who connect; false: there is none. */
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

/* A batch of what it passes on; false when the connection has ended. */
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

/* One end, so that other sources get the thread; the set tells of each in turn. */
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
	bool squatted;
	uid_t holder;
	int fd, error;

	if (!share)
		return 0;
	soft_udp_block_name(share, block, name);
	fd = soft_local_bind_own(name, soft_fabric_wall_now(udp->fabric), &squatted, &holder);
	if (fd < 0)
		return -fd;
	if (squatted)
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
 * The list is read on the timers' thread: any host can send packets to nobody, and under udp.receiving nothing is received.  What came
 * meanwhile comes again.
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

void soft_udp_share_end_watch(struct soft_udp *udp)
{
	if (udp->share)
		soft_udp_watch_stop(udp->share);
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
