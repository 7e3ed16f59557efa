/* The functions of librdmacm, each as its man page has it, and what they share. */
#ifndef SOFT_RDMA_RDMA_H
#define SOFT_RDMA_RDMA_H

#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/base/timer.h"
#include "soft/cm/cm.h"
#include "soft/cm/id.h"

/* rdma_create_id(3) and rdma_destroy_id(3). */

int soft_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space port_space);
int soft_destroy_id(struct rdma_cm_id *id);
/* Wait, within bounds, until every event of id was acknowledged: 0 or EBUSY.  cm.lock is held. */
int soft_id_wait_acknowledged(struct soft_id *id);

/* rdma_bind_addr(3), rdma_resolve_addr(3), rdma_resolve_route(3), rdma_listen(3). */

int soft_bind_addr(struct rdma_cm_id *id, struct sockaddr *address);
int soft_resolve_addr(struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *destination,
		      int timeout_ms);
int soft_resolve_route(struct rdma_cm_id *id, int timeout_ms);
/* The answer to a query came, or its time is up; cm.lock is held. */
void soft_resolve_expired(struct soft_id *id);
int soft_listen(struct rdma_cm_id *id, int backlog);
__be16 soft_get_src_port(struct rdma_cm_id *id);
__be16 soft_get_dst_port(struct rdma_cm_id *id);
struct ibv_context **soft_get_devices(int *count);
void soft_free_devices(struct ibv_context **list);

/* rdma_resolve_addrinfo(3) and rdma_query_addrinfo(3) */

int soft_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int soft_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

/* rdma_connect(3), rdma_accept(3), rdma_establish(3) */

int soft_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int soft_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int soft_establish(struct rdma_cm_id *id);

/* rdma_reject(3), rdma_disconnect(3), rdma_notify(3) */

int soft_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int soft_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int soft_notify(struct rdma_cm_id *id, enum ibv_event_type event);
int soft_disconnect(struct rdma_cm_id *id);

/* rdma_get_request(3) */

int soft_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **id);

/* rdma_create_ep(3) */

int soft_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *info, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr);
void soft_destroy_ep(struct rdma_cm_id *id);

/* The queue pair of an id (rdma_create_qp(3)). */

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

/* Shared receive queues of ids (rdma_create_srq(3)). */

int soft_id_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int soft_id_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr);
void soft_id_destroy_srq(struct rdma_cm_id *id);

/* rdma_join_multicast(3) and rdma_leave_multicast(3) */

int soft_join_multicast(struct rdma_cm_id *id, struct sockaddr *address, void *context);
int soft_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context);
int soft_leave_multicast(struct rdma_cm_id *id, struct sockaddr *address);

/* rdma_set_option(3) */

int soft_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t length);

/* rdma_set_local_ece(3) and rdma_get_remote_ece(3) */

int soft_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);
int soft_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/* rdma_migrate_id(3) */

int soft_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);

/* Event channels and events as their users have them (rdma_get_cm_event(3)). */

struct rdma_event_channel *soft_create_event_channel(void);
void soft_destroy_event_channel(struct rdma_event_channel *channel);
int soft_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int soft_ack_cm_event(struct rdma_cm_event *event);
int soft_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t argument);

/* Synchronous ids wait in each call for its event. */

/* At the end of a call that raises an event: a synchronous id waits for it (0, or -1 and errno). */
int soft_id_complete(struct rdma_cm_id *id);
/* Acknowledge the event that a synchronous id holds. */
void soft_id_drop_event(struct rdma_cm_id *id);
/* What a call that waited for event returns: 0, or -1 and errno. */
int soft_event_result(const struct rdma_cm_event *event);

/* What timers of connection management call, with no lock held. */

/* An id's time is up. */
void soft_cm_expire(struct soft_timer *timer);
/* Messages that faults hold back are due (soft_cm.held_timer). */
void soft_cm_expire_held(struct soft_timer *timer);

/* The life of a communication manager. */

/* -ENOMEM, or why a descriptor could not be had. */
int soft_cm_create(struct soft_fabric *fabric, struct soft_device *device, struct soft_cm **cm);
/* Every id is gone. */
void soft_cm_destroy(struct soft_cm *cm);

#endif
