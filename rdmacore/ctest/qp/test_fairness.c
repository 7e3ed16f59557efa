/*
 * A queue pair that sends without a pause does not block others. Another thread can run between two messages.
 * Deregistration and disconnect wait for a bounded number of messages, and connection management waits for none.
 * Counted, not timed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "soft/objects/qp.h"

#define PORT 7061
#define MESSAGE (256 << 10)
#define ROUNDS 10
#define MANY_ROUNDS 30000 /* of more than a millisecond: the bound of waits on a busy machine */

struct stream {
	struct bare from, to;
	struct ibv_mr *mr; /* a message: what is sent, and where to */
	_Atomic bool stop;
	_Atomic unsigned long messages;
	pthread_t thread;
};

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* --- a turn comes within a batch ------------------------------------------------------------------ */

/* One batch after another, each as long as the send queue. */
static void *stream_batches(void *argument)
{
	struct stream *stream = argument;
	struct ibv_send_wr batch[BENCH_DEPTH], *bad;
	struct ibv_sge sge = bench_sge(stream->from.bench, 0, MESSAGE);

	for (int n = 0; n < BENCH_DEPTH; n++) {
		batch[n] = bench_wr(IBV_WR_RDMA_WRITE, (uint64_t)n, &sge);
		batch[n].send_flags = n + 1 == BENCH_DEPTH ? IBV_SEND_SIGNALED : 0;
		batch[n].next = n + 1 == BENCH_DEPTH ? NULL : &batch[n + 1];
		batch[n].wr.rdma.remote_addr = (uintptr_t)stream->from.bench->memory + MESSAGE;
		batch[n].wr.rdma.rkey = stream->from.bench->mr->rkey;
	}
	while (!atomic_load(&stream->stop)) {
		struct ibv_wc wc;

		CHECK(!ibv_post_send(stream->from.qp, batch, &bad));
		wc = poll_one(stream->from.cq);
		CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == BENCH_DEPTH - 1);
	}
	return NULL;
}

/*
 * The lock is had in the middle of a batch; *messages, from first on, is guarded by it. Until then the thread that
 * sends may have had no time slice. If the sender did not release the lock, another thread would get it only at the
 * end of a batch.
 */
static void wait_interruption(struct soft_lock *lock, const uint32_t *messages, uint32_t first)
{
	for (int round = 0;; round++) {
		bool interrupted;

		CHECK(round < MANY_ROUNDS);
		soft_lock_take_turn(lock);
		interrupted = (*messages - first) % BENCH_DEPTH != 0;
		soft_lock_release(lock);
		if (interrupted)
			return;
		pause_a_little();
	}
}

static void test_turn_within_batch(struct core_provider *provider)
{
	struct stream stream = {0};
	struct bench bench;
	struct soft_qp *from, *to;
	uint32_t first;

	bench_open(&bench, provider);
	bare_create(&stream.from, &bench, IBV_QPT_RC, NULL);
	bare_create(&stream.to, &bench, IBV_QPT_RC, NULL);
	bare_connect(&stream.from, &stream.to);
	from = soft_qp(stream.from.qp);
	to = soft_qp(stream.to.qp);
	first = to->responder.psn;
	CHECK(!pthread_create(&stream.thread, NULL, stream_batches, &stream));
	wait_interruption(&from->requester.lock, &from->requester.transmitted, 0);
	wait_interruption(&to->responder.lock, &to->responder.psn, first);
	atomic_store(&stream.stop, true);
	CHECK(!pthread_join(stream.thread, NULL));
	CHECK(to->responder.psn > first);
	bare_destroy(&stream.from);
	bare_destroy(&stream.to);
	bench_close(&bench);
}

/* --- messages that others send while a region is deregistered ------------------------------------- */

#define STREAMS 4
#define LONG (1 << 20)
/*
 * On average: one each time a thread waits for a lock. On a busy machine there are also those sent while the waiting
 * thread has no time slice. When the sender did not release the lock, there were 6000.
 */
#define MESSAGES_AT_MOST 1500

static void *stream_messages(void *argument)
{
	struct stream *stream = argument;
	struct ibv_sge sge = {(uintptr_t)stream->mr->addr, LONG, stream->mr->lkey};
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);

	wr.wr.rdma.remote_addr = sge.addr + LONG;
	wr.wr.rdma.rkey = stream->mr->rkey;
	while (!atomic_load(&stream->stop)) {
		CHECK(!bare_post(&stream->from, &wr));
		expect_wc(&stream->from, 1, IBV_WC_SUCCESS);
		atomic_fetch_add(&stream->messages, 1);
	}
	return NULL;
}

static void test_deregistration(struct core_provider *provider)
{
	struct stream streams[STREAMS] = {0};
	unsigned long most = 0;
	struct bench bench;
	char *memory = calloc(STREAMS, 2 * LONG), small[64];

	CHECK(memory);
	bench_open(&bench, provider);
	for (int n = 0; n < STREAMS; n++) {
		bare_create(&streams[n].from, &bench, IBV_QPT_RC, NULL);
		bare_create(&streams[n].to, &bench, IBV_QPT_RC, NULL);
		bare_connect(&streams[n].from, &streams[n].to);
		streams[n].mr = provider->ibv_reg_mr(bench.pd, memory + (size_t)n * 2 * LONG, 2 * LONG,
						     BENCH_ACCESS);
		CHECK(streams[n].mr);
		CHECK(!pthread_create(&streams[n].thread, NULL, stream_messages, &streams[n]));
	}
	for (int n = 0; n < STREAMS; n++)
		while (!atomic_load(&streams[n].messages))
			pause_a_little();
	for (int round = 0; round < ROUNDS; round++) {
		struct ibv_mr *other = provider->ibv_reg_mr(bench.pd, small, sizeof(small), BENCH_ACCESS);
		unsigned long before[STREAMS];

		CHECK(other);
		for (int n = 0; n < STREAMS; n++)
			before[n] = atomic_load(&streams[n].messages);
		CHECK(!provider->ibv_dereg_mr(other));
		for (int n = 0; n < STREAMS; n++)
			most += atomic_load(&streams[n].messages) - before[n];
		CHECK(most <= STREAMS * ROUNDS * MESSAGES_AT_MOST);
		pause_a_little();
	}
	for (int n = 0; n < STREAMS; n++) {
		atomic_store(&streams[n].stop, true);
		CHECK(!pthread_join(streams[n].thread, NULL));
		CHECK(!provider->ibv_dereg_mr(streams[n].mr));
		bare_destroy(&streams[n].from);
		bare_destroy(&streams[n].to);
	}
	bench_close(&bench);
	free(memory);
}

/* --- messages of the peer while a connection ends -------------------------------------------------- */

struct writer {
	struct pair *pair;
	_Atomic unsigned long messages;
};

static void *write_until_refused(void *argument)
{
	struct writer *writer = argument;

	while (!post_send(&writer->pair->client, IBV_WR_RDMA_WRITE, 1, 0, LONG, &writer->pair->server, 0) &&
	       poll_one(writer->pair->client.id->send_cq).status == IBV_WC_SUCCESS)
		atomic_fetch_add(&writer->messages, 1);
	return NULL;
}

static void test_disconnection(struct core_provider *provider)
{
	unsigned long during = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct pair_options options = {.memory = LONG, .depth = 8, .rnr_retry = 7, .retry = 1,
					       .resources = 1};
		struct pair pair;
		struct writer writer = {.pair = &pair};
		unsigned long before;
		pthread_t thread;

		pair_connect(&pair, provider, PORT, options);
		CHECK(!pthread_create(&thread, NULL, write_until_refused, &writer));
		while (!atomic_load(&writer.messages))
			pause_a_little();
		before = atomic_load(&writer.messages);
		CHECK(!provider->rdma_disconnect(pair.server.id));
		during += atomic_load(&writer.messages) - before;
		/* The peer answers, or its writer would wait out its retries. */
		CHECK(!provider->rdma_disconnect(pair.client.id));
		CHECK(!pthread_join(thread, NULL));
		pair_destroy(&pair);
	}
	CHECK(during <= ROUNDS * MESSAGES_AT_MOST / 4); /* two locks, not those of all queue pairs */
}

/* --- while a queue pair cannot be had, the ids of others can --------------------------------------- */

struct call {
	struct core_provider *provider;
	struct rdma_cm_id *id;
	int (*make)(struct call *call);
	struct rdma_event_channel *channel;
	pthread_t thread;
	_Atomic bool over;
};

static int disconnect(struct call *call)
{
	return call->provider->rdma_disconnect(call->id);
}

static int destroy_queue_pair(struct call *call)
{
	call->provider->rdma_destroy_qp(call->id);
	return 0;
}

static int accept_it(struct call *call)
{
	struct rdma_conn_param param = usual_param();

	return call->provider->rdma_accept(call->id, &param);
}

static int read_response(struct call *call)
{
	expect_and_acknowledge(call->provider, call->channel, RDMA_CM_EVENT_ESTABLISHED);
	return 0;
}

static void *run(void *argument)
{
	struct call *call = argument;

	CHECK(!call->make(call));
	atomic_store(&call->over, true);
	return NULL;
}

static void start(struct call *call)
{
	CHECK(!pthread_create(&call->thread, NULL, run, call));
}

static void join(struct call *call)
{
	CHECK(!pthread_join(call->thread, NULL));
}

/* The call waits for a lock that is held here, and another id is made and goes. */
static void stall(struct call *call, struct soft_qp *qp, struct call *second)
{
	struct rdma_event_channel *channel = create_channel(call->provider);
	struct rdma_cm_id *other;

	bare_hold(&qp->requester.lock);
	start(call);
	while (!soft_lock_is_wanted(&qp->requester.lock))
		pause_a_little();
	CHECK(!call->provider->rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
	CHECK(!call->provider->rdma_destroy_id(other));
	if (second)
		start(second);
	pause_a_little();
	CHECK(!atomic_load(&call->over) && (!second || !atomic_load(&second->over)));
	bare_let_go(&qp->requester.lock);
	join(call);
	if (second)
		join(second);
	call->provider->rdma_destroy_event_channel(channel);
}

static void create_queue_pair(struct core_provider *provider, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};

	CHECK(!provider->rdma_create_qp(id, NULL, &attr));
}

static void test_others_go_on(struct core_provider *provider)
{
	struct rdma_event_channel *passive = create_channel(provider), *active = create_channel(provider);
	struct sockaddr_storage address = local_address(PORT + 1);
	struct rdma_conn_param param = usual_param();
	struct call accepting = {.provider = provider, .make = accept_it};
	struct call reading = {.provider = provider, .make = read_response, .channel = active};
	struct call leaving = {.provider = provider, .make = disconnect};
	struct call destroying = {.provider = provider, .make = destroy_queue_pair};
	struct rdma_cm_id *listener, *client, *child;
	struct rdma_cm_event *event;

	CHECK(!provider->rdma_create_id(passive, &listener, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(listener, (struct sockaddr *)&address));
	CHECK(!provider->rdma_listen(listener, 1));
	client = resolved_client(provider, active, PORT + 1);
	create_queue_pair(provider, client);
	CHECK(!provider->rdma_connect(client, &param));
	event = expect_event(provider, passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	accepting.id = leaving.id = destroying.id = child = event->id;
	CHECK(!provider->rdma_ack_cm_event(event));
	create_queue_pair(provider, child);

	stall(&accepting, soft_qp(child->qp), NULL);
	stall(&reading, soft_qp(client->qp), NULL);
	expect_and_acknowledge(provider, passive, RDMA_CM_EVENT_ESTABLISHED);
	/* The queue pair is not destroyed under a call that modifies it. */
	stall(&leaving, soft_qp(child->qp), &destroying);
	CHECK(!child->qp);
	expect_and_acknowledge(provider, active, RDMA_CM_EVENT_DISCONNECTED);

	provider->rdma_destroy_qp(client);
	CHECK(!provider->rdma_destroy_id(client));
	CHECK(!provider->rdma_destroy_id(child));
	CHECK(!provider->rdma_destroy_id(listener));
	provider->rdma_destroy_event_channel(passive);
	provider->rdma_destroy_event_channel(active);
}

/* --- a thread that was stopped while it sends ------------------------------------------------------ */

/* Its completion comes late, and no other thread waits for it without a limit. */
static void test_stopped_sender(struct core_provider *provider)
{
	struct bench bench;
	struct bare ends[2];
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	bench_open(&bench, provider);
	sge = bench_sge(&bench, 0, 64);
	wr = bench_wr(IBV_WR_SEND, 1, &sge);
	bare_create(&ends[0], &bench, IBV_QPT_RC, NULL);
	bare_create(&ends[1], &bench, IBV_QPT_RC, NULL);
	bare_connect(&ends[0], &ends[1]);
	CHECK(!bare_recv(&ends[1], 2, 64, 64));
	atomic_store(&soft_qp(ends[1].qp)->requester.sending, true);
	CHECK(!bare_post(&ends[0], &wr));
	expect_wc(&ends[0], 1, IBV_WC_SUCCESS);
	expect_wc(&ends[1], 2, IBV_WC_SUCCESS);
	atomic_store(&soft_qp(ends[1].qp)->requester.sending, false);
	bare_destroy(&ends[0]);
	bare_destroy(&ends[1]);
	bench_close(&bench);
}

int main(void)
{
	struct core_provider *provider = open_provider();

	if (on_soft("what soft is made of")) {
		test_turn_within_batch(provider);
		test_deregistration(provider);
		test_disconnection(provider);
		test_others_go_on(provider);
		test_stopped_sender(provider);
	}
	close_provider(provider);
	return 0;
}
