#include "soft/objects/verbs.h"

#include <errno.h>
#include <string.h>

#include "provider/newer.h"
#include "soft/base/fabric.h"
#include "soft/objects/context.h"
#include "soft/objects/device.h"
#include "soft/wire/datagram.h"

#define CLOCK_KHZ 1000000 /* a tick is a nanosecond */

/* Operations on on-demand memory by service: all that the service has. */
#define ODP_RELIABLE                                                                               \
	(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |                     \
	 IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV)
#define ODP_DATAGRAM (IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV)

int soft_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex full = {
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = CLOCK_KHZ,
		.cq_mod_caps = {.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX},
		.phys_port_cnt_ex = 1,
		.max_dm_size = SOFT_DEVICE_MEMORY,
	};

	if (soft_context_is_removed(context))
		return EIO;
	if ((input && input->comp_mask) || attr_size < sizeof(full.orig_attr))
		return EINVAL;
	soft_device_attributes(soft_device(context->device), &full.orig_attr);
	if (soft_device(context->device)->on_demand) {
		full.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
		full.odp_caps.per_transport_caps.rc_odp_caps = ODP_RELIABLE | IBV_ODP_SUPPORT_RECV;
		full.odp_caps.per_transport_caps.uc_odp_caps = ODP_DATAGRAM | IBV_ODP_SUPPORT_WRITE;
		full.odp_caps.per_transport_caps.ud_odp_caps = ODP_DATAGRAM;
		full.xrc_odp_caps = ODP_RELIABLE;
	}
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags | CORE_CAP_ATOMIC_WRITE |
				   CORE_CAP_FLUSH_GLOBAL;
	memset(attr, 0, attr_size);
	memcpy(attr, &full, attr_size < sizeof(full) ? attr_size : sizeof(full));
	return 0;
}

int soft_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct soft_clock *clock = &soft_device(context->device)->fabric->clock;

	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	if (values->comp_mask)
		values->raw_clock = (struct timespec){.tv_nsec = (long)clock->now(clock)};
	return 0;
}

int soft_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	if (soft_context_is_removed(context))
		return EIO;
	soft_device_attributes(soft_device(context->device), attr);
	return 0;
}

int soft_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	if (soft_context_is_removed(context))
		return EIO;
	if (port != SOFT_PORT)
		return EINVAL;
	soft_port_attributes(soft_device(context->device), attr);
	return 0;
}

int soft_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	const struct soft_gid_table *table = &soft_device(context->device)->gid_table;

	if (port != SOFT_PORT || index < 0 || index >= SOFT_GID_TABLE) {
		errno = EINVAL;
		return -1;
	}
	/* Empty entries are zero. */
	*gid = soft_gid_is_there(table, (uint32_t)index) ? table->gids[index] : (union ibv_gid){0};
	return 0;
}

static struct ibv_gid_entry entry_of(const struct soft_gid_table *table, uint32_t index)
{
	return (struct ibv_gid_entry){
		.gid = table->gids[index],
		.gid_index = index,
		.port_num = SOFT_PORT,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = atomic_load_explicit(&table->interfaces[index], memory_order_relaxed),
	};
}

ssize_t soft_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	const struct soft_gid_table *table = &soft_device(context->device)->gid_table;
	struct ibv_gid_entry entry;
	size_t count = 0;

	if (flags || entry_size < sizeof(*entries))
		return -EINVAL;
	for (uint32_t index = 0; index < soft_gid_count(table); index++) {
		if (!soft_gid_is_there(table, index))
			continue;
		if (count == max_entries)
			return -EINVAL;
		entry = entry_of(table, index);
		memcpy((char *)entries + count++ * entry_size, &entry, sizeof(entry));
	}
	return (ssize_t)count;
}

int soft_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	if (port != SOFT_PORT || index != 0) {
		errno = ENOENT; /* libibverbs reads a file of sysfs, which does not exist then */
		return -1;
	}
	*pkey = SOFT_WIRE_PARTITION; /* all ones in either byte order */
	return 0;
}

int soft_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	const struct soft_gid_table *table = &soft_device(context->device)->gid_table;

	if (flags)
		return EOPNOTSUPP;
	if (port != SOFT_PORT || index >= SOFT_GID_TABLE || entry_size < sizeof(*entry))
		return EINVAL;
	if (!soft_gid_is_there(table, index)) /* the entry is empty */
		return ENODATA;
	*entry = entry_of(table, index);
	return 0;
}

int soft_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	__be16 own;

	if (soft_query_pkey(context, port, 0, &own))
		return -1;
	if (pkey != own) {
		errno = ENOENT; /* libibverbs searches until an index has no key */
		return -1;
	}
	return 0;
}
