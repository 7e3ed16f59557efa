/* Devices, their ports and GIDs, and their async events. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/call.h"

int core_get_devices(struct core_provider *provider, struct ibv_context ***contexts, int *count)
{
	CORE_NEEDS(provider->rdma_get_devices && provider->rdma_free_devices);
	core_select(provider);
	*contexts = provider->rdma_get_devices(count);
	return *contexts ? 0 : core_errno();
}

void core_free_devices(struct core_provider *provider, struct ibv_context **contexts)
{
	provider->rdma_free_devices(contexts);
}

int core_query_device(struct core_provider *provider, struct ibv_context *context,
		      struct ibv_device_attr *attr)
{
	CORE_NEEDS(provider->ibv_query_device);
	return core_verbs_result(provider->ibv_query_device(context, attr));
}

/* Like the inline ibv_query_device_ex of verbs.h. */
int core_query_device_ex(struct core_provider *provider, struct ibv_context *context,
			 struct ibv_device_attr_ex *attr)
{
	struct verbs_context *extended = verbs_get_ctx_op(context, query_device_ex);
	int result;

	if (extended) {
		result = extended->query_device_ex(context, NULL, attr, sizeof(*attr));
		if (result != EOPNOTSUPP && result != ENOSYS)
			return core_verbs_result(result);
	}
	memset(attr, 0, sizeof(*attr));
	return core_query_device(provider, context, &attr->orig_attr);
}

#define NANOSECONDS UINT64_C(1000000000) /* in a second */

/* Drivers put all ticks into tv_nsec, whatever a tick is; a full second would be in tv_sec. */
int core_query_rt_values(struct ibv_context *context, uint64_t *raw_clock)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	int result = core_verbs_result(ibv_query_rt_values_ex(context, &values));

	if (result)
		return result;
	if (!(values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
		return -EOPNOTSUPP;
	*raw_clock = (uint64_t)values.raw_clock.tv_sec * NANOSECONDS + (uint64_t)values.raw_clock.tv_nsec;
	return 0;
}

int core_device_index(struct core_provider *provider, struct ibv_context *context)
{
	return provider->ibv_get_device_index ? provider->ibv_get_device_index(context->device) : -1;
}

int core_query_pkey(struct core_provider *provider, struct ibv_context *context, uint8_t port, int index,
		    uint16_t *pkey)
{
	__be16 wire;

	CORE_NEEDS(provider->ibv_query_pkey);
	if (provider->ibv_query_pkey(context, port, index, &wire))
		return core_errno();
	*pkey = be16toh(wire);
	return 0;
}

int core_get_pkey_index(struct core_provider *provider, struct ibv_context *context, uint8_t port,
			uint16_t pkey)
{
	int index;

	CORE_NEEDS(provider->ibv_get_pkey_index);
	index = provider->ibv_get_pkey_index(context, port, htobe16(pkey));
	return index < 0 ? core_errno() : index;
}

/*
 * Like the inline ibv_query_port of verbs.h. The exported function sets only the fields of the struct's first version,
 * so the device's own operation is called if there is one.
 */
int core_query_port(struct core_provider *provider, struct ibv_context *context, uint8_t port,
		    struct ibv_port_attr *attr)
{
	struct verbs_context *extended = verbs_get_ctx_op(context, query_port);

	if (extended)
		return core_verbs_result(extended->query_port(context, port, attr, sizeof(*attr)));
	CORE_NEEDS(provider->ibv_query_port);
	memset(attr, 0, sizeof(*attr));
	return core_verbs_result(provider->ibv_query_port(context, port,
							  (struct _compat_ibv_port_attr *)attr));
}

/*
 * The most that one call can return. The length of an attribute of the kernel's ioctl has 16 bits, and longer buffers
 * are EINVAL (struct ib_uverbs_attr of rdma_user_ioctl_cmds.h).
 */
#define GID_TABLE_MAX (UINT16_MAX / (int)sizeof(struct ibv_gid_entry))

static int query_gid_table(struct core_provider *provider, struct ibv_context *context,
			   struct core_gid *gids, int max)
{
	struct ibv_gid_entry *entries = calloc((size_t)max, sizeof(*entries));
	ssize_t count;

	if (!entries)
		return -ENOMEM;
	count = provider->_ibv_query_gid_table(context, entries, (size_t)max, 0,
					       sizeof(*entries));
	for (ssize_t i = 0; i < count; i++) {
		memcpy(gids[i].raw, entries[i].gid.raw, sizeof(gids[i].raw));
		gids[i].index = entries[i].gid_index;
		gids[i].port = entries[i].port_num;
		gids[i].type = entries[i].gid_type;
		gids[i].netdev_index = entries[i].ndev_ifindex;
	}
	free(entries);
	return (int)count;
}

/*
 * For a library without the table call: one entry after the other. It does not return the type, which is IB on
 * InfiniBand and unknown (UINT32_MAX) elsewhere.
 */
static int query_each_gid(struct core_provider *provider, struct ibv_context *context, uint8_t port,
			  struct core_gid *gids, int max)
{
	static const union ibv_gid empty;
	struct ibv_port_attr attr;
	union ibv_gid gid;
	int count = 0;
	int result = core_query_port(provider, context, port, &attr);

	if (result)
		return result;
	for (int index = 0; index < attr.gid_tbl_len && count < max; index++) {
		if (provider->ibv_query_gid(context, port, index, &gid) ||
		    !memcmp(&gid, &empty, sizeof(gid)))
			continue;
		memcpy(gids[count].raw, gid.raw, sizeof(gids[count].raw));
		gids[count].index = (uint32_t)index;
		gids[count].port = port;
		gids[count].type = attr.link_layer == IBV_LINK_LAYER_INFINIBAND ? IBV_GID_TYPE_IB
										: UINT32_MAX;
		gids[count].netdev_index = 0;
		count++;
	}
	return count;
}

int core_query_gids(struct core_provider *provider, struct ibv_context *context,
		    struct core_gid *gids, int max)
{
	struct ibv_device_attr attr;
	int count = 0;
	int result;

	if (provider->_ibv_query_gid_table) {
		result = query_gid_table(provider, context, gids,
					 max < GID_TABLE_MAX ? max : GID_TABLE_MAX);
		if (result >= 0)
			return result;
		/* More valid entries than fit are an error, too: query one by one. */
	}
	CORE_NEEDS(provider->ibv_query_gid);
	result = core_query_device(provider, context, &attr);
	if (result)
		return result;
	for (uint8_t port = 1; port <= attr.phys_port_cnt; port++) {
		result = query_each_gid(provider, context, port, gids + count, max - count);
		if (result < 0)
			return result;
		count += result;
	}
	return count;
}

uint64_t core_device_guid(struct core_provider *provider, struct ibv_context *context)
{
	if (!provider->ibv_get_device_guid)
		return 0;
	return be64toh(provider->ibv_get_device_guid(context->device));
}

int core_async_fd(struct ibv_context *context)
{
	int result = core_set_nonblocking(context->async_fd);

	return result ? result : context->async_fd;
}

int core_get_async_event(struct core_provider *provider, struct ibv_context *context,
			 int *type, uintptr_t *element)
{
	struct ibv_async_event event;

	CORE_NEEDS(provider->ibv_get_async_event && provider->ibv_ack_async_event);
	while (provider->ibv_get_async_event(context, &event))
		if (errno != EINTR)
			return core_errno();
	*type = event.event_type;
	switch (event.event_type) {
	case IBV_EVENT_CQ_ERR:
		*element = (uintptr_t)event.element.cq;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		*element = (uintptr_t)event.element.qp;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		*element = (uintptr_t)event.element.srq;
		break;
	case IBV_EVENT_WQ_FATAL:
		*element = (uintptr_t)event.element.wq;
		break;
	default: /* events of ports and of the device */
		*element = (uintptr_t)event.element.port_num;
	}
	provider->ibv_ack_async_event(&event);
	return 0;
}
