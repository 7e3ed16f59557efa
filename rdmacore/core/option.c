/* Options of ids, including the path that replaces a resolved route. */
#include <string.h>

#include "core/call.h"

/*
 * The size of each option's value (rdma_set_option(3)). librdmacm passes the length to the kernel, and the results of
 * kernels differ. Here a wrong length is EINVAL and an unknown option ENOSYS.
 */
static int check_length(int level, int option, size_t length)
{
	switch (level) {
	case RDMA_OPTION_ID:
		switch (option) {
		case RDMA_OPTION_ID_TOS:
		case RDMA_OPTION_ID_ACK_TIMEOUT:
			return length == sizeof(uint8_t) ? 0 : -EINVAL;
		case RDMA_OPTION_ID_REUSEADDR:
		case RDMA_OPTION_ID_AFONLY:
			return length == sizeof(int) ? 0 : -EINVAL;
		}
		return -ENOSYS;
	case RDMA_OPTION_IB:
		if (option != RDMA_OPTION_IB_PATH)
			return -ENOSYS;
		return length && length % sizeof(struct ibv_path_data) == 0 ? 0 : -EINVAL;
	}
	return -ENOSYS;
}

int core_set_option(struct core_provider *provider, struct rdma_cm_id *id, int level, int option,
		    const void *value, size_t length)
{
	int result;

	CORE_NEEDS(provider->rdma_set_option);
	result = check_length(level, option, length);
	if (result)
		return result;
	/* The prototype lacks a const; librdmacm only reads. */
	return core_rdma_result(provider->rdma_set_option(id, level, option, (void *)(uintptr_t)value,
							  length));
}

/* Selector 2 of IBTA volume 1, 15.2.5.16: exactly this value. */
enum { EXACTLY = 2 };

int core_route_path(struct rdma_cm_id *id, struct ibv_path_data *data)
{
	const struct ibv_sa_path_rec *from = id->route.path_rec;
	struct ibv_path_record *path = &data->path;

	memset(data, 0, sizeof(*data));
	if (!id->route.num_paths || !from)
		return -ENOENT;
	data->flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	path->dgid = from->dgid;
	path->sgid = from->sgid;
	path->dlid = from->dlid;
	path->slid = from->slid;
	path->flowlabel_hoplimit = htobe32(be32toh(from->flow_label) << 8 | from->hop_limit);
	path->tclass = from->traffic_class;
	path->reversible_numpath = (uint8_t)((from->reversible ? 1 : 0) << 7 | 1);
	path->pkey = from->pkey;
	path->qosclass_sl = htobe16(from->sl);
	path->mtu = (uint8_t)(EXACTLY << 6 | (from->mtu & 0x3f));
	path->rate = (uint8_t)(EXACTLY << 6 | (from->rate & 0x3f));
	path->packetlifetime = (uint8_t)(EXACTLY << 6 | (from->packet_life_time & 0x3f));
	path->preference = from->preference;
	return 0;
}
