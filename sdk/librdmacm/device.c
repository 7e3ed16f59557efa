/* The device: the role's, the one that a guest has.  Its functions are found where rdma-core's inline functions look. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static struct verbs_context verbs;
static struct ibv_device device;

enum ibv_mtu mtu_of(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && bytes >= 256u << mtu)
		mtu++;
	return mtu;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct rdmarun_port_attr host = {.struct_size = sizeof(host)};
	struct ibv_port_attr all = {0};
	int32_t result = rdmarun_query_port(0, port, &host);

	(void)context;
	if (result < 0)
		return verbs_result(result);
	all.state = (enum ibv_port_state)host.state;
	all.link_layer = (uint8_t)host.link_layer;
	all.active_mtu = mtu_of(host.active_mtu);
	all.max_mtu = mtu_of(host.max_mtu);
	all.max_msg_sz = host.max_msg_sz;
	all.lid = (uint16_t)host.lid;
	all.gid_tbl_len = (int)host.gids;
	all.pkey_tbl_len = 1;
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

/* What programs had that were compiled before there was a link layer; the others call the function in the context. */
#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, link_layer));
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct rdmarun_device_attr host = {.struct_size = sizeof(host)};
	int32_t result = rdmarun_query_device(0, &host);

	(void)context;
	memset(attr, 0, sizeof(*attr));
	if (result < 0)
		return verbs_result(result);
	attr->node_guid = attr->sys_image_guid = htobe64(host.node_guid);
	attr->max_mr_size = host.max_mr_size;
	attr->page_size_cap = 4096;
	attr->max_qp = (int)host.max_qp;
	attr->max_qp_wr = (int)host.max_qp_wr;
	attr->device_cap_flags = host.device_cap_flags;
	attr->max_sge = (int)host.max_sge;
	attr->max_sge_rd = (int)host.max_sge_rd;
	attr->max_cq = (int)host.max_cq;
	attr->max_cqe = (int)host.max_cqe;
	attr->max_mr = (int)host.max_mr;
	attr->max_pd = (int)host.max_pd;
	attr->max_qp_rd_atom = (int)host.max_qp_rd_atom;
	attr->max_qp_init_rd_atom = (int)host.max_qp_init_rd_atom;
	attr->atomic_cap = host.atomic ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
	attr->max_srq = (int)host.max_srq;
	attr->max_srq_wr = (int)host.max_srq_wr;
	attr->max_srq_sge = (int)host.max_srq_sge;
	attr->max_ah = (int)host.max_ah;
	attr->max_mw = (int)host.max_mw;
	attr->max_mcast_grp = (int)host.max_mcast_grp;
	attr->max_pkeys = 1;
	attr->phys_port_cnt = (uint8_t)host.phys_port_cnt;
	return 0;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr plain;
	int error = ibv_query_device(context, &plain);

	(void)input;
	memset(attr, 0, size);
	if (!error)
		attr->orig_attr = plain;
	return error;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr plain;

	(void)context;
	if (attr->comp_mask != IBV_QP_INIT_ATTR_PD) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	memcpy(&plain, attr, sizeof(plain)); /* the extended struct begins as the other */
	return ibv_create_qp(attr->pd, &plain);
}

struct ibv_context *device_context(void)
{
	struct ibv_context *context = &verbs.context;
	struct rdmarun_device_attr host = {.struct_size = sizeof(host)};

	if (context->device)
		return context;
	if (rdmarun_query_device(0, &host) >= 0)
		memcpy(device.name, host.name, sizeof(device.name) - 1);
	strcpy(device.dev_name, "uverbs0");
	device.node_type = IBV_NODE_CA;
	device.transport_type = IBV_TRANSPORT_IB;
	context->device = &device;
	context->ops.poll_cq = poll_completions;
	context->ops.req_notify_cq = request_notification;
	context->ops.post_send = post_sends;
	context->ops.post_recv = post_receives;
	context->ops.post_srq_recv = post_shared_receives;
	context->ops.alloc_mw = alloc_window;
	context->ops.bind_mw = bind_window;
	context->ops.dealloc_mw = dealloc_window;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->num_comp_vectors = 1;
	context->cmd_fd = context->async_fd = -1;
	verbs.sz = sizeof(verbs);
	verbs.query_port = query_port;
	verbs.query_device_ex = query_device_ex;
	verbs.create_qp_ex = create_qp_ex;
	return context;
}

struct ibv_device **ibv_get_device_list(int *count)
{
	struct rdmarun_device_attr host = {.struct_size = sizeof(host)};
	struct ibv_device **list = calloc(2, sizeof(*list));
	bool there = rdmarun_query_device(0, &host) >= 0;

	if (list && there)
		list[0] = device_context()->device;
	if (count)
		*count = there;
	return list;
}

void ibv_free_device_list(struct ibv_device **list) { free(list); }

const char *ibv_get_device_name(struct ibv_device *which) { return which->name; }

__be64 ibv_get_device_guid(struct ibv_device *which)
{
	struct rdmarun_device_attr host = {.struct_size = sizeof(host)};

	(void)which;
	return rdmarun_query_device(0, &host) < 0 ? 0 : htobe64(host.node_guid);
}

struct ibv_context *ibv_open_device(struct ibv_device *which)
{
	(void)which;
	return device_context();
}

int ibv_close_device(struct ibv_context *context)
{
	(void)context;
	return 0;
}

struct ibv_context **rdma_get_devices(int *count)
{
	struct ibv_context **list = calloc(2, sizeof(*list));

	if (list)
		list[0] = device_context();
	if (count)
		*count = list != NULL;
	return list;
}

void rdma_free_devices(struct ibv_context **list) { free(list); }

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct rdmarun_gid_entry entry;
	int32_t result = rdmarun_query_gid_ex(0, port, (uint32_t)index, &entry);

	(void)context;
	if (result >= 0)
		memcpy(gid->raw, entry.gid, sizeof(gid->raw));
	else if (result == -RDMARUN_ENODATA) /* an empty entry is no error of this function's */
		memset(gid, 0, sizeof(*gid));
	return result == -RDMARUN_ENODATA ? 0 : cm_result(result);
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	int32_t result = rdmarun_query_pkey(0, port, (uint32_t)index);

	(void)context;
	if (result >= 0)
		*pkey = htobe16((uint16_t)result);
	return cm_result(result);
}

int ibv_fork_init(void) { return 0; }

enum ibv_fork_status ibv_is_fork_initialized(void) { return IBV_FORK_UNNEEDED; }

/* -1: the kernel has given it none. */
int ibv_get_device_index(struct ibv_device *which)
{
	(void)which;
	return -1;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
		[IBV_WC_MW_BIND_ERR] = "memory management operation error",
		[IBV_WC_BAD_RESP_ERR] = "bad response error",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[IBV_WC_REM_ABORT_ERR] = "operation aborted by the peer",
		[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
		[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
		[IBV_WC_GENERAL_ERR] = "general error",
		[IBV_WC_TM_ERR] = "tag matching error",
		[IBV_WC_TM_RNDV_INCOMPLETE] = "tag matching rendezvous incomplete",
	};

	return (unsigned)status < sizeof(names) / sizeof(names[0]) && names[status] ? names[status] : "unknown";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	static const char *const names[] = {"PORT_NOP", "PORT_DOWN", "PORT_INIT", "PORT_ARMED", "PORT_ACTIVE", "PORT_ACTIVE_DEFER"};

	return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "invalid state";
}
