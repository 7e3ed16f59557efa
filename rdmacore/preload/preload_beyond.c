/*
 * Functions that the real libraries export in addition to the provider table, and that would take soft objects for
 * their own. Here they return what a device without that feature returns. Otherwise a program would crash in the real
 * library on an invalid pointer.
 */
#include "preload.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Of infiniband/driver.h, which is not installed everywhere. ibv_devinfo calls it, and the real one reads sysfs. 0 is
 * InfiniBand or RoCE v1, 1 is RoCE v2.
 */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type);

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	struct core_provider *provider = preload_provider_of(OWNER(context));
	struct ibv_gid_entry entry;
	int result;

	if (!provider)
		return -1;
	result = provider->_ibv_query_gid_ex(context, port, index, &entry, 0, sizeof(entry));
	if (result) {
		errno = result;
		return -1;
	}
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
	return 0;
}

/* Soft pins nothing, so a fork does not take pages away from the device. */
int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

/* memcpy guarantees no order. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp, (void)op, (void)flags;
	return 0;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)context, (void)attr, (void)mac, (void)vid;
	errno = EOPNOTSUPP;
	return -1;
}

/* PRELOAD_NONE: functions that create an object of a kind that a soft device does not have. */
#define PRELOAD_NONE(type, name, parameters)                                                       \
	type name parameters                                                                       \
	{                                                                                          \
		errno = EOPNOTSUPP;                                                                \
		return NULL;                                                                       \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"

PRELOAD_NONE(struct ibv_context *, ibv_import_device, (int fd))
PRELOAD_NONE(struct ibv_pd *, ibv_import_pd, (struct ibv_context * context, uint32_t handle))
PRELOAD_NONE(struct ibv_mr *, ibv_import_mr, (struct ibv_pd * pd, uint32_t handle))
PRELOAD_NONE(struct ibv_dm *, ibv_import_dm, (struct ibv_context * context, uint32_t handle))
PRELOAD_NONE(struct ibv_mr *, ibv_reg_dmabuf_mr,
	     (struct ibv_pd * pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access))

void ibv_unimport_pd(struct ibv_pd *pd)
{
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
}

/*
 * rsockets use internals of rdma_cm ids. Without a socket there is no descriptor that the other functions would
 * accept.
 */
int rsocket(int domain, int type, int protocol);

int rsocket(int domain, int type, int protocol)
{
	errno = EOPNOTSUPP;
	return -1;
}
