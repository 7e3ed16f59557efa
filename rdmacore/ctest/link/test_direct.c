/*
 * Requests that pass without the send queue (soft/engine/direct.h) have the effects of those that are queued. Two hosts
 * get the same random requests, right and wrong ones. One host has a fault rule for messages of connection management,
 * which has it check each packet, so its requests are queued.
 */
#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "soft/base/random.h"

#define ROUNDS 4000
#define SEED 11
#define REGION 4096
#define LONGEST 300 /* bytes of a message; more than max_inline_data */
#define ENTRIES 2
#define LIST (BENCH_DEPTH + 6) /* more than the send queue has room for */

struct host {
	struct core_provider *provider;
	struct bench bench;
	struct bare ends[2];
	struct ibv_mr *read_only; /* the same memory, without rights */
	struct soft_random random;
	uint64_t seen; /* a hash of everything that a program could see */
	uint64_t posted, refused, failed; /* what the test has reached */
};

static uint64_t below(struct host *host, uint64_t limit)
{
	return soft_random_next(&host->random) % limit;
}

static void see(struct host *host, uint64_t value)
{
	host->seen = (host->seen ^ value) * UINT64_C(0x100000001b3);
}

/* Without retries, a message that finds no receive fails at once. Now and then the ends take no WRITE. */
static void connect_ends(struct host *host)
{
	struct ibv_qp_attr reads = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .sq_psn = 100, .timeout = 14, .retry_cnt = 7,
				   .max_rd_atomic = 4};

	for (int end = 0; end < 2; end++) {
		CHECK(!bare_modify(&host->ends[end], (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
		bare_init(&host->ends[end]);
	}
	for (int end = 0; end < 2; end++)
		bare_ready_to_receive(&host->ends[end], &host->ends[!end]);
	for (int end = 0; end < 2; end++)
		CHECK(!bare_modify(&host->ends[end], attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
	for (int end = 0; end < 2; end++)
		if (!below(host, 10))
			CHECK(!bare_modify(&host->ends[end], reads, IBV_QP_ACCESS_FLAGS));
}

static void host_open(struct host *host, bool queued)
{
	struct sockaddr_storage address = local_address(0);
	struct core_fault rule = {
		.traffic = CORE_FAULT_CM, .attribute = 0x15, .action = CORE_FAULT_LOSE, .probability = 1000000,
	};

	core_address_from_sockaddr(&rule.from, (struct sockaddr *)&address);
	rule.to = rule.from;
	*host = (struct host){.provider = open_provider(), .random = {.state = SEED}};
	bench_open(&host->bench, host->provider);
	host->read_only = host->provider->ibv_reg_mr(host->bench.pd, host->bench.memory, BENCH_MEMORY, 0);
	CHECK(host->read_only);
	for (int end = 0; end < 2; end++)
		bare_create(&host->ends[end], &host->bench, IBV_QPT_RC, NULL);
	connect_ends(host);
	for (size_t at = 0; at < 2 * REGION; at++)
		host->bench.memory[at] = (char)soft_random_next(&host->random);
	if (queued)
		CHECK(core_fault_add(host->provider, &rule) >= 0);
}

static void host_close(struct host *host)
{
	for (int end = 0; end < 2; end++)
		bare_destroy(&host->ends[end]);
	CHECK(!host->provider->ibv_dereg_mr(host->read_only));
	bench_close(&host->bench);
	close_provider(host->provider);
}

static struct ibv_sge any_entry(struct host *host)
{
	struct ibv_sge sge = bench_sge(&host->bench, below(host, REGION - LONGEST), (uint32_t)below(host, LONGEST));

	if (!below(host, 20))
		sge.lkey = host->read_only->lkey;
	else if (!below(host, 40))
		sge.lkey++;
	if (!below(host, 60))
		sge.addr = (uintptr_t)host->bench.memory + BENCH_MEMORY - sge.length / 2;
	return sge;
}

static void post_receives(struct host *host, struct bare *to)
{
	for (uint64_t left = below(host, 8); left; left--) {
		struct ibv_sge list[ENTRIES] = {any_entry(host), any_entry(host)};
		struct ibv_recv_wr wr = {.wr_id = left, .sg_list = list, .num_sge = (int)below(host, ENTRIES + 1)}, *bad;

		see(host, (uint64_t)ibv_post_recv(to->qp, &wr, &bad));
	}
}

static struct ibv_send_wr any_request(struct host *host, struct ibv_sge *list)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct ibv_sge remote = any_entry(host);
	struct ibv_send_wr wr = {
		.wr_id = soft_random_next(&host->random), .sg_list = list,
		.num_sge = below(host, 8) ? 1 : (int)below(host, ENTRIES + 1),
		.opcode = opcodes[below(host, sizeof(opcodes) / sizeof(*opcodes))],
	};

	for (int entry = 0; entry < ENTRIES; entry++)
		list[entry] = any_entry(host);
	wr.send_flags = (below(host, 3) ? IBV_SEND_SIGNALED : 0) | (below(host, 5) ? 0 : IBV_SEND_SOLICITED) |
			(below(host, 9) ? 0 : IBV_SEND_FENCE);
	if (!below(host, 4) && wr.opcode < IBV_WR_RDMA_READ) {
		/*
		 * Inline data needs no key. It is copied when it is posted: whether an earlier request of the list was
		 * executed before, is open. So it is not where requests write.
		 */
		wr.send_flags |= IBV_SEND_INLINE;
		for (int entry = 0; entry < ENTRIES; entry++)
			list[entry] = bench_sge(&host->bench, REGION + below(host, REGION), (uint32_t)below(host, 80));
	}
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		list[0].length = sizeof(uint64_t);
		wr.wr.atomic.remote_addr = remote.addr & ~UINT64_C(7);
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = remote.lkey; /* soft's lkey and rkey of a region are equal */
	} else {
		wr.imm_data = (uint32_t)wr.wr_id;
		wr.wr.rdma.remote_addr = remote.addr;
		wr.wr.rdma.rkey = remote.lkey;
	}
	return wr;
}

static void post_list(struct host *host, struct bare *from)
{
	struct ibv_sge entries[LIST][ENTRIES];
	struct ibv_send_wr list[LIST], *bad = NULL;
	size_t count = 1 + below(host, below(host, 10) ? 5 : LIST);
	int result;

	for (size_t n = 0; n < count; n++) {
		list[n] = any_request(host, entries[n]);
		list[n].next = n + 1 < count ? &list[n + 1] : NULL;
	}
	result = ibv_post_send(from->qp, list, &bad);
	see(host, (uint64_t)result);
	see(host, result ? (uint64_t)(bad - list) : count);
	host->posted += count;
	host->refused += result != 0;
}

static void see_completions(struct host *host, struct bare *end)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(end->cq, 1, &wc) == 1) {
		see(host, wc.wr_id);
		see(host, wc.status);
		host->failed += wc.status != IBV_WC_SUCCESS;
		if (wc.status)
			continue;
		see(host, wc.opcode);
		see(host, wc.byte_len);
		see(host, wc.wc_flags);
		see(host, wc.wc_flags & IBV_WC_WITH_IMM ? wc.imm_data : 0);
	}
}

static void see_queue_pair(struct host *host, struct bare *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!host->provider->ibv_query_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init));
	see(host, attr.qp_state);
	see(host, attr.sq_psn);
	see(host, attr.rq_psn);
}

static void round_of(struct host *host)
{
	uint64_t from = below(host, 2);

	post_receives(host, &host->ends[!from]);
	post_list(host, &host->ends[from]);
	for (int end = 0; end < 2; end++) {
		see_completions(host, &host->ends[end]);
		see_queue_pair(host, &host->ends[end]);
	}
	for (size_t word = 0; word < REGION / sizeof(uint64_t); word++)
		see(host, ((const uint64_t *)(const void *)host->bench.memory)[word]);
	/* Different words, so that each copy is seen. */
	((uint64_t *)(void *)host->bench.memory)[below(host, REGION / sizeof(uint64_t))] =
		soft_random_next(&host->random);
	if (bare_state(&host->ends[0]) != IBV_QPS_RTS || bare_state(&host->ends[1]) != IBV_QPS_RTS)
		connect_ends(host);
}

int main(void)
{
	struct host direct, queued;

	host_open(&direct, false);
	host_open(&queued, true);
	for (int n = 0; n < ROUNDS; n++) {
		round_of(&direct);
		round_of(&queued);
		if (direct.seen != queued.seen)
			fprintf(stderr, "round %d\n", n);
		CHECK(direct.seen == queued.seen);
	}
	CHECK(direct.posted > ROUNDS && direct.refused > ROUNDS / 100 && direct.failed > ROUNDS / 100);
	host_close(&queued);
	host_close(&direct);
	return 0;
}
