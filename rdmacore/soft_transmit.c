#include "soft_transmit.h"

#include "soft_device.h"
#include "soft_fabric.h"
#include "soft_link_local.h"
#include "soft_link_wire.h"
#include "soft_multicast.h"
#include "soft_pd.h"
#include "soft_qp.h"
#include "soft_qp_state.h"
#include "soft_quiesce.h"
#include "soft_requester.h"

/* Settle who failed.  No lock is held. */
static void settle_peers(const struct soft_pass *pass)
{
	struct soft_multicast_members *group = pass->failed_group;

	if (pass->failed_peer) {
		soft_qp_settle(pass->failed_peer);
		soft_qp_release(pass->failed_peer);
	}
	if (group)
		for (uint32_t member = 0; member < group->count; member++)
			soft_qp_settle(group->queue_pairs[member]);
	soft_multicast_release(group);
}

/* The second half of work on a window, in the domain that is held since the first. */
static void finish_local(struct soft_qp *qp, struct soft_pd *domain, uint32_t turn)
{
	bool again = true;

	while (again) {
		soft_quiesce(domain);
		soft_lock_take(&qp->requester.lock);
		again = soft_requester_end_local(qp, turn);
		soft_lock_release(&qp->requester.lock);
	}
	soft_pd_release(domain);
}

/*
 * One pass over what there is to send.  Releases requester.lock; true when another pass is due.  What is left to do
 * after that holds the queue pair, once for all passes: another thread may have seen the completion of what was posted
 * here, and destroy it.  Then it is in RESET, where there is nothing more to do.
 */
static bool transmit(struct soft_qp *qp, bool *held)
{
	struct soft_requester *requester = &qp->requester;
	struct soft_pass pass = {0};
	enum ibv_qp_state state = soft_qp_state(qp);
	struct soft_pd *domain = NULL;
	uint32_t turn = 0;
	bool failed, local, again;

	if (state == IBV_QPS_RTS || state == IBV_QPS_SQD) {
		if (qp->segmentation)
			pass.again = soft_link_send(qp);
		else
			soft_link_local_send(qp, &pass);
	}
	local = soft_requester_begin_local(qp);
	if (local) {
		/* Both may be destroyed as soon as the lock is given up. */
		domain = soft_pd_domain(qp->ibv.pd);
		soft_pd_hold(domain);
		turn = requester->local_turn;
	}
	failed = soft_qp_state(qp) == IBV_QPS_ERR;
	if (!failed && requester->wait_delay) {
		/* Without a timer the wait would never end: give up as if it had ended in vain. */
		failed = soft_timer_arm(&soft_qp_device(qp)->fabric->timers, &qp->timer,
					requester->wait_delay) != 0;
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
		soft_qp_settle(qp);
	settle_peers(&pass);
	if (local)
		finish_local(qp, domain, turn);
	return again;
}

void soft_transmit(struct soft_qp *qp)
{
	bool held = false;

	while (transmit(qp, &held))
		soft_lock_take(&qp->requester.lock);
	if (held)
		soft_qp_release(qp);
}

void soft_transmit_expire(struct soft_timer *timer)
{
	struct soft_qp *qp = soft_container_of(timer, struct soft_qp, timer);

	soft_lock_take(&qp->requester.lock);
	soft_requester_expire(qp);
	soft_transmit(qp);
}
