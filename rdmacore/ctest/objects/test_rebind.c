/*
 * A peer writes all the time while the memory of its key is moved, deregistered and bound again. From the moment at
 * which the call returns no byte of the old memory changes, and never a byte next to it. Over an unreliable
 * connection, where a rejected request is dropped and the next one continues.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "soft/objects/qp.h"

#define AREA 4096
#define GUARD 64
#define GUARD_BYTE 0xa5
#define ROUNDS 40
#define ENOUGH 30 /* attempts of the writer: all but the first know what was published */
#define TIMEOUT_S 60 /* seconds */
#define PIECE 64

enum kind { MOVED, DEREGISTERED, BOUND, KINDS };

struct stage {
	struct bench *bench;
	struct bare client, server;
	uint8_t *memory; /* guard, area, guard, area, guard, area, guard */
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	_Atomic uint64_t address; /* what the writer uses */
	_Atomic uint32_t key;
	_Atomic uint64_t attempts;
	_Atomic bool stop;
};

/* The third is never accessible: a region that is taken away is moved there. */
static uint8_t *area(const struct stage *stage, int index)
{
	return stage->memory + GUARD + index * (AREA + GUARD);
}

static void *write_for_ever(void *argument)
{
	struct stage *stage = argument;
	uint8_t bytes[PIECE];
	struct ibv_sge sge = {(uintptr_t)bytes, PIECE, 0};
	uint64_t number = 0;

	memset(bytes, 0x3c, sizeof(bytes));
	for (; !atomic_load(&stage->stop); number++) {
		struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, number, &sge);

		wr.send_flags |= IBV_SEND_INLINE;
		/* Both edges as often as all between. */
		wr.wr.rdma.remote_addr = atomic_load(&stage->address) +
					 (number % 3 == 0 ? 0 :
					  number % 3 == 1 ? AREA - PIECE : number % (AREA / PIECE) * PIECE);
		wr.wr.rdma.rkey = atomic_load(&stage->key);
		CHECK(!bare_post(&stage->client, &wr));
		expect_wc(&stage->client, number, IBV_WC_SUCCESS);
		atomic_fetch_add(&stage->attempts, 1);
	}
	return NULL;
}

static void wait_for_attempts(struct stage *stage)
{
	uint64_t until = atomic_load(&stage->attempts) + ENOUGH;
	time_t deadline = time(NULL) + TIMEOUT_S;

	while (atomic_load(&stage->attempts) < until) {
		CHECK(time(NULL) < deadline);
		sched_yield();
	}
}

static void bind_to(struct stage *stage, uint8_t *memory)
{
	struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED};

	if (memory)
		bind.bind_info = (struct ibv_mw_bind_info){
			.mr = stage->mr, .addr = (uintptr_t)memory, .length = AREA,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
		};
	CHECK(!ibv_bind_mw(stage->server.qp, stage->mw, &bind));
	expect_wc(&stage->server, 1, IBV_WC_SUCCESS);
}

static struct ibv_mr *register_at(struct stage *stage, uint8_t *memory, size_t length, int more)
{
	struct ibv_mr *mr = stage->bench->provider->ibv_reg_mr(stage->bench->pd, memory, length,
							       IBV_ACCESS_LOCAL_WRITE | more);

	CHECK(mr);
	return mr;
}

/* Let the peer write there; it learns how. */
static void grant(struct stage *stage, enum kind kind, uint8_t *memory)
{
	uint32_t key;

	if (kind == MOVED) {
		CHECK(!stage->bench->provider->ibv_rereg_mr(stage->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
							    memory, AREA, 0));
		key = stage->mr->rkey;
	} else if (kind == DEREGISTERED) {
		stage->mr = register_at(stage, memory, AREA, IBV_ACCESS_REMOTE_WRITE);
		key = stage->mr->rkey;
	} else {
		bind_to(stage, memory);
		key = stage->mw->rkey;
	}
	atomic_store(&stage->address, (uintptr_t)memory);
	atomic_store(&stage->key, key);
}

/* Revoke it without a message to the writer. */
static void revoke(struct stage *stage, enum kind kind)
{
	if (kind == MOVED)
		CHECK(!stage->bench->provider->ibv_rereg_mr(stage->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
							    area(stage, 2), AREA, 0));
	else if (kind == DEREGISTERED)
		CHECK(!stage->bench->provider->ibv_dereg_mr(stage->mr));
	else
		bind_to(stage, NULL);
}

static bool is_all(const uint8_t *bytes, size_t length, uint8_t value)
{
	while (length && *bytes == value) {
		bytes++;
		length--;
	}
	return !length;
}

static void open_stage(struct stage *stage, struct bench *bench, enum kind kind)
{
	*stage = (struct stage){.bench = bench};
	stage->memory = malloc(3 * (AREA + GUARD) + GUARD);
	CHECK(stage->memory);
	memset(stage->memory, GUARD_BYTE, 3 * (AREA + GUARD) + GUARD);
	for (int index = 0; index < 3; index++)
		memset(area(stage, index), 0, AREA);
	bare_create(&stage->client, bench, IBV_QPT_UC, NULL);
	bare_create(&stage->server, bench, IBV_QPT_UC, NULL);
	bare_connect(&stage->client, &stage->server);
	stage->mw = ibv_alloc_mw(bench->pd, IBV_MW_TYPE_1);
	CHECK(stage->mw);
	if (kind == MOVED)
		stage->mr = register_at(stage, area(stage, 2), AREA, IBV_ACCESS_REMOTE_WRITE);
	else if (kind == BOUND) /* all of it, with the guards */
		stage->mr = register_at(stage, stage->memory, 3 * (AREA + GUARD) + GUARD, IBV_ACCESS_MW_BIND);
}

static void close_stage(struct stage *stage, enum kind kind)
{
	CHECK(bare_state(&stage->client) == IBV_QPS_RTS && bare_state(&stage->server) == IBV_QPS_RTS);
	CHECK(!ibv_dealloc_mw(stage->mw));
	if (kind != DEREGISTERED)
		CHECK(!stage->bench->provider->ibv_dereg_mr(stage->mr));
	bare_destroy(&stage->client);
	bare_destroy(&stage->server);
	for (int index = 0; index <= 3; index++)
		CHECK(is_all(area(stage, index) - GUARD, GUARD, GUARD_BYTE));
	free(stage->memory);
}

static void test(struct bench *bench, enum kind kind)
{
	struct stage stage;
	pthread_t writer;

	open_stage(&stage, bench, kind);
	CHECK(!pthread_create(&writer, NULL, write_for_ever, &stage));
	for (int round = 0; round < ROUNDS; round++) {
		uint8_t *memory = area(&stage, round % 2);

		grant(&stage, kind, memory);
		wait_for_attempts(&stage);
		revoke(&stage, kind);
		/* Only this thread uses it again. */
		CHECK(is_all(memory, PIECE, 0x3c) && is_all(memory + AREA - PIECE, PIECE, 0x3c));
		memset(memory, 0, AREA);
		wait_for_attempts(&stage);
		CHECK(is_all(memory, AREA, 0));
		CHECK(is_all(area(&stage, 2), AREA, 0));
	}
	atomic_store(&stage.stop, true);
	CHECK(!pthread_join(writer, NULL));
	close_stage(&stage, kind);
}

/* --- copies that are under way ---------------------------------------------------------------- */

enum way { REGION_ENDS, REGION_MOVES, WINDOW_ENDS, WINDOW_UNBOUND, WAYS };

struct ending {
	struct stage *stage;
	enum way way;
	_Atomic bool done;
};

static void *end_it(void *argument)
{
	struct ending *ending = argument;
	struct stage *stage = ending->stage;

	switch (ending->way) {
	case REGION_ENDS:
		CHECK(!stage->bench->provider->ibv_dereg_mr(stage->mr));
		break;
	case REGION_MOVES:
		CHECK(!stage->bench->provider->ibv_rereg_mr(stage->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
							    area(stage, 2), AREA, 0));
		break;
	case WINDOW_ENDS:
		CHECK(!ibv_dealloc_mw(stage->mw));
		break;
	default:
		bind_to(stage, NULL);
		break;
	}
	atomic_store(&ending->done, true);
	return NULL;
}

/*
 * While a queue pair copies, it holds the lock of one of its halves (soft/objects/mr_table.h). A call that takes its
 * key away returns only after that lock is released, because the owner then frees the memory.
 */
static void test_waits(struct bench *bench, enum way way, bool requester)
{
	const struct timespec while_ = {.tv_nsec = 20000000};
	enum kind kind = way <= REGION_MOVES ? MOVED : BOUND;
	struct ending ending = {.way = way};
	struct stage stage;
	struct soft_lock *lock;
	pthread_t thread;

	open_stage(&stage, bench, kind);
	ending.stage = &stage;
	if (kind == BOUND)
		bind_to(&stage, area(&stage, 0));
	lock = requester ? &soft_qp(stage.client.qp)->requester.lock : &soft_qp(stage.client.qp)->responder.lock;
	soft_lock_take(lock);
	CHECK(!pthread_create(&thread, NULL, end_it, &ending));
	/* However long: a test that waits too briefly only notices less. */
	CHECK(!nanosleep(&while_, NULL));
	CHECK(!atomic_load(&ending.done));
	soft_lock_release(lock);
	CHECK(!pthread_join(thread, NULL));
	if (way == WINDOW_ENDS) {
		stage.mw = ibv_alloc_mw(bench->pd, IBV_MW_TYPE_1);
		CHECK(stage.mw);
	}
	close_stage(&stage, way == REGION_ENDS ? DEREGISTERED : kind);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	if (on_soft("regions that change")) {
		for (int kind = MOVED; kind < KINDS; kind++)
			test(&bench, (enum kind)kind);
		for (int way = REGION_ENDS; way < WAYS; way++)
			for (int requester = 0; requester < 2; requester++)
				test_waits(&bench, (enum way)way, requester);
	}
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
