#include "soft_link.h"

#include "soft_device.h"
#include "soft_fabric.h"
#include "soft_qp.h"

/*
 * The queue pair that qp's address vector and destination number lead to, found once and held; NULL
 * when there is no such queue pair (any more).
 */
static struct soft_qp *find_peer(struct soft_qp *qp)
{
	struct soft_device *device = soft_qp_device(qp);
	struct soft_table *table = &device->queue_pairs;

	if (qp->peer && soft_qp_state(qp->peer) == IBV_QPS_RESET) {
		soft_qp_release(qp->peer);
		qp->peer = NULL;
	}
	if (!qp->peer && soft_device_owns(device, &qp->attr.ah_attr.grh.dgid))
		qp->peer = soft_table_find(table, qp->attr.dest_qp_num, soft_qp_hold);
	return qp->peer;
}

/* Returns whether the peer failed over what it was sent. */
static bool exchange(struct soft_qp *qp, struct soft_qp *peer)
{
	struct soft_faults *faults = &soft_qp_device(qp)->fabric->faults;
	/* Each knows the other's address, which is how either knows its own. */
	const union ibv_gid *here = &peer->attr.ah_attr.grh.dgid;
	const union ibv_gid *there = &qp->attr.ah_attr.grh.dgid;
	struct soft_packet packet, response;
	bool peer_failed;

	pthread_mutex_lock(&peer->responder.lock);
	while (soft_requester_next(qp, &packet))
		if (!soft_fault_loses(faults, here, there, SOFT_FAULT_DATA, 0) &&
		    soft_responder_receive(peer, &packet, &response) &&
		    !soft_fault_loses(faults, there, here, SOFT_FAULT_DATA, 0))
			soft_requester_receive(qp, &response);
	peer_failed = peer->responder.failed;
	pthread_mutex_unlock(&peer->responder.lock);
	return peer_failed;
}

/* Nobody is at the other end: what is sent is lost, and the ACK timer decides. */
static void lose(struct soft_qp *qp)
{
	struct soft_packet packet;

	while (soft_requester_next(qp, &packet))
		;
}

void soft_link_transmit(struct soft_qp *qp)
{
	struct soft_requester *requester = &qp->requester;
	struct soft_qp *peer = NULL, *failed_peer = NULL;
	bool failed;

	if (soft_qp_state(qp) == IBV_QPS_RTS) {
		peer = find_peer(qp);
		if (!peer) {
			lose(qp);
		} else if (exchange(qp, peer)) {
			soft_qp_hold(peer);
			failed_peer = peer;
		}
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
	pthread_mutex_unlock(&requester->lock);

	if (failed)
		soft_qp_settle(qp);
	if (failed_peer) {
		soft_qp_settle(failed_peer);
		soft_qp_release(failed_peer);
	}
}

void soft_link_expire(struct soft_timer *timer)
{
	struct soft_qp *qp = soft_container_of(timer, struct soft_qp, timer);

	pthread_mutex_lock(&qp->requester.lock);
	soft_requester_expire(qp);
	soft_link_transmit(qp);
}
