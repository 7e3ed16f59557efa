#include "soft/link/calls.h"

#include "soft/base/fabric.h"
#include "soft/capture/capture.h"
#include "soft/engine/direct.h"
#include "soft/objects/ah.h"
#include "soft/objects/device.h"
#include "soft/objects/multicast.h"
#include "soft/objects/qp.h"
#include "soft/wire/datagram.h"

#define PASS_WORK (UINT64_C(1) << 30) /* bytes that requests copy without the send queue, in one call */

/*
 * The queue pair with that number at that address, which qp->peer refers to for the next packet; NULL if there is
 * none.
 */
static struct soft_qp *find_peer(struct soft_qp *qp, const union ibv_gid *gid, uint32_t number)
{
	struct soft_device *device = soft_qp_device(qp);

	if (qp->peer &&
	    (soft_qp_state(qp->peer) == IBV_QPS_RESET || qp->peer->ibv.qp_num != number)) {
		soft_qp_release(qp->peer);
		qp->peer = NULL;
	}
	if (!soft_device_owns(device, gid))
		return NULL;
	if (!qp->peer)
		qp->peer = soft_table_find(&device->queue_pairs, number, soft_qp_hold);
	return qp->peer;
}

/* The other end of the connection. soft_qp_forget_peer must be called when it changes. */
static inline struct soft_qp *connected_peer(struct soft_qp *qp)
{
	if (qp->peer && soft_qp_state(qp->peer) != IBV_QPS_RESET)
		return qp->peer;
	return find_peer(qp, &qp->attr.ah_attr.grh.dgid, qp->attr.dest_qp_num);
}

struct soft_qp *soft_link_peer(struct soft_qp *qp)
{
	soft_lock_expect(&qp->requester.lock);
	return connected_peer(qp);
}

/* Capture a packet of qp from here to there; with answer, one in the other direction. requester.lock is held. */
static void record(struct soft_qp *qp, const union ibv_gid *here, const union ibv_gid *there,
		   const struct soft_packet *packet, bool answer, const struct soft_capture_outcome *outcome)
{
	struct soft_capture *capture = soft_qp_device(qp)->fabric->capture;
	struct soft_requester *requester = &qp->requester;
	bool datagram = qp->service == SOFT_UNRELIABLE_DATAGRAM;
	struct ibv_global_route route = qp->attr.ah_attr.grh;
	uint32_t peer = datagram ? packet->destination : qp->attr.dest_qp_num;
	struct soft_capture_path path = {
		.from = answer ? there : here,
		.to = answer ? here : there,
		.route = datagram ? NULL : &route,
		.source = answer ? peer : qp->ibv.qp_num,
		.destination = answer ? qp->ibv.qp_num : peer,
		.mtu = datagram ? SOFT_MTU : 128u << qp->attr.path_mtu, /* enum ibv_mtu */
		.xrc = qp->xrc != SOFT_NO_XRC,
	};

	soft_lock_expect(&requester->lock);
	route.dgid = *path.to;
	if (!requester->flow && !datagram)
		requester->flow = soft_capture_flow_create(requester->mask + 1);
	if (answer)
		soft_capture_answer(capture, requester->flow, &path, packet, outcome);
	else
		soft_capture_request(capture, requester->flow, &path, packet, outcome);
}

static __attribute__((noinline)) bool apply_faults(struct soft_qp *qp, const union ibv_gid *here,
						   const union ibv_gid *there, const struct soft_packet *packet,
						   bool answer)
{
	struct soft_fabric *fabric = soft_qp_device(qp)->fabric;
	struct soft_fault_subject what = soft_link_subject(qp, packet);
	struct soft_capture_outcome outcome = {
		.fault_result = soft_faults_apply(&fabric->faults, answer ? there : here, answer ? here : there, &what),
	};

	if (fabric->capture)
		record(qp, here, there, packet, answer, &outcome);
	return outcome.fault_result.lose;
}

/* Whether a packet is lost, by the same arguments. Mostly there are no faults and no capture. */
static inline bool is_lost(struct soft_qp *qp, const union ibv_gid *here, const union ibv_gid *there,
			   const struct soft_packet *packet, bool answer)
{
	return soft_faults_active(&soft_qp_device(qp)->fabric->faults) && apply_faults(qp, here, there, packet, answer);
}

/* There is no peer: packets are lost, and the ACK timer ends the wait if there is one. */
static void lose(struct soft_qp *qp)
{
	const struct ibv_global_route *route = &qp->attr.ah_attr.grh;
	const union ibv_gid *here = &soft_qp_device(qp)->gid_table.gids[route->sgid_index];
	bool recorded = soft_qp_device(qp)->fabric->capture;
	struct soft_packet packet;

	while (soft_requester_next(qp, &packet)) {
		if (recorded)
			record(qp, here, &route->dgid, &packet, false,
			       &(struct soft_capture_outcome){.unreachable = true});
		if (qp->service != SOFT_RELIABLE_CONNECTION)
			soft_requester_sent(qp);
	}
}

/* The peer may see a message before its request is completed (soft_qp_await_sender). */
static inline void set_sending(struct soft_qp *qp, bool sending)
{
	atomic_store_explicit(&qp->requester.sending, sending, memory_order_release);
}

/*
 * The message to peer may be a reply to a message of peer. If peer has one completion queue for both directions, the
 * completion of its own request must come first in it. Not called while set_sending is true: two queue pairs would
 * wait for each other.
 */
static inline void await_completion(const struct soft_qp *peer)
{
	if (peer->ibv.send_cq == peer->ibv.recv_cq)
		soft_qp_await_sender(peer);
}

/* A list has no more requests than the send queue has room for; post.c rejects the rest. */
bool soft_link_pass(struct soft_qp *qp, struct ibv_send_wr **wr)
{
	struct soft_qp *peer = qp->peer;
	uint32_t before = qp->requester.completed;
	uint64_t work = 0;
	bool more, passed = false;

	soft_lock_expect(&qp->requester.lock);
	if (!*wr || !soft_direct_is_simple(*wr) || !peer || !soft_direct_is_idle(qp) || soft_faults_active(&soft_qp_device(qp)->fabric->faults))
		return false;
	soft_lock_take(&peer->responder.lock);
	more = soft_direct_is_ready(qp, peer);
	if (more)
		await_completion(peer);
	while (more) {
		set_sending(qp, true);
		more = soft_direct_execute(qp, peer, *wr);
		set_sending(qp, false);
		if (!more)
			break;
		work += (*wr)->sg_list->length;
		*wr = (*wr)->next;
		more = soft_qp_state(qp) == IBV_QPS_RTS && !peer->responder.failed;
		passed = more && !*wr;
		more = more && *wr && soft_direct_is_simple(*wr) && work < PASS_WORK &&
		       qp->requester.posted - before < qp->requester.size &&
		       !soft_lock_is_wanted(&qp->requester.lock) && !soft_lock_is_wanted(&peer->responder.lock);
	}
	soft_lock_release(&peer->responder.lock);
	return passed;
}

/*
 * A connected queue pair accepts only packets of its peer (IBTA 9.6.1.5). A packet does not name its sender, but
 * here the sender is known. After each message, a thread that waits for one of the locks gets its turn.
 */
static inline __attribute__((always_inline)) void exchange(struct soft_qp *qp, struct soft_qp *peer,
							      struct soft_pass *pass, bool xrc)
{
	/* The address of each end is the destination of the other end. */
	const union ibv_gid *here = &peer->attr.ah_attr.grh.dgid;
	const union ibv_gid *there = &qp->attr.ah_attr.grh.dgid;
	bool acknowledged = qp->service == SOFT_RELIABLE_CONNECTION;
	struct soft_packet packet, response;

	soft_lock_take(&peer->responder.lock);
	if (!soft_qp_accepts(peer, qp) || peer->xrc != (xrc ? SOFT_TARGET : SOFT_NO_XRC)) {
		soft_lock_release(&peer->responder.lock);
		lose(qp);
		return;
	}
	if (!xrc)
		await_completion(peer);
	while (!pass->again && soft_requester_next(qp, &packet)) {
		set_sending(qp, true);
		if (!is_lost(qp, here, there, &packet, false) &&
		    (xrc ? soft_target_receive(peer, &packet, &response) :
			   soft_responder_receive(peer, &packet, &response)) &&
		    !is_lost(qp, here, there, &response, true))
			soft_requester_receive(qp, &response);
		if (xrc)
			soft_target_leave(peer);
		if (!acknowledged)
			soft_requester_sent(qp);
		set_sending(qp, false);
		soft_pass_count(pass, packet.length);
		pass->again = !pass->work_left || soft_lock_is_wanted(&qp->requester.lock) ||
			      soft_lock_is_wanted(&peer->responder.lock);
	}
	if (peer->responder.failed) {
		pass->failed_peer = peer;
		soft_qp_hold(peer);
	}
	soft_lock_release(&peer->responder.lock);
}

/* The same for extended connections. It is a function of its own, so that other connections do not pay for it. */
static __attribute__((noinline)) void exchange_extended(struct soft_qp *qp, struct soft_qp *peer, struct soft_pass *pass)
{
	exchange(qp, peer, pass, true);
}

/* Returns whether the peer failed. */
static bool deliver(struct soft_qp *peer, const struct soft_packet *packet)
{
	bool failed;

	soft_lock_take(&peer->responder.lock);
	soft_datagram_receive(peer, packet);
	failed = peer->responder.failed;
	soft_lock_release(&peer->responder.lock);
	return failed;
}

static void transmit_datagrams(struct soft_qp *qp, struct soft_pass *pass)
{
	struct soft_device *device = soft_qp_device(qp);
	struct soft_multicast_members *group;
	struct soft_packet packet;
	struct soft_qp *peer;

	while (!pass->again && soft_requester_next(qp, &packet)) {
		const union ibv_gid *gid = &packet.ah->attr.grh.dgid;

		if (is_lost(qp, &packet.ah->source, gid, &packet, false)) {
			;
		} else if (soft_gid_is_multicast(gid)) {
			group = soft_multicast_find(&device->multicast, gid);
			set_sending(qp, true);
			for (uint32_t member = 0; group && member < group->count; member++) {
				if (group->queue_pairs[member] != qp || qp->mcast_loopback)
					pass->again |= deliver(group->queue_pairs[member], &packet);
				soft_pass_count(pass, packet.length);
			}
			if (pass->again)
				pass->failed_group = group;
			else
				soft_multicast_release(group);
		} else if ((peer = find_peer(qp, gid, packet.destination))) {
			await_completion(peer);
			set_sending(qp, true);
			if (deliver(peer, &packet)) {
				pass->again = true;
				pass->failed_peer = peer;
				soft_qp_hold(peer);
			}
		}
		soft_requester_sent(qp);
		set_sending(qp, false);
		soft_pass_count(pass, packet.length);
		pass->again |= !pass->work_left || soft_lock_is_wanted(&qp->requester.lock);
	}
}

void soft_link_local_send(struct soft_qp *qp, struct soft_pass *pass)
{
	struct soft_qp *peer;

	if (qp->service == SOFT_UNRELIABLE_DATAGRAM)
		transmit_datagrams(qp, pass);
	else if ((peer = connected_peer(qp)) && qp->xrc)
		exchange_extended(qp, peer, pass);
	else if (peer)
		exchange(qp, peer, pass, false);
	else
		lose(qp);
}
