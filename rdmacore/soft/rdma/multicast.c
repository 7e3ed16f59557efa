/* Groups that ids join and leave (rdma_join_multicast(3)). */
#include "soft/rdma/rdma.h"

#include <errno.h>

#include "soft/cm/calls.h"

static int join(struct rdma_cm_id *rdma_id, struct sockaddr *address, bool send_only, void *context)
{
	struct soft_id *id = soft_id_lock(rdma_id);

	if (!id)
		return -1;
	if (soft_cm_finish(id->cm, soft_join_add(id, address, send_only, context)))
		return -1;
	return soft_id_complete(rdma_id);
}

int soft_join_multicast(struct rdma_cm_id *id, struct sockaddr *address, void *context)
{
	return join(id, address, false, context);
}

int soft_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	const uint32_t known = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	if (!attr || attr->comp_mask & ~known) {
		errno = attr ? ENOTSUP : EINVAL;
		return -1;
	}
	if (attr->comp_mask != known || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) {
		errno = EINVAL;
		return -1;
	}
	return join(id, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
}

int soft_leave_multicast(struct rdma_cm_id *rdma_id, struct sockaddr *address)
{
	struct soft_id *id = soft_id_lock(rdma_id);

	return id ? soft_cm_finish(id->cm, soft_join_remove(id, address)) : -1;
}
