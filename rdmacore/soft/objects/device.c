#include "soft/objects/device.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/bounds.h"
#include "soft/base/fabric.h"

int soft_device_create(struct soft_fabric *fabric, const char *name, struct soft_device **out)
{
	struct soft_device *device = calloc(1, sizeof(*device));
	int result;

	if (!device)
		return -ENOMEM;
	device->fabric = fabric;
	device->counters = fabric->tally->counters;
	device->ibv.node_type = IBV_NODE_CA;
	device->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(device->ibv.name, sizeof(device->ibv.name), "%s", name);
	snprintf(device->ibv.dev_name, sizeof(device->ibv.dev_name), "%s", name);
	device->mtu = IBV_MTU_4096;
	/* A locally administered EUI-64. It is random, so that a peer does not take this device for an earlier one. */
	device->guid = (soft_fabric_random(fabric) & ~(UINT64_C(3) << 56)) | UINT64_C(2) << 56;

	/* 0 is SMI and 1 is GSI: IBTA 10.2.4.1, special queue pairs. */
	result = soft_table_init(&device->queue_pairs, 2, SOFT_MAX_QP, soft_fabric_random(fabric));
	if (result)
		goto free_device;
	result = soft_table_init(&device->shared_queues, 1, SOFT_MAX_SRQ, soft_fabric_random(fabric));
	if (result)
		goto destroy_queue_pairs;
	result = soft_mr_table_init(&device->memory, soft_fabric_random(fabric));
	if (result)
		goto destroy_shared_queues;
	device->on_demand = soft_on_demand_is_supported();
	soft_multicast_init(&device->multicast);
	soft_mutex_init(&device->lock, SOFT_ORDER_DEVICE);
	soft_gid_table_init(&device->gid_table);
	device->legal = fabric->legal.choices ? &fabric->legal : NULL;
	soft_table_choose(&device->queue_pairs, device->legal);
	soft_mr_table_choose(&device->memory, device->legal);
	*out = device;
	return 0;

destroy_shared_queues:
	soft_table_destroy(&device->shared_queues);
destroy_queue_pairs:
	soft_table_destroy(&device->queue_pairs);
free_device:
	free(device);
	return result;
}

void soft_device_destroy(struct soft_device *device)
{
	soft_mr_table_destroy(&device->memory);
	soft_multicast_destroy(&device->multicast);
	soft_table_destroy(&device->shared_queues);
	soft_table_destroy(&device->queue_pairs);
	soft_gid_table_destroy(&device->gid_table);
	soft_mutex_destroy(&device->lock);
	free(device);
}

void soft_device_raise(struct soft_device *device, enum soft_context_event event)
{
	struct soft_context *context;

	soft_mutex_lock(&device->lock);
	LIST_FOREACH(context, &device->contexts, entry)
		if (!soft_context_is_removed(&context->verbs.context))
			soft_async_raise(&context->verbs.context, &context->events[event]);
	soft_mutex_unlock(&device->lock);
}

void soft_device_attributes(const struct soft_device *device, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.fw_ver = "soft",
		.node_guid = htobe64(device->guid),
		.sys_image_guid = htobe64(device->guid),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffff000,
		.vendor_id = SOFT_VENDOR_ID,
		.max_qp = SOFT_MAX_QP,
		.max_qp_wr = SOFT_MAX_WR,
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_SRQ_RESIZE |
				    IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_MEM_WINDOW |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_UD_AV_PORT_ENFORCE |
				    IBV_DEVICE_XRC |
				    /* LOCAL_INV and SEND_WITH_INV; its other features are for kernels */
				    IBV_DEVICE_MEM_MGT_EXTENSIONS,
		.max_sge = SOFT_MAX_SGE,
		.max_sge_rd = SOFT_MAX_SGE,
		.max_cq = SOFT_MAX_CQ,
		.max_cqe = SOFT_MAX_CQE,
		.max_mr = SOFT_MR_MAX,
		.max_pd = SOFT_MAX_PD,
		.max_qp_rd_atom = SOFT_MAX_RD_ATOMIC,
		.max_res_rd_atom = SOFT_MAX_RD_ATOMIC * SOFT_MAX_QP,
		.max_qp_init_rd_atom = SOFT_MAX_RD_ATOMIC,
		/* The processor executes atomics, so they are atomic for all accesses. */
		.atomic_cap = IBV_ATOMIC_GLOB,
		.max_ah = SOFT_MAX_AH,
		.max_mcast_grp = SOFT_MAX_MULTICAST_GROUPS,
		.max_mcast_qp_attach = SOFT_MAX_MULTICAST_MEMBERS,
		.max_total_mcast_qp_attach = SOFT_MAX_MULTICAST_GROUPS * SOFT_MAX_MULTICAST_MEMBERS,
		.max_mw = SOFT_MR_MAX,
		.max_srq = SOFT_MAX_SRQ,
		.max_srq_wr = SOFT_MAX_WR,
		.max_srq_sge = SOFT_MAX_SGE,
		.max_pkeys = 1,
		.local_ca_ack_delay = SOFT_ACK_DELAY,
		.phys_port_cnt = 1,
	};
}

void soft_port_attributes(const struct soft_device *device, struct ibv_port_attr *attr)
{
	bool down = atomic_load(&device->port_down);

	*attr = (struct ibv_port_attr){
		.state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = device->mtu,
		.gid_tbl_len = SOFT_GID_TABLE,
		.port_cap_flags = IBV_PORT_CM_SUP,
		.max_msg_sz = SOFT_MAX_MESSAGE,
		.qkey_viol_cntr = atomic_load(&device->queue_key_violations),
		.pkey_tbl_len = 1,
		.max_vl_num = 1, /* VL0 */
		.active_width = 1, /* 1x */
		.active_speed = 8, /* 10 Gbit/s a lane, as rdma_rxe reports it: there is no wire */
		.phys_state = down ? 3 : 5, /* Disabled, or LinkUp */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
}
