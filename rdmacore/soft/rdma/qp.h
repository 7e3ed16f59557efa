/* The queue pair of an id (rdma_create_qp(3)). */
#ifndef SOFT_RDMA_QP_H
#define SOFT_RDMA_QP_H

#include "soft/cm/id.h"

int soft_id_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int soft_id_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr);
void soft_id_destroy_qp(struct rdma_cm_id *id);
/* Completion queues with channels of their own, of a size each; 0: none of that kind. */
int soft_id_create_cqs(struct rdma_cm_id *id, uint32_t send_entries, uint32_t recv_entries);
void soft_id_destroy_cqs(struct rdma_cm_id *id);
int soft_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
/*
 * INIT, with the rights that the connection has now; RTR and RTS; ERR.  0 or an errno.  cm.lock is held, and
 * released for a while: the id is still there, but what it was may have changed.
 */
int soft_id_prepare_qp(struct soft_id *id);
int soft_id_connect_qp(struct soft_id *id);
void soft_id_fail_qp(struct soft_id *id);

#endif
