/* rdma_reject(3), rdma_disconnect(3), rdma_notify(3) */
#ifndef SOFT_RDMA_DISCONNECT_H
#define SOFT_RDMA_DISCONNECT_H

#include <rdma/rdma_cma.h>

int soft_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int soft_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int soft_notify(struct rdma_cm_id *id, enum ibv_event_type event);
int soft_disconnect(struct rdma_cm_id *id);

#endif
