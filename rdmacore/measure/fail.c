/* Stops a measurement: by an error, of which the first is stored, or by its caller. */
#include "measure/worker.h"

#include <unistd.h>

void core_measure_raise(int fd)
{
	uint64_t one = 1;
	/* It fails only if the descriptor is readable already. */
	ssize_t written = write(fd, &one, sizeof(one));

	(void)written;
}

void core_measure_cancel(struct core_measure *measure)
{
	atomic_store(&measure->stop, true);
	core_measure_raise(measure->wake_fd);
}

static bool is_flush(const struct core_measure_error *error)
{
	return error->stage == CORE_MEASURE_COMPLETION && error->wc_status == IBV_WC_WR_FLUSH_ERR;
}

static void record(struct core_measure_worker *worker, const struct core_measure_error *error)
{
	struct core_measure_error *first = &worker->result.error;

	if (first->result && first->result != -ECANCELED && !(is_flush(first) && !is_flush(error)))
		return;
	if (first->result && error->result == -ECANCELED)
		return;
	*first = *error;
	first->time_ns = core_measure_now();
}

int core_measure_fail_with(struct core_measure_worker *worker, const struct core_measure_error *error)
{
	record(worker, error);
	core_measure_cancel(worker->measure);
	return error->result;
}

int core_measure_fail(struct core_measure_worker *worker, int result, enum core_measure_stage stage)
{
	return core_measure_fail_with(worker, &(struct core_measure_error){
				    .result = result, .stage = stage, .message = worker->posted});
}

int core_measure_fail_message(struct core_measure_worker *worker, enum core_measure_stage stage,
			      uint64_t message, uint64_t detail)
{
	return core_measure_fail_with(worker, &(struct core_measure_error){.result = -EBADMSG, .stage = stage,
							  .message = message, .detail = detail});
}
