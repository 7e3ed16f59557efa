/* Queue pairs with builders: ibv_create_qp_ex(3) and the ibv_wr_*(3). */
#ifndef SOFT_QP_BUILD_H
#define SOFT_QP_BUILD_H

#include <infiniband/verbs.h>

/* EOPNOTSUPP for what its type cannot do. */
struct ibv_qp *soft_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* NULL when it was made without builders. */
struct ibv_qp_ex *soft_qp_to_qp_ex(struct ibv_qp *qp);

#endif
