#include "ctest/model/model_window.h"

#include "ctest/support/check.h"
#include "soft/objects/mw.h"

void model_open_windows(struct model_flow *flow)
{
	static const enum ibv_mw_type types[MODEL_WINDOWS] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2};

	for (int index = 0; index < MODEL_WINDOWS; index++) {
		flow->windows[index].mw = soft_alloc_mw(flow->to->host->pd, types[index]);
		CHECK(flow->windows[index].mw);
	}
}

void model_close_windows(struct model_flow *flow)
{
	for (int index = 0; index < MODEL_WINDOWS; index++)
		CHECK(!soft_dealloc_mw(flow->windows[index].mw));
}

/* Whether all requests through it are answered: a repeated one would find the key invalid. */
static bool is_idle(const struct model_flow *flow, const struct model_window *window)
{
	return !window->used || (int32_t)(flow->completed - window->last_use) > 0;
}

/* To a random part of the memory with random rights. */
static void bind(struct model_flow *flow, struct model_window *window, struct ibv_send_wr *wr)
{
	struct soft_random *random = flow->connection->random;
	uint32_t first = (uint32_t)model_below(random, MODEL_AREA / 8) * 8;

	window->first = first;
	window->length = 1 + (uint32_t)model_below(random, MODEL_AREA - first);
	window->access = (1 + (unsigned int)model_below(random, 7)) * IBV_ACCESS_REMOTE_WRITE;
	if (model_below(random, 2))
		window->access |= IBV_ACCESS_ZERO_BASED;
	window->next = MODEL_BOUND;
	window->used = false;
	wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = flow->window.mr, .addr = (uintptr_t)flow->window.bytes + first,
		.length = window->length, .mw_access_flags = window->access,
	};
}

bool model_change_window(struct model_flow *flow, struct model_request *request, struct ibv_send_wr *wr)
{
	struct model_flow *in = flow->from->in;
	struct soft_random *random = flow->connection->random;
	struct model_window *window = &in->windows[model_below(random, MODEL_WINDOWS)];
	bool bound = window->state == MODEL_BOUND;

	if (!bound && window->state != MODEL_FREE)
		return false;
	/* Without answers it is unknown which requests through it are in flight. */
	if (bound && (flow->connection->type != IBV_QPT_RC || !is_idle(in, window)))
		return false;
	request->window = window;
	if (bound && window->mw->type == IBV_MW_TYPE_2) {
		request->opcode = wr->opcode = IBV_WR_LOCAL_INV;
		wr->invalidate_rkey = window->key;
		window->next = MODEL_FREE;
		window->state = MODEL_ENDING;
		flow->connection->tally->invalidated++;
		return true;
	}
	request->opcode = wr->opcode = IBV_WR_BIND_MW;
	wr->bind_mw.mw = window->mw;
	wr->bind_mw.rkey = window->mw->rkey = window->key = ibv_inc_rkey(window->mw->rkey);
	if (bound && model_below(random, 2)) /* unbind */
		window->next = MODEL_FREE;
	else
		bind(in, window, wr);
	window->state = MODEL_BINDING;
	flow->connection->tally->binds++;
	return true;
}

void model_window_changed(struct model_window *window, bool success)
{
	window->state = success ? window->next : MODEL_DEAD;
}

struct model_window *model_choose_window(struct model_flow *flow, uint32_t length, unsigned int access)
{
	struct model_window *window = &flow->windows[model_below(flow->connection->random, MODEL_WINDOWS)];

	return window->state == MODEL_BOUND && (window->access & access) == access &&
			       window->length >= length ?
		       window :
		       NULL;
}

struct model_window *model_choose_ending(struct model_flow *flow)
{
	for (int index = 0; index < MODEL_WINDOWS; index++)
		if (flow->windows[index].mw->type == IBV_MW_TYPE_2 &&
		    flow->windows[index].state == MODEL_BOUND)
			return &flow->windows[index];
	return NULL;
}
