/*
 * A shared receive queue of a host: each receive is used once, by each queue pair in the order in which they were
 * posted. The limit event comes when fewer are left than the limit, and only then.
 */
#ifndef CTEST_MODEL_MODEL_SHARED_H
#define CTEST_MODEL_MODEL_SHARED_H

#include <stdbool.h>

#include "ctest/model/model_memory.h"
#include "ctest/model/model_work.h"
#include "ctest/support/sim_net.h"

#define MODEL_SLOTS 24 /* receives posted and not complete */
#define MODEL_SLOT (MODEL_SMALL + 64) /* bytes of each: the longest small message, a datagram's GRH as well */

struct model_shared {
	struct sim_host *host;
	struct ibv_srq *srq;
	struct model_memory memory; /* MODEL_SLOTS pieces */
	uint64_t given[MODEL_SLOTS]; /* wr_id of each posted one; 0: free */
	uint64_t posted; /* so far */
	uint64_t promised; /* receives that messages on their way will take */
	uint32_t limit; /* armed at; 0: not */
	struct soft_random *random;
	struct model_tally *tally;
};

void model_shared_open(struct model_shared *shared, struct sim_host *host, struct soft_random *random,
		       struct model_tally *tally);
void model_shared_close(struct model_shared *shared);
/* Execute one random operation. False if none was possible. */
bool model_shared_step(struct model_shared *shared);
/* After anything happened: the limit event is there, or must not be. */
void model_shared_watch(struct model_shared *shared);
/* All has been polled: no receive is missing but what queue pairs keep for a message that never ended. */
void model_shared_count(struct model_shared *shared);
/* A receive is complete: where its bytes are. */
const uint8_t *model_shared_done(struct model_shared *shared, uint64_t wr_id);

#endif
