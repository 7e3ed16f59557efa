#include "soft/link/calls.h"

#include "soft/base/fabric.h"
#include "soft/engine/calls.h"
#include "soft/engine/segment.h"
#include "soft/objects/device.h"
#include "soft/objects/multicast.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"

/* What one call sends at most: some tenths of a second.  On the timer thread, which serves others too, some milliseconds. */
#define WORK_OF_CALL (UINT64_C(1) << 30)
#define WORK_OF_TURN (UINT64_C(1) << 24)

/* Settle the receivers that failed.  No lock is held. */
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

/* The second half of a BIND_MW or LOCAL_INV, in the domain that is held since the first. */
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
 * Have the timer expire after requester.wait_delay.  False without the memory for that.
 *
 * On a link in real time each message moves the timer back, which takes about as long as all else that a queue pair does for
 * it.  There it stays where it is, and when it expires begins anew: IBTA 9.7.6.1.3 lets a timeout be four times as long.
 */
static bool arm(struct soft_qp *qp)
{
	struct soft_segmentation *segmentation = qp->segmentation;
	struct soft_requester *requester = &qp->requester;

	soft_lock_expect(&requester->lock);
	if (segmentation) {
		bool lax = segmentation->link->lax_timeouts && requester->wait == SOFT_WAIT_ACK;

		segmentation->prolonged = lax && segmentation->timed;
		if (segmentation->prolonged)
			return true;
		segmentation->timed = lax;
	}
	return !soft_timer_arm(&soft_qp_device(qp)->fabric->timers, &qp->timer, requester->wait_delay);
}

/* Leave the rest to the timer thread.  False when nothing can be sent now, or without that thread: the caller goes on. */
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
 * One pass over the send queue, with *work to do at most, from which it subtracts what it did.  Releases requester.lock;
 * true when another pass is due.  If there is anything to do after that it takes a reference, once for all passes: another
 * thread may have seen the completion of what was posted here and destroy the queue pair, which is in RESET then and has
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
		/* Queue pair and domain may be destroyed as soon as the lock is released. */
		domain = soft_pd_domain(qp->ibv.pd);
		soft_pd_hold(domain);
		seq = requester->mw_op_seq;
	}
	failed = soft_qp_state(qp) == IBV_QPS_ERR;
	if (!failed && requester->wait_delay) {
		requester->deferred = false;
		/* Without a timer the wait would never end: fail as if it had timed out. */
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
	/* It was armed again before the lock was taken. */
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
		/* Other timers must not wait while everything is sent again. */
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
