/*
 * Hostile programs and guests. They pass lists longer than a queue pair allows, lengths with a sum that wraps, and
 * invalid codes. Their queue pairs send to others than their peer. Run under AddressSanitizer.
 */
#include <netinet/in.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/sim_wire.h"
#include "soft/objects/cq.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

/* More than any queue pair has room for. */
#define TOO_MANY 64

/* A request that is executed locally has no list, so none may be copied, whatever its fields contain. */
static void test_lists_of_local_requests(struct bench *bench)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_LOCAL_INV, IBV_WR_BIND_MW};
	struct ibv_mw *mw = ibv_alloc_mw(bench->pd, IBV_MW_TYPE_2);
	struct ibv_sge list[TOO_MANY];
	struct bare a, b;

	CHECK(mw);
	memset(list, 0x41, sizeof(list));
	bare_create(&a, bench, IBV_QPT_RC, NULL);
	bare_create(&b, bench, IBV_QPT_RC, NULL);
	bare_connect(&a, &b);
	for (size_t row = 0; row < sizeof(opcodes) / sizeof(opcodes[0]); row++) {
		static const int counts[] = {-1, 5, TOO_MANY, 1 << 30};

		for (size_t count = 0; count < sizeof(counts) / sizeof(counts[0]); count++) {
			struct ibv_send_wr wr = {
				.opcode = opcodes[row], .num_sge = counts[count], .sg_list = list,
				.bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey)},
			};

			CHECK(bare_post(&a, &wr) == EINVAL);
		}
	}
	/* The maximum number of entries is not read, and an unbound window cannot be invalidated. */
	for (int round = 0; round < 2 * BENCH_DEPTH; round++) {
		struct ibv_send_wr wr = {.wr_id = 7, .opcode = IBV_WR_LOCAL_INV, .num_sge = 4, .sg_list = list,
					 .invalidate_rkey = 0x4141};

		CHECK(!bare_post(&a, &wr));
		expect_wc(&a, 7, round ? IBV_WC_WR_FLUSH_ERR : IBV_WC_MW_BIND_ERR);
	}
	bare_destroy(&a);
	bare_destroy(&b);
	CHECK(!ibv_dealloc_mw(mw));
}

static struct ibv_qp_ex *make_builder(struct bare *bare, struct bench *bench)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = 4, .max_send_sge = 2, .max_inline_data = 64},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = bench->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
				  IBV_QP_EX_WITH_ATOMIC_WRITE,
	};

	*bare = (struct bare){.bench = bench};
	bare->cq = bench->provider->ibv_create_cq(bench->context, 16, NULL, NULL, 0);
	CHECK(bare->cq);
	attr.send_cq = attr.recv_cq = bare->cq;
	bare->qp = verbs_get_ctx_op(bench->context, create_qp_ex)->create_qp_ex(bench->context, &attr);
	CHECK(bare->qp);
	return bench->provider->ibv_qp_to_qp_ex(bare->qp);
}

static void begin_write(struct ibv_qp_ex *qp, const struct bench *bench)
{
	ibv_wr_start(qp);
	qp->wr_id = 1;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, bench->mr->rkey, (uintptr_t)bench->memory);
}

static void test_inline_lengths_wrap(struct bench *bench, struct ibv_qp_ex *qp)
{
	static char data[128];
	static const size_t lengths[][2] = {{SIZE_MAX - 15, 32}, {32, SIZE_MAX - 15}, {SIZE_MAX, 1}, {33, 32}};

	for (size_t row = 0; row < sizeof(lengths) / sizeof(lengths[0]); row++) {
		struct ibv_data_buf pieces[] = {{data, lengths[row][0]}, {data, lengths[row][1]}};

		begin_write(qp, bench);
		ibv_wr_set_inline_data_list(qp, 2, pieces);
		CHECK(ibv_wr_complete(qp) == EINVAL);
	}
	begin_write(qp, bench);
	ibv_wr_set_inline_data(qp, data, SIZE_MAX);
	CHECK(ibv_wr_complete(qp) == EINVAL);
}

/* Entries of a list have keys, whatever was set before them. */
static void test_list_after_inline_data(struct bench *bench, struct bare *bare, struct ibv_qp_ex *qp)
{
	static char secret[8] = "secret!";
	static const uint64_t word = 1;

	memset(bench->memory, 0, 16);
	for (int atomic = 0; atomic < 2; atomic++) {
		struct bare server;

		bare_create(&server, bench, IBV_QPT_RC, NULL);
		bare_connect(bare, &server);
		begin_write(qp, bench);
		if (atomic) {
			ibv_wr_abort(qp);
			ibv_wr_start(qp);
			ibv_wr_atomic_write(qp, bench->mr->rkey, (uintptr_t)bench->memory, &word);
		} else {
			ibv_wr_set_inline_data(qp, secret, 1);
		}
		ibv_wr_set_sge(qp, 0xdeadbeef, (uintptr_t)secret, sizeof(secret));
		CHECK(!ibv_wr_complete(qp));
		expect_wc(bare, 1, IBV_WC_LOC_PROT_ERR);
		CHECK(!bench->memory[0]);
		CHECK(!bare_modify(bare, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
		bare_destroy(&server);
	}
}

/* Setters of data must not overwrite a window's binding. */
static void test_data_of_local_requests(struct bench *bench, struct ibv_qp_ex *qp)
{
	struct ibv_mw *mw = ibv_alloc_mw(bench->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = {.mr = bench->mr, .addr = (uintptr_t)bench->memory, .length = 64,
					.mw_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_sge list[TOO_MANY] = {{0}};

	CHECK(mw);
	for (int row = 0; row < 4; row++) {
		ibv_wr_start(qp);
		if (row % 2)
			ibv_wr_bind_mw(qp, mw, ibv_inc_rkey(mw->rkey), &info);
		else
			ibv_wr_local_inv(qp, 0x4141);
		if (row < 2)
			ibv_wr_set_sge_list(qp, 1, list);
		else
			ibv_wr_set_inline_data(qp, list, 8);
		CHECK(ibv_wr_complete(qp) == EINVAL);
	}
	begin_write(qp, bench);
	ibv_wr_set_sge_list(qp, TOO_MANY, list);
	CHECK(ibv_wr_complete(qp) == EINVAL);
	begin_write(qp, bench);
	ibv_wr_set_sge_list(qp, SIZE_MAX, list);
	CHECK(ibv_wr_complete(qp) == EINVAL);
	CHECK(!ibv_dealloc_mw(mw));
}

static void test_builders(struct bench *bench)
{
	struct bare bare, server;
	struct ibv_qp_ex *qp = make_builder(&bare, bench);

	test_list_after_inline_data(bench, &bare, qp);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	bare_connect(&bare, &server);
	test_inline_lengths_wrap(bench, qp);
	test_data_of_local_requests(bench, qp);
	expect_no_wc(&bare);
	bare_destroy(&bare);
	bare_destroy(&server);
}

static void write_to(struct bare *bare, size_t offset, enum ibv_wc_status status)
{
	struct bench *bench = bare->bench;
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 3, &sge);

	wr.wr.rdma.remote_addr = (uintptr_t)bench->memory + offset;
	wr.wr.rdma.rkey = bench->mr->rkey;
	CHECK(!bare_post(bare, &wr));
	expect_wc(bare, 3, status);
}

/*
 * A queue pair sends to one that is connected to another: it has the right number, keys and next sequence number. Its
 * packets are dropped. An unreliable one gets no error.
 */
static void test_foreign_packets(struct bench *bench, enum ibv_qp_type type)
{
	enum ibv_wc_status unheard = type == IBV_QPT_RC ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr send = bench_wr(IBV_WR_SEND, 4, &sge);
	struct bare a, b, stranger;

	memset(bench->memory, 0, 8192);
	strcpy(bench->memory, "strange");
	bare_create(&a, bench, type, NULL);
	bare_create(&b, bench, type, NULL);
	bare_create(&stranger, bench, type, NULL);
	bare_connect(&a, &b);
	bare_init(&stranger);
	bare_ready_to_receive(&stranger, &b);
	bare_ready_to_send(&stranger);
	CHECK(!bare_recv(&b, 5, 4096, 8));
	if (type == IBV_QPT_UC) {
		CHECK(!bare_post(&stranger, &send));
		expect_wc(&stranger, 4, IBV_WC_SUCCESS);
	}
	write_to(&stranger, 4096, unheard);
	CHECK(!bench->memory[4096]);
	expect_no_wc(&b);
	/* The connection is not affected. */
	CHECK(!bare_post(&a, &send));
	expect_wc(&a, 4, IBV_WC_SUCCESS);
	expect_wc(&b, 5, IBV_WC_SUCCESS);
	CHECK(!strcmp(bench->memory + 4096, "strange"));
	write_to(&a, 4200, IBV_WC_SUCCESS);
	CHECK(!strcmp(bench->memory + 4200, "strange"));
	bare_destroy(&a);
	bare_destroy(&b);
	bare_destroy(&stranger);
}

/*
 * The same over the link packets, where a packet of a connection does not name its sender. The attacker is on the
 * peer's host, and has the peer's next sequence number.
 */
static void test_foreign_packets_with_packets(enum ibv_qp_type type)
{
	const struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 10, .retry = 1, .depth = 4, .access = IBV_ACCESS_REMOTE_WRITE};
	struct side stranger;
	struct wire wire;

	wire_open(&wire, type, 4);
	stranger = wire.a;
	stranger.cq = sim_cq(wire.a.host, 16);
	stranger.qp = sim_qp(wire.a.host, type, stranger.cq, 4);
	sim_connect_to(stranger.qp, wire.b.host, wire.b.qp->qp_num, &path, soft_qp(wire.b.qp)->responder.psn, 1);
	memset(wire.a.memory, 1, 8);
	memset(wire.b.memory, 2, 8);
	wire_post(&stranger, &wire.b, IBV_WR_RDMA_WRITE, 8);
	sim_net_run(&wire.net, UINT64_MAX);
	wire_completion(&stranger, type == IBV_QPT_RC ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
	CHECK(wire.b.memory[0] == 2);
	CHECK(soft_packets_count(wire.net.sim).dropped);
	wire_post(&wire.a, &wire.b, IBV_WR_RDMA_WRITE, 8);
	sim_net_run(&wire.net, UINT64_MAX);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(wire.b.memory[0] == 1);
	CHECK(!soft_destroy_qp(stranger.qp));
	CHECK(!soft_destroy_cq(stranger.cq));
	wire_close(&wire);
}

/* Its peer has the number of a queue pair here, and is not here. */
static void test_peer_elsewhere(struct bench *bench)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = bench->mtu, .rq_psn = 100,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = bench->gid, .hop_limit = 64}},
	};
	struct bare here, other;

	memset(bench->memory, 0, 8192);
	strcpy(bench->memory, "strange");
	bare_create(&here, bench, IBV_QPT_UC, NULL);
	bare_create(&other, bench, IBV_QPT_UC, NULL);
	bare_init(&here);
	bare_init(&other);
	attr.dest_qp_num = other.qp->qp_num;
	memcpy(&attr.ah_attr.grh.dgid.raw[12], (uint8_t[]){192, 0, 2, 7}, 4);
	CHECK(!bare_modify(&here, attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN));
	bare_ready_to_receive(&other, &here);
	bare_ready_to_send(&other);
	write_to(&other, 4096, IBV_WC_SUCCESS);
	CHECK(!bench->memory[4096]);
	bare_destroy(&here);
	bare_destroy(&other);
}

/* Codes have five bits; larger ones count as the maximum, and never shift too far. */
static void test_timeout_codes(struct core_provider *provider)
{
	struct rdma_event_channel *channel = create_channel(provider);
	struct sockaddr_storage address = local_address(7000);

	for (unsigned int code = 0; code <= UINT8_MAX; code += 17) {
		uint8_t value = (uint8_t)code;
		struct rdma_cm_id *id;

		CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
		CHECK(!provider->rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value,
						 sizeof(value)));
		CHECK(!provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
		expect_and_acknowledge(provider, channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		CHECK(!provider->rdma_resolve_route(id, 2000));
		expect_and_acknowledge(provider, channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
		CHECK(!provider->rdma_destroy_id(id));
	}
	provider->rdma_destroy_event_channel(channel);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	if (on_soft("lists without a length"))
		test_lists_of_local_requests(&bench);
	if (on_soft("misuse of builders"))
		test_builders(&bench);
	if (on_soft("senders that are not the peer")) {
		test_foreign_packets(&bench, IBV_QPT_RC);
		test_foreign_packets(&bench, IBV_QPT_UC);
		test_foreign_packets_with_packets(IBV_QPT_RC);
		test_foreign_packets_with_packets(IBV_QPT_UC);
	}
	if (on_soft("addresses that nobody has"))
		test_peer_elsewhere(&bench);
	test_timeout_codes(provider);
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
