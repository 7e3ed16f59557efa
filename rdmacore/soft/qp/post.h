/* The user's side of both queues: ibv_post_send(3), ibv_post_recv(3), ibv_bind_mw(3). */
#ifndef SOFT_QP_POST_H
#define SOFT_QP_POST_H

#include <infiniband/verbs.h>

struct soft_qp;

int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* What was put into the send queue goes out.  Called with requester.lock held, returns with it released. */
void soft_post_commit(struct soft_qp *qp);
int soft_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ibv_bind_mw(3), type 1: posts the request, and mw->rkey is the new key from then on. */
int soft_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

#endif
