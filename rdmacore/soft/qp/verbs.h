/* The border of this package: the verbs of queue pairs, each as its man page has it. */
#ifndef SOFT_QP_VERBS_H
#define SOFT_QP_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct soft_qp;
struct soft_device;

/* --- open.c --------------------------------------------------------------------------------------- */

/* NULL and errno ENOMEM, EMFILE; ENODEV while the device is removed. */
struct ibv_context *soft_open_device(struct ibv_device *device);
int soft_close_device(struct ibv_context *context);

/* --- create.c ------------------------------------------------------------------------------------- */

struct ibv_qp *soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/* EBUSY while it is attached to a multicast group. */
int soft_destroy_qp(struct ibv_qp *qp);

/* --- target.c: handles of the receiving end of an extended connection ----------------------------- */

/* ibv_open_qp(3): one more handle of the target with that number in the domain; EINVAL if there is none. */
struct ibv_qp *soft_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);

/* --- build.c: queue pairs with builders ----------------------------------------------------------- */

/* EOPNOTSUPP for operations that its type does not have. */
struct ibv_qp *soft_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* NULL if it was created without builders. */
struct ibv_qp_ex *soft_qp_to_qp_ex(struct ibv_qp *qp);

/* --- post.c --------------------------------------------------------------------------------------- */

int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int soft_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ibv_bind_mw(3), type 1: posts the request; mw->rkey is the new key from then on. */
int soft_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* --- modify.c ------------------------------------------------------------------------------------- */

int soft_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int soft_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
/* EOPNOTSUPP: there are no vendor options. */
/*
 * The connection manager arranged how often the peer tries again after an RNR NAK (CORE_LEGAL_RNR). Takes
 * responder.lock.
 */
void soft_qp_set_peer_retries(struct ibv_qp *qp, uint8_t retries);
/* Whether the first message raises COMM_EST, because the connection is not established yet. */
void soft_qp_await_rtu(struct ibv_qp *qp, bool awaits);
int soft_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int soft_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);

/* --- removal.c: the device is removed and returns --------------------------------------------------- */

/*
 * The first half of removal: commands of the device's contexts fail from now on, as on Linux, which disassociates
 * them. Between the halves, the connection manager is notified.
 */
void soft_device_leave(struct soft_device *device);
/* The second half: its queue pairs stop without completing anything, and each context gets DEVICE_FATAL. */
void soft_device_stop(struct soft_device *device);
/* The device returns, for contexts that are opened from now on. */
void soft_device_return(struct soft_device *device);

/* --- attach.c: queue pairs in multicast groups ---------------------------------------------------- */

/* 0; EINVAL for a type other than UD, or a GID that is not multicast; ENOMEM. RoCE ignores the lid. */
int soft_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
/* 0, or EINVAL when it was not attached. */
int soft_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

#endif
