/* The flat core's extended queues compared with its plain ones: fields, time stamps, portions. */
#include <endian.h>
#include <time.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"

#define STAMPS (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define EVERY (IBV_WC_STANDARD_FLAGS | STAMPS)
#define MESSAGES 5
#define TIMEOUT_S 60 /* seconds */
#define ATTEMPTS 1000

/* One end with its queue; wc_flags UINT64_MAX: a plain one. */
struct side {
	struct bare bare;
	uint64_t wc_flags;
	bool next_poll;
};

#define PLAIN UINT64_MAX

static void open_side(struct side *side, struct bench *bench, uint64_t wc_flags)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = BENCH_DEPTH, .max_recv_wr = BENCH_DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	*side = (struct side){.bare = {.bench = bench}, .wc_flags = wc_flags};
	if (wc_flags == PLAIN)
		CHECK(!core_create_cq(bench->provider, bench->context, 64, NULL, &side->bare.cq));
	else
		CHECK(!core_create_cq_ex(bench->provider, bench->context, 64, NULL, wc_flags, &side->bare.cq,
					 &side->next_poll));
	attr.send_cq = attr.recv_cq = side->bare.cq;
	side->bare.qp = bench->provider->ibv_create_qp(bench->pd, &attr);
	CHECK(side->bare.qp);
}

static void close_side(struct side *side)
{
	struct core_provider *provider = side->bare.bench->provider;
	long queues = core_live(provider, CORE_CQ);

	CHECK(!provider->ibv_destroy_qp(side->bare.qp));
	CHECK(!core_destroy_cq(provider, side->bare.cq));
	CHECK(core_live(provider, CORE_CQ) == queues - 1);
}

static int look(struct side *side, int max, struct ibv_wc *wc, struct core_wc_time *times)
{
	if (side->wc_flags == PLAIN)
		return core_poll_cq(side->bare.cq, max, wc, ATTEMPTS);
	return core_poll_cq_ex(side->bare.cq, side->wc_flags, side->next_poll, max, wc, times, ATTEMPTS);
}

/* Until there are that many. */
static void take(struct side *side, int count, struct ibv_wc *wc, struct core_wc_time *times)
{
	time_t deadline = time(NULL) + TIMEOUT_S;

	for (int taken = 0; taken < count;) {
		int more = look(side, count - taken, wc + taken, times ? times + taken : NULL);

		CHECK(more >= 0 && time(NULL) < deadline);
		taken += more;
	}
}

static void expect_empty(struct side *side)
{
	CHECK(!look(side, 1, &(struct ibv_wc){0}, NULL));
}

/* A SEND, one with immediate data, a WRITE, a READ, and a WRITE with a key that there is not. */
static void exchange(struct side *client, struct side *server, struct ibv_wc *sent, struct core_wc_time *times,
		     struct ibv_wc *received)
{
	static const enum ibv_wr_opcode opcodes[MESSAGES] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
	};
	struct bench *bench = client->bare.bench;
	struct ibv_sge sge = bench_sge(bench, 0, 24);

	for (uint64_t id = 1; id <= 2; id++)
		CHECK(!bare_recv(&server->bare, id, 4096 * id, 32));
	for (int i = 0; i < MESSAGES; i++) {
		struct ibv_send_wr wr = bench_wr(opcodes[i], (uint64_t)i + 10, &sge);

		wr.wr.rdma.remote_addr = (uintptr_t)bench->memory + 16384;
		wr.wr.rdma.rkey = bench->mr->rkey + (i == MESSAGES - 1);
		if (opcodes[i] == IBV_WR_SEND_WITH_IMM)
			wr.imm_data = htobe32(0xfeed);
		CHECK(!bare_post(&client->bare, &wr));
	}
	take(client, MESSAGES, sent, times);
	take(server, 2, received, NULL);
	expect_empty(client);
	expect_empty(server);
}

static void check_same(const struct ibv_wc *a, const struct ibv_wc *b, bool receive)
{
	CHECK(a->wr_id == b->wr_id && a->status == b->status && a->qp_num);
	if (a->status != IBV_WC_SUCCESS)
		return;
	CHECK(a->opcode == b->opcode);
	if (receive || a->opcode == IBV_WC_RDMA_READ)
		CHECK(a->byte_len == b->byte_len);
	if (!receive) /* rdma_rxe gives sends the flags of receives */
		return;
	CHECK(a->wc_flags == b->wc_flags);
	if (a->wc_flags & IBV_WC_WITH_IMM)
		CHECK(a->imm_data == b->imm_data);
}

/* The same work gives the same completions by both ways. */
static void test_both_ways(struct bench *bench)
{
	struct ibv_wc sent[2][MESSAGES], received[2][2];

	for (int extended = 0; extended < 2; extended++) {
		uint64_t wc_flags = extended ? IBV_WC_STANDARD_FLAGS : PLAIN;
		struct side client, server;

		open_side(&client, bench, wc_flags);
		open_side(&server, bench, wc_flags);
		bare_connect(&client.bare, &server.bare);
		exchange(&client, &server, sent[extended], NULL, received[extended]);
		CHECK(sent[extended][0].qp_num == client.bare.qp->qp_num);
		CHECK(received[extended][0].qp_num == server.bare.qp->qp_num);
		if (on_soft("events of refused requests"))
			expect_async_event(bench, IBV_EVENT_QP_ACCESS_ERR);
		close_side(&client);
		close_side(&server);
	}
	for (int i = 0; i < MESSAGES; i++)
		check_same(&sent[0][i], &sent[1][i], false);
	for (int i = 0; i < 2; i++)
		check_same(&received[0][i], &received[1][i], true);
	CHECK(sent[1][MESSAGES - 1].status == IBV_WC_REM_ACCESS_ERR);
	CHECK(received[1][1].imm_data == htobe32(0xfeed));
}

/* Stamps are between two readings of the clock and in order; a failure has none. */
static void test_stamps(struct bench *bench)
{
	struct core_wc_time times[MESSAGES];
	struct ibv_wc sent[MESSAGES], received[2];
	struct side client, server;
	struct ibv_device_attr_ex attr;
	uint64_t before, after;
	time_t now = time(NULL);

	CHECK(!core_query_device_ex(bench->provider, bench->context, &attr));
	if (!attr.completion_timestamp_mask) {
		CHECK(core_create_cq_ex(bench->provider, bench->context, 64, NULL, EVERY, &client.bare.cq,
					&client.next_poll) == -EOPNOTSUPP);
		CHECK(core_query_rt_values(bench->context, &before) == -EOPNOTSUPP);
		return;
	}
	CHECK(attr.hca_core_clock);
	open_side(&client, bench, EVERY);
	open_side(&server, bench, PLAIN);
	bare_connect(&client.bare, &server.bare);
	CHECK(!core_query_rt_values(bench->context, &before));
	exchange(&client, &server, sent, times, received);
	CHECK(!core_query_rt_values(bench->context, &after));
	for (int i = 0; i < MESSAGES - 1; i++) {
		CHECK(times[i].raw >= (i ? times[i - 1].raw : before) && times[i].raw <= after);
		CHECK(times[i].wallclock >= (i ? times[i - 1].wallclock : 0));
		CHECK(times[i].wallclock / 1000000000 + 1 >= (uint64_t)now);
		CHECK(times[i].wallclock / 1000000000 <= (uint64_t)time(NULL));
	}
	CHECK(!times[MESSAGES - 1].raw && !times[MESSAGES - 1].wallclock);
	if (on_soft("events of refused requests"))
		expect_async_event(bench, IBV_EVENT_QP_ACCESS_ERR);
	close_side(&client);
	close_side(&server);
}

/* Fields that the queue was not created with are 0, and completions are taken in portions. */
static void test_few_fields(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 24);
	struct side client, server;
	struct ibv_wc wc[8];

	open_side(&client, bench, 0);
	open_side(&server, bench, IBV_WC_EX_WITH_QP_NUM);
	bare_connect(&client.bare, &server.bare);
	for (uint64_t id = 0; id < 3; id++) {
		struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, id, &sge);

		CHECK(!bare_recv(&server.bare, id, 4096, 32));
		CHECK(!bare_post(&client.bare, &wr));
	}
	memset(wc, 0xff, sizeof(wc));
	take(&client, 2, wc, NULL);
	CHECK(wc[0].wr_id == 0 && wc[1].wr_id == 1 && wc[1].opcode == IBV_WC_SEND && !wc[1].qp_num);
	take(&client, 1, wc, NULL);
	CHECK(wc[0].wr_id == 2);
	expect_empty(&client);
	memset(wc, 0xff, sizeof(wc));
	take(&server, 3, wc, NULL);
	CHECK(wc[2].wr_id == 2 && wc[2].opcode == IBV_WC_RECV && !wc[2].byte_len && !wc[2].imm_data);
	CHECK(wc[2].qp_num == server.bare.qp->qp_num);
	CHECK(core_poll_cq_ex(client.bare.cq, 0, true, 0, wc, NULL, 1) == 0);
	CHECK(core_poll_cq_ex(client.bare.cq, 0, true, -1, wc, NULL, 1) == -EINVAL);
	close_side(&client);
	close_side(&server);
}

/* A look with more room than there are completions takes each once, around the end of the ring. */
static void test_more_room(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct side client, server;

	open_side(&client, bench, IBV_WC_STANDARD_FLAGS);
	open_side(&server, bench, IBV_WC_STANDARD_FLAGS);
	bare_connect(&client.bare, &server.bare);
	for (uint64_t id = 0; id < 300;) {
		time_t deadline = time(NULL) + TIMEOUT_S;
		uint64_t posted = id + 1 + id % 3, from = id;

		while (from < posted) {
			struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, from++, &sge);

			wr.wr.rdma.remote_addr = (uintptr_t)bench->memory + 4096;
			wr.wr.rdma.rkey = bench->mr->rkey;
			CHECK(!bare_post(&client.bare, &wr));
		}
		while (id < posted) {
			struct ibv_wc wc[8];
			int count = look(&client, 8, wc, NULL);

			CHECK(count >= 0 && (uint64_t)count <= posted - id && time(NULL) < deadline);
			for (int i = 0; i < count; i++)
				CHECK(wc[i].wr_id == id++ && wc[i].status == IBV_WC_SUCCESS);
		}
		expect_empty(&client);
	}
	close_side(&client);
	close_side(&server);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	test_both_ways(&bench);
	test_stamps(&bench);
	test_few_fields(&bench);
	test_more_room(&bench);
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
