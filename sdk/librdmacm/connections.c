/* Connections, and multicast groups. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static struct id *of(struct rdma_cm_id *id) { return CONTAINER(id, struct id, base); }

/* NULL stays NULL. */
static const struct rdmarun_conn_param *param_to_host(struct rdmarun_conn_param *to, const struct rdma_conn_param *from)
{
	if (!from)
		return NULL;
	memset(to, 0, sizeof(*to));
	to->struct_size = sizeof(*to);
	to->responder_resources = from->responder_resources;
	to->initiator_depth = from->initiator_depth;
	to->flow_control = from->flow_control;
	to->retry_count = from->retry_count;
	to->rnr_retry_count = from->rnr_retry_count;
	to->srq = from->srq;
	to->qp_num = from->qp_num;
	if (from->private_data) {
		to->private_data_len = from->private_data_len;
		memcpy(to->private_data, from->private_data, from->private_data_len);
	}
	return to;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int32_t result = rdmarun_listen(of(id)->handle, (uint32_t)(backlog < 0 ? 0 : backlog));

	update_id(of(id));
	return cm_result(result);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct rdmarun_conn_param host;

	return end_of_call(of(id), rdmarun_connect(of(id)->handle, param_to_host(&host, param)));
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct rdmarun_conn_param host;

	return end_of_call(of(id), rdmarun_accept(of(id)->handle, param_to_host(&host, param)));
}

int rdma_establish(struct rdma_cm_id *id) { return cm_result(rdmarun_establish(of(id)->handle)); }

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t length)
{
	return cm_result(rdmarun_reject_ece(of(id)->handle, private_data, private_data ? length : 0));
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t length)
{
	return cm_result(rdmarun_reject(of(id)->handle, private_data, private_data ? length : 0));
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return cm_result(rdmarun_notify(of(id)->handle, event));
}

int rdma_disconnect(struct rdma_cm_id *id) { return end_of_call(of(id), rdmarun_disconnect(of(id)->handle)); }

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *address, void *context)
{
	struct rdmarun_address group;

	address_to_host(&group, address);
	return end_of_call(of(id), rdmarun_join_multicast(of(id)->handle, &group, (intptr_t)context));
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	struct rdmarun_address group;
	uint32_t flags = attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS ? attr->join_flags : 0;

	if (!(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS)) {
		errno = EINVAL;
		return -1;
	}
	address_to_host(&group, attr->addr);
	return end_of_call(of(id), rdmarun_join_multicast_ex(of(id)->handle, &group, flags, (intptr_t)context));
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *address)
{
	struct rdmarun_address group;

	address_to_host(&group, address);
	return cm_result(rdmarun_leave_multicast(of(id)->handle, &group));
}
