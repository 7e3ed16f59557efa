#include "ctest/support/sim_net.h"

#include "ctest/support/check.h"
#include "soft/objects/context.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define INLINE 128
#define SGES 4

void sim_net_open(struct sim_net *net, uint32_t hosts, const struct soft_packets_options *options)
{
	*net = (struct sim_net){.count = hosts};
	soft_fabric_init(&net->fabric, options->seed, true, NULL);
	CHECK(!soft_packets_create(&net->fabric, options, &net->sim));
	for (uint32_t index = 0; index < hosts; index++) {
		struct sim_host *host = &net->hosts[index];

		if (options->seed % 2)
			host->address = (union ibv_gid){.raw = {0x20, 1, 0xd, 0xb8}};
		else
			host->address = (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff, [12] = 10}};
		host->address.raw[15] = (uint8_t)(index + 1);
		CHECK(!soft_device_create(&net->fabric, "sim", &host->device));
		CHECK(!soft_packets_attach(net->sim, host->device, &host->address));
		host->context = soft_open_device(&host->device->ibv);
		CHECK(host->context);
		host->pd = soft_alloc_pd(host->context);
		CHECK(host->pd);
	}
}

void sim_net_close(struct sim_net *net)
{
	soft_packets_destroy(net->sim);
	for (uint32_t index = 0; index < net->count; index++) {
		CHECK(!soft_dealloc_pd(net->hosts[index].pd));
		CHECK(!soft_close_device(net->hosts[index].context));
		soft_device_destroy(net->hosts[index].device);
	}
	soft_fabric_destroy(&net->fabric);
}

void sim_net_run(struct sim_net *net, uint64_t limit)
{
	while (soft_timers_advance(&net->fabric.timers, limit))
		;
}

int sim_net_fault(struct sim_net *net, enum soft_fault_action action, uint32_t probability)
{
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .action = action,
				   .probability = probability, .directed = true};
	int rule = soft_fault_add(&net->fabric.faults, &fault);

	CHECK(rule >= 0);
	return rule;
}

struct ibv_cq *sim_cq(struct sim_host *host, int entries)
{
	struct ibv_cq *cq = soft_create_cq(host->context, entries, NULL, NULL, 0);

	CHECK(cq);
	return cq;
}

struct ibv_qp *sim_qp(struct sim_host *host, enum ibv_qp_type type, struct ibv_cq *cq, uint32_t depth)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = SGES,
			.max_recv_sge = SGES, .max_inline_data = INLINE},
		.qp_type = type, .send_cq = cq, .recv_cq = cq,
	};
	struct ibv_qp *qp = soft_create_qp(host->pd, &attr);

	CHECK(qp);
	return qp;
}

void sim_connect_to(struct ibv_qp *qp, const struct sim_host *to, uint32_t number,
		    const struct sim_path *path, uint32_t send_psn, uint32_t receive_psn)
{
	bool requests = qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND;
	bool responds = qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned int)path->access,
		.path_mtu = path->mtu, .dest_qp_num = number, .rq_psn = receive_psn, .sq_psn = send_psn,
		.max_dest_rd_atomic = path->depth, .max_rd_atomic = path->depth,
		.min_rnr_timer = path->rnr_timer, .timeout = path->timeout, .retry_cnt = path->retry,
		.rnr_retry = path->rnr_retry,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = to->address, .hop_limit = 64}},
	};

	CHECK(!soft_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						 IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!soft_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
						 IBV_QP_RQ_PSN |
						 (responds ? IBV_QP_MAX_DEST_RD_ATOMIC |
								     IBV_QP_MIN_RNR_TIMER :
							     0)));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!soft_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
						 (requests || responds ? IBV_QP_TIMEOUT : 0) |
						 (requests ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
								     IBV_QP_MAX_QP_RD_ATOMIC :
							     0)));
}

void sim_connect(struct sim_host *a, struct ibv_qp *qp_a, struct sim_host *b, struct ibv_qp *qp_b,
		 const struct sim_path *path)
{
	sim_connect_to(qp_a, b, qp_b->qp_num, path, path->psn[0], path->psn[1]);
	sim_connect_to(qp_b, a, qp_a->qp_num, path, path->psn[1], path->psn[0]);
}

void sim_ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = SIM_QKEY};

	CHECK(!soft_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!soft_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!soft_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}
