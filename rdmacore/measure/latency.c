/*
 * One message at a time. The active end's loop is one template. An exchange depends on the operation, and each
 * combination is compiled by itself, so that nothing is decided between two posts.
 */
#include <string.h>

#include "measure/completion.h"
#include "measure/worker.h"

#define INLINE static inline __attribute__((always_inline))

/* Polls of memory before the completion queue is polled, where an error would show. */
#define WATCH_SPINS 64
/* The bytes before the last byte of a message may arrive a little later: IBTA 9.5 orders nothing within a message. */
#define TORN_NS UINT64_C(10000000)

INLINE int await_received(struct core_measure_worker *worker, uint64_t count)
{
	unsigned int spins = 0;

	while (worker->received < count) {
		int result = core_measure_reap(worker, worker->recv_cq);

		if (result == 0)
			result = core_measure_idle(worker, &spins);
		if (result < 0)
			return result;
	}
	return 0;
}

/* Wait for the completions of all posted requests. */
INLINE int await_posted(struct core_measure_worker *worker)
{
	unsigned int spins = 0;

	while (worker->completed < worker->posted) {
		int result = core_measure_reap(worker, worker->send_cq);

		if (result == 0)
			result = core_measure_idle(worker, &spins);
		if (result < 0)
			return result;
	}
	return 0;
}

/* The same if a completion was requested. */
INLINE int await_sent(struct core_measure_worker *worker)
{
	return worker->unsignaled ? 0 : await_posted(worker);
}

/* --- SEND --------------------------------------------------------------------------------------------- */

INLINE int send_message(struct core_measure_worker *worker, bool last)
{
	return last ? core_measure_post_last(worker) : core_measure_post(worker, 1, false);
}

INLINE void fill_next(struct core_measure_worker *worker, uint64_t size)
{
	uint64_t slot = worker->posted % worker->send_slots;

	if (worker->verify)
		core_measure_fill((void *)(uintptr_t)(worker->send_base + slot * worker->stride), size,
				  worker->posted);
}

/*
 * After the exchange: work that need not be timed. The next message may arrive while this end waits for its own
 * completion. Its acknowledgement was delayed or lost. So received messages are processed first.
 */
INLINE int tidy_send(struct core_measure_worker *worker)
{
	int result = worker->verify ? core_measure_verify(worker, worker->last_slot, worker->received - 1) : 0;

	if (!result)
		result = await_sent(worker);
	return result ? result : core_measure_replenish(worker);
}

INLINE int exchange_send(struct core_measure_worker *worker, bool last, uint64_t *begin, uint64_t *end)
{
	int result;

	fill_next(worker, worker->size);
	*begin = core_measure_now();
	result = send_message(worker, last);
	if (!result)
		result = await_received(worker, worker->posted);
	*end = core_measure_now();
	return result ? result : tidy_send(worker);
}

static int echo_sends(struct core_measure_worker *worker)
{
	int result = 0;

	/* The last message may have come with the completion of the previous answer. */
	while (!result && !worker->last_sent) {
		fill_next(worker, worker->size);
		result = await_received(worker, worker->posted + 1);
		if (!result)
			result = send_message(worker, worker->last_received);
		if (!result)
			result = tidy_send(worker);
	}
	return result;
}

/* --- RDMA WRITE ----------------------------------------------------------------------------------------- */

/* The last byte of a message identifies it, so it always differs from that of the previous message in its slot. */
#define MARKS 127
#define MARK_LAST 0x80

INLINE unsigned char mark_of(uint64_t number)
{
	return (unsigned char)(number % MARKS + 1);
}

/* The peer's write is polled, not synchronized with: see core_measure_compare. */
__attribute__((no_sanitize_thread))
#ifdef __SANITIZE_THREAD__
__attribute__((noinline)) static
#else
INLINE
#endif
unsigned char seen(const unsigned char *byte)
{
	return __atomic_load_n(byte, __ATOMIC_ACQUIRE);
}

INLINE unsigned char *last_byte(struct core_measure_worker *worker, uint64_t base, uint64_t number)
{
	uint64_t slot = number % worker->send_slots;

	return (unsigned char *)(uintptr_t)(base + slot * worker->stride + worker->size - 1);
}

INLINE int write_message(struct core_measure_worker *worker, bool last)
{
	*last_byte(worker, worker->send_base, worker->posted) =
		mark_of(worker->posted) | (last ? MARK_LAST : 0);
	return core_measure_post(worker, 1, last);
}

/* Wait for message number. */
INLINE int await_written(struct core_measure_worker *worker, uint64_t number)
{
	const unsigned char *byte = last_byte(worker, worker->receive_base, number);
	unsigned int looks = 0, spins = CORE_MEASURE_SPINS - CORE_MEASURE_SPINS / WATCH_SPINS;

	for (;;) {
		unsigned char mark = seen(byte);
		int result;

		if ((mark & ~MARK_LAST) == mark_of(number)) {
			worker->last_received = mark & MARK_LAST;
			worker->received = number + 1;
			return 0;
		}
		if (++looks % WATCH_SPINS)
			continue;
		result = core_measure_reap(worker, worker->send_cq);
		if (result >= 0)
			result = core_measure_idle(worker, &spins);
		if (result < 0)
			return result;
	}
}

/* Check the rest of the message, waiting while it may still arrive. */
static int verify_written(struct core_measure_worker *worker, uint64_t number)
{
	uint64_t slot = number % worker->send_slots, size = worker->size - 1;
	const void *message = (const void *)(uintptr_t)(worker->receive_base + slot * worker->stride);
	uint64_t deadline = 0;

	while (core_measure_compare(message, size, number) < size) {
		uint64_t now = core_measure_now();

		if (!deadline)
			deadline = now + TORN_NS;
		if (now > deadline)
			return core_measure_verify(worker, slot, number);
	}
	worker->result.verified++;
	return 0;
}

INLINE int tidy_write(struct core_measure_worker *worker)
{
	int result = await_sent(worker);

	return !result && worker->verify ? verify_written(worker, worker->received - 1) : result;
}

INLINE int exchange_write(struct core_measure_worker *worker, bool last, uint64_t *begin, uint64_t *end)
{
	int result;

	fill_next(worker, worker->size - 1);
	*begin = core_measure_now();
	result = write_message(worker, last);
	if (!result)
		result = await_written(worker, worker->posted - 1);
	*end = core_measure_now();
	return result ? result : tidy_write(worker);
}

static int echo_writes(struct core_measure_worker *worker)
{
	int result = 0;

	while (!result && !worker->last_received) {
		fill_next(worker, worker->size - 1);
		result = await_written(worker, worker->posted);
		if (!result)
			result = write_message(worker, worker->last_received);
		if (!result)
			result = tidy_write(worker);
	}
	return result;
}

/* --- RDMA READ ------------------------------------------------------------------------------------------ */

INLINE int exchange_read(struct core_measure_worker *worker, bool last, uint64_t *begin, uint64_t *end)
{
	uint64_t slot = worker->posted % worker->send_slots;
	void *message = (void *)(uintptr_t)(worker->receive_base + slot * worker->stride);
	int result;

	(void)last;
	if (worker->verify)
		memset(message, 0, worker->size);
	*begin = core_measure_now();
	result = core_measure_post(worker, 1, true); /* nothing else shows that the data has arrived */
	if (!result)
		result = await_sent(worker);
	*end = core_measure_now();
	return !result && worker->verify ? core_measure_verify(worker, slot, slot) : result;
}

/* --- the active end's loop -------------------------------------------------------------------------------- */

typedef int exchange_function(struct core_measure_worker *worker, bool last, uint64_t *begin,
			      uint64_t *end);

static int pause_until(struct core_measure_worker *worker, uint64_t time)
{
	while (core_measure_now() < time)
		if (core_measure_stopped(worker))
			return core_measure_fail(worker, -ECANCELED, CORE_MEASURE_NO_ERROR);
	return 0;
}

INLINE int repeat(struct core_measure_worker *worker, exchange_function *exchange, unsigned int ways)
{
	const struct core_measure_spec *spec = &worker->measure->spec;
	uint64_t began = core_measure_now(), begin, end = began;
	uint64_t done = 0, warm = 0; /* exchanges, and those before the timed part */
	bool timed = false, last = false;

	while (!last) {
		int result;

		if (!timed && done >= spec->warmup_iterations && end - began >= spec->warmup_ns) {
			timed = true;
			warm = done;
			began = end = core_measure_now();
			core_measure_window_open(worker, began, done);
		}
		if (timed)
			last = spec->iterations ? done - warm + 1 == spec->iterations :
						  end - began >= spec->duration_ns;
		result = exchange(worker, last, &begin, &end);
		if (result)
			return result;
		done++;
		if (timed) {
			core_histogram_record(&worker->histogram[CORE_MEASURE_STEP_TOTAL],
					      (end - begin) / ways);
			core_measure_tick(worker, end, done);
		}
		if (core_measure_stopped(worker))
			return core_measure_fail(worker, -ECANCELED, CORE_MEASURE_NO_ERROR);
		if (spec->gap_ns && !last && (result = pause_until(worker, end + spec->gap_ns)))
			return result;
	}
	core_measure_window_close(worker, end, done);
	return 0;
}

static int await_rest(struct core_measure_worker *worker)
{
	return worker->confirms ? core_measure_confirm(worker) : await_posted(worker);
}

int core_measure_latency_active(struct core_measure_worker *worker)
{
	int result;

	if (worker->operation == IBV_WR_SEND)
		result = repeat(worker, exchange_send, 2);
	else if (worker->operation == IBV_WR_RDMA_WRITE)
		result = repeat(worker, exchange_write, 2);
	else
		result = repeat(worker, exchange_read, 1);
	return result ? result : await_rest(worker);
}

int core_measure_latency_passive(struct core_measure_worker *worker)
{
	int result;

	core_measure_window_open(worker, core_measure_now(), 0);
	if (worker->operation == IBV_WR_SEND)
		result = echo_sends(worker);
	else
		result = echo_writes(worker);
	core_measure_window_close(worker, core_measure_now(), worker->received);
	return result ? result : await_rest(worker);
}
