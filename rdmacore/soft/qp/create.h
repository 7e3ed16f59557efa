/* The life of queue pairs. */
#ifndef SOFT_QP_CREATE_H
#define SOFT_QP_CREATE_H

#include <infiniband/verbs.h>

struct ibv_qp *soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/* EBUSY while it is attached to a multicast group. */
int soft_destroy_qp(struct ibv_qp *qp);

#endif
