/*
 * Connection management: one call for each function of librdmacm. Where librdmacm would dereference NULL (an id
 * without a device or without a QP), these return EINVAL before the call.
 */
#include <endian.h>

#include "core/call.h"

int core_create_id(struct core_provider *provider, struct rdma_event_channel *channel,
		   int port_space, struct rdma_cm_id **id)
{
	int result;

	CORE_NEEDS(provider->rdma_create_id);
	result = core_rdma_result(provider->rdma_create_id(channel, id, NULL,
							   (enum rdma_port_space)port_space));
	if (!result)
		core_count(provider, CORE_ID, 1);
	return result;
}

int core_destroy_id(struct core_provider *provider, struct rdma_cm_id *id)
{
	int result;

	CORE_NEEDS(provider->rdma_destroy_id);
	if (id->qp)
		return -EBUSY;
	result = core_rdma_result(provider->rdma_destroy_id(id));
	if (!result)
		core_count(provider, CORE_ID, -1);
	return result;
}

int core_bind_addr(struct core_provider *provider, struct rdma_cm_id *id,
		   const struct core_address *address)
{
	struct sockaddr_storage storage;
	struct sockaddr *sockaddr = core_address_to_sockaddr(address, &storage);

	CORE_NEEDS(provider->rdma_bind_addr);
	if (!sockaddr)
		return -EINVAL;
	return core_rdma_result(provider->rdma_bind_addr(id, sockaddr));
}

int core_resolve_addr(struct core_provider *provider, struct rdma_cm_id *id,
		      const struct core_address *source, const struct core_address *destination,
		      int timeout_ms)
{
	struct sockaddr_storage source_storage, destination_storage;
	struct sockaddr *from = core_address_to_sockaddr(source, &source_storage);
	struct sockaddr *to = core_address_to_sockaddr(destination, &destination_storage);

	CORE_NEEDS(provider->rdma_resolve_addr);
	if (!to || (from && from->sa_family != to->sa_family))
		return -EINVAL;
	return core_rdma_result(provider->rdma_resolve_addr(id, from, to, timeout_ms));
}

int core_resolve_route(struct core_provider *provider, struct rdma_cm_id *id, int timeout_ms)
{
	CORE_NEEDS(provider->rdma_resolve_route);
	if (!id->verbs)
		return -EINVAL;
	return core_rdma_result(provider->rdma_resolve_route(id, timeout_ms));
}

int core_listen(struct core_provider *provider, struct rdma_cm_id *id, int backlog)
{
	CORE_NEEDS(provider->rdma_listen);
	return core_rdma_result(provider->rdma_listen(id, backlog));
}

/* The private data stays in param, which outlives the call. */
static struct rdma_conn_param *conn_param(const struct core_conn_param *param,
					  struct rdma_conn_param *storage)
{
	if (!param)
		return NULL;
	*storage = (struct rdma_conn_param){
		.private_data = param->private_data_len ? param->private_data : NULL,
		.private_data_len = param->private_data_len,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.flow_control = param->flow_control,
		.retry_count = param->retry_count,
		.rnr_retry_count = param->rnr_retry_count,
		.srq = param->srq,
		.qp_num = param->qp_num,
	};
	return storage;
}

int core_connect(struct core_provider *provider, struct rdma_cm_id *id,
		 const struct core_conn_param *param)
{
	struct rdma_conn_param storage;

	CORE_NEEDS(provider->rdma_connect);
	if (!id->verbs || (!param && !id->qp))
		return -EINVAL;
	return core_rdma_result(provider->rdma_connect(id, conn_param(param, &storage)));
}

int core_accept(struct core_provider *provider, struct rdma_cm_id *id,
		const struct core_conn_param *param)
{
	struct rdma_conn_param storage;

	CORE_NEEDS(provider->rdma_accept);
	if (!id->verbs || (!param && !id->qp))
		return -EINVAL;
	return core_rdma_result(provider->rdma_accept(id, conn_param(param, &storage)));
}

int core_reject(struct core_provider *provider, struct rdma_cm_id *id, const void *private_data,
		uint8_t private_data_len)
{
	CORE_NEEDS(provider->rdma_reject);
	if (!id->verbs)
		return -EINVAL;
	return core_rdma_result(provider->rdma_reject(id, private_data_len ? private_data : NULL,
						      private_data_len));
}

int core_establish(struct core_provider *provider, struct rdma_cm_id *id)
{
	CORE_NEEDS(provider->rdma_establish);
	if (!id->verbs || id->qp)
		return -EINVAL;
	return core_rdma_result(provider->rdma_establish(id));
}

int core_disconnect(struct core_provider *provider, struct rdma_cm_id *id)
{
	CORE_NEEDS(provider->rdma_disconnect);
	if (!id->verbs)
		return -EINVAL;
	return core_rdma_result(provider->rdma_disconnect(id));
}

int core_reject_ece(struct core_provider *provider, struct rdma_cm_id *id, const void *private_data,
		    uint8_t private_data_len)
{
	CORE_NEEDS(provider->rdma_reject_ece);
	if (!id->verbs)
		return -EINVAL;
	return core_rdma_result(provider->rdma_reject_ece(id, private_data_len ? private_data : NULL,
							  private_data_len));
}

int core_notify(struct core_provider *provider, struct rdma_cm_id *id, int event)
{
	CORE_NEEDS(provider->rdma_notify);
	return core_rdma_result(provider->rdma_notify(id, (enum ibv_event_type)event));
}

int core_set_local_ece(struct core_provider *provider, struct rdma_cm_id *id,
		       const struct ibv_ece *ece)
{
	struct ibv_ece copy = *ece;

	CORE_NEEDS(provider->rdma_set_local_ece);
	if (id->qp)
		return -EINVAL;
	return core_rdma_result(provider->rdma_set_local_ece(id, &copy));
}

int core_get_remote_ece(struct core_provider *provider, struct rdma_cm_id *id, struct ibv_ece *ece)
{
	CORE_NEEDS(provider->rdma_get_remote_ece);
	if (id->qp)
		return -EINVAL;
	return core_rdma_result(provider->rdma_get_remote_ece(id, ece));
}

int core_write_event(struct core_provider *provider, struct rdma_cm_id *id, int type, int status,
		     uint64_t arg)
{
	CORE_NEEDS(provider->rdma_write_cm_event);
	return core_rdma_result(provider->rdma_write_cm_event(id, (enum rdma_cm_event_type)type,
							      status, arg));
}

void core_local_address(struct rdma_cm_id *id, struct core_address *address)
{
	core_address_from_sockaddr(address, rdma_get_local_addr(id));
}

void core_peer_address(struct rdma_cm_id *id, struct core_address *address)
{
	core_address_from_sockaddr(address, rdma_get_peer_addr(id));
}

uint16_t core_src_port(struct core_provider *provider, struct rdma_cm_id *id)
{
	return provider->rdma_get_src_port ? be16toh(provider->rdma_get_src_port(id)) : 0;
}

uint16_t core_dst_port(struct core_provider *provider, struct rdma_cm_id *id)
{
	return provider->rdma_get_dst_port ? be16toh(provider->rdma_get_dst_port(id)) : 0;
}
