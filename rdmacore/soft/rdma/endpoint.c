/* rdma_create_ep(3): an id with its address, its route and its queue pair in one call. */
#include "soft/rdma/rdma.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/refusal.h"

#define RESOLVE_TIMEOUT_MS 2000 /* of librdmacm, for the address and for the route */

/* For the queue pairs that rdma_get_request creates for children. */
static int keep_attr(struct soft_id *id, const struct rdma_addrinfo *info,
		     const struct ibv_qp_init_attr *attr)
{
	if (!attr)
		return 0;
	id->endpoint_attr = malloc(sizeof(*id->endpoint_attr));
	if (!id->endpoint_attr) {
		errno = ENOMEM;
		return -1;
	}
	*id->endpoint_attr = *attr;
	id->endpoint_attr->qp_type = (enum ibv_qp_type)info->ai_qp_type;
	return 0;
}

static int make_passive(struct rdma_cm_id *id, struct rdma_addrinfo *info, struct ibv_pd *pd,
			struct ibv_qp_init_attr *attr)
{
	if (soft_bind_addr(id, info->ai_src_addr))
		return -1;
	if (pd)
		id->pd = pd;
	return keep_attr(soft_id(id), info, attr);
}

static int set_route(struct rdma_cm_id *id, struct rdma_addrinfo *info)
{
	if (!info->ai_route_len)
		return soft_resolve_route(id, RESOLVE_TIMEOUT_MS);
	if (soft_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, info->ai_route,
			    info->ai_route_len))
		return -1;
	return soft_id_complete(id);
}

/* ai_connect precedes the private data of the first rdma_connect. */
static int keep_connect_data(struct soft_id *id, const struct rdma_addrinfo *info)
{
	if (!info->ai_connect_len)
		return 0;
	if (info->ai_connect_len > UINT8_MAX) {
		errno = soft_refuse(EINVAL, "ai_connect_len is more than any private data");
		return -1;
	}
	id->connect_prefix = malloc(info->ai_connect_len);
	if (!id->connect_prefix) {
		errno = ENOMEM;
		return -1;
	}
	memcpy(id->connect_prefix, info->ai_connect, info->ai_connect_len);
	id->connect_prefix_len = (uint8_t)info->ai_connect_len;
	return 0;
}

static int make_active(struct rdma_cm_id *id, struct rdma_addrinfo *info, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	if (soft_resolve_addr(id, info->ai_src_addr, info->ai_dst_addr, RESOLVE_TIMEOUT_MS))
		return -1;
	if (set_route(id, info))
		return -1;
	if (attr) { /* otherwise pd is ignored */
		attr->qp_type = (enum ibv_qp_type)info->ai_qp_type;
		if (soft_id_create_qp(id, pd, attr))
			return -1;
	}
	return keep_connect_data(soft_id(id), info);
}

int soft_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *info, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	char why[SOFT_REFUSAL_MAX];
	struct rdma_cm_id *id;
	int error;

	if (!out || !info) {
		errno = soft_refuse(EINVAL, "rdma_create_ep needs an rdma_addrinfo");
		return -1;
	}
	if (soft_create_id(NULL, &id, NULL, (enum rdma_port_space)info->ai_port_space))
		return -1;
	id->qp_type = (enum ibv_qp_type)info->ai_qp_type;
	error = info->ai_flags & RAI_PASSIVE ? make_passive(id, info, pd, attr) :
					       make_active(id, info, pd, attr);
	if (!error) {
		*out = id;
		return 0;
	}
	error = errno;
	/* Destroying the id clears the sentence, as each call does. */
	snprintf(why, sizeof(why), "%s", soft_refusal());
	soft_destroy_ep(id);
	errno = soft_refuse(error, "%s", why);
	return -1;
}

/* Destroy the id, its queue pair and its shared receive queue, without a disconnect.  The user's PD and CQs remain. */
void soft_destroy_ep(struct rdma_cm_id *id)
{
	if (!id)
		return;
	if (id->qp)
		soft_id_destroy_qp(id);
	if (id->srq)
		soft_id_destroy_srq(id);
	soft_destroy_id(id);
}
