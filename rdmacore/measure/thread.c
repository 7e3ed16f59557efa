/* The threads of a measurement, from start to end. */
#include <sched.h>
#include <signal.h>

#include "measure/completion.h"
#include "measure/worker.h"

static void await_others(struct core_measure_worker *worker)
{
	struct core_measure *measure = worker->measure;

	atomic_fetch_add(&measure->arrived, 1);
	while (atomic_load(&measure->arrived) < measure->started && !core_measure_stopped(worker))
		sched_yield();
}

/*
 * After a failure or a stop, flushed receives may have been polled before the send that failed. The other end may have
 * failed before this one. So errors are recorded by rank.
 */
static void last_look(struct core_measure_worker *worker)
{
	struct ibv_cq *queues[] = {worker->send_cq, worker->recv_cq};

	for (int queue = 0; queue < 2; queue++) {
		/* Limited by the size of the queue, because others may add completions. */
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
		core_measure_raise(measure->done_fd);
	return NULL;
}

/* The thread starts on its CPUs: if it moved there later, its memory would be allocated elsewhere. */
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

/*
 * Faults, which the system sends to the thread that caused them; if they are blocked, the process ends without a
 * message.
 */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

/* All other signals are for the program's threads, which may be Go's. */
static int create_thread(struct core_measure_worker *worker)
{
	sigset_t others, before;
	pthread_attr_t attr;
	int result = pthread_attr_init(&attr);

	if (result)
		return -result;
	result = set_cpus(&attr, &worker->end);
	if (result)
		goto destroy_attr;
	sigfillset(&others);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&others, faults[i]);
	pthread_sigmask(SIG_SETMASK, &others, &before);
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
	/* One more, for this thread, so that the end is not reported before all threads are created. */
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
		core_measure_raise(measure->done_fd);
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
