/* States and attributes of queue pairs, as users set and see them. */
#ifndef SOFT_QP_MODIFY_H
#define SOFT_QP_MODIFY_H

#include <infiniband/verbs.h>

int soft_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int soft_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
/* EOPNOTSUPP: a soft device has no option of a vendor. */
int soft_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int soft_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);

#endif
