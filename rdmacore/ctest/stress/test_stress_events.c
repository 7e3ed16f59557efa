/*
 * Readers of shared channels, of completions, of async events and of the connection manager's, while the objects of
 * the events are created and destroyed. Each event comes once, to one reader, while its object exists; a destroyed
 * object has no more events.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "ctest/stress/stress.h"
#include "ctest/support/bare.h"
#include "ctest/support/check.h"

#define CHANNELS 3 /* of completions; and two readers each */
#define CM_CHANNELS 2
#define WORKERS 7

static struct {
	struct bench bench;
	struct ibv_comp_channel *completions[CHANNELS];
	struct rdma_event_channel *cm[CM_CHANNELS];
	_Atomic unsigned int workers; /* that have not ended */
	uint16_t port;
} work;

/* The object of events, freed when it is destroyed: the sanitizers detect a reader that comes too late. */
struct object {
	uint64_t alive;
	_Atomic unsigned int heard;
};

#define ALIVE UINT64_C(0x6f626a656374)

static struct object *make_object(void)
{
	struct object *object = calloc(1, sizeof(*object));

	CHECK(object);
	object->alive = ALIVE;
	return object;
}

/* most: events that it can have had. */
static void free_object(struct object *object, unsigned int most)
{
	CHECK(atomic_load(&object->heard) <= most);
	object->alive = 0;
	free(object);
}

static void hear(struct object *object)
{
	CHECK(object->alive == ALIVE);
	atomic_fetch_add(&object->heard, 1);
}

/* Until the object has had that many events; none is lost. */
static void wait_heard(struct stress_thread *thread, struct object *object, unsigned int times, const char *what)
{
	stress_does(thread, what);
	while (atomic_load(&object->heard) < times)
		stress_pause(thread);
	CHECK(atomic_load(&object->heard) == times);
}

/* --- readers -------------------------------------------------------------------------------------- */

/* Several wait for the same descriptor, so it may be empty again. */
static bool wait_for(struct stress_thread *thread, int fd)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};

	stress_progresses(thread);
	return poll(&readable, 1, 10) == 1;
}

static void read_completions(struct stress_thread *thread)
{
	struct ibv_comp_channel *channel = work.completions[thread->number % CHANNELS];
	struct core_provider *provider = thread->stress->provider;
	struct ibv_cq *cq;
	void *object;

	stress_does(thread, "reads a completion channel");
	while (atomic_load(&work.workers)) {
		if (!wait_for(thread, channel->fd))
			continue;
		if (provider->ibv_get_cq_event(channel, &cq, &object)) {
			CHECK(errno == EAGAIN);
			continue;
		}
		CHECK(cq->cq_context == object);
		hear(object);
		if (!stress_below(thread, 8))
			stress_pause(thread);
		provider->ibv_ack_cq_events(cq, 1);
		thread->rounds++;
	}
}

static void read_async(struct stress_thread *thread)
{
	struct core_provider *provider = thread->stress->provider;
	struct ibv_context *context = work.bench.context;
	struct ibv_async_event event;

	stress_does(thread, "reads asynchronous events");
	while (atomic_load(&work.workers)) {
		if (!wait_for(thread, context->async_fd))
			continue;
		if (provider->ibv_get_async_event(context, &event)) {
			CHECK(errno == EAGAIN);
			continue;
		}
		switch (event.event_type) {
		case IBV_EVENT_QP_ACCESS_ERR:
			hear(event.element.qp->qp_context);
			break;
		case IBV_EVENT_SRQ_LIMIT_REACHED:
			hear(event.element.srq->srq_context);
			break;
		default:
			CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
			CHECK(((struct object *)event.element.qp->qp_context)->alive == ALIVE);
		}
		if (!stress_below(thread, 8))
			stress_pause(thread);
		provider->ibv_ack_async_event(&event);
		thread->rounds++;
	}
}

static void read_cm(struct stress_thread *thread)
{
	struct rdma_event_channel *channel = work.cm[thread->number];
	struct core_provider *provider = thread->stress->provider;
	struct rdma_cm_event *event;

	stress_does(thread, "reads a channel of the connection manager");
	while (atomic_load(&work.workers)) {
		if (!wait_for(thread, channel->fd))
			continue;
		if (provider->rdma_get_cm_event(channel, &event)) {
			CHECK(errno == EAGAIN);
			continue;
		}
		CHECK(event->event == RDMA_CM_EVENT_ADDR_RESOLVED || event->event == RDMA_CM_EVENT_ROUTE_RESOLVED);
		hear(event->id->context);
		if (!stress_below(thread, 8))
			stress_pause(thread);
		CHECK(!provider->rdma_ack_cm_event(event));
		thread->rounds++;
	}
}

/* --- workers -------------------------------------------------------------------------------------- */

static void connect_to_itself(struct bare *bare)
{
	bare_init(bare);
	bare_ready_to_receive(bare, bare);
	bare_ready_to_send(bare);
}

static void make_end(struct bare *bare, struct ibv_comp_channel *channel, void *cq_context, struct ibv_srq *srq,
		     void *qp_context)
{
	struct core_provider *provider = work.bench.provider;
	struct ibv_qp_init_attr attr = {.cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC, .srq = srq,
					.qp_context = qp_context};

	*bare = (struct bare){.bench = &work.bench};
	bare->cq = provider->ibv_create_cq(work.bench.context, 16, cq_context, channel, 0);
	CHECK(bare->cq);
	attr.send_cq = attr.recv_cq = bare->cq;
	bare->qp = provider->ibv_create_qp(work.bench.pd, &attr);
	CHECK(bare->qp);
	connect_to_itself(bare);
}

/* Each arming brings one event. */
static void complete(struct stress_thread *thread)
{
	struct ibv_comp_channel *channel = work.completions[stress_below(thread, CHANNELS)];
	struct ibv_sge sge = bench_sge(&work.bench, 0, 0);
	struct object *object = make_object();
	unsigned int times = stress_below(thread, 6), armed = 0;
	struct bare bare;
	struct ibv_wc wc;

	make_end(&bare, channel, object, NULL, NULL);
	while (armed < times) {
		struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);

		wr.num_sge = 0;
		CHECK(!ibv_req_notify_cq(bare.cq, 0));
		armed++;
		CHECK(!bare_post(&bare, &wr));
		CHECK(ibv_poll_cq(bare.cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
		if (armed < times || stress_below(thread, 2))
			wait_heard(thread, object, armed, "waits for the event of a completion");
	}
	stress_does(thread, "destroys a completion queue");
	bare_destroy(&bare);
	free_object(object, armed);
}

/* A queue pair of a shared queue, which reaches its limit. */
static void reach_limit(struct stress_thread *thread)
{
	struct core_provider *provider = work.bench.provider;
	struct ibv_sge sge = bench_sge(&work.bench, 0, 0);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 1, &sge);
	struct object *shared = make_object(), *object = make_object();
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}, .srq_context = shared};
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct ibv_srq *srq = provider->ibv_create_srq(work.bench.pd, &attr);
	struct bare bare;

	CHECK(srq);
	make_end(&bare, NULL, NULL, srq, object);
	for (int receive = 0; receive < 2; receive++)
		CHECK(!srq_recv(&work.bench, srq, 2, 0, 64));
	CHECK(!provider->ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	wr.num_sge = 0;
	CHECK(!bare_post(&bare, &wr));
	if (stress_below(thread, 2))
		wait_heard(thread, shared, 1, "waits for the limit of a shared queue");
	if (stress_below(thread, 2))
		bare_fail(&bare); /* LAST_WQE_REACHED, which may be read or not */
	stress_does(thread, "destroys a shared queue");
	bare_destroy(&bare);
	CHECK(!provider->ibv_destroy_srq(srq));
	free_object(shared, 1);
	free_object(object, 0);
}

static void be_refused(struct stress_thread *thread)
{
	struct ibv_sge sge = bench_sge(&work.bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);
	struct object *object = make_object();
	struct bare bare;

	make_end(&bare, NULL, NULL, NULL, object);
	wr.wr.rdma.remote_addr = (uintptr_t)work.bench.memory;
	wr.wr.rdma.rkey = 0;
	CHECK(!bare_post(&bare, &wr));
	if (stress_below(thread, 2))
		wait_heard(thread, object, 1, "waits for the event of a refused access");
	stress_does(thread, "destroys a queue pair");
	bare_destroy(&bare);
	free_object(object, 1);
}

/* An id that is destroyed, or goes over to another channel, while its events are read. */
static void resolve(struct stress_thread *thread)
{
	struct core_provider *provider = work.bench.provider;
	struct sockaddr_storage address = local_address(work.port);
	struct object *object = make_object();
	unsigned int channel = stress_below(thread, CM_CHANNELS), asked = 1;
	struct rdma_cm_id *id;

	CHECK(!provider->rdma_create_id(work.cm[channel], &id, object, RDMA_PS_TCP));
	CHECK(!provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000));
	if (stress_below(thread, 3)) {
		wait_heard(thread, object, asked, "waits for a resolved address");
		CHECK(!provider->rdma_resolve_route(id, 2000));
		asked++;
	}
	if (stress_below(thread, 2)) {
		stress_does(thread, "moves an id to another channel");
		CHECK(!provider->rdma_migrate_id(id, work.cm[(channel + 1) % CM_CHANNELS]));
	}
	if (stress_below(thread, 2))
		wait_heard(thread, object, asked, "waits for the last event of an id");
	stress_does(thread, "destroys an id");
	CHECK(!provider->rdma_destroy_id(id));
	free_object(object, asked);
}

static void work_at_random(struct stress_thread *thread)
{
	static void (*const acts[])(struct stress_thread *) = {complete, reach_limit, be_refused, resolve};

	while (stress_goes_on(thread->stress)) {
		acts[stress_below(thread, sizeof(acts) / sizeof(acts[0]))](thread);
		thread->rounds++;
	}
	atomic_fetch_sub(&work.workers, 1);
}

/* --- begin and end -------------------------------------------------------------------------------- */

static void open_all(struct core_provider *provider)
{
	bench_open(&work.bench, provider);
	work.port = 7111;
	for (int channel = 0; channel < CHANNELS; channel++) {
		work.completions[channel] = provider->ibv_create_comp_channel(work.bench.context);
		CHECK(work.completions[channel] &&
		      !fcntl(work.completions[channel]->fd, F_SETFL, O_NONBLOCK));
	}
	for (int channel = 0; channel < CM_CHANNELS; channel++) {
		work.cm[channel] = create_channel(provider);
		CHECK(!fcntl(work.cm[channel]->fd, F_SETFL, O_NONBLOCK));
	}
	atomic_store(&work.workers, WORKERS);
}

static void close_all(struct core_provider *provider)
{
	struct pollfd readable = {.events = POLLIN};

	for (int channel = 0; channel < CHANNELS; channel++) {
		readable.fd = work.completions[channel]->fd;
		CHECK(poll(&readable, 1, 0) == 0); /* with its object each event went */
		CHECK(!provider->ibv_destroy_comp_channel(work.completions[channel]));
	}
	for (int channel = 0; channel < CM_CHANNELS; channel++) {
		readable.fd = work.cm[channel]->fd;
		CHECK(poll(&readable, 1, 0) == 0);
		provider->rdma_destroy_event_channel(work.cm[channel]);
	}
	expect_no_async_event(&work.bench);
	bench_close(&work.bench);
}

int main(int count, char **arguments)
{
	struct stress stress;

	stress_open(&stress, count, arguments);
	open_all(stress.provider);
	for (unsigned int reader = 0; reader < 2 * CHANNELS; reader++)
		stress_add(&stress, "reader of completions", reader, read_completions);
	for (unsigned int reader = 0; reader < 2; reader++)
		stress_add(&stress, "reader of asynchronous events", reader, read_async);
	for (unsigned int reader = 0; reader < CM_CHANNELS; reader++)
		stress_add(&stress, "reader of the connection manager", reader, read_cm);
	for (unsigned int worker = 0; worker < WORKERS; worker++)
		stress_add(&stress, "worker", worker, work_at_random);
	stress_run(&stress);
	close_all(stress.provider);
	stress_close(&stress);
	return 0;
}
