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
#include <stdlib.h>

#include "soft/base/fabric.h"
#include "soft/objects/qp.h"

/* Polls in vain, one after another, that make a thread one that polls again and again. */
#define SPINNING 32
/* Calls in which the poller's thread takes from one socket, before others have their turn. */
#define CALLS 16
/* Calls that empty a socket, of 64 KiB at most each, unless a peer sends without an end. */
#define CALLS_TO_EMPTY 512
/* How often who polls looks at another socket than the one where packets came from last. */
#define OTHER_SOCKETS 4
#define REST_MIN (200 * SOFT_MICROSECOND)
#define REST_MAX (1000 * SOFT_MICROSECOND)
/* Looks of the timer, and the time between two, before nobody polls any more. */
#define QUIET 8
#define REST_QUIET (500 * SOFT_MICROSECOND)
/* Polls in vain after which an acknowledgement waits no longer for an answer to go with: ten or twenty microseconds. */
#define VAIN 64

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
	if (soft_udp_receive(udp, socket_at(udp, udp->hot)))
		return true;
	if (count == 1 || ++udp->turn % OTHER_SOCKETS)
		return false;
	udp->next = (udp->next + 1) % count;
	if (udp->next == udp->hot || !soft_udp_receive(udp, socket_at(udp, udp->next)))
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
		for (int calls = 0; calls < CALLS && soft_udp_receive(udp, socket_at(udp, index)); calls++)
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
	if (!soft_udp_is_resting(udp))
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
	if (!soft_udp_is_resting(udp)) {
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
	if (!soft_udp_is_resting(udp))
		return;
	/* Else see settle. */
	if (!atomic_load_explicit(&udp->device->builders, memory_order_relaxed))
		acknowledge_now(udp);
	soft_mutex_lock(&udp->lock);
	if (soft_udp_is_resting(udp))
		(void)wait_for(udp, EPOLLIN);
	soft_mutex_unlock(&udp->lock);
}

/*
 * What has come is acknowledged now: with a poll it may have been put off, and the poller's thread may be on its way from the
 * completion to the acknowledgement.  Between wr_start and wr_complete the program holds a lock that comes after those taken here,
 * and then the timer does it.
 */
static void settle(struct soft_progress *progress)
{
	struct soft_udp *udp = soft_container_of(progress, struct soft_udp, progress);

	if (atomic_load_explicit(&udp->device->builders, memory_order_relaxed))
		return;
	soft_lock_take(&udp->receiving);
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

static void catch_up(struct soft_progress *progress)
{
	struct soft_udp *udp = soft_container_of(progress, struct soft_udp, progress);
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);

	if (atomic_load_explicit(&udp->device->builders, memory_order_relaxed))
		return;
	soft_lock_take(&udp->receiving);
	for (uint32_t index = 0; index < count; index++)
		for (int calls = 0; calls < CALLS_TO_EMPTY && soft_udp_receive(udp, socket_at(udp, index)); calls++)
			;
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
	if (soft_udp_is_resting(udp)) {
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
	for (int calls = 0; calls < CALLS && soft_udp_receive(udp, socket); calls++)
		;
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

int soft_udp_progress_init(struct soft_udp *udp)
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
	udp->progress = (struct soft_progress){.poll = poll_now, .sleep = go_on, .settle = settle, .catch_up = catch_up};
	return 0;
}

void soft_udp_progress_stop(struct soft_udp *udp)
{
	soft_timer_unregister(&udp->fabric->timers, &udp->watch);
	soft_udp_forget(udp);
	free(udp->arrived);
}
