#include "soft/qp/verbs.h"

#include <errno.h>

#include "soft/base/bounds.h"
#include "soft/base/capability.h"
#include "soft/engine/calls.h"
#include "soft/engine/segment.h"
#include "soft/link/calls.h"
#include "soft/objects/ah.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/qp/internal.h"

#define TIMEOUT_MAX 31 /* IBTA 9.9.2.1.1 */
#define CONTROLLED_QUEUE_KEY 0x80000000u /* IBTA 10.2.5 */

static bool valid(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_PORT && attr->port_num != SOFT_PORT)
		return false;
	if (mask & IBV_QP_PKEY_INDEX && attr->pkey_index != 0)
		return false;
	if (mask & IBV_QP_PATH_MTU && (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096))
		return false;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > SOFT_MAX_RD_ATOMIC)
		return false;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > SOFT_MAX_RD_ATOMIC)
		return false;
	if (mask & IBV_QP_ALT_PATH && (attr->alt_port_num != SOFT_PORT || attr->alt_timeout > TIMEOUT_MAX))
		return false;
	/* The field has five bits, so 32 would be sent as 0, which is no timeout. */
	if (mask & IBV_QP_TIMEOUT && attr->timeout > TIMEOUT_MAX)
		return false;
	/* No automatic path migration (IBTA 17.2.8), so the queue pair is always on its one path. */
	if (mask & IBV_QP_PATH_MIG_STATE && attr->path_mig_state != IBV_MIG_MIGRATED)
		return false;
	return !(mask & IBV_QP_DEST_QPN && attr->dest_qp_num > 0xffffff);
}

/* A peer with another address is no queue pair of this device, whatever its number. */
static uint32_t local_peer(const struct soft_qp *qp)
{
	return soft_device_owns(soft_qp_device(qp), &qp->attr.ah_attr.grh.dgid) ? qp->attr.dest_qp_num :
										   SOFT_NO_QPN;
}

/* Both locks are held. */
static void store(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr *own = &qp->attr;

	soft_lock_expect(&qp->requester.lock);
	soft_lock_expect(&qp->responder.lock);
	if (mask & IBV_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IBV_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IBV_QP_AV) {
		own->ah_attr = attr->ah_attr;
		qp->requester.service_level = attr->ah_attr.sl;
		soft_qp_forget_peer(qp);
	}
	if (mask & IBV_QP_QKEY)
		own->qkey = attr->qkey;
	if (mask & IBV_QP_ALT_PATH) {
		own->alt_ah_attr = attr->alt_ah_attr;
		own->alt_pkey_index = attr->alt_pkey_index;
		own->alt_port_num = attr->alt_port_num;
		own->alt_timeout = attr->alt_timeout;
	}
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		own->en_sqd_async_notify = attr->en_sqd_async_notify;
	if (mask & IBV_QP_PATH_MTU)
		own->path_mtu = attr->path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
	if (mask & (IBV_QP_AV | IBV_QP_DEST_QPN))
		qp->accepted_qpn = local_peer(qp);
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer & SOFT_RNR_TIMER_MASK;
	if (mask & IBV_QP_TIMEOUT)
		qp->requester.ack_timeout = soft_ack_timeout(own->timeout = attr->timeout);
	if (mask & IBV_QP_RETRY_CNT)
		qp->requester.retries = qp->requester.retries_left = own->retry_cnt = attr->retry_cnt & 7;
	if (mask & IBV_QP_RNR_RETRY)
		qp->requester.rnr_retries = qp->requester.rnr_retries_left = own->rnr_retry =
			attr->rnr_retry & 7;
	if (mask & IBV_QP_RQ_PSN)
		qp->responder.psn = own->rq_psn = attr->rq_psn & SOFT_PSN_MASK;
	if (mask & IBV_QP_SQ_PSN)
		qp->requester.psn = own->sq_psn = attr->sq_psn & SOFT_PSN_MASK;
	if (mask & IBV_QP_SQ_PSN && qp->segmentation)
		qp->segmentation->next_unsent_psn = own->sq_psn;
}

/* Connect the link to the path that the queue pair will have. */
static int connect_link(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct soft_link *link = qp->segmentation->link;
	struct soft_path path = {0};

	if (mask & IBV_QP_AV) {
		path.source = &qp->device->gid_table.gids[attr->ah_attr.grh.sgid_index];
		path.destination = &attr->ah_attr.grh.dgid;
		path.number = mask & IBV_QP_DEST_QPN ? attr->dest_qp_num : qp->attr.dest_qp_num;
		path.mtu = 128u << (mask & IBV_QP_PATH_MTU ? attr->path_mtu : qp->attr.path_mtu); /* enum ibv_mtu */
	}
	return link->connect ? link->connect(link, qp, &path) : 0;
}

/*
 * An error completion can be polled before the thread that made it has both locks. The polling thread must find the
 * queue pair in ERR.
 */
static void lock_state(struct soft_qp *qp)
{
	soft_qp_lock(qp);
	if (qp->responder.failed)
		soft_qp_enter(qp, IBV_QPS_ERR);
}

static int modify(struct soft_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from, to;
	int result = EIO;

	mask = soft_qp_attributes(qp->ibv.qp_type, mask);
	/* Acknowledge what came before, as an adapter does, which does not delay acknowledgements. */
	if (qp->segmentation && mask & IBV_QP_STATE)
		soft_link_acknowledge(qp);
	lock_state(qp);
	/* Under the locks, which soft_device_stop takes, too: either this comes first, or it is rejected. */
	if (soft_context_is_removed(qp->ibv.context))
		goto unlock;
	result = EINVAL;
	from = soft_qp_state(qp);
	to = mask & IBV_QP_STATE ? attr->qp_state : from;
	if ((mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from) ||
	    !soft_qp_transition_allowed(qp->ibv.qp_type, from, to, mask) || !valid(attr, mask))
		goto unlock;
	/* The keys that only privileged programs may set (IBTA 10.2.5; ib_uverbs_modify_qp of Linux). */
	result = EPERM;
	if (mask & IBV_QP_QKEY && attr->qkey & CONTROLLED_QUEUE_KEY && !soft_has_capability(CAP_NET_RAW))
		goto unlock;
	result = mask & IBV_QP_AV ? soft_ah_check(qp->device, &attr->ah_attr) : 0;
	if (!result && qp->segmentation && (to == IBV_QPS_RTR || mask & IBV_QP_AV))
		result = connect_link(qp, attr, mask);
	if (!result && mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		result = -soft_responder_remember(qp, attr->max_dest_rd_atomic);
	if (result)
		goto unlock;
	store(qp, attr, mask);
	if (to != from || to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		soft_qp_enter(qp, to);
	if (to == IBV_QPS_RTS && from == IBV_QPS_SQD) {
		/* Send what was posted in SQD. */
		soft_lock_release(&qp->responder.lock);
		soft_transmit(qp);
		return 0;
	}
unlock:
	soft_qp_unlock(qp);
	return result;
}

static struct soft_qp *target_qp_of(struct ibv_qp *qp)
{
	return soft_qp(qp)->target_qp ? soft_qp(qp)->target_qp : soft_qp(qp);
}

int soft_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int result = modify(target_qp_of(qp), attr, mask);

	if (!result && soft_qp(qp)->target_qp)
		qp->state = soft_qp_state(soft_qp(qp)->target_qp);
	if (!result && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET) {
		if (qp->send_cq)
			soft_cq_forget(soft_cq(qp->send_cq), qp->qp_num);
		if (qp->recv_cq && qp->recv_cq != qp->send_cq)
			soft_cq_forget(soft_cq(qp->recv_cq), qp->qp_num);
	}
	return result;
}

int soft_query_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct soft_qp *qp = target_qp_of(ibv_qp);

	if (soft_context_is_removed(ibv_qp->context))
		return EIO;
	(void)mask; /* ibv_query_qp(3): a provider may return more than was requested */
	lock_state(qp);
	*attr = qp->attr;
	attr->qp_state = soft_qp_state(qp);
	attr->rq_psn = qp->responder.psn;
	attr->sq_psn = qp->requester.psn;
	attr->sq_draining = attr->qp_state == IBV_QPS_SQD &&
			    qp->requester.completed != qp->requester.drain_until;
	soft_qp_unlock(qp);
	attr->cur_qp_state = attr->qp_state;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->cap = qp->cap;
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = ibv_qp->qp_context,
		.send_cq = ibv_qp->send_cq,
		.recv_cq = ibv_qp->recv_cq,
		.srq = ibv_qp->srq,
		.cap = qp->cap,
		.qp_type = ibv_qp->qp_type,
		.sq_sig_all = qp->signal_all,
	};
	return 0;
}

/* There are no vendor options, as on other devices without vendor firmware. */
int soft_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return EOPNOTSUPP;
}

int soft_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return EOPNOTSUPP;
}

void soft_qp_set_peer_retries(struct ibv_qp *ibv_qp, uint8_t retries)
{
	struct soft_qp *qp = soft_qp(ibv_qp);

	soft_lock_take(&qp->responder.lock);
	qp->legal.peer_retries = retries;
	soft_lock_release(&qp->responder.lock);
}

void soft_qp_await_rtu(struct ibv_qp *ibv_qp, bool awaits)
{
	struct soft_qp *qp = soft_qp(ibv_qp);

	soft_lock_take(&qp->responder.lock);
	qp->responder.awaits_rtu = awaits;
	soft_lock_release(&qp->responder.lock);
}
