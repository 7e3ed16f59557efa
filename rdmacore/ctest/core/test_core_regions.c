/*
 * Regions that change in the flat core while a peer writes to them, regions with addresses of their own, and small
 * queries of a device.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"

#define AREA 4096
#define ENOUGH 20 /* writes before the region changes */
#define TIMEOUT_S 60 /* seconds */
#define FIRST 0x5c

struct stage {
	struct bench *bench;
	struct bare client, server;
	struct ibv_pd *pd; /* another one */
	struct ibv_mr *mr;
	uint32_t key;
	_Atomic uint64_t written;
	enum ibv_wc_status end; /* of the rejected write */
};

static uint8_t *area(const struct stage *stage, int index)
{
	return (uint8_t *)stage->bench->memory + (index + 4) * AREA;
}

/* Until one is refused. */
static void *write_on(void *argument)
{
	struct stage *stage = argument;
	struct ibv_sge sge = bench_sge(stage->bench, 0, 64);
	time_t deadline = time(NULL) + TIMEOUT_S;

	do {
		struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);
		struct ibv_wc wc;

		wr.wr.rdma.remote_addr = (uintptr_t)area(stage, 0);
		wr.wr.rdma.rkey = stage->key;
		CHECK(!bare_post(&stage->client, &wr));
		while (!core_poll_cq(stage->client.cq, 1, &wc, 100))
			CHECK(time(NULL) < deadline);
		stage->end = wc.status;
		atomic_fetch_add(&stage->written, 1);
	} while (stage->end == IBV_WC_SUCCESS);
	return NULL;
}

static void await_writes(struct stage *stage)
{
	uint64_t until = atomic_load(&stage->written) + ENOUGH;
	time_t deadline = time(NULL) + TIMEOUT_S;

	while (atomic_load(&stage->written) < until) {
		CHECK(time(NULL) < deadline);
		sched_yield();
	}
}

static int change(struct stage *stage, int flags, enum core_rereg *outcome)
{
	return core_rereg_mr(stage->bench->provider, stage->mr, flags, stage->pd, area(stage, 1), AREA,
			     flags & IBV_REREG_MR_CHANGE_ACCESS ? IBV_ACCESS_LOCAL_WRITE : 0, outcome);
}

/* Whatever of the region changed, the key that the peer has gets it a remote access error, and not one byte. */
static void test_change(struct bench *bench, int flags)
{
	struct stage stage = {.bench = bench};
	enum core_rereg outcome;
	pthread_t writer;

	CHECK(!core_alloc_pd(bench->provider, bench->context, &stage.pd));
	CHECK(!core_reg_mr(bench->provider, bench->pd, area(&stage, 0), AREA, BENCH_ACCESS, &stage.mr));
	stage.key = stage.mr->rkey;
	bare_create(&stage.client, bench, IBV_QPT_RC, NULL);
	bare_create(&stage.server, bench, IBV_QPT_RC, NULL);
	bare_connect(&stage.client, &stage.server);
	memset(bench->memory, FIRST, 64);
	memset(area(&stage, 0), 0, 2 * AREA);
	CHECK(!pthread_create(&writer, NULL, write_on, &stage));
	await_writes(&stage);
	CHECK(!change(&stage, flags, &outcome) && outcome == CORE_REREG_NEW);
	CHECK(area(&stage, 0)[0] == FIRST);
	memset(area(&stage, 0), 0, AREA); /* only this thread uses it again */
	CHECK(!pthread_join(writer, NULL));
	CHECK(stage.end == IBV_WC_REM_ACCESS_ERR);
	for (int i = 0; i < 2 * AREA; i++)
		CHECK(!area(&stage, 0)[i]);
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		CHECK(stage.mr->addr == area(&stage, 1));
	expect_async_event(bench, IBV_EVENT_QP_ACCESS_ERR);
	bare_destroy(&stage.client);
	bare_destroy(&stage.server);
	CHECK(!core_dereg_mr(bench->provider, stage.mr));
	CHECK(!core_dealloc_pd(bench->provider, stage.pd));
}

/* After a failure the call reports what is left of the region. */
static void test_refusals(struct bench *bench)
{
	struct core_provider *provider = bench->provider;
	enum core_rereg outcome;
	struct ibv_mr *mr;

	CHECK(!core_reg_mr(provider, bench->pd, bench->memory, AREA, BENCH_ACCESS, &mr));
	CHECK(core_rereg_mr(provider, mr, 0x40, NULL, NULL, 0, 0, &outcome) == -EINVAL);
	CHECK(outcome == CORE_REREG_OLD);
	CHECK(core_rereg_mr(provider, mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, bench->memory, 0, 0, &outcome) ==
	      -EINVAL);
	CHECK(outcome == CORE_REREG_OLD);
	CHECK(core_rereg_mr(provider, mr, IBV_REREG_MR_CHANGE_PD, bench->pd, NULL, 0, BENCH_ACCESS, &outcome) == -EINVAL);
	if (!on_soft("regions that change")) {
		CHECK(core_rereg_mr(provider, mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE,
				    &outcome) == -EOPNOTSUPP);
		CHECK(outcome != CORE_REREG_NEW);
	}
	CHECK(!core_dereg_mr(provider, mr));
}

static void test_iova(struct bench *bench)
{
	static const int rights[] = {BENCH_ACCESS, BENCH_ACCESS | IBV_ACCESS_RELAXED_ORDERING};
	uint64_t iova = UINT64_C(0x7000000000) + ((uintptr_t)bench->memory & 4095);
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct bare client, server;
	long regions = core_live(bench->provider, CORE_MR);

	bare_create(&client, bench, IBV_QPT_RC, NULL);
	bare_create(&server, bench, IBV_QPT_RC, NULL);
	bare_connect(&client, &server);
	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);
		struct ibv_mr *mr;

		memset(bench->memory, FIRST, 8);
		memset(bench->memory + AREA, 0, AREA);
		CHECK(!core_reg_mr_iova(bench->provider, bench->pd, bench->memory + AREA, AREA, iova, rights[i], &mr));
		CHECK(core_live(bench->provider, CORE_MR) == regions + 1);
		wr.wr.rdma.remote_addr = iova + 100;
		wr.wr.rdma.rkey = mr->rkey;
		CHECK(!bare_post(&client, &wr));
		expect_wc(&client, 1, IBV_WC_SUCCESS);
		CHECK(!bench->memory[AREA + 99] && bench->memory[AREA + 100] == FIRST && !bench->memory[AREA + 108]);
		CHECK(!core_dereg_mr(bench->provider, mr));
	}
	bare_destroy(&client);
	bare_destroy(&server);
}

static int registers(struct bench *bench, void *address, size_t length, int access)
{
	struct ibv_mr *mr;
	int result = core_reg_mr(bench->provider, bench->pd, address, length, access, &mr);

	if (!result)
		CHECK(!core_dereg_mr(bench->provider, mr));
	return result;
}

/* Memory that is not mapped, or not writable, cannot be registered, however long the rest of it is. */
static void test_absent(struct bench *bench)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), lengths[] = {3 * page, 64 * page};
	const int read_only = IBV_ACCESS_REMOTE_READ;
	enum core_rereg outcome;
	struct ibv_mr *mr;

	for (int row = 0; row < 2; row++) {
		size_t length = lengths[row];
		char *memory = mmap(NULL, length + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(memory != MAP_FAILED && !registers(bench, memory, length, BENCH_ACCESS));
		CHECK(!registers(bench, memory + 1, length - 2, read_only));
		CHECK(!munmap(memory + length, page));
		CHECK(registers(bench, memory, length + 1, read_only) == -EFAULT);
		CHECK(registers(bench, memory + length, 1, read_only) == -EFAULT);
		CHECK(!mprotect(memory + length - page, page, PROT_READ));
		CHECK(registers(bench, memory, length, BENCH_ACCESS) == -EFAULT);
		CHECK(registers(bench, memory, length, IBV_ACCESS_MW_BIND) == -EFAULT);
		CHECK(!registers(bench, memory, length, read_only));
		CHECK(!registers(bench, memory, length - page, BENCH_ACCESS));
		CHECK(!core_reg_mr(bench->provider, bench->pd, memory, length, read_only, &mr));
		if (on_soft("regions that change")) {
			CHECK(core_rereg_mr(bench->provider, mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, BENCH_ACCESS,
					    &outcome) == -EFAULT);
			CHECK(!core_rereg_mr(bench->provider, mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + page, page, 0,
					     &outcome));
		}
		CHECK(!core_dereg_mr(bench->provider, mr));
		CHECK(!munmap(memory + page, page));
		CHECK(registers(bench, memory, length, read_only) == -EFAULT);
		CHECK(!munmap(memory, length));
	}
}

static void test_questions(struct bench *bench)
{
	struct core_provider *provider = bench->provider;
	struct ibv_device_attr_ex attr;
	struct ibv_device_attr plain;
	struct ibv_ece ece = {.vendor_id = 0x15b3};
	struct bare bare;
	uint16_t pkey;

	CHECK(!core_query_device_ex(provider, bench->context, &attr));
	CHECK(!core_query_device(provider, bench->context, &plain));
	CHECK(!memcmp(&attr.orig_attr, &plain, offsetof(struct ibv_device_attr, phys_port_cnt) + 1));
	CHECK(attr.phys_port_cnt_ex == plain.phys_port_cnt || !attr.phys_port_cnt_ex);
	CHECK(!core_query_pkey(provider, bench->context, 1, 0, &pkey) && pkey == 0xffff);
	CHECK(core_query_pkey(provider, bench->context, 1, plain.max_pkeys, &pkey) == -ENOENT);
	CHECK(core_query_pkey(provider, bench->context, 99, 0, &pkey) == -ENOENT);
	CHECK(core_get_pkey_index(provider, bench->context, 1, 0xffff) == 0);
	CHECK(core_get_pkey_index(provider, bench->context, 1, 0x1234) == -ENOENT);
	CHECK(core_device_index(provider, bench->context) >= (on_soft("what soft is") ? -1 : 0));
	bare_create(&bare, bench, IBV_QPT_RC, NULL);
	CHECK(core_set_ece(provider, bare.qp, &ece) == -EOPNOTSUPP);
	CHECK(core_query_ece(provider, bare.qp, &ece) == -EOPNOTSUPP);
	bare_destroy(&bare);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	if (on_soft("regions that change"))
		for (int flags = 1; flags <= IBV_REREG_MR_FLAGS_SUPPORTED; flags++)
			test_change(&bench, flags);
	test_refusals(&bench);
	test_iova(&bench);
	test_absent(&bench);
	test_questions(&bench);
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
