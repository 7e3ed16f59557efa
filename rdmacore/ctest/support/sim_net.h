/* Devices on a packets link, in virtual time, without a provider: what tests of the engine itself use. */
#ifndef CTEST_SUPPORT_SIM_NET_H
#define CTEST_SUPPORT_SIM_NET_H

#include <infiniband/verbs.h>

#include "soft/base/fabric.h"
#include "soft/link/packets.h"

struct sim_host {
	struct soft_device *device;
	struct ibv_context *context;
	struct ibv_pd *pd;
	union ibv_gid address;
};

struct sim_net {
	struct soft_fabric fabric;
	struct soft_packets *sim;
	uint32_t count;
	struct sim_host hosts[SOFT_PACKETS_DEVICES];
};

/* How two queue pairs are connected; 0: defaults. */
struct sim_path {
	enum ibv_mtu mtu;
	uint8_t timeout, retry, rnr_retry, rnr_timer, depth; /* codes of ibv_modify_qp(3); READs and atomics */
	uint32_t psn[2]; /* where a and b begin to send */
	int access;
};

#define SIM_QKEY 0x11111111

/* The seed decides whether all of them have IPv4 addresses or all have IPv6 addresses. */
void sim_net_open(struct sim_net *net, uint32_t hosts, const struct soft_packets_options *options);
/* Every object of its hosts is gone. */
void sim_net_close(struct sim_net *net);
/* Let everything happen that is due until then, or all that ever will (UINT64_MAX). */
void sim_net_run(struct sim_net *net, uint64_t limit);
/* A fault of data between any two hosts. */
int sim_net_fault(struct sim_net *net, enum soft_fault_action action, uint32_t probability);

struct ibv_cq *sim_cq(struct sim_host *host, int entries);
struct ibv_qp *sim_qp(struct sim_host *host, enum ibv_qp_type type, struct ibv_cq *cq, uint32_t depth);
void sim_connect(struct sim_host *a, struct ibv_qp *qp_a, struct sim_host *b, struct ibv_qp *qp_b,
		 const struct sim_path *path);
/* One end only, from RESET on: to whatever has that number there. */
void sim_connect_to(struct ibv_qp *qp, const struct sim_host *to, uint32_t number,
		    const struct sim_path *path, uint32_t send_psn, uint32_t receive_psn);
/* Datagrams are sent and received from then on. */
void sim_ready(struct ibv_qp *qp);

#endif
