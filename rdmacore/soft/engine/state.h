/*
 * What happens to both halves of a queue pair when it enters a state.  Both locks guard that, the
 * requester's first (soft/base/order.h).
 */
#ifndef SOFT_ENGINE_STATE_H
#define SOFT_ENGINE_STATE_H

#include <infiniband/verbs.h>

struct soft_qp;

/* Take both locks. */
void soft_qp_lock(struct soft_qp *qp);
void soft_qp_unlock(struct soft_qp *qp);
/* Enter the state; both locks are held. */
void soft_qp_enter(struct soft_qp *qp, enum ibv_qp_state state);
/* Who was found at the other end is to be looked for again; requester.lock is held. */
void soft_qp_forget_peer(struct soft_qp *qp);
/*
 * Bring both halves together after one of them failed: to ERR, with every outstanding request
 * flushed (IBTA 10.3.1.7).  Takes both locks; nothing happens when nothing failed.
 */
void soft_qp_settle(struct soft_qp *qp);
/*
 * To RESET, at the end of its life: completions that the user did not poll yet stay.  What is in RESET has nothing
 * to end.
 */
void soft_qp_reset(struct soft_qp *qp);

#endif
