/* Objects that go while others use them: events that were taken, halves that are still held, turns of the timers. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "soft/base/fabric.h"
#include "soft/base/refusal.h"
#include "soft/cm/cm.h"
#include "soft/cm/id.h"
#include "soft/engine/calls.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/objects/srq.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"
#include "soft/rdma/rdma.h"

#define KEPT_PORT 7092
#define ROUNDS 1000
#define SHORT_WHILE 20000 /* microseconds after which a thread that does not wait has ended */

static struct soft_fabric *fabric_of(struct bench *bench)
{
	return soft_device(bench->context->device)->fabric;
}

/* --- an unacknowledged event keeps its object ------------------------------------------------------- */

enum kind { COMPLETION, OVERFLOW, ACCESS, LIMIT, KINDS };

/* An object of each kind with an event that was taken, and a thread that destroys it. */
struct keeper {
	struct bench *bench;
	enum kind kind;
	struct bare bare;
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq;
	struct ibv_async_event event;
	pthread_t thread;
	_Atomic bool done;
	int result;
};

static void make_keeper(struct keeper *keeper, struct bench *bench, enum kind kind)
{
	struct core_provider *provider = bench->provider;
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	void *context;

	*keeper = (struct keeper){.bench = bench, .kind = kind, .bare.bench = bench};
	switch (kind) {
	case ACCESS:
		bare_create(&keeper->bare, bench, IBV_QPT_RC, NULL);
		soft_async_raise(bench->context, &soft_qp(keeper->bare.qp)->events[SOFT_QP_ACCESS_EVENT]);
		break;
	case LIMIT:
		keeper->srq = provider->ibv_create_srq(bench->pd, &attr);
		CHECK(keeper->srq);
		soft_async_raise(bench->context, &soft_srq(keeper->srq)->limit_event);
		break;
	default:
		keeper->channel = provider->ibv_create_comp_channel(bench->context);
		CHECK(keeper->channel);
		keeper->bare.cq = provider->ibv_create_cq(bench->context, 1, keeper, keeper->channel, 0);
		CHECK(keeper->bare.cq);
		soft_cq_notify(soft_cq(keeper->bare.cq));
		if (kind == OVERFLOW) /* the other event, which was not taken, is dropped with it */
			soft_async_raise(bench->context, &soft_cq(keeper->bare.cq)->overflow_event);
	}
	if (kind == COMPLETION) {
		CHECK(!provider->ibv_get_cq_event(keeper->channel, &keeper->event.element.cq, &context));
		CHECK(keeper->event.element.cq == keeper->bare.cq && context == keeper);
	} else {
		CHECK(!provider->ibv_get_async_event(bench->context, &keeper->event));
	}
}

static void *destroy(void *argument)
{
	struct keeper *keeper = argument;
	struct core_provider *provider = keeper->bench->provider;

	switch (keeper->kind) {
	case ACCESS:
		keeper->result = provider->ibv_destroy_qp(keeper->bare.qp);
		break;
	case LIMIT:
		keeper->result = provider->ibv_destroy_srq(keeper->srq);
		break;
	default:
		keeper->result = provider->ibv_destroy_cq(keeper->bare.cq);
	}
	atomic_store(&keeper->done, true);
	return NULL;
}

static void begin_destroy(struct keeper *keeper)
{
	atomic_store(&keeper->done, false);
	CHECK(!pthread_create(&keeper->thread, NULL, destroy, keeper));
}

static int end_destroy(struct keeper *keeper)
{
	CHECK(!pthread_join(keeper->thread, NULL));
	return keeper->result;
}

static void acknowledge(struct keeper *keeper)
{
	if (keeper->kind == COMPLETION)
		keeper->bench->provider->ibv_ack_cq_events(keeper->event.element.cq, 1);
	else
		keeper->bench->provider->ibv_ack_async_event(&keeper->event);
}

static void end_keeper(struct keeper *keeper)
{
	if (keeper->kind == ACCESS)
		CHECK(!keeper->bench->provider->ibv_destroy_cq(keeper->bare.cq));
	if (keeper->channel)
		CHECK(!keeper->bench->provider->ibv_destroy_comp_channel(keeper->channel));
}

/* ibv_destroy_cq(3), ibv_destroy_qp(3), ibv_destroy_srq(3): until all events were acknowledged. */
static void test_destroy_waits(struct bench *bench)
{
	for (enum kind kind = 0; kind < KINDS; kind++) {
		struct keeper keeper;

		make_keeper(&keeper, bench, kind);
		begin_destroy(&keeper);
		usleep(SHORT_WHILE);
		CHECK(!atomic_load(&keeper.done));
		acknowledge(&keeper);
		CHECK(end_destroy(&keeper) == 0);
		end_keeper(&keeper);
	}
}

static uint64_t nearly_ten_seconds_ago(struct soft_clock *clock)
{
	struct soft_clock wall;

	(void)clock;
	soft_clock_wall(&wall);
	return wall.now(&wall) - 10 * SOFT_SECOND + 50 * SOFT_MILLISECOND;
}

/* But not forever; after the acknowledgement it can be destroyed. */
static void test_wait_ends(struct bench *bench)
{
	struct soft_clock *wall = &fabric_of(bench)->wall;
	struct keeper keepers[KINDS];

	wall->now = nearly_ten_seconds_ago;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		make_keeper(&keepers[kind], bench, kind);
		begin_destroy(&keepers[kind]);
	}
	for (enum kind kind = 0; kind < KINDS; kind++)
		CHECK(end_destroy(&keepers[kind]) == EBUSY);
	soft_clock_wall(wall);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		acknowledge(&keepers[kind]);
		begin_destroy(&keepers[kind]);
		CHECK(end_destroy(&keepers[kind]) == 0);
		end_keeper(&keepers[kind]);
	}
}

/* --- events are taken while their objects go ------------------------------------------------------ */

struct reader {
	struct bench *bench;
	struct ibv_comp_channel *channel;
	_Atomic bool stop;
	_Atomic unsigned int taken;
};

static void take_completion(struct reader *reader)
{
	struct core_provider *provider = reader->bench->provider;
	struct ibv_cq *cq;
	void *context;

	if (provider->ibv_get_cq_event(reader->channel, &cq, &context))
		return;
	CHECK(context == reader && cq->cq_context == reader);
	provider->ibv_ack_cq_events(cq, 1);
	atomic_fetch_add(&reader->taken, 1);
}

static void take_async(struct reader *reader)
{
	struct core_provider *provider = reader->bench->provider;
	struct ibv_async_event event;

	if (provider->ibv_get_async_event(reader->bench->context, &event))
		return;
	CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR && event.element.qp->qp_context == reader);
	provider->ibv_ack_async_event(&event);
	atomic_fetch_add(&reader->taken, 1);
}

static void *read_events(void *argument)
{
	struct reader *reader = argument;
	struct pollfd readable[2] = {{.fd = reader->channel->fd, .events = POLLIN},
				     {.fd = reader->bench->context->async_fd, .events = POLLIN}};

	while (!atomic_load(&reader->stop)) {
		if (poll(readable, 2, 10) <= 0)
			continue;
		if (readable[0].revents)
			take_completion(reader);
		if (readable[1].revents)
			take_async(reader);
	}
	return NULL;
}

/* Each event is taken by a reader or by none; no reader sees an object that is freed. */
static void test_readers(struct bench *bench)
{
	struct core_provider *provider = bench->provider;
	struct reader reader = {.bench = bench,
				.channel = provider->ibv_create_comp_channel(bench->context)};
	pthread_t threads[2];

	CHECK(reader.channel && !fcntl(reader.channel->fd, F_SETFL, O_NONBLOCK));
	for (int thread = 0; thread < 2; thread++)
		CHECK(!pthread_create(&threads[thread], NULL, read_events, &reader));
	for (int round = 0; round < ROUNDS; round++) {
		struct bare bare = {.bench = bench};
		struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC,
						.qp_context = &reader};

		bare.cq = provider->ibv_create_cq(bench->context, 1, &reader, reader.channel, 0);
		CHECK(bare.cq);
		attr.send_cq = attr.recv_cq = bare.cq;
		bare.qp = provider->ibv_create_qp(bench->pd, &attr);
		CHECK(bare.qp);
		soft_async_raise(bench->context, &soft_qp(bare.qp)->events[SOFT_QP_ACCESS_EVENT]);
		soft_cq_notify(soft_cq(bare.cq));
		for (volatile int spin = 0; spin < round * 7 % 900; spin++)
			;
		bare_destroy(&bare);
	}
	atomic_store(&reader.stop, true);
	for (int thread = 0; thread < 2; thread++)
		CHECK(!pthread_join(threads[thread], NULL));
	CHECK(atomic_load(&reader.taken) <= 2 * ROUNDS);
	CHECK(!provider->ibv_destroy_comp_channel(reader.channel));
}

/* --- the device goes ------------------------------------------------------------------------------ */

/* A removal meets a queue pair that it holds and that its owner destroyed, with its queues, meanwhile. */
static void test_reset_when_destroyed(struct bench *bench)
{
	struct bare bare;
	struct soft_qp *qp;

	bare_create(&bare, bench, IBV_QPT_RC, NULL);
	bare_init(&bare);
	qp = soft_qp(bare.qp);
	soft_qp_hold(qp);
	bare_destroy(&bare);
	soft_qp_reset(qp);
	soft_qp_release(qp);
}

static void *open_it(void *argument)
{
	return soft_open_device(argument);
}

/* A thread that opens the device during its removal gets an error, or the removal finds its context. */
static void test_open_while_it_leaves(struct bench *bench)
{
	struct soft_device *device = soft_device(bench->context->device);
	void *context;
	pthread_t thread;

	soft_mutex_lock(&device->lock);
	CHECK(!pthread_create(&thread, NULL, open_it, &device->ibv));
	usleep(SHORT_WHILE);
	atomic_store(&device->away, true);
	soft_mutex_unlock(&device->lock);
	CHECK(!pthread_join(thread, &context));
	CHECK(!context);
	soft_device_return(device);
}

struct user {
	struct core_provider *provider;
	_Atomic bool stop;
	unsigned int made;
};

static void *make_and_destroy(void *argument)
{
	struct user *user = argument;
	struct core_provider *provider = user->provider;
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

	core_select(provider);
	while (!atomic_load(&user->stop)) {
		struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
		struct ibv_context **list = provider->rdma_get_devices(NULL);
		struct ibv_pd *pd = list ? provider->ibv_alloc_pd(list[0]) : NULL;
		struct ibv_cq *cq = pd ? provider->ibv_create_cq(list[0], 1, NULL, NULL, 0) : NULL;

		attr.send_cq = attr.recv_cq = cq;
		if (cq) {
			struct ibv_qp *qp = provider->ibv_create_qp(pd, &attr);
			int error = qp ? provider->ibv_modify_qp(qp, &init, mask) : EIO;

			CHECK(!error || error == EIO);
			if (qp)
				CHECK(!provider->ibv_destroy_qp(qp));
			user->made += qp != NULL;
			CHECK(!provider->ibv_destroy_cq(cq));
		}
		if (pd)
			CHECK(!provider->ibv_dealloc_pd(pd));
		provider->rdma_free_devices(list);
	}
	return NULL;
}

static void test_removals(struct core_provider *provider)
{
	struct core_fault removal = {.action = CORE_FAULT_REMOVE_DEVICE};
	struct user users[2] = {{.provider = provider}, {.provider = provider}};
	pthread_t threads[2];
	uint32_t counted;

	for (int thread = 0; thread < 2; thread++)
		CHECK(!pthread_create(&threads[thread], NULL, make_and_destroy, &users[thread]));
	for (int round = 0; round < 150; round++) {
		int rule = core_fault_add(provider, &removal);

		CHECK(rule >= 0 && !core_fault_remove(provider, rule, &counted));
		usleep((useconds_t)round);
	}
	for (int thread = 0; thread < 2; thread++) {
		atomic_store(&users[thread].stop, true);
		CHECK(!pthread_join(threads[thread], NULL));
	}
	CHECK(users[0].made && users[1].made);
}

/* --- timers --------------------------------------------------------------------------------------- */

/* A timer that stays in its expire until the test releases it. */
struct slow {
	struct soft_timer timer;
	sem_t begun, go_on;
	_Atomic bool over;
};

static struct turns {
	struct soft_clock clock;
	struct soft_timers timers;
	struct slow first;
	struct soft_timer second;
	_Atomic bool second_ran, unregistered;
} turns;

static void expire_slowly(struct soft_timer *timer)
{
	struct slow *slow = soft_container_of(timer, struct slow, timer);

	CHECK(!sem_post(&slow->begun) && !sem_wait(&slow->go_on));
	atomic_store(&slow->over, true);
}

static void expire_second(struct soft_timer *timer)
{
	(void)timer;
	atomic_store(&turns.second_ran, true);
}

static void *advance(void *argument)
{
	(void)argument;
	CHECK(soft_timers_advance(&turns.timers, 10 * SOFT_SECOND));
	return NULL;
}

static void *unregister_first(void *argument)
{
	(void)argument;
	soft_timer_unregister(&turns.timers, &turns.first.timer);
	CHECK(atomic_load(&turns.first.over));
	return NULL;
}

/* Two threads advance: unregistering the running timer waits for its end, whichever thread runs it. */
static void test_turns(void)
{
	pthread_t threads[3];

	soft_clock_virtual(&turns.clock);
	soft_timers_init(&turns.timers, &turns.clock);
	CHECK(!sem_init(&turns.first.begun, 0, 0) && !sem_init(&turns.first.go_on, 0, 0));
	CHECK(!soft_timer_register(&turns.timers, &turns.first.timer, expire_slowly));
	CHECK(!soft_timer_register(&turns.timers, &turns.second, expire_second));
	CHECK(!soft_timer_arm(&turns.timers, &turns.first.timer, 1));
	CHECK(!soft_timer_arm(&turns.timers, &turns.second, 2));
	CHECK(!pthread_create(&threads[0], NULL, advance, NULL));
	CHECK(!sem_wait(&turns.first.begun));
	CHECK(!pthread_create(&threads[1], NULL, advance, NULL));
	usleep(SHORT_WHILE);
	CHECK(!atomic_load(&turns.second_ran));
	CHECK(!pthread_create(&threads[2], NULL, unregister_first, NULL));
	usleep(SHORT_WHILE);
	CHECK(!sem_post(&turns.first.go_on));
	for (int thread = 0; thread < 3; thread++)
		CHECK(!pthread_join(threads[thread], NULL));
	CHECK(atomic_load(&turns.second_ran));
	soft_timer_unregister(&turns.timers, &turns.second);
	soft_timers_destroy(&turns.timers);
	CHECK(!sem_destroy(&turns.first.begun) && !sem_destroy(&turns.first.go_on));
}

/* --- objects that cannot be destroyed are kept, with an error --------------------------------------- */

/* The id's queue pair and its queues, while one of its events is unacknowledged. */
static void test_queue_pair_kept(struct bench *bench)
{
	struct core_provider *provider = bench->provider;
	struct soft_clock *wall = &fabric_of(bench)->wall;
	struct sockaddr_storage address = local_address(0);
	struct rdma_event_channel *channel = create_channel(provider);
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1}, .qp_type = IBV_QPT_RC};
	long queue_pairs = core_live(provider, CORE_QP), queues = core_live(provider, CORE_CQ);
	struct ibv_async_event event;
	struct rdma_cm_id *id, before;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!provider->rdma_bind_addr(id, (struct sockaddr *)&address));
	CHECK(!core_create_qp(provider, id, NULL, &attr));
	soft_async_raise(id->verbs, &soft_qp(id->qp)->events[SOFT_QP_ACCESS_EVENT]);
	CHECK(!provider->ibv_get_async_event(id->verbs, &event));
	before = *id;
	wall->now = nearly_ten_seconds_ago;
	CHECK(core_destroy_qp(provider, id, true, false) == -EBUSY);
	soft_clock_wall(wall);
	CHECK(id->qp == before.qp && id->send_cq == before.send_cq && id->recv_cq == before.recv_cq &&
	      id->send_cq_channel == before.send_cq_channel && id->recv_cq_channel == before.recv_cq_channel);
	CHECK(core_live(provider, CORE_QP) == queue_pairs + 1 && core_live(provider, CORE_CQ) == queues + 2);
	provider->ibv_ack_async_event(&event);
	CHECK(!core_destroy_qp(provider, id, false, false));
	CHECK(!id->qp && core_live(provider, CORE_QP) == queue_pairs && core_live(provider, CORE_CQ) == queues);
	CHECK(!provider->rdma_destroy_id(id));
	provider->rdma_destroy_event_channel(channel);
}

static void *disconnect(void *id)
{
	CHECK(!soft_disconnect(id));
	return NULL;
}

static void wait_until_moving(struct soft_id *id)
{
	for (bool moving = false; !moving;) {
		soft_mutex_lock(&id->cm->lock);
		moving = id->moving;
		soft_mutex_unlock(&id->cm->lock);
		usleep(1000);
	}
}

/* An id with a queue pair that another call is modifying. That call waits for a stopped thread that posts. */
static void test_id_kept(struct bench *bench)
{
	struct core_provider *provider = bench->provider;
	struct soft_clock *wall = &fabric_of(bench)->wall;
	struct soft_requester *requester;
	struct rdma_cm_id *id;
	struct pair pair;
	pthread_t thread;

	pair_connect(&pair, provider, KEPT_PORT, (struct pair_options){.memory = 64, .depth = 4});
	id = pair.client.id;
	requester = &soft_qp(id->qp)->requester;
	bare_hold(&requester->lock);
	CHECK(!pthread_create(&thread, NULL, disconnect, id));
	wait_until_moving(soft_id(id));
	wall->now = nearly_ten_seconds_ago;
	provider->rdma_destroy_qp(id);
	CHECK(id->qp && strstr(soft_refusal(), "was stopped"));
	REFUSED(provider->rdma_destroy_id(id), EBUSY);
	soft_clock_wall(wall);
	bare_let_go(&requester->lock);
	CHECK(!pthread_join(thread, NULL));
	pair_destroy(&pair);
}

/* --- an id with a destroyed channel ----------------------------------------------------------------- */

/* It has no events any more; it can only be destroyed. */
static void test_no_channel(struct core_provider *provider)
{
	struct rdma_event_channel *channel = create_channel(provider);
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	provider->rdma_destroy_event_channel(channel);
	CHECK(provider->rdma_resolve_addrinfo(id, "127.0.0.1", "7091", NULL) == -1 && errno == EINVAL);
	CHECK(!provider->rdma_destroy_id(id));
}

int main(void)
{
	struct core_provider *provider;
	struct bench bench;

	if (!on_soft("what soft is made of"))
		return 0;
	provider = open_provider();
	bench_open(&bench, provider);
	test_destroy_waits(&bench);
	test_wait_ends(&bench);
	test_readers(&bench);
	test_reset_when_destroyed(&bench);
	test_open_while_it_leaves(&bench);
	test_queue_pair_kept(&bench);
	test_id_kept(&bench);
	bench_close(&bench);
	test_removals(provider);
	test_turns();
	test_no_channel(provider);
	close_provider(provider);
	return 0;
}
