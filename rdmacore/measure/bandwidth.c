/*
 * As many messages as possible. One loop for all roles: post while there is room and credit, take completions, and
 * post receives again. An end that only receives does the latter two.
 */
#include <string.h>

#include "measure/completion.h"
#include "measure/worker.h"

/* Completions after which the clock is read, while there are always some. */
#define LOOK_EVERY 16

enum phase { WARMING, TIMED, ENDING, ENDED };

struct progress {
	enum phase phase;
	uint64_t begin_ns; /* of the phase */
	uint64_t look_at; /* read the clock when that many are complete */
	uint64_t checked; /* READs with checked contents */
};

static bool due(const struct core_measure_worker *worker)
{
	uint64_t number = worker->posted - worker->rate_base;

	number -= number % worker->burst;
	return core_measure_now() >=
	       worker->rate_begin_ns + (uint64_t)((double)number * worker->due_ns);
}

static int transmit(struct core_measure_worker *worker)
{
	while (worker->posted < worker->target) {
		uint64_t left = worker->target - worker->posted;
		uint32_t count = left < worker->post_list ? (uint32_t)left : worker->post_list;
		uint32_t room = worker->depth - (uint32_t)(worker->posted - worker->completed);
		int result;

		if (room < count || worker->credit < count)
			return 0;
		worker->pacing = worker->due_ns > 0 && !due(worker);
		if (worker->pacing)
			return 0;
		result = core_measure_post(worker, count, count == left);
		if (result)
			return result;
	}
	return 0;
}

/* Post no more, except for one message if those in flight would end without a completion. */
static void stop_posting(struct core_measure_worker *worker)
{
	worker->target = worker->posted + (worker->unsignaled ? 1 : 0);
	worker->pacing = false;
}

static void begin_timed(struct core_measure_worker *worker, struct progress *progress, uint64_t now)
{
	uint64_t iterations = worker->measure->spec.iterations;

	progress->phase = TIMED;
	progress->begin_ns = now;
	worker->target = iterations ? worker->posted + iterations : UINT64_MAX;
	worker->rate_begin_ns = now;
	worker->rate_base = worker->posted;
	core_measure_window_open(worker, now, worker->completed);
}

static void begin(struct core_measure_worker *worker, struct progress *progress)
{
	const struct core_measure_spec *spec = &worker->measure->spec;

	progress->begin_ns = core_measure_now();
	worker->rate_begin_ns = progress->begin_ns;
	if (!worker->transmits) {
		progress->phase = ENDED;
		core_measure_window_open(worker, progress->begin_ns, 0);
	} else if (!spec->warmup_iterations && !spec->warmup_ns) {
		begin_timed(worker, progress, progress->begin_ns);
	} else {
		progress->phase = WARMING;
		worker->target = spec->warmup_ns ? UINT64_MAX : spec->warmup_iterations;
	}
}

static bool drained(const struct core_measure_worker *worker)
{
	return worker->posted == worker->target && worker->completed == worker->target;
}

/* The clock was read: check whether the phase has ended. */
static void look(struct core_measure_worker *worker, struct progress *progress)
{
	const struct core_measure_spec *spec = &worker->measure->spec;
	uint64_t now = core_measure_now();

	progress->look_at = worker->completed + LOOK_EVERY;
	if (progress->look_at > worker->target)
		progress->look_at = worker->target;
	switch (progress->phase) {
	case WARMING:
		if (worker->target == UINT64_MAX && worker->posted >= spec->warmup_iterations &&
		    now - progress->begin_ns >= spec->warmup_ns)
			stop_posting(worker);
		if (drained(worker))
			begin_timed(worker, progress, now);
		break;
	case TIMED:
		core_measure_tick(worker, now, worker->completed);
		if (spec->duration_ns && now - progress->begin_ns >= spec->duration_ns) {
			core_measure_window_close(worker, now, worker->completed);
			stop_posting(worker);
			progress->phase = drained(worker) ? ENDED : ENDING;
		} else if (drained(worker)) {
			core_measure_window_close(worker, now, worker->completed);
			progress->phase = ENDED;
		}
		break;
	case ENDING:
		if (drained(worker))
			progress->phase = ENDED;
		break;
	case ENDED:
		break;
	}
}

/*
 * READs are checked by their reader. A slot is cleared afterwards, so that its contents cannot be taken for those of
 * the next READ.
 */
static int check_reads(struct core_measure_worker *worker, struct progress *progress)
{
	while (progress->checked < worker->completed) {
		uint64_t slot = progress->checked++ % worker->send_slots;
		int result = core_measure_verify(worker, slot, slot);

		if (result)
			return result;
		memset((void *)(uintptr_t)(worker->receive_base + slot * worker->stride), 0, worker->size);
	}
	return 0;
}

/* Check what the peer wrote, after its LAST: the newest message of each slot. */
static int check_writes(struct core_measure_worker *worker)
{
	uint64_t total = worker->peer_last, slots = worker->send_slots;

	for (uint64_t number = total > slots ? total - slots : 0; number < total; number++) {
		int result = core_measure_verify(worker, number % slots, number);

		if (result)
			return result;
	}
	return 0;
}

static int iterate(struct core_measure_worker *worker, struct progress *progress, unsigned int *spins)
{
	int result = worker->transmits && progress->phase != ENDED ? transmit(worker) : 0;
	enum phase phase = progress->phase;
	int taken;

	if (result)
		return result;
	taken = core_measure_reap_all(worker);
	if (taken < 0)
		return taken;
	if (worker->controls && (result = core_measure_replenish(worker)))
		return result;
	if (worker->operation == IBV_WR_RDMA_READ && worker->verify &&
	    (result = check_reads(worker, progress)))
		return result;
	if (progress->phase != ENDED && (taken == 0 || worker->completed >= progress->look_at))
		look(worker, progress);
	if (!worker->transmits && (taken == 0 || worker->received >= progress->look_at)) {
		progress->look_at = worker->received + LOOK_EVERY;
		core_measure_tick(worker, core_measure_now(), worker->received);
	}
	if (taken == 0 && progress->phase == phase)
		return core_measure_idle(worker, spins);
	*spins = 0;
	return core_measure_stopped(worker) ?
		       core_measure_fail(worker, -ECANCELED, CORE_MEASURE_NO_ERROR) : 0;
}

int core_measure_bandwidth(struct core_measure_worker *worker)
{
	struct progress progress = {0};
	unsigned int spins = 0;
	int result = 0;

	worker->credit = UINT64_MAX;
	if (worker->operation == IBV_WR_SEND)
		worker->credit = 0;
	if (worker->grant_every)
		result = core_measure_grant(worker, worker->receive_depth);
	if (worker->begins)
		result = core_measure_begin(worker);
	begin(worker, &progress);
	while (!result && (progress.phase != ENDED ||
			   (worker->receives && worker->confirms && !worker->last_received))) {
		result = iterate(worker, &progress, &spins);
		/* Before waiting for the peer's LAST: if both transmit, the peer waits for the one from here. */
		if (!result && progress.phase == ENDED && worker->transmits && worker->confirms &&
		    !worker->last_sent)
			result = core_measure_send_last(worker);
	}
	if (!result && !worker->transmits)
		core_measure_window_close(worker, core_measure_now(), worker->received);
	if (!result && worker->confirms)
		result = core_measure_confirm(worker);
	if (!result && worker->verify && worker->operation == IBV_WR_RDMA_WRITE && worker->receives)
		result = check_writes(worker);
	return result;
}
