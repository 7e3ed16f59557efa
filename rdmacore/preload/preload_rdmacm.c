/* librdmacm's functions under their own names, documented in section 3 of the man pages. */
#include "preload.h"

#include <errno.h>

FORWARD_POINTER(NO_OWNER, struct rdma_event_channel *, rdma_create_event_channel, (void), ())
FORWARD_VOID(OWNER(channel), rdma_destroy_event_channel,
	     (struct rdma_event_channel * channel), (channel))
FORWARD_RDMACM(OWNER(channel), rdma_get_cm_event,
	       (struct rdma_event_channel * channel, struct rdma_cm_event **event),
	       (channel, event))
FORWARD_CALL(OWNER(event), rdma_ack_cm_event, (struct rdma_cm_event * event),
	     (event && preload_event_hold(event) ? 0 : provider->rdma_ack_cm_event(event)), (errno = ENOSYS, -1), -1)

FORWARD_RDMACM_TELLING(OWNER(channel), rdma_create_id,
	       (struct rdma_event_channel * channel, struct rdma_cm_id **id, void *context,
		enum rdma_port_space ps),
	       (channel, id, context, ps))
FORWARD_RDMACM(OWNER(id), rdma_destroy_id, (struct rdma_cm_id * id), (id))
FORWARD_RDMACM_TELLING(OWNER(pd), rdma_create_ep,
	       (struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		struct ibv_qp_init_attr *attr),
	       (id, res, pd, attr))
FORWARD_VOID(OWNER(id), rdma_destroy_ep, (struct rdma_cm_id * id), (id))
FORWARD_RDMACM(OWNER(id), rdma_migrate_id,
	       (struct rdma_cm_id * id, struct rdma_event_channel *channel),
	       (id, channel))
FORWARD_RDMACM(OWNER(id), rdma_set_option,
	       (struct rdma_cm_id * id, int level, int optname, void *optval, size_t optlen),
	       (id, level, optname, optval, optlen))

FORWARD_RDMACM(NO_OWNER, rdma_getaddrinfo,
	       (const char *node, const char *service, const struct rdma_addrinfo *hints,
		struct rdma_addrinfo **res),
	       (node, service, hints, res))
FORWARD_VOID(NO_OWNER, rdma_freeaddrinfo, (struct rdma_addrinfo * res), (res))
FORWARD_RDMACM(OWNER(id), rdma_resolve_addrinfo,
	       (struct rdma_cm_id * id, const char *node, const char *service,
		const struct rdma_addrinfo *hints),
	       (id, node, service, hints))
FORWARD_RDMACM(OWNER(id), rdma_query_addrinfo,
	       (struct rdma_cm_id * id, struct rdma_addrinfo **info), (id, info))
FORWARD_RDMACM(OWNER(id), rdma_write_cm_event,
	       (struct rdma_cm_id * id, enum rdma_cm_event_type event, int status, uint64_t arg),
	       (id, event, status, arg))

FORWARD_RDMACM(OWNER(id), rdma_bind_addr,
	       (struct rdma_cm_id * id, struct sockaddr *addr), (id, addr))
FORWARD_RDMACM_TELLING(OWNER(id), rdma_resolve_addr,
	       (struct rdma_cm_id * id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms),
	       (id, src, dst, timeout_ms))
FORWARD_RDMACM(OWNER(id), rdma_resolve_route,
	       (struct rdma_cm_id * id, int timeout_ms), (id, timeout_ms))
FORWARD_RDMACM(OWNER(id), rdma_listen, (struct rdma_cm_id * id, int backlog), (id, backlog))
FORWARD_RDMACM(OWNER(listen), rdma_get_request,
	       (struct rdma_cm_id * listen, struct rdma_cm_id **id), (listen, id))

FORWARD_RDMACM_TELLING(OWNER(id), rdma_connect,
	       (struct rdma_cm_id * id, struct rdma_conn_param *param), (id, param))
FORWARD_RDMACM(OWNER(id), rdma_establish, (struct rdma_cm_id * id), (id))
FORWARD_RDMACM_TELLING(OWNER(id), rdma_accept,
	       (struct rdma_cm_id * id, struct rdma_conn_param *param), (id, param))
FORWARD_RDMACM(OWNER(id), rdma_reject, (struct rdma_cm_id * id, const void *data, uint8_t length),
	       (id, data, length))
FORWARD_RDMACM(OWNER(id), rdma_reject_ece,
	       (struct rdma_cm_id * id, const void *data, uint8_t length),
	       (id, data, length))
FORWARD_RDMACM(OWNER(id), rdma_notify,
	       (struct rdma_cm_id * id, enum ibv_event_type event), (id, event))
FORWARD_RDMACM(OWNER(id), rdma_disconnect, (struct rdma_cm_id * id), (id))
FORWARD_RDMACM(OWNER(id), rdma_set_local_ece,
	       (struct rdma_cm_id * id, struct ibv_ece *ece), (id, ece))
FORWARD_RDMACM(OWNER(id), rdma_get_remote_ece,
	       (struct rdma_cm_id * id, struct ibv_ece *ece), (id, ece))

FORWARD_RDMACM(OWNER(id), rdma_join_multicast,
	       (struct rdma_cm_id * id, struct sockaddr *addr, void *context),
	       (id, addr, context))
FORWARD_RDMACM(OWNER(id), rdma_join_multicast_ex,
	       (struct rdma_cm_id * id, struct rdma_cm_join_mc_attr_ex *attr, void *context),
	       (id, attr, context))
FORWARD_RDMACM(OWNER(id), rdma_leave_multicast,
	       (struct rdma_cm_id * id, struct sockaddr *addr), (id, addr))

FORWARD_RDMACM(OWNER(id), rdma_create_qp,
	       (struct rdma_cm_id * id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr),
	       (id, pd, attr))
FORWARD_RDMACM(OWNER(id), rdma_create_qp_ex,
	       (struct rdma_cm_id * id, struct ibv_qp_init_attr_ex *attr),
	       (id, attr))
FORWARD_VOID(OWNER(id), rdma_destroy_qp, (struct rdma_cm_id * id), (id))
FORWARD_RDMACM(OWNER(id), rdma_create_srq,
	       (struct rdma_cm_id * id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr),
	       (id, pd, attr))
FORWARD_RDMACM(OWNER(id), rdma_create_srq_ex,
	       (struct rdma_cm_id * id, struct ibv_srq_init_attr_ex *attr),
	       (id, attr))
FORWARD_VOID(OWNER(id), rdma_destroy_srq, (struct rdma_cm_id * id), (id))
FORWARD_RDMACM(OWNER(id), rdma_init_qp_attr,
	       (struct rdma_cm_id * id, struct ibv_qp_attr *attr, int *mask),
	       (id, attr, mask))

FORWARD_NUMBER(OWNER(id), __be16, rdma_get_src_port, (struct rdma_cm_id * id), (id))
FORWARD_NUMBER(OWNER(id), __be16, rdma_get_dst_port, (struct rdma_cm_id * id), (id))
FORWARD_POINTER(NO_OWNER, struct ibv_context **, rdma_get_devices, (int *count), (count))
FORWARD_VOID(NO_OWNER, rdma_free_devices, (struct ibv_context * *list), (list))

/* Linking fails if a function of the table is not forwarded here. */
#define FORWARDED(function) __typeof__(function) *const preload_##function = &function;
CORE_RDMACM_FUNCTIONS(FORWARDED)
