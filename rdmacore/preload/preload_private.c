/*
 * What libibverbs exports for rdma-core's own programs (ibv_devinfo) and reads from sysfs, where a soft
 * device has nothing.
 */
#include "preload.h"

#include <errno.h>
#include <stdlib.h>

/* infiniband/driver.h, which is not installed everywhere: 0 is InfiniBand or RoCE v1, 1 is RoCE v2. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type);

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	struct core_provider *provider = preload_provider();
	struct ibv_port_attr attr;
	struct ibv_gid_entry *entries;
	ssize_t count;
	int result = -1;

	if (!provider || ibv_query_port(context, port, (struct _compat_ibv_port_attr *)&attr))
		return -1;
	entries = calloc((size_t)attr.gid_tbl_len, sizeof(*entries));
	if (!entries)
		return -1;
	count = provider->_ibv_query_gid_table(context, entries, (size_t)attr.gid_tbl_len, 0,
					       sizeof(*entries));
	for (ssize_t i = 0; i < count; i++)
		if (entries[i].port_num == port && entries[i].gid_index == index) {
			*type = entries[i].gid_type == IBV_GID_TYPE_ROCE_V2;
			result = 0;
		}
	free(entries);
	if (result)
		errno = ENODATA;
	return result;
}
