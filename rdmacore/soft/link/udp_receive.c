/*
 * Who takes packets from the kernel.
 *
 * The thread of the fabric's poller does, unless a thread of the program polls a completion queue again and again: then
 * that one does it itself, because a wake-up of another thread takes longer than all the rest.  While it polls, the
 * poller's thread rests: it does not wait for the sockets, and a timer looks from time to time whether anybody still
 * polls.  A program that arms a completion queue is about to sleep, and the poller's thread takes over at once.
 */
#include "soft/link/udp_socket.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/fabric.h"
#include "soft/objects/qp.h"
#include "soft/wire/fields.h"

#ifndef UDP_GRO
#define UDP_GRO 104 /* linux/udp.h */
#endif

/* Polls in vain, one after another, that make a thread one that polls again and again. */
#define SPINNING 32
/* Calls in which the poller's thread takes from one socket, before others have their turn. */
#define CALLS 16
/* How often who polls looks at another socket than the one where packets came from last. */
#define OTHER_SOCKETS 4
#define REST_MIN (200 * SOFT_MICROSECOND)
#define REST_MAX (1000 * SOFT_MICROSECOND)
/* Looks of the timer, and the time between two, before nobody polls any more. */
#define QUIET 8
#define REST_QUIET (500 * SOFT_MICROSECOND)
/* Polls in vain after which an acknowledgement waits no longer for an answer to go with: ten or twenty microseconds. */
#define VAIN 64
/* Receives between two looks in vain from which on packets had better come together. */
#define STREAK 8
/* Packets that come alone before they are to, and then looks in vain before all do. */
#define ALONE 200
/* Identifications of a host that counts them follow each other so closely. */
#define NEAR 4096

/* What control messages say. */
static void read_options(struct msghdr *message, struct soft_udp_came *came)
{
	for (struct cmsghdr *option = CMSG_FIRSTHDR(message); option; option = CMSG_NXTHDR(message, option)) {
		int value = 0;
		size_t length = option->cmsg_len - CMSG_LEN(0);

		memcpy(&value, CMSG_DATA(option), length < sizeof(value) ? length : sizeof(value));
		if (option->cmsg_level == IPPROTO_UDP && option->cmsg_type == UDP_GRO)
			came->segment = (size_t)value;
		else if ((option->cmsg_level == IPPROTO_IP && option->cmsg_type == IP_TTL) ||
			 (option->cmsg_level == IPPROTO_IPV6 && option->cmsg_type == IPV6_HOPLIMIT))
			came->hops = (uint8_t)value;
		else if ((option->cmsg_level == IPPROTO_IP && option->cmsg_type == IP_TOS) ||
			 (option->cmsg_level == IPPROTO_IPV6 && option->cmsg_type == IPV6_TCLASS))
			came->traffic_class = (uint8_t)value;
	}
}

static void read_source(const union soft_udp_address *address, struct soft_endpoint *source)
{
	(void)soft_gid_from_sockaddr(&source->address, &address->any);
	source->port = ntohs(address->any.sa_family == AF_INET ? address->ipv4.sin_port : address->ipv6.sin6_port);
}

/*
 * Whether that sender may have sent that identification, which was found from the ICRC alone: a damaged packet has any.
 * Sockets such as ours have those of segments; rdma_rxe counts.
 */
static bool is_plausible(struct soft_udp *udp, const struct soft_endpoint *source, uint16_t identification)
{
	struct soft_udp_peer *peer;
	uint32_t hash = 0;
	bool near;

	if (identification < SOFT_UDP_SEGMENTS)
		return true;
	for (size_t byte = 0; byte < sizeof(source->address.raw); byte++)
		hash = hash * 31 + source->address.raw[byte];
	peer = &udp->peers[hash % SOFT_UDP_PEERS];
	/* One that jumps is lost, and what follows it is not. */
	near = !peer->known || memcmp(&peer->address, &source->address, sizeof(peer->address)) != 0 ||
	       (uint16_t)(identification - peer->identification + NEAR) < 2 * NEAR;
	*peer = (struct soft_udp_peer){true, identification, source->address};
	return near;
}

/* The IP header as it was, but for what nobody can know. */
static void make_header(const struct soft_udp_came *came, uint16_t identification, size_t length, uint8_t header[SOFT_GRH])
{
	struct ibv_global_route route = {.dgid = came->destination.address, .hop_limit = came->hops,
					 .traffic_class = came->traffic_class};

	soft_ip_make(header, &route, &came->source.address);
	if (soft_ip_offset(header))
		soft_put16(header + soft_ip_offset(header) + 4, identification);
	soft_ip_finish(header, (uint32_t)(SOFT_UDP_HEADER + length));
}

struct batch {
	struct soft_udp *udp;
	const struct soft_udp_came *came;
	const struct soft_icrc_headers *headers;
	struct soft_arrival arrival;
};

/*
 * Into the file of what is captured, with the addresses that the receiver's connection has: of all of 127.0.0.0/8 the socket
 * has one.
 */
static void record(struct soft_udp *udp, const struct soft_udp_came *came, const uint8_t *bytes, size_t length,
		   const struct soft_capture_fate *fate)
{
	struct soft_endpoint from = came->source, to = came->destination;
	struct ibv_global_route route = {.hop_limit = came->hops, .traffic_class = came->traffic_class};
	struct soft_qp *qp = soft_table_find(&udp->device->queue_pairs, soft_get24(bytes + 5), soft_qp_hold);

	if (qp && qp->service != SOFT_UNRELIABLE_DATAGRAM) {
		soft_lock_take(&qp->requester.lock);
		if (soft_gid_is_loopback(&to.address))
			to.address = *soft_link_source(qp, NULL);
		if (soft_gid_is_loopback(&from.address))
			from.address = *soft_link_destination(qp, NULL);
		soft_lock_release(&qp->requester.lock);
	}
	if (qp)
		soft_qp_release(qp);
	soft_udp_record(udp, &from, &to, &route, bytes, length, true, fate);
}

/* Its time has come: see soft_udp_hold_back. */
static void deliver_later(struct soft_udp *udp, struct soft_arrival *arrival, uint8_t *bytes, size_t length)
{
	soft_lock_take(&udp->receiving);
	if (!soft_link_deliver(udp->device, arrival, bytes, length))
		atomic_fetch_add_explicit(&udp->counters.dropped, 1, memory_order_relaxed);
	soft_link_deliver_end(arrival);
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

/* A packet from elsewhere is recorded, and meets faults: whether it arrives later, or not at all. */
static bool is_held_up(const struct batch *batch, const uint8_t *bytes, size_t length)
{
	const struct soft_udp_came *came = batch->came;
	struct soft_udp *udp = batch->udp;
	bool faults = soft_faults_active(&udp->fabric->faults);
	struct soft_capture_fate fate = {0};

	if (faults)
		fate.verdict = soft_udp_judge(udp, &batch->arrival, bytes, length);
	if (udp->fabric->capture)
		record(udp, came, bytes, length, &fate);
	return faults && soft_udp_hold_back(udp, &fate.verdict, &batch->arrival, bytes, length, deliver_later);
}

/* One packet of it.  guess: its identification. */
static bool take_in(struct batch *batch, uint16_t guess, uint8_t *bytes, size_t length)
{
	const struct soft_udp_came *came = batch->came;
	struct soft_udp *udp = batch->udp;
	uint16_t identification;

	if (length < SOFT_WIRE_BTH + SOFT_WIRE_ICRC)
		return false;
	if (!soft_icrc_identify(batch->headers, guess, bytes, length - SOFT_WIRE_ICRC, &identification) ||
	    (identification != guess && !is_plausible(udp, &came->source, identification))) {
		soft_count(udp->device, SOFT_COUNT_ICRC);
		return false;
	}
	if ((bytes[0] & SOFT_SERVICE) == SOFT_UNRELIABLE_DATAGRAM)
		make_header(came, identification, length, batch->arrival.header);
	if ((udp->fabric->capture || soft_faults_active(&udp->fabric->faults)) &&
	    !soft_udp_find(udp, &came->source.address, came->source.port) && is_held_up(batch, bytes, length))
		return true;
	return soft_link_deliver(udp->device, &batch->arrival, bytes, length);
}

static bool is_resting(struct soft_udp *udp)
{
	return atomic_load(&udp->resting);
}

static bool is_same(const struct soft_endpoint *a, const struct soft_endpoint *b)
{
	return a->port == b->port && !memcmp(&a->address, &b->address, sizeof(a->address));
}

static const struct soft_icrc_headers *headers_of(struct soft_udp *udp, const struct soft_udp_came *came)
{
	struct soft_udp_pair *pair = &udp->pair;

	if (!is_same(&pair->source, &came->source) || !is_same(&pair->destination, &came->destination)) {
		pair->source = came->source;
		pair->destination = came->destination;
		soft_icrc_headers_make(&pair->headers, &pair->source, &pair->destination);
	}
	return &pair->headers;
}

/* Who destroys a queue pair leaves it in RESET, and its number may be another's. */
static void begin_arrival(struct batch *batch)
{
	struct soft_udp *udp = batch->udp;

	batch->arrival.source = batch->came->source.address;
	batch->arrival.destination = batch->came->destination.address;
	batch->arrival.receiver = udp->receiver;
	udp->receiver = NULL;
	if (batch->arrival.receiver && soft_qp_state(batch->arrival.receiver) == IBV_QPS_RESET)
		soft_link_deliver_end(&batch->arrival);
}

/* Under udp->receiving. */
static void add(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

void soft_udp_take(struct soft_udp *udp, const struct soft_udp_came *came, uint8_t *bytes, size_t length)
{
	struct batch batch;
	uint64_t dropped = 0;
	uint16_t index = came->first;

	soft_lock_expect(&udp->receiving);
	batch.udp = udp;
	batch.came = came;
	batch.headers = headers_of(udp, came);
	begin_arrival(&batch);
	for (size_t offset = 0; offset < length; offset += came->segment, index++) {
		size_t left = length - offset;

		dropped += !take_in(&batch, index, bytes + offset, left < came->segment ? left : came->segment);
	}
	if (is_resting(udp))
		udp->receiver = batch.arrival.receiver;
	else
		soft_link_deliver_end(&batch.arrival);
	add(&udp->counters.received, (uint16_t)(index - came->first));
	if (dropped)
		atomic_fetch_add_explicit(&udp->counters.dropped, dropped, memory_order_relaxed);
}

void soft_udp_take_shared(struct soft_udp *udp, struct soft_udp_came *came, uint8_t *bytes, size_t length)
{
	while (length) {
		bool passed;
		size_t run = soft_udp_pass_on(udp, came, bytes, length, &passed);

		if (!passed)
			soft_udp_take(udp, came, bytes, run);
		came->first = (uint16_t)(came->first + (run + came->segment - 1) / came->segment);
		bytes += run;
		length -= run;
	}
}

/*
 * What the kernel has put together it tells in a control message, and a call that can bring one takes a tenth of the time
 * that a short message needs in all.  So where packets come one by one for long it is to put none together, and the call
 * is a shorter one; until so many come without a look in vain between them that they had better come together.
 *
 * What was put together before it knew may still be on its way for a moment.
 */
static void note_arrival(struct soft_udp_socket *socket, size_t packets)
{
	if (++socket->streak >= STREAK || packets > 2) {
		socket->alone = 0;
		if (socket->joining != SOFT_UDP_JOINS && soft_udp_join_packets(socket, true))
			socket->joining = SOFT_UDP_JOINS;
	} else if (socket->joining == SOFT_UDP_JOINS && ++socket->alone >= ALONE) {
		socket->alone = 0;
		if (soft_udp_join_packets(socket, false))
			socket->joining = SOFT_UDP_STOPS_JOINING;
	}
}

static void note_nothing(struct soft_udp_socket *socket)
{
	socket->streak = 0;
	if (socket->joining == SOFT_UDP_STOPS_JOINING && ++socket->alone >= ALONE) {
		socket->alone = 0;
		socket->joining = SOFT_UDP_ALONE;
	}
}

/* What one system call gives and how long it is; negative when there is nothing. */
static ssize_t take(struct soft_udp *udp, struct soft_udp_socket *socket, struct soft_udp_came *came)
{
	union {
		char bytes[3 * CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control;
	union soft_udp_address from;
	struct iovec vector = {udp->arrived, SOFT_UDP_ARRIVED};
	struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &vector, .msg_iovlen = 1,
				 .msg_control = &control, .msg_controllen = sizeof(control)};
	socklen_t size = sizeof(from);
	bool alone = socket->joining == SOFT_UDP_ALONE &&
		     !atomic_load_explicit(&socket->shows_headers, memory_order_relaxed);
	ssize_t length = alone ? soft_udp_recvfrom(socket->source.fd, udp->arrived, SOFT_UDP_ARRIVED, &from.any, &size) :
				 soft_udp_recvmsg(socket->source.fd, &message);

	if (length < 0)
		return length;
	came->destination = socket->endpoint;
	came->segment = (size_t)length;
	came->first = 0;
	came->hops = SOFT_HOP_LIMIT;
	came->traffic_class = 0;
	if (!alone)
		read_options(&message, came);
	read_source(&from, &came->source);
	return length;
}

/* Take what one system call gives; false when there is nothing. */
static bool receive(struct soft_udp *udp, struct soft_udp_socket *socket)
{
	struct soft_udp_came came;
	ssize_t length = take(udp, socket, &came);

	soft_lock_expect(&udp->receiving);
	if (length < 0) {
		note_nothing(socket);
		return false;
	}
	add(&udp->counters.calls_to_receive, 1);
	note_arrival(socket, came.segment ? ((size_t)length + came.segment - 1) / came.segment : 0);
	if (!came.segment) /* an empty datagram */
		atomic_fetch_add_explicit(&udp->counters.dropped, 1, memory_order_relaxed);
	else if (socket->is_shared)
		soft_udp_take_shared(udp, &came, udp->arrived, (size_t)length);
	else
		soft_udp_take(udp, &came, udp->arrived, (size_t)length);
	return true;
}

bool soft_udp_owe(struct soft_link *link, struct soft_qp *qp)
{
	struct soft_udp *udp = soft_udp_of(link);

	soft_lock_expect(&udp->receiving);
	if (udp->owing_count == SOFT_UDP_OWING)
		return false;
	soft_qp_hold(qp);
	udp->owing[udp->owing_count++] = qp;
	return true;
}

static void release_receiver(struct soft_udp *udp)
{
	if (udp->receiver)
		soft_qp_release(udp->receiver);
	udp->receiver = NULL;
}

void soft_udp_acknowledge(struct soft_udp *udp)
{
	soft_lock_expect(&udp->receiving);
	release_receiver(udp);
	for (uint32_t index = 0; index < udp->owing_count; index++) {
		soft_link_acknowledge(udp->owing[index]);
		soft_qp_release(udp->owing[index]);
	}
	udp->owing_count = udp->asked = 0;
}

/* Send what is owed and does not wait for an answer; or, when nothing has come for a while, what does. */
static void acknowledge_answered(struct soft_udp *udp, bool in_vain)
{
	uint32_t kept = in_vain ? 0 : udp->asked;

	soft_lock_expect(&udp->receiving);
	for (uint32_t index = kept; index < udp->owing_count; index++) {
		struct soft_qp *qp = udp->owing[index];

		if (soft_link_acknowledge_answered(qp, in_vain))
			soft_qp_release(qp);
		else
			udp->owing[kept++] = qp;
	}
	udp->owing_count = udp->asked = kept;
}

static struct soft_udp_socket *socket_at(struct soft_udp *udp, uint32_t index)
{
	return atomic_load_explicit(&udp->sockets[index], memory_order_relaxed);
}

/* False when nothing was there. */
static bool look(struct soft_udp *udp)
{
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);

	soft_lock_expect(&udp->receiving);
	if (!count)
		return false;
	if (receive(udp, socket_at(udp, udp->hot)))
		return true;
	if (count == 1 || ++udp->turn % OTHER_SOCKETS)
		return false;
	udp->next = (udp->next + 1) % count;
	if (udp->next == udp->hot || !receive(udp, socket_at(udp, udp->next)))
		return false;
	udp->hot = udp->next;
	return true;
}

/* Take what is there, without waiting for another thread that does. */
static void look_everywhere(struct soft_udp *udp)
{
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);

	if (!soft_lock_try(&udp->receiving))
		return;
	for (uint32_t index = 0; index < count; index++)
		for (int calls = 0; calls < CALLS && receive(udp, socket_at(udp, index)); calls++)
			;
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

static void add_one(_Atomic uint32_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* What is owed is sent, unless another thread is about to. */
static void acknowledge_now(struct soft_udp *udp)
{
	if (!soft_lock_try(&udp->receiving))
		return;
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

/*
 * A completion queue is empty.  What is acknowledged first is what came with an earlier poll: meanwhile the program may
 * have answered it, and the acknowledgement has gone with the answer, or will go with a later one (soft/engine/patience.c).
 * It may wait only while the timer looks whether there is another poll, since a peer without its acknowledgement waits for
 * a timeout.
 */
static void poll_now(struct soft_progress *progress)
{
	struct soft_udp *udp = soft_container_of(progress, struct soft_udp, progress);

	if (atomic_load_explicit(&udp->device->builders, memory_order_relaxed))
		return;
	/* Who waits for the lock polls, too. */
	add_one(&udp->spins);
	add_one(&udp->polls);
	if (!soft_lock_try(&udp->receiving))
		return;
	acknowledge_answered(udp, false);
	udp->vain = look(udp) ? 0 : udp->vain + 1;
	if (!is_resting(udp))
		soft_udp_acknowledge(udp);
	else if (udp->vain == VAIN)
		acknowledge_answered(udp, true);
	soft_lock_release(&udp->receiving);
}

/* False when the kernel cannot wait for that: then the timer goes on looking. */
static bool wait_for(struct soft_udp *udp, uint32_t events)
{
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_relaxed);
	bool done = true;

	soft_mutex_expect(&udp->lock);
	atomic_store(&udp->resting, !events);
	for (uint32_t index = 0; index < count; index++)
		done &= !soft_poller_change(&udp->fabric->poller, &socket_at(udp, index)->source, events);
	if (!done)
		atomic_store(&udp->resting, true);
	return done;
}

/* Leave the sockets to those who poll. */
static void rest(struct soft_udp *udp)
{
	soft_mutex_lock(&udp->lock);
	if (!is_resting(udp)) {
		(void)wait_for(udp, 0);
		udp->polls_seen = atomic_load(&udp->polls);
		udp->quiet = 0;
		udp->rest = REST_MIN;
		/* Either go_on sees that it rests, or this sees that somebody wants to sleep. */
		if (atomic_load(&udp->spins) < SPINNING ||
		    soft_timer_arm(&udp->fabric->timers, &udp->watch, udp->rest))
			(void)wait_for(udp, EPOLLIN);
	}
	soft_mutex_unlock(&udp->lock);
}

static void go_on(struct soft_progress *progress)
{
	struct soft_udp *udp = soft_container_of(progress, struct soft_udp, progress);

	if (atomic_load_explicit(&udp->spins, memory_order_relaxed))
		atomic_store(&udp->spins, 0);
	if (!is_resting(udp))
		return;
	acknowledge_now(udp);
	soft_mutex_lock(&udp->lock);
	if (is_resting(udp))
		(void)wait_for(udp, EPOLLIN);
	soft_mutex_unlock(&udp->lock);
}

/*
 * What came with a poll is acknowledged now, if it is put off at all: only while nobody waits for the sockets.  Between wr_start
 * and wr_complete the program holds a lock that comes after those taken here, and then the timer does it.
 */
static void settle(struct soft_progress *progress)
{
	struct soft_udp *udp = soft_container_of(progress, struct soft_udp, progress);

	if (!is_resting(udp) || atomic_load_explicit(&udp->device->builders, memory_order_relaxed))
		return;
	soft_lock_take(&udp->receiving);
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

/*
 * Who polls may have lost the processor for some milliseconds, and the poller's thread would wake up for each packet until
 * it rests again.  So the timer takes what has come, some times, before that thread waits for the sockets.
 */
static void look_at_polls(struct soft_timer *timer)
{
	struct soft_udp *udp = soft_container_of(timer, struct soft_udp, watch);
	uint32_t polls = atomic_load(&udp->polls);
	bool polled = polls != udp->polls_seen;

	if (polled)
		acknowledge_now(udp);
	else
		look_everywhere(udp);
	soft_mutex_lock(&udp->lock);
	if (is_resting(udp)) {
		udp->polls_seen = polls;
		udp->quiet = polled ? 0 : udp->quiet + 1;
		udp->rest = !polled ? REST_QUIET : udp->rest < REST_MAX ? 2 * udp->rest : REST_MAX;
		if (udp->quiet >= QUIET) {
			atomic_store(&udp->spins, 0);
			if (wait_for(udp, EPOLLIN))
				goto unlock;
		}
		if (soft_timer_arm(&udp->fabric->timers, &udp->watch, udp->rest))
			(void)wait_for(udp, EPOLLIN);
	}
unlock:
	soft_mutex_unlock(&udp->lock);
}

void soft_udp_ready(struct soft_source *source, uint32_t events)
{
	struct soft_udp_socket *socket = soft_container_of(source, struct soft_udp_socket, source);
	struct soft_udp *udp = socket->udp;

	(void)events;
	if (atomic_load(&udp->spins) >= SPINNING) {
		rest(udp);
		return;
	}
	soft_lock_take(&udp->receiving);
	for (int calls = 0; calls < CALLS && receive(udp, socket); calls++)
		;
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

int soft_udp_receive_init(struct soft_udp *udp)
{
	int result;

	udp->arrived = malloc(SOFT_UDP_ARRIVED);
	if (!udp->arrived)
		return -ENOMEM;
	result = soft_timer_register(&udp->fabric->timers, &udp->watch, look_at_polls);
	if (result) {
		free(udp->arrived);
		return result;
	}
	soft_lock_init(&udp->receiving, SOFT_ORDER_RECEIVING);
	udp->progress = (struct soft_progress){.poll = poll_now, .sleep = go_on, .settle = settle};
	return 0;
}

void soft_udp_receive_stop(struct soft_udp *udp)
{
	soft_timer_unregister(&udp->fabric->timers, &udp->watch);
	for (uint32_t index = 0; index < udp->owing_count; index++)
		soft_qp_release(udp->owing[index]);
	udp->owing_count = udp->asked = 0;
	release_receiver(udp);
	free(udp->arrived);
}
