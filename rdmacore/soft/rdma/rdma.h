/* The border of this package: the functions of librdmacm, each as its man page has it, and what its files share. */
#ifndef SOFT_RDMA_RDMA_H
#define SOFT_RDMA_RDMA_H

#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>

#include "provider/provider.h"
#include "soft/base/timer.h"
#include "soft/cm/calls.h"

/* --- id.c: rdma_create_id(3), rdma_destroy_id(3), rdma_migrate_id(3) ------------------------------ */

int soft_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space port_space);
int soft_destroy_id(struct rdma_cm_id *id);
int soft_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);

/* --- resolve.c: rdma_bind_addr(3), rdma_resolve_addr(3), rdma_resolve_route(3), rdma_listen(3) ---- */

int soft_bind_addr(struct rdma_cm_id *id, struct sockaddr *address);
int soft_resolve_addr(struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *destination,
		      int timeout_ms);
int soft_resolve_route(struct rdma_cm_id *id, int timeout_ms);
/* The timer of a query expired: the answer comes, or the query times out. cm.lock is held. */
void soft_resolve_expired(struct soft_id *id);
int soft_listen(struct rdma_cm_id *id, int backlog);
__be16 soft_get_src_port(struct rdma_cm_id *id);
__be16 soft_get_dst_port(struct rdma_cm_id *id);
struct ibv_context **soft_get_devices(int *count);
void soft_free_devices(struct ibv_context **list);

/* --- resolve_addrinfo.c --------------------------------------------------------------------------- */

int soft_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int soft_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

/* --- connect.c ------------------------------------------------------------------------------------ */

int soft_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int soft_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int soft_establish(struct rdma_cm_id *id);

/* --- disconnect.c --------------------------------------------------------------------------------- */

int soft_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int soft_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int soft_notify(struct rdma_cm_id *id, enum ibv_event_type event);
int soft_disconnect(struct rdma_cm_id *id);

/* --- get_request.c -------------------------------------------------------------------------------- */

int soft_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **id);

/* --- endpoint.c ----------------------------------------------------------------------------------- */

int soft_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *info, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr);
void soft_destroy_ep(struct rdma_cm_id *id);

/* --- qp.c: the queue pair of an id ---------------------------------------------------------------- */

int soft_id_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int soft_id_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr);
void soft_id_destroy_qp(struct rdma_cm_id *id);
/* Create completion queues with channels of their own, of these sizes; 0: no queue of that kind. */
int soft_id_create_cqs(struct rdma_cm_id *id, uint32_t send_entries, uint32_t recv_entries);
void soft_id_destroy_cqs(struct rdma_cm_id *id);
int soft_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
/*
 * Change the queue pair: to INIT, with the access flags of the connection as it is now; to RTR and RTS; to ERR. 0 or
 * a positive errno. cm.lock is held, and released for a while: the id is kept, but its state may change.
 */
int soft_id_prepare_qp(struct soft_id *id);
int soft_id_connect_qp(struct soft_id *id);
void soft_id_fail_qp(struct soft_id *id);

/* --- srq.c: the shared receive queue of an id ----------------------------------------------------- */

int soft_id_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int soft_id_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr);
void soft_id_destroy_srq(struct rdma_cm_id *id);

/* --- multicast.c ---------------------------------------------------------------------------------- */

int soft_join_multicast(struct rdma_cm_id *id, struct sockaddr *address, void *context);
int soft_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context);
int soft_leave_multicast(struct rdma_cm_id *id, struct sockaddr *address);

/* --- option.c ------------------------------------------------------------------------------------- */

int soft_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t length);

int soft_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);
int soft_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/* --- event.c: event channels and events ----------------------------------------------------------- */

struct rdma_event_channel *soft_create_event_channel(void);
void soft_destroy_event_channel(struct rdma_event_channel *channel);
int soft_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int soft_ack_cm_event(struct rdma_cm_event *event);
int soft_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t argument);

/* --- sync.c: synchronous ids, which wait in each call for its event ------------------------------- */

/* The end of a call that raises an event: a synchronous id waits for it. 0, or -1 and errno. */
int soft_id_complete(struct rdma_cm_id *id);
/* Acknowledge the event that a synchronous id holds. */
void soft_id_drop_event(struct rdma_cm_id *id);
/* The result of a call that waited for event: 0, or -1 and errno. */
int soft_event_result(const struct rdma_cm_event *event);

/* --- timeout.c: the timers of connection management ----------------------------------------------- */

/* Expires the timer of an id. No lock is held. */
void soft_cm_expire(struct soft_timer *timer);
/* Expires the timer of messages that faults delay (soft_cm.held_timer). No lock is held. */
void soft_cm_expire_held(struct soft_timer *timer);

/* --- life.c: creating and destroying a communication manager ----------------------------------------- */

/* -ENOMEM; -EINVAL for an invalid name of a fabric; or a negative errno of a descriptor. */
int soft_cm_create(struct soft_fabric *fabric, struct soft_device *device, const struct core_options *options,
		   struct soft_cm **cm);
/*
 * The link is about to be destroyed. From now on, messages to other hosts are lost, and messages from them are not
 * read.
 */
void soft_cm_stop_mad_tx(struct soft_cm *cm);
/* All ids are destroyed. */
void soft_cm_destroy(struct soft_cm *cm);

#endif
