#include "soft/qp/internal.h"

#include <stddef.h>

/*
 * IBTA 11.2.5.2 table 94, ibv_modify_qp(3), and ib_modify_qp_is_ok of Linux. Linux is stricter than both:
 * transitions to RESET and ERR take no attributes, and RESET cannot change to ERR.
 */
struct attributes {
	int required, optional;
};

struct transition {
	enum ibv_qp_state from, to;
	struct attributes rc, uc, ud, initiator, target;
};

#define PATHS (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define TO_RTS_UC (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | PATHS)
#define TO_RTS_RC (TO_RTS_UC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS_UD (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define INIT_CONNECTED (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_UD (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_UC (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_OPTIONAL (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define NOTIFY IBV_QP_EN_SQD_ASYNC_NOTIFY
/* Of the attributes of RC, an initiator has those of the requester, and a target those of the responder. */
#define REQUESTER (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define RESPONDER (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define SQD_CONNECTED (IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | RTR_OPTIONAL | PATHS | IBV_QP_CUR_STATE)

static const struct transition transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_RESET, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}},
	{IBV_QPS_RESET, IBV_QPS_INIT, {INIT_CONNECTED, 0}, {INIT_CONNECTED, 0}, {INIT_UD, 0},
	 {INIT_CONNECTED, 0}, {INIT_CONNECTED, 0}},
	{IBV_QPS_INIT, IBV_QPS_INIT, {0, INIT_CONNECTED}, {0, INIT_CONNECTED}, {0, INIT_UD},
	 {0, INIT_CONNECTED}, {0, INIT_CONNECTED}},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 {RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, RTR_OPTIONAL},
	 {RTR_UC, RTR_OPTIONAL},
	 {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	 {RTR_UC, RTR_OPTIONAL},
	 {RTR_UC | RESPONDER, RTR_OPTIONAL}},
	{IBV_QPS_RTR, IBV_QPS_RTS,
	 {IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		  IBV_QP_MAX_QP_RD_ATOMIC,
	  TO_RTS_RC},
	 {IBV_QP_SQ_PSN, TO_RTS_UC},
	 {IBV_QP_SQ_PSN, TO_RTS_UD},
	 {REQUESTER | IBV_QP_SQ_PSN, TO_RTS_UC},
	 {IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, TO_RTS_RC}},
	{IBV_QPS_RTS, IBV_QPS_RTS, {0, TO_RTS_RC}, {0, TO_RTS_UC}, {0, TO_RTS_UD}, {0, TO_RTS_UC}, {0, TO_RTS_RC}},
	{IBV_QPS_RTS, IBV_QPS_SQD, {0, NOTIFY}, {0, NOTIFY}, {0, NOTIFY}, {0, NOTIFY}, {0, NOTIFY}},
	{IBV_QPS_SQD, IBV_QPS_RTS, {0, TO_RTS_RC}, {0, TO_RTS_UC}, {0, TO_RTS_UD}, {0, TO_RTS_UC}, {0, TO_RTS_RC}},
	{IBV_QPS_SQD, IBV_QPS_SQD,
	 {0, IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		     IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | RTR_OPTIONAL |
		     IBV_QP_MIN_RNR_TIMER | PATHS},
	 {0, IBV_QP_AV | RTR_OPTIONAL | PATHS},
	 {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	 {0, SQD_CONNECTED | REQUESTER},
	 {0, SQD_CONNECTED | RESPONDER}},
	{IBV_QPS_SQE, IBV_QPS_RTS, {0, 0}, {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
	 {0, TO_RTS_UD}, {0, 0}, {0, 0}},
};

static const struct attributes *of_type(const struct transition *transition, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return &transition->rc;
	case IBV_QPT_UC:
		return &transition->uc;
	case IBV_QPT_XRC_SEND:
		return &transition->initiator;
	case IBV_QPT_XRC_RECV:
		return &transition->target;
	default:
		return &transition->ud;
	}
}

int soft_qp_attributes(enum ibv_qp_type type, int mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return mask & ~RESPONDER;
	case IBV_QPT_XRC_RECV:
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	default:
		return mask;
	}
}

bool soft_qp_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
				int mask)
{
	int others = mask & ~IBV_QP_STATE;

	if (from != IBV_QPS_RESET && (to == IBV_QPS_RESET || to == IBV_QPS_ERR))
		return !others;
	for (size_t row = 0; row < sizeof(transitions) / sizeof(transitions[0]); row++) {
		const struct transition *transition = &transitions[row];
		const struct attributes *attributes = of_type(transition, type);

		if (transition->from == from && transition->to == to)
			return (others & attributes->required) == attributes->required &&
			       !(others & ~(attributes->required | attributes->optional));
	}
	return false;
}
