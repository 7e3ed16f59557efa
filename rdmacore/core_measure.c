/* The life of a measurement: create, prepare, start, finish, free. */
#include "core_measure_worker.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void free_worker(struct core_measure_worker *worker)
{
	if (!worker)
		return;
	core_measure_connects_free(worker);
	for (uint32_t step = 0; step < worker->histograms; step++)
		core_histogram_free(&worker->histogram[step]);
	free(worker->sampler.samples);
	free(worker->sends);
	free(worker->send_sges);
	free(worker->recvs);
	free(worker->recv_sges);
	free(worker);
}

/* A page fault costs more than some steps that are measured, but many digits have more pages than are ever used. */
#define TOUCHED_BEFORE (UINT64_C(1) << 20)

static void touch(struct core_histogram *histogram)
{
	uint64_t bytes = histogram->length * sizeof(*histogram->counts);

	if (bytes <= TOUCHED_BEFORE)
		memset(histogram->counts, 0, bytes);
}

static int init_histograms(struct core_measure_worker *worker)
{
	const struct core_measure_spec *spec = &worker->measure->spec;
	uint32_t wanted = spec->kind == CORE_MEASURE_CONNECT ? CORE_MEASURE_STEPS : 1;

	if (worker->end.role != CORE_MEASURE_ACTIVE || spec->kind == CORE_MEASURE_BANDWIDTH)
		return 0;
	while (worker->histograms < wanted) {
		int result = core_histogram_init(&worker->histogram[worker->histograms],
						 spec->histogram_highest_ns, spec->histogram_digits);

		if (result)
			return result;
		touch(&worker->histogram[worker->histograms]);
		worker->histograms++;
	}
	return 0;
}

static int create_worker(struct core_measure *measure, const struct core_measure_end *end,
			 struct core_measure_refusal *refusal)
{
	struct core_measure_worker *worker = aligned_alloc(CORE_MEASURE_CACHE_LINE, sizeof(*worker));
	int result;

	if (!worker)
		return core_measure_refuse(refusal, -ENOMEM, "", "no memory for an end");
	memset(worker, 0, sizeof(*worker));
	worker->measure = measure;
	worker->end = *end;
	measure->workers[measure->count++] = worker;
	result = core_measure_layout(worker, refusal);
	if (result)
		return result;
	result = init_histograms(worker);
	if (!result)
		result = core_measure_sampler_init(&worker->sampler, &measure->spec);
	if (!result && measure->spec.kind != CORE_MEASURE_CONNECT)
		result = core_measure_requests_init(worker);
	return result ? core_measure_refuse(refusal, result, "", "no memory for an end") : 0;
}

int core_measure_create(const struct core_measure_spec *given, const struct core_measure_end *ends,
			uint32_t count, struct core_measure **created,
			struct core_measure_refusal *refusal)
{
	struct core_measure *measure = calloc(1, sizeof(*measure));
	int result;

	memset(refusal, 0, sizeof(*refusal));
	if (!measure)
		return core_measure_refuse(refusal, -ENOMEM, "", "no memory for a measurement");
	measure->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	measure->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (measure->done_fd < 0 || measure->wake_fd < 0)
		result = core_measure_refuse(refusal, -errno, "", "eventfd: too many open files?");
	else
		result = core_measure_check_spec(given, &measure->spec, refusal);
	if (!result)
		result = core_measure_check_ends(&measure->spec, ends, count, refusal);
	for (uint32_t index = 0; !result && index < count; index++)
		result = create_worker(measure, &ends[index], refusal);
	if (result) {
		core_measure_free(measure);
		return result;
	}
	*created = measure;
	return 0;
}

/* --- prepare ------------------------------------------------------------------------------------------ */

static void fill_slots(struct core_measure_worker *worker)
{
	for (uint64_t slot = 0; slot < worker->send_slots; slot++)
		core_measure_fill((void *)(uintptr_t)(worker->send_base + slot * worker->stride),
				  worker->size, slot);
}

static int prepare_worker(struct core_measure_worker *worker)
{
	bool one_sided = worker->operation != IBV_WR_SEND;

	if (worker->measure->spec.kind == CORE_MEASURE_CONNECT)
		return core_measure_connects_prepare(worker);
	/* Pages written once before the time runs: unwritten ones are all the same page of zeros. */
	if (worker->transmits || core_measure_fetches(worker))
		fill_slots(worker);
	if (worker->receives || worker->transmits)
		if (!one_sided || worker->verify || worker->measure->spec.kind == CORE_MEASURE_LATENCY ||
		    core_measure_fetches(worker))
			memset((void *)(uintptr_t)worker->receive_base, 0,
			       worker->receive_slots * worker->stride);
	return core_measure_first_receives(worker);
}

int core_measure_prepare(struct core_measure *measure)
{
	/* The passive end first: the active one may ask where it listens. */
	for (int role = CORE_MEASURE_PASSIVE; role >= CORE_MEASURE_ACTIVE; role--)
		for (uint32_t index = 0; index < measure->count; index++) {
			struct core_measure_worker *worker = measure->workers[index];
			int result = 0;

			if (worker->end.role == (uint32_t)role)
				result = prepare_worker(worker);
			if (result)
				return result;
		}
	return 0;
}

/* --- threads ------------------------------------------------------------------------------------------ */

static void raise_fd(int fd)
{
	uint64_t one = 1;
	/* It cannot fail but by being readable already. */
	ssize_t written = write(fd, &one, sizeof(one));

	(void)written;
}

static void await_others(struct core_measure_worker *worker)
{
	struct core_measure *measure = worker->measure;

	atomic_fetch_add(&measure->arrived, 1);
	while (atomic_load(&measure->arrived) < measure->started && !core_measure_stopped(worker))
		sched_yield();
}

/*
 * After a failure or a stop: flushed receives may have been seen before the send that failed, and the other
 * end's failure before this end's own.  Errors are recorded by their rank.
 */
static void last_look(struct core_measure_worker *worker)
{
	struct ibv_cq *queues[] = {worker->send_cq, worker->recv_cq};

	for (int queue = 0; queue < 2; queue++) {
		/* Bounded by what can be in a queue, for one that others write to. */
		for (int left = queues[queue]->cqe; left > 0; left--) {
			struct ibv_wc wc;

			if (ibv_poll_cq(queues[queue], 1, &wc) <= 0)
				break;
			core_measure_take(worker, &wc);
		}
	}
}

static void *work(void *argument)
{
	struct core_measure_worker *worker = argument;
	struct core_measure *measure = worker->measure;
	uint64_t progress;
	int result;

	await_others(worker);
	result = worker->run(worker);
	if (result && measure->spec.kind != CORE_MEASURE_CONNECT) {
		last_look(worker);
		progress = worker->transmits ? worker->completed : worker->received;
		if (measure->spec.kind == CORE_MEASURE_LATENCY && worker->receives)
			progress = worker->received;
		core_measure_window_close(worker, core_measure_now(), progress);
	}
	worker->result.received_messages = worker->received;
	worker->result.received_bytes = worker->received * worker->size;
	if (!worker->transmits && measure->spec.kind != CORE_MEASURE_CONNECT)
		worker->result.messages = worker->result.bytes = 0;
	if (atomic_fetch_sub(&measure->running, 1) == 1)
		raise_fd(measure->done_fd);
	return NULL;
}

/* The thread begins on its CPUs: one that moved there later would touch its memory elsewhere first. */
static int set_cpus(pthread_attr_t *attr, const struct core_measure_end *end)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (size_t cpu = 0; cpu < CORE_MEASURE_CPUS; cpu++) {
		if (end->cpus[cpu / 64] >> (cpu % 64) & 1)
			CPU_SET(cpu, &set);
	}
	return CPU_COUNT(&set) ? pthread_attr_setaffinity_np(attr, sizeof(set), &set) : 0;
}

/* Signals are for the threads of the program that has us, which may well be Go's. */
static int create_thread(struct core_measure_worker *worker)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int result = pthread_attr_init(&attr);

	if (result)
		return -result;
	result = set_cpus(&attr, &worker->end);
	if (result)
		goto destroy_attr;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&worker->thread, &attr, work, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
destroy_attr:
	pthread_attr_destroy(&attr);
	return -result;
}

int core_measure_start(struct core_measure *measure)
{
	uint32_t wanted = 0, made = 0;
	int result = 0;

	for (uint32_t index = 0; index < measure->count; index++)
		wanted += measure->workers[index]->run != NULL;
	measure->started = wanted;
	/* One more, ours, so that the end is not told before all are made. */
	atomic_store(&measure->running, wanted + 1);
	for (uint32_t index = 0; !result && index < measure->count; index++) {
		struct core_measure_worker *worker = measure->workers[index];

		if (!worker->run)
			continue;
		result = create_thread(worker);
		worker->threaded = result == 0;
		made += worker->threaded;
	}
	if (result)
		core_measure_cancel(measure);
	if (atomic_fetch_sub(&measure->running, wanted - made + 1) == wanted - made + 1)
		raise_fd(measure->done_fd);
	return result;
}

int core_measure_fd(struct core_measure *measure)
{
	return measure->done_fd;
}

bool core_measure_finished(struct core_measure *measure)
{
	return atomic_load(&measure->running) == 0;
}

void core_measure_cancel(struct core_measure *measure)
{
	atomic_store(&measure->stop, true);
	raise_fd(measure->wake_fd);
}

/* --- results ------------------------------------------------------------------------------------------ */

static int rank(const struct core_measure_error *error)
{
	if (!error->result)
		return 0;
	if (error->result == -ECANCELED)
		return 1;
	return error->stage == CORE_MEASURE_COMPLETION && error->wc_status == IBV_WC_WR_FLUSH_ERR ? 2 : 3;
}

int core_measure_join(struct core_measure *measure)
{
	const struct core_measure_error *worst = NULL;

	for (uint32_t index = 0; index < measure->count; index++) {
		struct core_measure_worker *worker = measure->workers[index];
		const struct core_measure_error *error = &worker->result.error;

		if (worker->threaded)
			pthread_join(worker->thread, NULL);
		worker->threaded = false;
		if (!worst || rank(error) > rank(worst) ||
		    (rank(error) == rank(worst) && error->time_ns < worst->time_ns))
			worst = error;
	}
	return worst->result;
}

void core_measure_used(struct core_measure *measure, struct core_measure_spec *spec)
{
	*spec = measure->spec;
	/* What was taken from the queues. */
	for (uint32_t index = 0; index < measure->count; index++) {
		const struct core_measure_worker *worker = measure->workers[index];

		if (spec->kind == CORE_MEASURE_BANDWIDTH && worker->transmits && !spec->depth)
			spec->depth = worker->depth;
		if (worker->receive_depth && !spec->receive_depth)
			spec->receive_depth = worker->receive_depth;
	}
}

void core_measure_get(struct core_measure *measure, uint32_t end, struct core_measure_result *result)
{
	*result = measure->workers[end]->result;
}

const struct core_histogram *core_measure_histogram(struct core_measure *measure, uint32_t end,
						    uint32_t step)
{
	struct core_measure_worker *worker = measure->workers[end];

	return step < worker->histograms ? &worker->histogram[step] : NULL;
}

const struct core_measure_sample *core_measure_samples(struct core_measure *measure, uint32_t end,
						       uint32_t *count)
{
	*count = measure->workers[end]->sampler.used;
	return measure->workers[end]->sampler.samples;
}

void core_measure_free(struct core_measure *measure)
{
	if (!measure)
		return;
	core_measure_cancel(measure);
	if (measure->count)
		core_measure_join(measure);
	for (uint32_t index = 0; index < measure->count; index++)
		free_worker(measure->workers[index]);
	if (measure->done_fd >= 0)
		close(measure->done_fd);
	if (measure->wake_fd >= 0)
		close(measure->wake_fd);
	free(measure);
}
