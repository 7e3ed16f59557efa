#include "ctest/model/model_shared.h"

#include "ctest/support/check.h"
#include "soft/objects/context.h"
#include "soft/objects/srq.h"

#define SLOT_OF 256 /* wr_id is the number of the receive times that, and its slot */

void model_shared_open(struct model_shared *shared, struct sim_host *host, struct soft_random *random,
		       struct model_tally *tally)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = MODEL_SLOTS, .max_sge = MODEL_PIECES}};

	*shared = (struct model_shared){.host = host, .random = random, .tally = tally};
	shared->srq = soft_create_srq(host->pd, &attr);
	CHECK(shared->srq);
	model_open_memory(&shared->memory, host->pd, MODEL_SLOTS * MODEL_SLOT);
}

void model_shared_close(struct model_shared *shared)
{
	CHECK(!soft_destroy_srq(shared->srq));
	model_close_memory(&shared->memory);
}

static uint32_t length_of(const struct model_shared *shared)
{
	return model_receives_in(&soft_srq(shared->srq)->receive);
}

static bool post(struct model_shared *shared)
{
	uint64_t slot = model_below(shared->random, MODEL_SLOTS);
	struct ibv_sge list[MODEL_PIECES];
	struct ibv_recv_wr wr = {.sg_list = list}, *bad;

	if (shared->given[slot])
		return false;
	wr.wr_id = shared->given[slot] = MODEL_RECEIVE | ++shared->posted * SLOT_OF | slot;
	wr.num_sge = model_cut(shared->random, shared->memory.bytes + slot * MODEL_SLOT, MODEL_SLOT,
			       shared->memory.mr->lkey, list);
	CHECK(!soft_post_srq_recv(shared->srq, &wr, &bad));
	return true;
}

static bool arm(struct model_shared *shared)
{
	struct ibv_srq_attr attr;

	if (shared->limit || !length_of(shared))
		return false;
	shared->limit = attr.srq_limit = 1 + (uint32_t)model_below(shared->random, length_of(shared));
	CHECK(!soft_modify_srq(shared->srq, &attr, IBV_SRQ_LIMIT));
	return true;
}

bool model_shared_step(struct model_shared *shared)
{
	return model_below(shared->random, 8) ? post(shared) : arm(shared);
}

void model_shared_watch(struct model_shared *shared)
{
	struct soft_event_queue *events = &soft_context(shared->host->context)->async;
	struct soft_event_node *node = &soft_srq(shared->srq)->limit_event.node;
	uint32_t times = node->times;
	struct ibv_srq_attr attr;

	soft_event_queue_remove(events, node);

	/* Nothing else was posted since the queue was armed. */
	CHECK(times == (shared->limit && length_of(shared) < shared->limit));
	if (!times)
		return;
	CHECK(!soft_query_srq(shared->srq, &attr) && attr.srq_limit == 0);
	shared->limit = 0;
	shared->tally->limit_events++;
}

void model_shared_count(struct model_shared *shared)
{
	uint32_t given = 0;

	for (int slot = 0; slot < MODEL_SLOTS; slot++)
		given += shared->given[slot] != 0;
	CHECK(given >= length_of(shared));
	CHECK(given - length_of(shared) <= atomic_load(&soft_srq(shared->srq)->users));
}

const uint8_t *model_shared_done(struct model_shared *shared, uint64_t wr_id)
{
	uint64_t slot = wr_id % SLOT_OF;

	CHECK(slot < MODEL_SLOTS && shared->given[slot] == wr_id);
	shared->given[slot] = 0;
	shared->tally->shared_receives++;
	return shared->memory.bytes + slot * MODEL_SLOT;
}
