/* Datagrams over both links: which queue pairs get them and which do not, by address, state, service and group. */
#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "soft/engine/calls.h"
#include "soft/objects/ah.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/multicast.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define GROUP_QP 0xffffff
#define SENT 8

static const union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 5}};
static const union ibv_gid elsewhere = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 99, [15] = 1}};

/* The address of side's datagrams: on the local link, that of the loopback. */
static union ibv_gid address_of(const struct side *side, bool local)
{
	static const union ibv_gid loopback = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

	return local ? loopback : side->host->address;
}

static void send_to(struct wire *wire, const union ibv_gid *gid, uint32_t number)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid}};
	struct ibv_ah *ah = soft_create_ah(wire->a.host->pd, &attr);
	struct ibv_sge sge = {(uintptr_t)wire->a.memory, SENT, wire->a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	CHECK(ah);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = number;
	wr.wr.ud.remote_qkey = SIM_QKEY;
	CHECK(!soft_post_send(wire->a.qp, &wr, &bad));
	CHECK(!soft_destroy_ah(ah));
	sim_net_run(&wire->net, UINT64_MAX);
}

static int completions(struct side *side)
{
	struct ibv_wc wcs[8];

	return soft_poll_cq(side->cq, 8, wcs);
}

/* The send completes, whether a queue pair receives it or not. */
static void check_received(struct wire *wire, bool heard)
{
	wire_completion(&wire->a, IBV_WC_SUCCESS);
	CHECK(completions(&wire->b) == heard);
	CHECK(soft_qp(wire->b.qp)->receive.consumed == heard);
}

static void test_addresses(bool local)
{
	struct wire wire;
	union ibv_gid own;

	wire_open_on(&wire, local, IBV_QPT_UD, 4);
	own = address_of(&wire.b, local);
	wire_receive(&wire.b, 4096);
	send_to(&wire, &elsewhere, wire.b.qp->qp_num);
	check_received(&wire, false);
	send_to(&wire, &own, wire.b.qp->qp_num ^ 1);
	check_received(&wire, false);
	send_to(&wire, &own, wire.b.qp->qp_num);
	check_received(&wire, true);
	wire_close(&wire);
}

/* IBTA 10.3.1: from RTR on, but in ERR. */
static void test_states(bool local)
{
	for (int state = IBV_QPS_RESET; state <= IBV_QPS_ERR; state++) {
		bool receives = state >= IBV_QPS_RTR && state <= IBV_QPS_SQE;
		union ibv_gid own;
		struct wire wire;

		wire_open_on(&wire, local, IBV_QPT_UD, 4);
		own = address_of(&wire.b, local);
		wire_receive(&wire.b, 4096);
		atomic_store(&soft_qp(wire.b.qp)->state, state);
		send_to(&wire, &own, wire.b.qp->qp_num);
		check_received(&wire, receives);
		atomic_store(&soft_qp(wire.b.qp)->state, IBV_QPS_RTS);
		wire_close(&wire);
	}
}

/* A datagram to a connection's queue pair, and a connection's packet to one of datagrams. */
static void test_services(bool local)
{
	static const enum soft_service services[] = {SOFT_RELIABLE_CONNECTION, SOFT_UNRELIABLE_CONNECTION};
	struct sim_path path = {.mtu = IBV_MTU_1024};
	union ibv_gid own;
	struct wire wire;

	wire_open_on(&wire, local, IBV_QPT_UD, 4);
	own = address_of(&wire.b, local);
	for (int reliable = 0; reliable < 2; reliable++) {
		struct ibv_qp *qp = sim_qp(wire.b.host, reliable ? IBV_QPT_RC : IBV_QPT_UC, wire.b.cq, 4);
		struct ibv_sge sge = {(uintptr_t)wire.b.memory, 4096, wire.b.mr->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

		sim_connect_to(qp, wire.a.host, wire.a.qp->qp_num, &path, 0, 0);
		soft_qp(qp)->attr.qkey = SIM_QKEY;
		CHECK(!soft_post_recv(qp, &wr, &bad));
		send_to(&wire, &own, qp->qp_num);
		wire_completion(&wire.a, IBV_WC_SUCCESS);
		CHECK(!completions(&wire.b) && !soft_qp(qp)->receive.consumed);
		CHECK(!soft_destroy_qp(qp));
	}
	wire_receive(&wire.b, 4096);
	for (size_t row = 0; row < sizeof(services) / sizeof(services[0]); row++) {
		struct soft_packet packet = {.opcode = services[row] | SOFT_SEND_ONLY, .queue_key = SIM_QKEY};

		soft_lock_take(&soft_qp(wire.b.qp)->responder.lock);
		soft_datagram_receive(soft_qp(wire.b.qp), &packet);
		soft_lock_release(&soft_qp(wire.b.qp)->responder.lock);
		CHECK(!completions(&wire.b));
	}
	wire_close(&wire);
}

/* A sender in its own group receives its datagram, unless it was created not to (ibv_create_qp_ex(3)). */
static void test_own_group(bool local)
{
	for (int blocked = 0; blocked < 2; blocked++) {
		struct ibv_qp_init_attr_ex attr = {
			.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
			.qp_type = IBV_QPT_UD,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
			.create_flags = blocked ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0,
		};
		struct wire wire;

		wire_open_on(&wire, local, IBV_QPT_UD, 4);
		CHECK(!soft_destroy_qp(wire.a.qp));
		attr.pd = wire.a.host->pd;
		attr.send_cq = attr.recv_cq = wire.a.cq;
		wire.a.qp = soft_create_qp_ex(wire.a.host->context, &attr);
		CHECK(wire.a.qp);
		sim_ready(wire.a.qp);
		CHECK(!soft_attach_mcast(wire.a.qp, &group, 0));
		CHECK(!soft_attach_mcast(wire.b.qp, &group, 0));
		CHECK(!soft_attach_mcast(wire.b.qp, &group, 0)); /* it still gets each datagram once */
		wire_receive(&wire.a, 4096);
		wire_receive(&wire.b, 4096);
		wire_receive(&wire.b, 4096);
		send_to(&wire, &group, GROUP_QP);
		CHECK(completions(&wire.a) == (blocked ? 1 : 2)); /* the send's, and the receive's */
		CHECK(completions(&wire.b) == 1);
		CHECK(soft_destroy_qp(wire.a.qp) == EBUSY);
		CHECK(!soft_detach_mcast(wire.a.qp, &group, 0));
		CHECK(soft_detach_mcast(wire.a.qp, &group, 0) == EINVAL);
		CHECK(!soft_detach_mcast(wire.b.qp, &group, 0));
		CHECK(soft_detach_mcast(wire.b.qp, &group, 0) == EINVAL);
		wire_close(&wire);
	}
}

/* One member of a group fails because of a datagram; the others still get it. */
static void test_group_fails_apart(bool local)
{
	struct ibv_qp *others[2];
	struct wire wire;

	wire_open_on(&wire, local, IBV_QPT_UD, 4);
	wire_receive(&wire.b, SENT); /* no room for the header */
	CHECK(!soft_attach_mcast(wire.b.qp, &group, 0));
	for (int other = 0; other < 2; other++) {
		struct ibv_sge sge = {(uintptr_t)wire.b.memory, 4096, wire.b.mr->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

		others[other] = sim_qp(wire.b.host, IBV_QPT_UD, wire.b.cq, 4);
		sim_ready(others[other]);
		CHECK(!soft_post_recv(others[other], &wr, &bad));
		CHECK(!soft_attach_mcast(others[other], &group, 0));
	}
	send_to(&wire, &group, GROUP_QP);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	wire_completion(&wire.b, IBV_WC_LOC_LEN_ERR);
	CHECK(completions(&wire.b) == 2);
	CHECK(soft_qp_state(soft_qp(wire.b.qp)) == IBV_QPS_ERR);
	for (int other = 0; other < 2; other++) {
		CHECK(soft_qp_state(soft_qp(others[other])) == IBV_QPS_RTS);
		CHECK(!soft_detach_mcast(others[other], &group, 0));
		CHECK(!soft_destroy_qp(others[other]));
	}
	CHECK(!soft_detach_mcast(wire.b.qp, &group, 0));
	wire_close(&wire);
}

/* A datagram that makes its receiver fail changes neither the sender nor the rest of its list. */
static void test_list_goes_on(bool local)
{
	struct ibv_sge sge;
	struct ibv_send_wr wrs[2], *bad;
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_qp *other;
	struct ibv_ah *ah;
	struct ibv_recv_wr wr = {.num_sge = 1}, *bad_receive;
	struct wire wire;

	wire_open_on(&wire, local, IBV_QPT_UD, 4);
	attr.grh.dgid = address_of(&wire.b, local);
	ah = soft_create_ah(wire.a.host->pd, &attr);
	CHECK(ah);
	wire_receive(&wire.b, SENT); /* no room for the header */
	other = sim_qp(wire.b.host, IBV_QPT_UD, wire.b.cq, 4);
	sim_ready(other);
	sge = (struct ibv_sge){(uintptr_t)wire.b.memory, 4096, wire.b.mr->lkey};
	wr.sg_list = &sge;
	CHECK(!soft_post_recv(other, &wr, &bad_receive));
	for (int index = 0; index < 2; index++) {
		wrs[index] = (struct ibv_send_wr){.opcode = IBV_WR_SEND, .next = index ? NULL : &wrs[1]};
		wrs[index].wr.ud.ah = ah;
		wrs[index].wr.ud.remote_qpn = index ? other->qp_num : wire.b.qp->qp_num;
		wrs[index].wr.ud.remote_qkey = SIM_QKEY;
	}
	CHECK(!soft_post_send(wire.a.qp, wrs, &bad));
	sim_net_run(&wire.net, UINT64_MAX);
	/* Settled before or after the second one went, by link. */
	CHECK(completions(&wire.b) == 2 && soft_qp(other)->receive.consumed == 1);
	CHECK(soft_qp_state(soft_qp(wire.b.qp)) == IBV_QPS_ERR && soft_qp_state(soft_qp(other)) == IBV_QPS_RTS);
	CHECK(!soft_destroy_qp(other));
	CHECK(!soft_destroy_ah(ah));
	wire_close(&wire);
}

/* Invalid paths (soft_ah_check): an unspecified address, and one of another family than the own GID. */
static void test_nobody(struct wire *wire)
{
	const struct {
		uint8_t dgid[16], sgid_index;
		int error;
	} rows[] = {
		{{0}, 0, EINVAL}, {{0}, 1, EINVAL},
		{{[15] = 1}, 0, EINVAL}, {{[15] = 1}, 1, 0},
		{{[10] = 0xff, 0xff}, 0, ENODEV},
		{{[10] = 0xff, 0xff, 127, 0, 0, 1}, 0, 0}, {{[10] = 0xff, 0xff, 127, 0, 0, 1}, 1, EINVAL},
		{{[10] = 0xff, 0xff, 239, 1, 2, 3}, 1, 0}, {{0xff, 0x0e, [15] = 1}, 0, 0},
	};

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.sgid_index = rows[row].sgid_index};
		struct ibv_ah *ah;

		memcpy(attr.grh.dgid.raw, rows[row].dgid, sizeof(rows[row].dgid));
		ah = soft_create_ah(wire->a.host->pd, &attr);
		CHECK(rows[row].error ? !ah && errno == rows[row].error : ah && !soft_destroy_ah(ah));
	}
}

/* Requests, groups and address handles that are rejected. */
static void test_refused(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_ah_attr good = {.is_global = 1, .port_num = 1, .grh.dgid.raw = {[10] = 0xff, 0xff, 127}}, attr;
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_grh grh = {0};
	struct ibv_qp *connected;
	struct wire wire;

	wire_open_on(&wire, true, IBV_QPT_UD, 4);
	CHECK(soft_post_send(wire.a.qp, &wr, &bad) == EINVAL && bad == &wr); /* no address handle */
	connected = sim_qp(wire.a.host, IBV_QPT_RC, wire.a.cq, 1);
	CHECK(soft_attach_mcast(connected, &group, 0) == EINVAL);
	CHECK(soft_attach_mcast(wire.a.qp, &elsewhere, 0) == EINVAL);
	CHECK(!soft_destroy_qp(connected));
	for (int wrong = 0; wrong < 3; wrong++) {
		attr = good;
		attr.is_global = wrong != 0;
		attr.port_num = wrong == 1 ? 2 : 1;
		attr.grh.sgid_index = wrong == 2 ? SOFT_GIDS_MAX - 1 : 0;
		CHECK(!soft_create_ah(wire.a.host->pd, &attr) && errno == (wrong == 2 ? ENODATA : EINVAL));
	}
	test_nobody(&wire);
	/* An invalid header, an invalid port, and a completion without a header. */
	CHECK(soft_init_ah_from_wc(wire.a.host->context, 1, &wc, &grh, &attr) && errno == EINVAL);
	((uint8_t *)&grh)[0] = 0x60;
	CHECK(!soft_init_ah_from_wc(wire.a.host->context, 1, &wc, &grh, &attr));
	CHECK(soft_init_ah_from_wc(wire.a.host->context, 2, &wc, &grh, &attr) && errno == EINVAL);
	wc.wc_flags = 0;
	CHECK(soft_init_ah_from_wc(wire.a.host->context, 1, &wc, &grh, &attr) && errno == EINVAL);
	wire_close(&wire);
}

/* The way back has what the way there had: IPv6's traffic class and flow label, IPv4's type of service. */
static void test_way_back(void)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .sl = 3};
	uint8_t header[SOFT_GRH] = {0x6a, 0xb1, 0x23, 0x45, [6] = 17, [8] = 0x20, [23] = 7};
	struct ibv_ah_attr attr;
	struct wire wire;

	wire_open_on(&wire, true, IBV_QPT_UD, 4);
	memcpy(&header[24], &wire.a.host->device->gid_table.gids[1], 16);
	CHECK(!soft_init_ah_from_wc(wire.a.host->context, 1, &wc, (struct ibv_grh *)(void *)header, &attr));
	CHECK(attr.grh.traffic_class == 0xab && attr.grh.flow_label == 0x12345 && attr.sl == 3);
	CHECK(attr.grh.sgid_index == 1 && attr.grh.dgid.raw[0] == 0x20 && attr.grh.dgid.raw[15] == 7);
	memset(header, 0, sizeof(header));
	header[20] = 0x45;
	header[21] = 0x5c;
	memcpy(&header[32], &(const uint8_t[]){10, 1, 2, 3}, 4);
	memcpy(&header[36], &wire.a.host->device->gid_table.gids[0].raw[12], 4);
	CHECK(!soft_init_ah_from_wc(wire.a.host->context, 1, &wc, (struct ibv_grh *)(void *)header, &attr));
	CHECK(attr.grh.traffic_class == 0x5c && attr.grh.sgid_index == 0 && attr.grh.dgid.raw[15] == 3);
	CHECK(attr.grh.dgid.raw[11] == 0xff && attr.grh.dgid.raw[12] == 10);
	wire_close(&wire);
}

int main(void)
{
	for (int local = 0; local < 2; local++) {
		test_addresses(local);
		test_states(local);
		test_services(local);
		test_own_group(local);
		test_group_fails_apart(local);
		test_list_goes_on(local);
	}
	test_refused();
	test_way_back();
	return 0;
}
