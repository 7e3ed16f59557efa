#include "soft/link/calls.h"

#include "soft/base/fabric.h"
#include "soft/engine/calls.h"
#include "soft/engine/segment.h"
#include "soft/objects/device.h"
#include "soft/objects/multicast.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"

/*
 * Bytes that one call sends: it takes a few tenths of a second. On the timer thread, which other timers need, a part
 * takes a few milliseconds.
 */
#define WORK_OF_CALL (UINT64_C(1) << 30)
#define WORK_OF_TURN (UINT64_C(1) << 24)

/* Change receivers that failed to ERR. No lock is held. */
static void fail_peers(const struct soft_pass *pass)
{
	struct soft_multicast_members *group = pass->failed_group;

	soft_order_expect_none();
	if (pass->failed_peer) {
		soft_qp_enter_error(pass->failed_peer);
		soft_qp_release(pass->failed_peer);
	}
	if (group)
		for (uint32_t member = 0; member < group->count; member++)
			soft_qp_enter_error(group->queue_pairs[member]);
	soft_multicast_release(group);
}

/* The second half of a BIND_MW or LOCAL_INV. domain is a reference since the first half. */
static void finish_local(struct soft_qp *qp, struct soft_pd *domain, uint32_t seq, struct soft_pass *pass)
{
	bool again = true;

	while (again) {
		soft_pass_count(pass, soft_quiesce(domain) * SOFT_MESSAGE_WORK);
		soft_lock_take(&qp->requester.lock);
		again = soft_requester_end_local(qp, seq);
		soft_lock_release(&qp->requester.lock);
	}
	soft_pd_release(domain);
}

/*
 * Make the timer expire after requester.wait_delay. False without memory.
 *
 * On a link in real time each message would postpone the timer, which takes about as long as all other work for a
 * message. So the timer is not changed there, and is restarted when it expires: IBTA 9.7.6.1.3 allows a timeout to
 * take four times as long.
 */
static bool arm(struct soft_qp *qp)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	struct soft_requester *requester = &qp->requester;

	soft_lock_expect(&requester->lock);
	if (segmentation) {
		bool coarse = segmentation->link->coarse_timeouts && requester->wait == SOFT_WAIT_ACK;

		segmentation->prolonged = coarse && segmentation->timed;
		if (segmentation->prolonged)
			return true;
		segmentation->timed = coarse;
	}
	return !soft_timer_arm(&soft_qp_device(qp)->fabric->timers, &qp->timer, requester->wait_delay);
}

/*
 * Leave the rest to the timer thread. False if nothing can be sent now, or without that thread: the caller
 * continues.
 */
static bool defer(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;
	enum ibv_qp_state state = soft_qp_state(qp);

	if (requester->posted == requester->transmitted || requester->wait > SOFT_WAIT_ACK ||
	    (state != IBV_QPS_RTS && state != IBV_QPS_SQD) ||
	    soft_timer_defer(&soft_qp_device(qp)->fabric->timers, &qp->timer))
		return false;
	if (qp->segmentation)
		qp->segmentation->timed = false;
	requester->deferred = true;
	requester->wait_delay = 0;
	return true;
}

/*
 * One pass over the send queue, with at most *work; subtracts what it did. Releases requester.lock; true if another
 * pass is due. If there is anything to do afterwards, it takes a reference, once for all passes. Another thread may
 * have seen the completion of the request and destroyed the queue pair. The queue pair is in RESET then and has
 * nothing more to do.
 */
static bool transmit(struct soft_qp *qp, uint64_t *work, bool *held)
{
	struct soft_requester *requester = &qp->requester;
	struct soft_pass pass = {.work_left = *work};
	enum ibv_qp_state state = soft_qp_state(qp);
	struct soft_pd *domain = NULL;
	uint32_t seq = 0;
	bool failed, local, again;

	if (state == IBV_QPS_RTS || state == IBV_QPS_SQD) {
		if (qp->segmentation)
			pass.again = soft_link_send(qp);
		else
			soft_link_local_send(qp, &pass);
	}
	local = soft_requester_begin_local(qp);
	if (local) {
		/* Another thread may destroy queue pair and domain as soon as the lock is released. */
		domain = soft_pd_domain(qp->ibv.pd);
		soft_pd_hold(domain);
		seq = requester->mw_op_seq;
	}
	failed = soft_qp_state(qp) == IBV_QPS_ERR;
	if (!failed && requester->wait_delay) {
		requester->deferred = false;
		/* Without a timer the wait would never end: fail as after a timeout. */
		failed = !arm(qp);
		if (failed)
			atomic_store_explicit(&qp->state, IBV_QPS_ERR, memory_order_relaxed);
		requester->wait_delay = 0;
	}
	again = local || pass.again;
	if ((failed || again) && !*held) {
		soft_qp_hold(qp);
		*held = true;
	}
	soft_lock_release(&requester->lock);

	if (failed)
		soft_qp_enter_error(qp);
	fail_peers(&pass);
	if (local)
		finish_local(qp, domain, seq, &pass);
	*work = pass.work_left;
	return again;
}

static void transmit_some(struct soft_qp *qp, uint64_t work)
{
	bool held = false;

	soft_lock_expect(&qp->requester.lock);
	while (transmit(qp, &work, &held)) {
		soft_lock_take(&qp->requester.lock);
		if (!work && defer(qp)) {
			soft_lock_release(&qp->requester.lock);
			break;
		}
	}
	if (held)
		soft_qp_release(qp);
}

void soft_transmit(struct soft_qp *qp)
{
	transmit_some(qp, WORK_OF_CALL);
}

void soft_transmit_expire(struct soft_timer *timer)
{
	struct soft_qp *qp = soft_container_of(timer, struct soft_qp, timer);
	struct soft_requester *requester = &qp->requester;

	soft_lock_take(&requester->lock);
	/* The timer was armed again before the lock was taken. */
	if (soft_timer_is_armed(&soft_qp_device(qp)->fabric->timers, timer)) {
		soft_lock_release(&requester->lock);
		return;
	}
	if (qp->segmentation)
		qp->segmentation->timed = false;
	if (!requester->deferred && qp->segmentation && qp->segmentation->prolonged) {
		qp->segmentation->prolonged = false;
		if (requester->wait == SOFT_WAIT_ACK)
			requester->wait_delay = requester->ack_timeout;
	} else if (!requester->deferred) {
		soft_requester_expire(qp);
		/* Other timers must not wait while all requests are sent again. */
		if (!qp->segmentation && defer(qp)) {
			soft_lock_release(&requester->lock);
			return;
		}
	} else {
		requester->deferred = false;
		if (requester->wait == SOFT_WAIT_ACK)
			requester->wait_delay = requester->ack_timeout;
	}
	transmit_some(qp, WORK_OF_TURN);
}
