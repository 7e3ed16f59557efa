/* The verbs of queue pairs, each as its man page has it, and what they share. */
#ifndef SOFT_QP_VERBS_H
#define SOFT_QP_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct soft_qp;
struct soft_device;

/* --- open.c --------------------------------------------------------------------------------------- */

/* NULL and errno ENOMEM, EMFILE; ENODEV while the device is away. */
struct ibv_context *soft_open_device(struct ibv_device *device);
int soft_close_device(struct ibv_context *context);

/* --- create.c ------------------------------------------------------------------------------------- */

struct ibv_qp *soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/* EBUSY while it is attached to a multicast group. */
int soft_destroy_qp(struct ibv_qp *qp);

/* --- target.c: handles of the receiving end of an extended connection ----------------------------- */

/* A new target with the first handle; EINVAL without a domain. */
struct ibv_qp *soft_create_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* ibv_open_qp(3): one more handle of that number in the domain; EINVAL when there is none. */
struct ibv_qp *soft_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
/* The handle ends, and with the last one the target. */
int soft_close_target(struct soft_qp *handle);

/* --- make.c: what create.c and target.c share ----------------------------------------------------- */

/* A queue pair of that kind in RESET, with queues, timer and number; NULL and errno. */
struct soft_qp *soft_qp_make(const struct soft_qp *like);
/* Its events name it. */
void soft_qp_init_events(struct soft_qp *qp);
/* ibv_destroy_qp(3) waits until every event that was taken is acknowledged; EBUSY. */
int soft_qp_wait_acknowledged(struct soft_qp *qp);

/* --- build.c: queue pairs with builders ----------------------------------------------------------- */

/* EOPNOTSUPP for operations that its type does not have. */
struct ibv_qp *soft_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* NULL when it was made without builders. */
struct ibv_qp_ex *soft_qp_to_qp_ex(struct ibv_qp *qp);

/* --- post.c --------------------------------------------------------------------------------------- */

int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* Send what was put into the send queue.  Called with requester.lock held, returns with it released. */
void soft_post_commit(struct soft_qp *qp);
int soft_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ibv_bind_mw(3), type 1: posts the request, and mw->rkey is the new key from then on. */
int soft_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* --- modify.c ------------------------------------------------------------------------------------- */

int soft_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int soft_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
/* EOPNOTSUPP: there are no vendor options. */
int soft_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int soft_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);

/* --- transition.c --------------------------------------------------------------------------------- */

/* What is heeded of mask: of one half of an extended connection the other half's attributes are left out, as Linux does. */
int soft_qp_attributes(enum ibv_qp_type type, int mask);
/*
 * Whether a queue pair of that type may go from one state to the other with the attributes of mask (enum
 * ibv_qp_attr_mask): all that are required, and none that are neither required nor optional.
 */
bool soft_qp_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
				int mask);

/* --- removal.c: the device is pulled out or its driver unbound, and comes back -------------------- */

/*
 * The device goes away, in two halves: commands of its contexts fail from now on, as on Linux, which disassociates them.
 * The connection manager is told between the two.
 */
void soft_device_leave(struct soft_device *device);
/* Its queue pairs stop without completing anything, and each context hears DEVICE_FATAL. */
void soft_device_stop(struct soft_device *device);
/* The device is back, for contexts that are opened from now on. */
void soft_device_return(struct soft_device *device);

/* --- attach.c: queue pairs in multicast groups ---------------------------------------------------- */

/* 0; EINVAL for another type than UD or no multicast GID; ENOMEM.  The lid has no meaning in RoCE. */
int soft_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
/* 0, or EINVAL when it was not attached. */
int soft_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

#endif
