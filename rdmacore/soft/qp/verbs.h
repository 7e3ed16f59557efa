/* The verbs of queue pairs, each as its man page has it, and what they share. */
#ifndef SOFT_QP_VERBS_H
#define SOFT_QP_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct soft_qp;
struct soft_device;

/* Opening a device: the context, and the operations that verbs.h finds in it. */

/* NULL and errno ENOMEM, EMFILE; ENODEV while the device is away. */
struct ibv_context *soft_open_device(struct ibv_device *device);
int soft_close_device(struct ibv_context *context);

/* The life of queue pairs. */

struct ibv_qp *soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/* EBUSY while it is attached to a multicast group. */
int soft_destroy_qp(struct ibv_qp *qp);

/* Queue pairs with builders: ibv_create_qp_ex(3) and the ibv_wr_*(3). */

/* EOPNOTSUPP for what its type cannot do. */
struct ibv_qp *soft_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* NULL when it was made without builders. */
struct ibv_qp_ex *soft_qp_to_qp_ex(struct ibv_qp *qp);

/* The user's side of both queues: ibv_post_send(3), ibv_post_recv(3), ibv_bind_mw(3). */

int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* What was put into the send queue goes out.  Called with requester.lock held, returns with it released. */
void soft_post_commit(struct soft_qp *qp);
int soft_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ibv_bind_mw(3), type 1: posts the request, and mw->rkey is the new key from then on. */
int soft_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* States and attributes of queue pairs, as users set and see them. */

int soft_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int soft_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
/* EOPNOTSUPP: a soft device has no option of a vendor. */
int soft_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int soft_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);

/* Which states of a queue pair lead to which, and with which attributes. */

/*
 * Whether a queue pair of that type may go from one state to the other with exactly the attributes of mask
 * (enum ibv_qp_attr_mask): everything required is there, and nothing that is neither required nor
 * optional.
 */
bool soft_qp_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
				int mask);

/* The device goes away, as a card that is pulled out or whose driver is unbound, and comes back. */

/*
 * The device goes away: commands of its contexts fail from now on, its queue pairs neither send, receive nor
 * complete anything any more, and each context hears DEVICE_FATAL (Linux disassociates its contexts).  The
 * connection manager is told apart from that, before it.
 */
void soft_device_leave(struct soft_device *device);
/* The second half of it, when the connection manager was told. */
void soft_device_stop(struct soft_device *device);
/* It is back, for contexts that are opened from now on. */
void soft_device_return(struct soft_device *device);

#endif
