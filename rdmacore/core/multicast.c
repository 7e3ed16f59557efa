/* Multicast groups, of datagram ids and of their queue pairs. */
#include <string.h>
#include <sys/socket.h>

#include "core/call.h"

int core_join_multicast(struct core_provider *provider, struct rdma_cm_id *id,
			const struct core_address *group, uint64_t context)
{
	struct sockaddr_storage storage;
	struct sockaddr *address = core_address_to_sockaddr(group, &storage);

	CORE_NEEDS(provider->rdma_join_multicast);
	/* Reading MULTICAST_JOIN attaches the QP, through the id's device. */
	if (!address || !id->verbs)
		return -EINVAL;
	return core_rdma_result(provider->rdma_join_multicast(id, address,
							      (void *)(uintptr_t)context));
}

int core_join_multicast_ex(struct core_provider *provider, struct rdma_cm_id *id,
			   const struct core_address *group, uint32_t join_flags, uint64_t context)
{
	struct sockaddr_storage storage;
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = join_flags,
		.addr = core_address_to_sockaddr(group, &storage),
	};

	CORE_NEEDS(provider->rdma_join_multicast_ex);
	if (!attr.addr || !id->verbs || join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	return core_rdma_result(provider->rdma_join_multicast_ex(id, &attr,
								 (void *)(uintptr_t)context));
}

/*
 * A synchronous id keeps the event that ended its join until its next call. rdma_leave_multicast of librdmacm would
 * wait until that event is acknowledged.
 */
static int acknowledge_group_event(struct core_provider *provider, struct rdma_cm_id *id)
{
	struct rdma_cm_event *event = id->event;

	if (!event || (event->event != RDMA_CM_EVENT_MULTICAST_JOIN &&
		       event->event != RDMA_CM_EVENT_MULTICAST_ERROR))
		return 0;
	id->event = NULL;
	return core_rdma_result(provider->rdma_ack_cm_event(event));
}

int core_leave_multicast(struct core_provider *provider, struct rdma_cm_id *id,
			 const struct core_address *group)
{
	struct sockaddr_storage storage;
	struct sockaddr *address = core_address_to_sockaddr(group, &storage);
	int result;

	CORE_NEEDS(provider->rdma_leave_multicast);
	if (!address)
		return -EINVAL;
	result = acknowledge_group_event(provider, id);
	if (result)
		return result;
	return core_rdma_result(provider->rdma_leave_multicast(id, address));
}

int core_attach_mcast(struct core_provider *provider, struct ibv_qp *qp, const union ibv_gid *gid,
		      uint16_t lid)
{
	CORE_NEEDS(provider->ibv_attach_mcast);
	return core_verbs_result(provider->ibv_attach_mcast(qp, gid, lid));
}

int core_detach_mcast(struct core_provider *provider, struct ibv_qp *qp, const union ibv_gid *gid,
		      uint16_t lid)
{
	CORE_NEEDS(provider->ibv_detach_mcast);
	return core_verbs_result(provider->ibv_detach_mcast(qp, gid, lid));
}
