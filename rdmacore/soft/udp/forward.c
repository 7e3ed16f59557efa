/* Packets that this process received and that belong to another one (share.c). */
#include "soft/udp/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft/base/fabric.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"
#include "soft/wire/packet.h"

/* Connections to blocks of other processes; each costs a descriptor. */
#define FORWARD_OUTS 256
#define SEND_BUFFER (4 << 20) /* the kernel grants up to net.core.wmem_max */
/*
 * Attempts to connect in ABSENT_TIME, to all blocks together: packets to blocks that no process has cost no more than
 * that.
 */
#define ATTEMPTS 64
/*
 * The kernel needs 0.3 us of processor time for each socket of the machine to write its list of sockets. The list is
 * read again after LIST_INTERVAL times the time that it took, so reading takes at most a twentieth of a processor.
 */
#define LIST_INTERVAL 20
#define ATTEMPTS_TIME (10 * SOFT_MILLISECOND)
#define KEPT (256 << 10) /* bytes of packets that wait while the list is read */
#define ABSENT_TIME (50 * SOFT_MILLISECOND) /* a block that no process had is not tried again before */

static bool has_block(const struct soft_udp_share *share, uint32_t block)
{
	return atomic_load_explicit(&share->own[block / 64], memory_order_relaxed) >> block % 64 & 1;
}

/* The block that a packet is for; SOFT_UDP_BLOCKS if the packet does not say, and this process handles it. */
static uint32_t block_of(const uint8_t *bytes, size_t length)
{
	const size_t management = SOFT_WIRE_BTH + SOFT_WIRE_DETH;
	uint32_t number;

	if (length < SOFT_WIRE_BTH + SOFT_WIRE_ICRC)
		return SOFT_UDP_BLOCKS;
	number = soft_get24(bytes + 5);
	if (number == SOFT_GSI_QUEUE_PAIR) {
		if (length != management + SOFT_MAD + SOFT_WIRE_ICRC || !soft_mad_receiver(bytes + management, &number) || !number)
			return SOFT_UDP_BLOCKS;
	}
	return number >> SOFT_TABLE_BLOCK_BITS < SOFT_UDP_BLOCKS ? number >> SOFT_TABLE_BLOCK_BITS : SOFT_UDP_BLOCKS;
}

static void close_forward_out(struct soft_udp_share *share, uint32_t block)
{
	if (share->forward_out[block].fd < 0)
		return;
	close(share->forward_out[block].fd);
	share->forward_out[block].fd = -1;
	share->forward_out_count--;
}

static void close_forwards_out(struct soft_udp_share *share)
{
	for (uint32_t block = 0; block < SOFT_UDP_BLOCKS && share->forward_out_count; block++)
		close_forward_out(share, block);
}

/* Whether one more attempt is within the limits. */
static bool may_attempt(struct soft_udp_share *share, uint32_t block)
{
	uint64_t now = soft_fabric_wall_now(share->udp->fabric);

	if (now < share->forward_out[block].absent_until)
		return false;
	if (now >= share->attempts_until) {
		share->attempts_until = now + ATTEMPTS_TIME;
		share->attempts = ATTEMPTS;
	}
	share->forward_out[block].absent_until = now + ABSENT_TIME;
	return share->attempts && share->attempts--;
}

static bool is_being_read(const struct soft_udp_share *share)
{
	return share->list_until == UINT64_MAX;
}

void soft_udp_free_kept(struct soft_udp_kept *kept)
{
	for (struct soft_udp_kept *next; kept; kept = next) {
		next = kept->next;
		free(kept);
	}
}

/* Keep packets until the process of their block is known. Without memory they are lost, as on any network. */
static void keep(struct soft_udp_share *share, const struct soft_udp_rx_batch *rx, const uint8_t *bytes, size_t length)
{
	struct soft_udp_kept *kept = NULL;

	soft_lock_expect(&share->udp->receiving);
	if (share->kept_bytes + length <= KEPT)
		kept = malloc(sizeof(*kept) + length);
	if (!kept) {
		atomic_fetch_add_explicit(&share->udp->counters.not_passed, 1, memory_order_relaxed);
		return;
	}
	*kept = (struct soft_udp_kept){.rx = *rx, .length = length};
	memcpy(kept->bytes, bytes, length);
	*share->last_kept = kept;
	share->last_kept = &kept->next;
	share->kept_bytes += length;
}

struct soft_udp_kept *soft_udp_renew_list(struct soft_udp_share *share, struct soft_local_list *list, uint64_t took)
{
	struct soft_udp_kept *kept = share->kept;
	struct soft_local_list old = share->list;

	soft_lock_expect(&share->udp->receiving);
	share->list = *list;
	*list = old;
	share->list_until = soft_fabric_wall_now(share->udp->fabric) + LIST_INTERVAL * took + SOFT_MILLISECOND;
	share->kept = NULL;
	share->last_kept = &share->kept;
	share->kept_bytes = 0;
	return kept;
}

void soft_udp_pass_destroy(struct soft_udp_share *share)
{
	close_forwards_out(share);
	soft_local_list_free(&share->list);
	soft_udp_free_kept(share->kept);
}

/*
 * The block's name is taken by another user: find this user's process in the list. One that is not in this list may
 * be in the next one.
 */
static int connect_other(struct soft_udp_share *share, uint32_t block, const char *name, const struct soft_local_trust *trust)
{
	int fd = soft_local_connect_other(name, trust, &share->list, soft_fabric_wall_now(share->udp->fabric));

	if (fd < 0 && soft_fabric_wall_now(share->udp->fabric) >= share->list_until && !soft_timer_defer(&share->udp->fabric->timers, &share->listing))
		share->list_until = UINT64_MAX;
	if (fd < 0 && is_being_read(share))
		share->forward_out[block].absent_until = 0;
	return fd;
}

static bool open_forward_out(struct soft_udp_share *share, uint32_t block)
{
	const struct soft_local_trust same = {.user = share->user};
	char name[SOFT_LOCAL_NAME];
	uid_t untrusted_user;
	int fd, size = SEND_BUFFER;

	if (!may_attempt(share, block))
		return false;
	soft_udp_block_name(share, block, name);
	fd = soft_local_connect(name, &same, &untrusted_user);
	if (fd < 0)
		fd = connect_other(share, block, name, &same);
	if (fd < 0)
		return false;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (share->forward_out_count == FORWARD_OUTS)
		close_forwards_out(share); /* those in use are opened again */
	share->forward_out[block].fd = fd;
	share->forward_out[block].absent_until = 0;
	share->forward_out_count++;
	return true;
}

/* No thread of the program may be cancelled in connect(2) or close(2). */
static bool reopen_forward_out(struct soft_udp_share *share, uint32_t block)
{
	bool opened;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	close_forward_out(share, block);
	opened = open_forward_out(share, block);
	pthread_setcancelstate(state, &state);
	return opened;
}

/* False: no process has the block. */
static bool pass_on(struct soft_udp_share *share, uint32_t block, const struct soft_udp_rx_batch *rx, uint8_t *bytes,
		    size_t length)
{
	struct soft_udp_record header = {SOFT_UDP_MAGIC, (uint16_t)rx->segment, rx->first, rx->source.port, rx->hops,
					 rx->traffic_class,
				rx->source.address, rx->destination.address};
	struct iovec parts[2] = {{&header, sizeof(header)}, {bytes, length}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

	for (int attempt = 0; attempt < 2; attempt++) {
		if (share->forward_out[block].fd >= 0) {
			if (soft_udp_sendmsg(share->forward_out[block].fd, &message) >= 0) {
				atomic_fetch_add_explicit(&share->udp->counters.passed, 1, memory_order_relaxed);
				return true;
			}
			if (errno != EPIPE && errno != ECONNRESET && errno != ENOTCONN) {
				/* The process does not read fast enough, or there is no memory. */
				atomic_fetch_add_explicit(&share->udp->counters.not_passed, 1, memory_order_relaxed);
				return true;
			}
		}
		if (reopen_forward_out(share, block))
			continue;
		if (!is_being_read(share))
			return false;
		keep(share, rx, bytes, length);
		return true;
	}
	return false;
}

/*
 * A datagram is forwarded with its headers, so its receiver can write the GRH. From the first forwarded datagram on,
 * this process receives headers, which takes a longer system call for each packet.
 */
static void show_headers(struct soft_udp *udp, const struct soft_udp_rx_batch *rx, const uint8_t *bytes)
{
	struct soft_udp_socket *socket;

	if ((bytes[0] & SOFT_SERVICE) != SOFT_UNRELIABLE_DATAGRAM || soft_get24(bytes + 5) == SOFT_GSI_QUEUE_PAIR)
		return;
	socket = soft_udp_find(udp, &rx->destination.address, SOFT_WIRE_PORT);
	if (socket && !atomic_load_explicit(&socket->shows_headers, memory_order_relaxed))
		soft_udp_show_headers(socket);
}

/* The length of the first packets that are for one block. */
static size_t run_of(const struct soft_udp_rx_batch *rx, const uint8_t *bytes, size_t length, uint32_t *block)
{
	size_t end = 0;

	do {
		size_t left = length - end, packet = left < rx->segment ? left : rx->segment;
		uint32_t other = block_of(bytes + end, packet);

		if (!end)
			*block = other;
		else if (other != *block)
			break;
		end += packet;
	} while (end < length);
	return end;
}

size_t soft_udp_pass_on(struct soft_udp *udp, const struct soft_udp_rx_batch *rx, uint8_t *bytes, size_t length,
			bool *passed)
{
	struct soft_udp_share *share = udp->share;
	uint32_t block;
	size_t run = run_of(rx, bytes, length, &block);

	soft_lock_expect(&udp->receiving);
	*passed = block < SOFT_UDP_BLOCKS && !has_block(share, block) && pass_on(share, block, rx, bytes, run);
	if (*passed)
		show_headers(udp, rx, bytes);
	return run;
}
