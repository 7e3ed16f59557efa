/*
 * Which thread receives packets from the kernel.
 *
 * Usually the thread of the fabric's poller does. If a thread of the program polls a completion queue again and again,
 * that thread receives itself. Waking another thread would take longer than all other work for a message. Meanwhile
 * the poller's thread is idle: it does not wait for the sockets, and a timer checks whether the program still polls. A
 * program that arms a completion queue is about to sleep, and the poller's thread resumes at once.
 *
 * Some programs poll a completion queue only until their request completes, and then poll memory that the peer
 * writes. They are found when a packet waits and no thread receives it. Then the poller's thread resumes, each time
 * for longer.
 */
#include "soft/udp/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/base/fabric.h"
#include "soft/objects/qp.h"

/*
 * The times and counts below are choices, not limits of the kernel. docs/decisions/0028-udp-latency.md has the
 * measurements. Without the second check (RECHECK_TIME), ib_write_lat took 822 us one way instead of 9 us.
 */

/* A program that polls for that long keeps polling: one that is about to sleep arms its completion queue sooner. */
#define SPINNING (50 * SOFT_MICROSECOND)
/*
 * System calls for one socket in a row. With GRO a call reads up to 64 KiB, so a socket gets 1 MiB before the
 * others.
 */
#define CALLS 16
/* The same for a management socket, where a call reads one message of 0.3 KiB: 64 take 0.2 ms. */
#define MANAGEMENT_CALLS 64
/*
 * System calls of catch_up for one socket: 32 MiB, more than a buffer holds. Only a peer that keeps sending reaches
 * it.
 */
#define CALLS_TO_EMPTY 512
/* One poll in four reads another socket than the one that had packets last. */
#define OTHER_SOCKETS 4
/* One poll in 16 reads a management socket, so that neither a flood of data nor one of messages delays the other. */
#define MANAGEMENT_TURN 16
#define CHECK_MIN (200 * SOFT_MICROSECOND)
#define CHECK_MAX (1000 * SOFT_MICROSECOND)
/* After that many checks without a poll, 4 ms, the program counts as not polling. */
#define IDLE_CHECKS 8
#define CHECK_IDLE (500 * SOFT_MICROSECOND)
/* One check in eight that find polls is followed by a second one, RECHECK_TIME later. More would cost wake-ups. */
#define RECHECK_EVERY 8
/* A program that polls without a pause has polled or sent within that time: a poll takes about 1 us. */
#define RECHECK_TIME (100 * SOFT_MICROSECOND)
/*
 * How long the poller's thread stays active after a packet waited for a poll. The time doubles if that happens again
 * within AT_ONCE of becoming idle.
 */
#define ACTIVE_MIN (1 * SOFT_MILLISECOND)
#define ACTIVE_MAX (1000 * SOFT_MILLISECOND)
#define AT_ONCE (1 * SOFT_MILLISECOND)
/* An acknowledgement waits that long for an answer: the program's own work for a message, and a round trip. */
#define ACK_DELAY_MAX (20 * SOFT_MICROSECOND)

/*
 * Send pending acknowledgements that do not wait for an answer. idle: nothing has come for a while, so send the
 * waiting ones instead.
 */
static void acknowledge_answered(struct soft_udp *udp, bool idle)
{
	uint32_t kept = idle ? 0 : udp->acks_delayed;

	soft_lock_expect(&udp->receiving);
	for (uint32_t index = kept; index < udp->ack_queue_count; index++) {
		struct soft_qp *qp = udp->ack_queue[index];

		if (soft_link_acknowledge_answered(qp, idle))
			soft_qp_release(qp);
		else
			udp->ack_queue[kept++] = qp;
	}
	udp->ack_queue_count = udp->acks_delayed = kept;
}

/* Nothing has come, and acknowledgements wait for an answer. */
static void wait_for_answer(struct soft_udp *udp)
{
	uint64_t now = soft_fabric_wall_now(udp->fabric);

	soft_lock_expect(&udp->receiving);
	if (!udp->idle_since)
		udp->idle_since = now;
	else if (now - udp->idle_since >= ACK_DELAY_MAX)
		acknowledge_answered(udp, true);
}

static struct soft_udp_socket *socket_at(struct soft_udp *udp, uint32_t index)
{
	return atomic_load_explicit(&udp->sockets[index], memory_order_relaxed);
}

/* Read the next management socket, so that data does not delay it. False when nothing was there. */
static bool look_at_management(struct soft_udp *udp, uint32_t count)
{
	soft_lock_expect(&udp->receiving);
	for (uint32_t step = 0; step < count; step++) {
		udp->management_next = (udp->management_next + 1) % count;
		if (socket_at(udp, udp->management_next)->is_management)
			return soft_udp_receive(udp, socket_at(udp, udp->management_next));
	}
	return false;
}

/* Read one socket, or two. False when nothing was there. */
static bool look(struct soft_udp *udp)
{
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);

	soft_lock_expect(&udp->receiving);
	if (!count)
		return false;
	if (soft_udp_receive(udp, socket_at(udp, udp->hot))) {
		if (!(++udp->management_turn % MANAGEMENT_TURN))
			(void)look_at_management(udp, count);
		return true;
	}
	if (count == 1 || ++udp->turn % OTHER_SOCKETS)
		return false;
	udp->next = (udp->next + 1) % count;
	if (udp->next == udp->hot || !soft_udp_receive(udp, socket_at(udp, udp->next)))
		return false;
	if (!socket_at(udp, udp->next)->is_management) /* a flood of messages there does not keep polls from the data */
		udp->hot = udp->next;
	return true;
}

/*
 * Receive with at most that many calls; false when there is nothing. Acknowledgements are sent after each call: a
 * peer that waits for them continues while the rest is received.
 */
static bool take_all(struct soft_udp *udp, struct soft_udp_socket *socket, int calls)
{
	bool found = false;

	for (; calls && soft_udp_receive(udp, socket); calls--) {
		soft_udp_acknowledge(udp);
		found = true;
	}
	return found;
}

/* A pass over received packets ends. */
static void end_receiving(struct soft_udp *udp)
{
	soft_udp_end_pass(udp);
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

/* take_all of each socket, unless another thread receives. */
static bool look_everywhere(struct soft_udp *udp)
{
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);
	bool found = false;

	if (!soft_lock_try(&udp->receiving))
		return false;
	for (uint32_t index = 0; index < count; index++)
		found |= take_all(udp, socket_at(udp, index), CALLS);
	end_receiving(udp);
	return found;
}

static void add_one(_Atomic uint32_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Send pending acknowledgements, unless another thread holds the lock and will send them. */
static void acknowledge_now(struct soft_udp *udp)
{
	if (!soft_lock_try(&udp->receiving))
		return;
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

/*
 * A completion queue is empty. Acknowledgements of earlier polls are sent first. The program may have answered
 * meanwhile, and then the acknowledgement went with the answer, or will go with a later one
 * (soft/engine/ack_delay.c). An acknowledgement may wait only while the timer checks for another poll: a peer that
 * does not get it waits for a timeout.
 */
static void poll_now(struct soft_progress *progress)
{
	struct soft_udp *udp = soft_container_of(progress, struct soft_udp, progress);
	bool found;

	if (atomic_load_explicit(&udp->slept, memory_order_relaxed)) {
		atomic_store(&udp->polling_since, soft_fabric_wall_now(udp->fabric));
		atomic_store(&udp->slept, false);
	}
	/* A thread that waits for the lock polls, too. */
	add_one(&udp->polls);
	if (!soft_lock_try(&udp->receiving))
		return;
	acknowledge_answered(udp, false);
	found = look(udp);
	soft_udp_end_pass(udp);
	if (!soft_udp_poller_is_idle(udp))
		soft_udp_acknowledge(udp);
	if (found || !udp->ack_queue_count)
		udp->idle_since = 0;
	else
		wait_for_answer(udp);
	soft_lock_release(&udp->receiving);
}

/*
 * Make the poller wait for these events of all sockets; 0: be idle. False when the kernel cannot: the timer keeps
 * checking then.
 */
static bool wait_for(struct soft_udp *udp, uint32_t events)
{
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_relaxed);
	bool done = true;

	soft_mutex_expect(&udp->lock);
	atomic_store(&udp->poller_idle, !events);
	for (uint32_t index = 0; index < count; index++)
		done &= !soft_poller_change(&udp->fabric->poller, &socket_at(udp, index)->source, events);
	if (!done)
		atomic_store(&udp->poller_idle, true);
	return done;
}

/* Changes with each poll and each sent packet. */
static uint32_t activity(struct soft_udp *udp)
{
	return atomic_load(&udp->polls) + (uint32_t)atomic_load_explicit(&udp->counters.sent, memory_order_relaxed);
}

/* Whether the program polls without a pause. Called by the poller's thread when a packet wakes it. */
static bool is_spinning(struct soft_udp *udp, uint64_t now)
{
	uint32_t polls = atomic_load(&udp->polls);

	if (polls == udp->polls_at_wakeup) /* no poll since the last wake-up */
		atomic_store(&udp->polling_since, now);
	udp->polls_at_wakeup = polls;
	return !atomic_load(&udp->slept) && now > atomic_load(&udp->polling_since) + SPINNING;
}

/* Leave the sockets to polling threads. */
static void go_idle(struct soft_udp *udp, uint64_t now)
{
	soft_mutex_lock(&udp->lock);
	if (!soft_udp_poller_is_idle(udp)) {
		(void)wait_for(udp, 0);
		udp->activity_seen = activity(udp);
		udp->idle_checks = 0;
		udp->check_interval = CHECK_MIN;
		udp->idle_at = now;
		udp->rechecking = false;
		udp->recheck_turn = 0;
		/* Either resume() sees poller_idle, or this thread sees slept. */
		if (atomic_load(&udp->slept) || soft_timer_arm(&udp->fabric->timers, &udp->watch, udp->check_interval))
			(void)wait_for(udp, EPOLLIN);
	}
	soft_mutex_unlock(&udp->lock);
}

static void resume(struct soft_progress *progress)
{
	struct soft_udp *udp = soft_container_of(progress, struct soft_udp, progress);

	atomic_store(&udp->slept, true);
	if (!soft_udp_poller_is_idle(udp))
		return;
	acknowledge_now(udp);
	soft_mutex_lock(&udp->lock);
	if (soft_udp_poller_is_idle(udp))
		(void)wait_for(udp, EPOLLIN);
	soft_mutex_unlock(&udp->lock);
}

/*
 * Send acknowledgements now. A poll may have deferred them, or the poller's thread may be between a completion and
 * its acknowledgement.
 */
static void flush_acks(struct soft_progress *progress)
{
	struct soft_udp *udp = soft_container_of(progress, struct soft_udp, progress);

	soft_lock_take(&udp->receiving);
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
}

static void catch_up(struct soft_progress *progress)
{
	struct soft_udp *udp = soft_container_of(progress, struct soft_udp, progress);
	uint32_t count = atomic_load_explicit(&udp->socket_count, memory_order_acquire);

	soft_lock_take(&udp->receiving);
	for (uint32_t index = 0; index < count; index++)
		(void)take_all(udp, socket_at(udp, index), socket_at(udp, index)->is_management ? CALLS : CALLS_TO_EMPTY);
	end_receiving(udp);
}

/* Packets waited, and the program did not poll: the poller's thread receives them and stays active for a while. */
static void stay_active(struct soft_udp *udp)
{
	uint64_t now = soft_fabric_wall_now(udp->fabric), active = ACTIVE_MIN;

	soft_mutex_expect(&udp->lock);
	if (now - udp->idle_at < AT_ONCE)
		active = udp->active < ACTIVE_MAX ? 2 * udp->active : ACTIVE_MAX;
	udp->active = active < ACTIVE_MIN ? ACTIVE_MIN : active;
	atomic_store(&udp->active_until, now + udp->active);
}

/* How long until the next check; 0: none is needed. A check that found a poll may be followed by a second one soon. */
static uint64_t next_look(struct soft_udp *udp, bool polled, bool found)
{
	bool rechecked = udp->rechecking;

	soft_mutex_expect(&udp->lock);
	udp->rechecking = polled && !rechecked && udp->recheck_turn++ % RECHECK_EVERY == 0;
	if (found) {
		stay_active(udp);
		return 0;
	}
	if (udp->rechecking)
		return RECHECK_TIME;
	if (polled)
		udp->idle_checks = 0;
	else if (!rechecked && ++udp->idle_checks >= IDLE_CHECKS)
		return 0;
	udp->check_interval = udp->idle_checks ? CHECK_IDLE : udp->check_interval < CHECK_MAX ?
		2 * udp->check_interval : CHECK_MAX;
	return udp->check_interval;
}

static void look_at_polls(struct soft_timer *timer)
{
	struct soft_udp *udp = soft_container_of(timer, struct soft_udp, watch);
	uint32_t now_active = activity(udp);
	bool polled, found = false;
	uint64_t next;

	soft_mutex_lock(&udp->lock);
	polled = now_active != udp->activity_seen;
	soft_mutex_unlock(&udp->lock);
	if (polled)
		acknowledge_now(udp);
	else
		found = look_everywhere(udp);
	soft_mutex_lock(&udp->lock);
	if (soft_udp_poller_is_idle(udp)) {
		udp->activity_seen = activity(udp); /* what the timer itself has sent does not count */
		next = next_look(udp, polled, found);
		if ((!next && wait_for(udp, EPOLLIN)) ||
		    !soft_timer_arm(&udp->fabric->timers, &udp->watch, next ? next : CHECK_IDLE))
			goto unlock;
		(void)wait_for(udp, EPOLLIN);
	}
unlock:
	soft_mutex_unlock(&udp->lock);
}

void soft_udp_ready(struct soft_source *source, uint32_t events)
{
	struct soft_udp_socket *socket = soft_container_of(source, struct soft_udp_socket, source);
	struct soft_udp *udp = socket->udp;
	uint64_t now = soft_fabric_wall_now(udp->fabric);

	(void)events;
	if (is_spinning(udp, now) && now >= atomic_load_explicit(&udp->active_until, memory_order_relaxed)) {
		go_idle(udp, now);
		return;
	}
	soft_lock_take(&udp->receiving);
	if (socket->is_management) /* data first, then the management socket */
		(void)take_all(udp, soft_udp_find(udp, &socket->endpoint.address, SOFT_WIRE_PORT), CALLS);
	(void)take_all(udp, socket, socket->is_management ? MANAGEMENT_CALLS : CALLS);
	end_receiving(udp);
}

/* Timer of reads: nothing else is to be done, so continue READ responses. */
static void answer_reads(struct soft_timer *timer)
{
	struct soft_udp *udp = soft_container_of(timer, struct soft_udp, reads.timer);

	soft_lock_take(&udp->receiving);
	udp->reads.deferred = false;
	end_receiving(udp);
}

int soft_udp_progress_init(struct soft_udp *udp)
{
	int result;

	udp->arrived = malloc(SOFT_UDP_ARRIVED);
	if (!udp->arrived)
		return -ENOMEM;
	result = soft_timer_register(&udp->fabric->timers, &udp->watch, look_at_polls);
	if (result)
		goto free_arrived;
	result = soft_udp_reads_init(udp, answer_reads);
	if (result)
		goto unregister_watch;
	soft_lock_init(&udp->receiving, SOFT_ORDER_RECEIVING);
	atomic_store(&udp->slept, true);
	udp->progress = (struct soft_progress){.poll = poll_now, .sleep = resume, .flush_acks = flush_acks,
					       .catch_up = catch_up};
	return 0;

unregister_watch:
	soft_timer_unregister(&udp->fabric->timers, &udp->watch);
free_arrived:
	free(udp->arrived);
	return result;
}

void soft_udp_progress_stop(struct soft_udp *udp)
{
	soft_timer_unregister(&udp->fabric->timers, &udp->watch);
}

void soft_udp_progress_destroy(struct soft_udp *udp)
{
	soft_udp_reads_stop(udp);
	soft_udp_drop_acks(udp);
	free(udp->arrived);
}
