/* What the files of this package share. Others include verbs.h. */
#ifndef SOFT_QP_INTERNAL_H
#define SOFT_QP_INTERNAL_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct soft_qp;

/* --- target.c ------------------------------------------------------------------------------------- */

/* A new target with its first handle; EINVAL without a domain. */
struct ibv_qp *soft_create_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* Destroy a handle, and with the last one the target. */
int soft_close_target(struct soft_qp *handle);

/* --- make.c: what create.c and target.c share ----------------------------------------------------- */

/* A queue pair like that one in RESET, with queues, timer and number; NULL and errno. */
struct soft_qp *soft_qp_make(const struct soft_qp *like);
/* Set the queue pair in its events. */
void soft_qp_init_events(struct soft_qp *qp);
/* Wait until each event that was taken is acknowledged (ibv_destroy_qp(3)); EBUSY. */
int soft_qp_wait_acknowledged(struct soft_qp *qp);

/* --- post.c --------------------------------------------------------------------------------------- */

/* Send what was added to the send queue. Called with requester.lock held; releases it. */
void soft_post_commit(struct soft_qp *qp);

/* --- transition.c --------------------------------------------------------------------------------- */

/*
 * The part of mask that applies. For one half of an extended connection, attributes of the other half are ignored,
 * as on Linux.
 */
int soft_qp_attributes(enum ibv_qp_type type, int mask);
/*
 * Whether a queue pair of that type may change from one state to the other with the attributes of mask (enum
 * ibv_qp_attr_mask). All that are required must be present, and none that are neither required nor optional.
 */
bool soft_qp_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
				int mask);

#endif
