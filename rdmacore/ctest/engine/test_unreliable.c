/* Unreliable connections: what arrives, what is lost silently, and which requests are rejected. */
#include "ctest/support/bare.h"
#include "ctest/support/check.h"

static void make_pair(struct bench *bench, struct bare *client, struct bare *server)
{
	bare_create(client, bench, IBV_QPT_UC, NULL);
	bare_create(server, bench, IBV_QPT_UC, NULL);
	bare_connect(client, server);
}

static struct ibv_send_wr request(struct bench *bench, enum ibv_wr_opcode opcode, uint64_t wr_id,
				  struct ibv_sge *sge, size_t target)
{
	struct ibv_send_wr wr = bench_wr(opcode, wr_id, sge);

	wr.wr.rdma.remote_addr = (uintptr_t)bench->memory + target;
	wr.wr.rdma.rkey = bench->mr->rkey;
	return wr;
}

static void test_send_and_write(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 10000);
	struct bare client, server;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	make_pair(bench, &client, &server);
	memset(bench->memory, 0x5a, 10000);
	CHECK(!bare_recv(&server, 1, 1 << 16, 10000));
	wr = request(bench, IBV_WR_SEND_WITH_IMM, 2, &sge, 0);
	wr.imm_data = 77;
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 2, IBV_WC_SUCCESS);
	wc = expect_wc(&server, 1, IBV_WC_SUCCESS);
	CHECK(wc.byte_len == 10000 && wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == 77);
	CHECK(!memcmp(bench->memory + (1 << 16), bench->memory, 10000));

	wr = request(bench, IBV_WR_RDMA_WRITE, 3, &sge, 1 << 17);
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 3, IBV_WC_SUCCESS);
	CHECK(!bare_recv(&server, 4, 0, 0));
	wr = request(bench, IBV_WR_RDMA_WRITE_WITH_IMM, 5, &sge, 1 << 18);
	CHECK(!bare_post(&client, &wr));
	wc = expect_wc(&server, 4, IBV_WC_SUCCESS);
	CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 10000);
	expect_wc(&client, 5, IBV_WC_SUCCESS);
	CHECK(!memcmp(bench->memory + (1 << 17), bench->memory, 10000));
	CHECK(!memcmp(bench->memory + (1 << 18), bench->memory, 10000));
	bare_destroy(&client);
	bare_destroy(&server);
}

/* No receive, a wrong key, a missing right: nothing happens, and both ends continue. */
static void test_dropped(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 64);
	struct bare client, server;
	struct ibv_send_wr wr;

	make_pair(bench, &client, &server);
	wr = request(bench, IBV_WR_SEND, 1, &sge, 0);
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 1, IBV_WC_SUCCESS);
	memset(bench->memory + 4096, 0, 64);
	wr = request(bench, IBV_WR_RDMA_WRITE, 2, &sge, 4096);
	wr.wr.rdma.rkey ^= 1;
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 2, IBV_WC_SUCCESS);
	wr = request(bench, IBV_WR_RDMA_WRITE, 3, &sge, BENCH_MEMORY - 63);
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 3, IBV_WC_SUCCESS);
	CHECK(!bench->memory[4096] && !bench->memory[BENCH_MEMORY - 1]);
	CHECK(!bare_recv(&server, 4, 4096, 64));
	wr = request(bench, IBV_WR_SEND, 5, &sge, 0);
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 5, IBV_WC_SUCCESS);
	expect_wc(&server, 4, IBV_WC_SUCCESS);
	expect_no_wc(&server);
	CHECK(bare_state(&client) == IBV_QPS_RTS && bare_state(&server) == IBV_QPS_RTS);
	bare_destroy(&client);
	bare_destroy(&server);
}

/* The second of three messages is lost: the third is complete, and there are no more. */
static void test_lost(struct bench *bench)
{
	struct core_fault fault = {
		.from = {.family = AF_INET, .ip = {127, 0, 0, 1}},
		.to = {.family = AF_INET, .ip = {127, 0, 0, 1}},
		.directed = 1, .traffic = CORE_FAULT_DATA, .probability = 1000000, .skip = 1, .count = 1,
	};
	struct bare client, server;
	uint32_t lost;
	int rule;

	make_pair(bench, &client, &server);
	for (uint64_t id = 1; id <= 3; id++)
		CHECK(!bare_recv(&server, id, 4096 * id, 64));
	rule = core_fault_add(bench->provider, &fault);
	CHECK(rule >= 0);
	for (uint64_t id = 1; id <= 3; id++) {
		struct ibv_sge sge = bench_sge(bench, 0, 64);
		struct ibv_send_wr wr = request(bench, IBV_WR_SEND_WITH_IMM, id, &sge, 0);

		wr.imm_data = (uint32_t)id;
		CHECK(!bare_post(&client, &wr));
		expect_wc(&client, id, IBV_WC_SUCCESS);
	}
	CHECK(!core_fault_remove(bench->provider, rule, &lost) && lost == 1);
	CHECK(expect_wc(&server, 1, IBV_WC_SUCCESS).imm_data == 1);
	CHECK(expect_wc(&server, 2, IBV_WC_SUCCESS).imm_data == 3);
	expect_no_wc(&server);
	bare_destroy(&client);
	bare_destroy(&server);
}

/* A receive that is too short ends its queue pair, which accepts nothing more of the same list. */
static void test_too_long(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr second = bench_wr(IBV_WR_SEND, 2, &sge), wr = bench_wr(IBV_WR_SEND, 1, &sge);
	struct bare client, server;

	make_pair(bench, &client, &server);
	memset(bench->memory, 0x5a, 8);
	memset(bench->memory + 4096, 0, 64);
	CHECK(!bare_recv(&server, 3, 4096, 7));
	CHECK(!bare_recv(&server, 4, 4096, 64));
	wr.next = &second;
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 1, IBV_WC_SUCCESS);
	expect_wc(&client, 2, IBV_WC_SUCCESS);
	expect_wc(&server, 3, on_soft("messages longer than their receive") ? IBV_WC_LOC_LEN_ERR :
									       IBV_WC_LOC_QP_OP_ERR);
	expect_wc(&server, 4, IBV_WC_WR_FLUSH_ERR);
	CHECK(bare_state(&server) == IBV_QPS_ERR && bare_state(&client) == IBV_QPS_RTS);
	for (int byte = 0; byte < 64; byte++)
		CHECK(!bench->memory[4096 + byte]);
	/* Without a peer, sends complete as well. */
	bare_destroy(&server);
	wr.next = NULL;
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 1, IBV_WC_SUCCESS);
	bare_destroy(&client);
}

static void test_refused(struct bench *bench)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
						     IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct bare client, server;
	struct ibv_send_wr wr;

	for (size_t row = 0; row < sizeof(opcodes) / sizeof(opcodes[0]); row++) {
		make_pair(bench, &client, &server);
		wr = request(bench, opcodes[row], 1, &sge, 0);
		expect_refused(&client, &wr);
		bare_destroy(&client);
		bare_destroy(&server);
	}
}

/* A send error ends the send queue alone. */
static void test_send_error(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct bare client, server;
	struct ibv_send_wr wr;

	make_pair(bench, &client, &server);
	wr = request(bench, IBV_WR_SEND, 2, &sge, 0);
	sge.lkey ^= 1;
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 2, IBV_WC_LOC_PROT_ERR);
	CHECK(bare_state(&client) == IBV_QPS_SQE);
	CHECK(!bare_recv(&client, 3, 4096, 64));
	sge.lkey ^= 1;
	CHECK(!bare_post(&server, &wr));
	expect_wc(&client, 3, IBV_WC_SUCCESS);
	bare_destroy(&client);
	bare_destroy(&server);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	test_send_and_write(&bench);
	test_dropped(&bench);
	if (on_soft("faults"))
		test_lost(&bench);
	test_too_long(&bench);
	test_refused(&bench);
	if (on_soft("wrong local keys"))
		test_send_error(&bench);
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
