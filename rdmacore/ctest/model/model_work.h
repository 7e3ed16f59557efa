/* What connections and datagrams of the model share: sizes, a receive, and counts. */
#ifndef CTEST_MODEL_MODEL_WORK_H
#define CTEST_MODEL_MODEL_WORK_H

#include <stdint.h>

#include "soft/objects/receive_queue.h"

#define MODEL_DEPTH 16 /* of each queue */
#define MODEL_RECEIVE (UINT64_C(1) << 63) /* marks the wr_id of a receive; names a shared queue */
#define MODEL_POWER 17 /* messages are shorter than two to the power of that */
#define MODEL_SMALL_POWER 13 /* where they must find a receive of the longest message */
#define MODEL_SMALL (1u << (MODEL_SMALL_POWER - 1))

struct model_receive {
	uint64_t place; /* in the ring */
	uint32_t length;
};

/* How many receives are posted there; the model is single-threaded. */
static inline uint32_t model_receives_in(const struct soft_receive_queue *queue)
{
	return atomic_load_explicit(&queue->posted, memory_order_relaxed) - queue->consumed;
}

/* Counts of the executed operations, for reports. */
struct model_tally {
	uint64_t failures; /* connections that gave up after their retries */
	uint64_t through_windows, binds, invalidated; /* invalidated: by either side */
	uint64_t shared_receives, limit_events;
	uint64_t datagrams, datagrams_received;
	uint64_t flushes;
};

#endif
