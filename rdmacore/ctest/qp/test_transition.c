/*
 * The attributes that each transition of a queue pair requires and allows: all of them, one bit at a time. Also the
 * rejected values, and that queries return what was set.
 *
 * The table is that of Linux (qp_state_table of drivers/infiniband/core/verbs.c), which is IBTA 11.2.5.2.
 */
#include "ctest/support/check.h"
#include "ctest/support/sim_net.h"
#include "soft/base/capability.h"
#include "soft/objects/context.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/objects/srq.h"
#include "soft/objects/verbs.h"
#include "soft/qp/internal.h"
#include "soft/qp/verbs.h"

#define PKEY IBV_QP_PKEY_INDEX
#define PORT IBV_QP_PORT
#define QKEY IBV_QP_QKEY
#define ACCESS IBV_QP_ACCESS_FLAGS
#define AV IBV_QP_AV
#define ALT IBV_QP_ALT_PATH
#define MIG IBV_QP_PATH_MIG_STATE
#define CUR IBV_QP_CUR_STATE
#define RNR_TIMER IBV_QP_MIN_RNR_TIMER
#define SQ_PSN IBV_QP_SQ_PSN
#define NOTIFY IBV_QP_EN_SQD_ASYNC_NOTIFY
#define DEST (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RETRIES (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)

enum { RC, UC, UD, TYPES };

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

static const struct {
	enum ibv_qp_state from, to;
	int required[TYPES], optional[TYPES];
} transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_RESET, IBV_QPS_INIT, {PKEY | PORT | ACCESS, PKEY | PORT | ACCESS, PKEY | PORT | QKEY}, {0}},
	{IBV_QPS_INIT, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_INIT, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_INIT, IBV_QPS_INIT, {0}, {PKEY | PORT | ACCESS, PKEY | PORT | ACCESS, PKEY | PORT | QKEY}},
	{IBV_QPS_INIT, IBV_QPS_RTR, {DEST | IBV_QP_MAX_DEST_RD_ATOMIC | RNR_TIMER, DEST, 0},
	 {ALT | ACCESS | PKEY, ALT | ACCESS | PKEY, PKEY | QKEY}},
	{IBV_QPS_RTR, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_RTR, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_RTR, IBV_QPS_RTS, {RETRIES | SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, SQ_PSN, SQ_PSN},
	 {CUR | ALT | ACCESS | RNR_TIMER | MIG, CUR | ALT | ACCESS | MIG, CUR | QKEY}},
	{IBV_QPS_RTS, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_RTS, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_RTS, IBV_QPS_RTS, {0},
	 {CUR | ALT | ACCESS | RNR_TIMER | MIG, CUR | ALT | ACCESS | MIG, CUR | QKEY}},
	{IBV_QPS_RTS, IBV_QPS_SQD, {0}, {NOTIFY, NOTIFY, NOTIFY}},
	{IBV_QPS_SQD, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_SQD, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_SQD, IBV_QPS_RTS, {0},
	 {CUR | ALT | ACCESS | RNR_TIMER | MIG, CUR | ALT | ACCESS | MIG, CUR | QKEY}},
	{IBV_QPS_SQD, IBV_QPS_SQD, {0},
	 {PORT | AV | RETRIES | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | ALT | ACCESS | PKEY |
		  RNR_TIMER | MIG,
	  AV | ALT | ACCESS | PKEY | MIG, PKEY | QKEY}},
	{IBV_QPS_SQE, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_SQE, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_SQE, IBV_QPS_RTS, {0}, {0, CUR | ACCESS, CUR | QKEY}},
	{IBV_QPS_ERR, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_ERR, IBV_QPS_ERR, {0}, {0}},
};

#define TRANSITIONS (sizeof(transitions) / sizeof(transitions[0]))

static void check_pair(int type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	int required = 0, optional = 0;
	bool exists = false;

	for (size_t row = 0; row < TRANSITIONS; row++) {
		if (transitions[row].from != from || transitions[row].to != to)
			continue;
		exists = true;
		required = transitions[row].required[type];
		optional = transitions[row].optional[type];
	}
	required |= IBV_QP_STATE;
	CHECK(soft_qp_transition_allowed(types[type], from, to, required) == exists);
	CHECK(soft_qp_transition_allowed(types[type], from, to, required | optional) == exists);
	for (int bit = IBV_QP_STATE << 1; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
		bool allowed = exists && (bit & (required | optional));

		CHECK(soft_qp_transition_allowed(types[type], from, to, required | bit) == allowed);
		if (required & bit)
			CHECK(!soft_qp_transition_allowed(types[type], from, to, required & ~bit));
	}
}

static void test_masks(void)
{
	for (int type = 0; type < TYPES; type++)
		for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++)
			for (int to = IBV_QPS_RESET; to <= IBV_QPS_UNKNOWN; to++)
				check_pair(type, (enum ibv_qp_state)from, (enum ibv_qp_state)to);
}

/* --- values ----------------------------------------------------------------------------------- */

static struct ibv_qp_attr good(const struct sim_host *host)
{
	return (struct ibv_qp_attr){
		.port_num = 1, .path_mtu = IBV_MTU_512, .dest_qp_num = 77, .rq_psn = 0x123456,
		.sq_psn = 0xabcdef, .qkey = 5, .qp_access_flags = IBV_ACCESS_REMOTE_READ,
		.ah_attr = {.is_global = 1, .port_num = 1, .sl = 2, .grh = {.dgid = host->address}},
		.alt_ah_attr = {.is_global = 1, .port_num = 1, .sl = 3}, .alt_port_num = 1, .alt_timeout = 4,
		.max_rd_atomic = 3, .max_dest_rd_atomic = 2, .min_rnr_timer = 9, .timeout = 12,
		.retry_cnt = 6, .rnr_retry = 5, .path_mig_state = IBV_MIG_MIGRATED,
	};
}

static const enum ibv_qp_state path[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};

static int full_mask(enum ibv_qp_state to)
{
	return IBV_QP_STATE |
	       (to == IBV_QPS_INIT ? PKEY | PORT | ACCESS :
		to == IBV_QPS_RTR  ? DEST | IBV_QP_MAX_DEST_RD_ATOMIC | RNR_TIMER | ALT :
				     RETRIES | SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | CUR | MIG);
}

/* Each makes one value wrong, of what the transition to that state sets. */
static const struct {
	enum ibv_qp_state to;
	size_t offset, size;
	uint32_t value;
} wrongs[] = {
#define WRONG(to, field, value) {to, offsetof(struct ibv_qp_attr, field), sizeof(((struct ibv_qp_attr *)0)->field), value}
	WRONG(IBV_QPS_INIT, port_num, 0), WRONG(IBV_QPS_INIT, port_num, 2), WRONG(IBV_QPS_INIT, pkey_index, 1),
	WRONG(IBV_QPS_RTR, path_mtu, 0), WRONG(IBV_QPS_RTR, path_mtu, 6), WRONG(IBV_QPS_RTR, ah_attr.is_global, 0),
	WRONG(IBV_QPS_RTR, ah_attr.grh.sgid_index, SOFT_GIDS_MAX - 1), WRONG(IBV_QPS_RTR, dest_qp_num, 0x1000000),
	WRONG(IBV_QPS_RTR, max_dest_rd_atomic, SOFT_MAX_RD_ATOMIC + 1), WRONG(IBV_QPS_RTR, alt_port_num, 2), WRONG(IBV_QPS_RTR, ah_attr.port_num, 2),
	WRONG(IBV_QPS_RTS, max_rd_atomic, SOFT_MAX_RD_ATOMIC + 1),
	WRONG(IBV_QPS_RTS, path_mig_state, IBV_MIG_ARMED), WRONG(IBV_QPS_RTS, cur_qp_state, IBV_QPS_RTS),
	WRONG(IBV_QPS_RTS, timeout, 32), WRONG(IBV_QPS_RTR, alt_timeout, 32),
};

static void set_value(struct ibv_qp_attr *attr, size_t offset, size_t size, uint32_t value)
{
	memcpy((char *)attr + offset, &value, size); /* the lower bytes come first where this runs */
}

static void check_state(struct soft_qp *qp, enum ibv_qp_state state)
{
	CHECK(soft_qp_state(qp) == state && qp->ibv.state == state);
}

static void test_values(void)
{
	struct soft_packets_options options = {.seed = 2, .datagrams = 1};
	struct sim_net net;
	struct ibv_cq *cq;
	struct soft_qp *qp;

	sim_net_open(&net, 1, &options);
	cq = sim_cq(&net.hosts[0], 8);
	qp = soft_qp(sim_qp(&net.hosts[0], IBV_QPT_RC, cq, 4));
	for (size_t step = 0; step < sizeof(path) / sizeof(path[0]); step++) {
		enum ibv_qp_state before = soft_qp_state(qp);
		struct ibv_qp_attr attr = good(&net.hosts[0]);

		for (size_t row = 0; row < sizeof(wrongs) / sizeof(wrongs[0]); row++) {
			struct ibv_qp_attr wrong = attr;

			wrong.qp_state = path[step];
			wrong.cur_qp_state = before;
			if (wrongs[row].to != path[step])
				continue;
			set_value(&wrong, wrongs[row].offset, wrongs[row].size, wrongs[row].value);
			CHECK(soft_modify_qp(&qp->ibv, &wrong, full_mask(path[step])) ==
			      (wrong.ah_attr.grh.sgid_index < SOFT_GIDS_MAX - 1 ? EINVAL : ENODATA));
			check_state(qp, before);
		}
		attr.qp_state = path[step];
		attr.cur_qp_state = before;
		CHECK(!soft_modify_qp(&qp->ibv, &attr, full_mask(path[step])));
		check_state(qp, path[step]);
	}
	CHECK(!soft_destroy_qp(&qp->ibv));
	CHECK(!soft_destroy_cq(cq));
	sim_net_close(&net);
}

/* --- ibv_query_qp(3) -------------------------------------------------------------------------- */

static void check_set(const struct ibv_qp_attr *attr, const struct ibv_qp_attr *set)
{
	CHECK(attr->qp_state == IBV_QPS_RTS && attr->cur_qp_state == IBV_QPS_RTS);
	CHECK(attr->path_mig_state == IBV_MIG_MIGRATED && attr->port_num == 1 && attr->pkey_index == 0);
	CHECK(attr->path_mtu == set->path_mtu && attr->dest_qp_num == 77);
	CHECK(attr->rq_psn == set->rq_psn && attr->sq_psn == set->sq_psn);
	CHECK(attr->qp_access_flags == set->qp_access_flags && attr->min_rnr_timer == 9);
	CHECK(attr->ah_attr.sl == 2 && attr->alt_ah_attr.sl == 3 && attr->alt_port_num == 1);
	CHECK(!memcmp(&attr->ah_attr.grh.dgid, &set->ah_attr.grh.dgid, sizeof(union ibv_gid)));
	CHECK(attr->alt_timeout == 4 && attr->timeout == 12 && attr->retry_cnt == 6 && attr->rnr_retry == 5);
	CHECK(attr->max_rd_atomic == 3 && attr->max_dest_rd_atomic == 2 && !attr->sq_draining);
}

static void test_query(void)
{
	struct soft_packets_options options = {.seed = 2, .datagrams = 1};
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 3, .max_send_sge = 2, .max_inline_data = 5},
					.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .qp_context = &options}, got;
	struct ibv_qp_attr attr, set;
	struct sim_net net;
	struct ibv_qp *qp;

	sim_net_open(&net, 1, &options);
	init.send_cq = sim_cq(&net.hosts[0], 8);
	init.recv_cq = sim_cq(&net.hosts[0], 8);
	init.srq = soft_create_srq(net.hosts[0].pd, &srq_attr);
	CHECK(init.srq);
	qp = soft_create_qp(net.hosts[0].pd, &init);
	CHECK(qp);
	for (size_t step = 0; step < sizeof(path) / sizeof(path[0]); step++) {
		set = good(&net.hosts[0]);
		set.cur_qp_state = soft_qp_state(soft_qp(qp));
		set.qp_state = path[step];
		CHECK(!soft_modify_qp(qp, &set, full_mask(path[step])));
	}
	CHECK(!soft_query_qp(qp, &attr, ~0, &got));
	check_set(&attr, &set);
	CHECK(got.qp_context == &options && got.send_cq == init.send_cq && got.recv_cq == init.recv_cq);
	CHECK(got.srq == init.srq && got.qp_type == IBV_QPT_RC && got.sq_sig_all == 1);
	CHECK(got.cap.max_send_wr >= 3 && got.cap.max_send_sge >= 2 && got.cap.max_inline_data >= 5);
	CHECK(!memcmp(&attr.cap, &got.cap, sizeof(got.cap)) && got.cap.max_recv_wr == 0);
	/* RESET forgets all of it. */
	set.qp_state = IBV_QPS_RESET;
	CHECK(!soft_modify_qp(qp, &set, IBV_QP_STATE));
	CHECK(!soft_query_qp(qp, &attr, ~0, &got));
	CHECK(attr.qp_state == IBV_QPS_RESET && !attr.dest_qp_num && !attr.timeout && !attr.qp_access_flags);
	CHECK(!attr.rq_psn && !attr.sq_psn);
	CHECK(got.cap.max_send_wr >= 3);
	CHECK(!soft_destroy_qp(qp));
	CHECK(!soft_destroy_srq(init.srq));
	CHECK(!soft_destroy_cq(init.send_cq) && !soft_destroy_cq(init.recv_cq));
	sim_net_close(&net);
}

/* The limits of a queue pair: each limit, and one more. */
static void test_create(void)
{
	const struct {
		enum ibv_qp_type type;
		struct ibv_qp_cap cap;
		int error;
	} rows[] = {
		{IBV_QPT_RC, {.max_send_sge = SOFT_MAX_SGE, .max_recv_sge = SOFT_MAX_SGE}, 0},
		{IBV_QPT_RC, {.max_inline_data = SOFT_MAX_INLINE}, 0},
		{IBV_QPT_RC, {.max_send_sge = SOFT_MAX_SGE + 1}, EINVAL},
		{IBV_QPT_RC, {.max_recv_sge = SOFT_MAX_SGE + 1}, EINVAL},
		{IBV_QPT_RC, {.max_send_wr = SOFT_MAX_WR + 1}, EINVAL},
		{IBV_QPT_RC, {.max_recv_wr = SOFT_MAX_WR + 1}, EINVAL},
		{IBV_QPT_RC, {.max_inline_data = SOFT_MAX_INLINE + 1}, EINVAL},
		{IBV_QPT_RAW_PACKET, {0}, EOPNOTSUPP}, {IBV_QPT_XRC_SEND, {0}, 0},
		{IBV_QPT_XRC_RECV, {0}, EOPNOTSUPP}, /* only ibv_create_qp_ex has its domain */
	};
	struct soft_packets_options options = {.seed = 2, .datagrams = 1};
	struct sim_net net;
	struct ibv_cq *cq;

	sim_net_open(&net, 1, &options);
	cq = sim_cq(&net.hosts[0], 8);
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct ibv_qp_init_attr attr = {.qp_type = rows[row].type, .cap = rows[row].cap,
						.send_cq = cq, .recv_cq = cq};
		struct ibv_qp *qp = soft_create_qp(net.hosts[0].pd, &attr);

		CHECK(rows[row].error ? !qp && errno == rows[row].error : qp && !soft_destroy_qp(qp));
	}
	CHECK(!soft_destroy_cq(cq));
	sim_net_close(&net);
}

/* The calling thread's capabilities without CAP_NET_RAW, or with all that it may have. */
static void set_raw(bool allowed)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	struct __user_cap_data_struct *of = &data[CAP_TO_INDEX(CAP_NET_RAW)];

	CHECK(!syscall(SYS_capget, &header, data));
	of->effective = allowed ? of->effective | (of->permitted & CAP_TO_MASK(CAP_NET_RAW)) :
				  of->effective & ~CAP_TO_MASK(CAP_NET_RAW);
	CHECK(!syscall(SYS_capset, &header, data));
}

/* Privileged queue keys, as of QP 1, need the capability to send raw packets. */
static void test_controlled_key(void)
{
	struct soft_packets_options options = {.seed = 3, .datagrams = 1};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x80010000};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD};
	int mask = IBV_QP_STATE | PKEY | PORT | QKEY;
	struct sim_net net;
	struct ibv_qp *qp;

	sim_net_open(&net, 1, &options);
	init.send_cq = init.recv_cq = sim_cq(&net.hosts[0], 8);
	qp = soft_create_qp(net.hosts[0].pd, &init);
	CHECK(qp);
	set_raw(false);
	CHECK(soft_modify_qp(qp, &attr, mask) == EPERM);
	CHECK(soft_qp_state(soft_qp(qp)) == IBV_QPS_RESET);
	attr.qkey = 0x7fffffff;
	CHECK(!soft_modify_qp(qp, &attr, mask));
	set_raw(true);
	attr.qkey = 0x80010000;
	CHECK(soft_modify_qp(qp, &attr, mask) == (soft_has_capability(CAP_NET_RAW) ? 0 : EPERM));
	CHECK(!soft_destroy_qp(qp) && !soft_destroy_cq(init.send_cq));
	sim_net_close(&net);
}

int main(void)
{
	test_create();
	test_controlled_key();
	test_masks();
	test_values();
	test_query();
	return 0;
}
