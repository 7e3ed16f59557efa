/* Which states of a queue pair lead to which, and with which attributes. */
#ifndef SOFT_QP_TRANSITION_H
#define SOFT_QP_TRANSITION_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/*
 * Whether a queue pair of that type may go from one state to the other with exactly the attributes of mask
 * (enum ibv_qp_attr_mask): everything required is there, and nothing that is neither required nor
 * optional.
 */
bool soft_qp_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
				int mask);

#endif
