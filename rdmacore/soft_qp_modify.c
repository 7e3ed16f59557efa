#include "soft_qp.h"

#include <errno.h>

#include "soft_fabric.h"

/*
 * Transitions of a reliable connected queue pair and the attributes each requires and allows besides
 * IBV_QP_STATE (IBTA 11.2.5.2 table 94; ibv_modify_qp(3)).  To RESET and ERR nothing else is allowed,
 * from any state.
 */
struct transition {
	enum ibv_qp_state from, to;
	int required, optional;
};

static const struct transition transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_RTR, IBV_QPS_RTS,
	 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
};

static bool allowed(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	int others = mask & ~IBV_QP_STATE;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return !(others & ~IBV_QP_CUR_STATE);
	for (size_t row = 0; row < sizeof(transitions) / sizeof(transitions[0]); row++) {
		const struct transition *transition = &transitions[row];

		if (transition->from == from && transition->to == to)
			return (others & transition->required) == transition->required &&
			       !(others & ~(transition->required | transition->optional));
	}
	return false;
}

static bool valid(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_PORT && attr->port_num != SOFT_PORT)
		return false;
	if (mask & IBV_QP_PKEY_INDEX && attr->pkey_index != 0)
		return false;
	if (mask & IBV_QP_PATH_MTU && (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096))
		return false;
	if (mask & IBV_QP_AV && (!attr->ah_attr.is_global || attr->ah_attr.grh.sgid_index >= SOFT_GIDS))
		return false;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > SOFT_MAX_RD_ATOMIC)
		return false;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > SOFT_MAX_RD_ATOMIC)
		return false;
	return !(mask & IBV_QP_DEST_QPN && attr->dest_qp_num > 0xffffff);
}

/* Both locks are held. */
static void store(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr *own = &qp->attr;

	if (mask & IBV_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IBV_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IBV_QP_AV)
		own->ah_attr = attr->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		own->path_mtu = attr->path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer & SOFT_RNR_TIMER_MASK;
	if (mask & IBV_QP_TIMEOUT)
		own->timeout = attr->timeout & 0x1f;
	if (mask & IBV_QP_RETRY_CNT)
		qp->requester.retries_left = own->retry_cnt = attr->retry_cnt & 7;
	if (mask & IBV_QP_RNR_RETRY)
		qp->requester.rnr_retries_left = own->rnr_retry = attr->rnr_retry & 7;
	if (mask & IBV_QP_RQ_PSN)
		qp->responder.psn = own->rq_psn = attr->rq_psn & SOFT_PSN_MASK;
	if (mask & IBV_QP_SQ_PSN)
		qp->requester.psn = own->sq_psn = attr->sq_psn & SOFT_PSN_MASK;
}

static void lock_both(struct soft_qp *qp)
{
	pthread_mutex_lock(&qp->requester.lock);
	pthread_mutex_lock(&qp->responder.lock);
}

static void unlock_both(struct soft_qp *qp)
{
	pthread_mutex_unlock(&qp->responder.lock);
	pthread_mutex_unlock(&qp->requester.lock);
}

static void enter(struct soft_qp *qp, enum ibv_qp_state state)
{
	atomic_store_explicit(&qp->state, state, memory_order_relaxed);
	qp->ibv.state = state;
	if (state == IBV_QPS_ERR || state == IBV_QPS_RESET)
		soft_timer_cancel(&soft_qp_device(qp)->fabric->timers, &qp->timer);
	if (state == IBV_QPS_ERR) {
		qp->responder.failed = false;
		soft_requester_flush(qp);
		soft_receive_flush(qp);
	} else if (state == IBV_QPS_RESET) {
		soft_requester_reset(qp);
		soft_responder_reset(qp);
		if (qp->peer)
			soft_qp_release(qp->peer);
		qp->peer = NULL;
		qp->attr = (struct ibv_qp_attr){0};
		for (int event = 0; event < SOFT_QP_EVENTS; event++)
			qp->events[event].raised = false;
	}
}

int soft_modify_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask)
{
	struct soft_qp *qp = soft_qp(ibv_qp);
	enum ibv_qp_state from, to;
	int result = EINVAL;

	lock_both(qp);
	from = soft_qp_state(qp);
	to = mask & IBV_QP_STATE ? attr->qp_state : from;
	if (!(mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from) && allowed(from, to, mask) &&
	    valid(attr, mask)) {
		store(qp, attr, mask);
		if (to != from || to == IBV_QPS_RESET || to == IBV_QPS_ERR)
			enter(qp, to);
		result = 0;
	}
	unlock_both(qp);
	return result;
}

void soft_qp_settle(struct soft_qp *qp)
{
	lock_both(qp);
	if (qp->responder.failed || soft_qp_state(qp) == IBV_QPS_ERR)
		enter(qp, IBV_QPS_ERR);
	unlock_both(qp);
}

int soft_query_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct soft_qp *qp = soft_qp(ibv_qp);

	(void)mask; /* every attribute costs the same; ibv_query_qp(3) lets a provider give more */
	lock_both(qp);
	*attr = qp->attr;
	attr->qp_state = soft_qp_state(qp);
	attr->rq_psn = qp->responder.psn;
	attr->sq_psn = qp->requester.psn;
	unlock_both(qp);
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
