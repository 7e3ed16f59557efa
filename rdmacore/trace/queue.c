/*
 * Extended completion queues: their functions are members of the queue itself. Completions are collected from
 * ibv_start_poll to ibv_end_poll, and recorded as one call. What the program has asked to be able to read of them is
 * read here, too.
 */
#include "trace.h"

#include <string.h>

struct queue {
	uint64_t fields; /* enum ibv_create_cq_wc_flags */
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
	void (*end_poll)(struct ibv_cq_ex *cq);
};

/* For memory.c. Without its number, the queue pair of a completion is not known. */
static void note_completion(const struct ibv_cq_ex *cq, const uint64_t *at, struct trace_site site)
{
	const struct ibv_wc wc = {
		.wr_id = at[0], .status = (enum ibv_wc_status)(at[1] >> 32), .opcode = (enum ibv_wc_opcode)(uint32_t)at[1],
		.qp_num = (uint32_t)at[2],
	};

	trace_sends_complete(cq->context, &wc, 1, site);
}

/* Record the completions that the thread has taken since the last record of this poll. */
static void put_taken(const struct ibv_cq_ex *cq, struct trace_site site, bool more)
{
	uint32_t all = trace_self.taken.count, count = all ? (all - 1) % TRACE_COMPLETIONS + 1 : 0;
	struct trace_poll poll = {
		.number = TRACE_ibv_start_poll, .cq = cq, .start = trace_self.taken.start, .end = trace_ticks(),
		.result = all, .empty = trace_self.taken.empty, .site = site,
	};
	struct trace_record *record = trace_begin_completions(&poll, all - count, count);

	if (record) {
		memcpy(record->words + TRACE_POLL_WORDS, trace_self.taken.words,
		       count * TRACE_COMPLETION_WORDS * sizeof(uint64_t));
		trace_commit(record, more ? TRACE_CONTINUES : 0);
	}
	trace_sync(poll.end);
}

static void take(const struct queue *was, struct ibv_cq_ex *cq, struct trace_site site)
{
	uint32_t slot = trace_self.taken.count % TRACE_COMPLETIONS;
	uint64_t *at = &trace_self.taken.words[(size_t)slot * TRACE_COMPLETION_WORDS];
	bool success = cq->status == IBV_WC_SUCCESS;

	if (!slot && trace_self.taken.count)
		put_taken(cq, site, true);
	trace_self.taken.count++;
	at[0] = cq->wr_id;
	at[1] = (uint64_t)cq->status << 32;
	at[2] = at[3] = at[4] = 0;
	if (was->fields & IBV_WC_EX_WITH_QP_NUM)
		at[2] = cq->read_qp_num(cq);
	if (success)
		at[1] |= (uint32_t)cq->read_opcode(cq);
	if (was->fields & IBV_WC_EX_WITH_QP_NUM && trace_memory_is_watched())
		note_completion(cq, at, site);
	if (!success) {
		at[4] = (uint64_t)cq->read_vendor_err(cq) << 32;
		return;
	}
	at[3] = cq->read_wc_flags(cq);
	if (was->fields & IBV_WC_EX_WITH_BYTE_LEN)
		at[2] |= (uint64_t)cq->read_byte_len(cq) << 32;
	if (was->fields & IBV_WC_EX_WITH_IMM && at[3] & IBV_WC_WITH_IMM)
		at[3] |= (uint64_t)cq->read_imm_data(cq) << 32;
	if (was->fields & IBV_WC_EX_WITH_SRC_QP)
		at[4] = cq->read_src_qp(cq);
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	const struct queue *was = trace_map_find(&trace_queues, cq);
	uint64_t start;
	int result;

	if (trace_self.depth || !trace_on())
		return was->start_poll(cq, attr);
	start = trace_ticks();
	result = was->start_poll(cq, attr);
	if (result == ENOENT) {
		trace_fold_poll(TRACE_ibv_start_poll, cq, start);
		return result;
	}
	trace_self.taken.start = start;
	trace_self.taken.count = 0;
	if (!result) {
		trace_self.taken.empty = trace_take_polls(TRACE_ibv_start_poll, cq);
		take(was, cq, TRACE_SITE);
	}
	return result;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	const struct queue *was = trace_map_find(&trace_queues, cq);
	int result = was->next_poll(cq);

	if (!result && !trace_self.depth && trace_on())
		take(was, cq, TRACE_SITE);
	return result;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	const struct queue *was = trace_map_find(&trace_queues, cq);

	was->end_poll(cq);
	if (trace_self.depth || !trace_on())
		return;
	put_taken(cq, TRACE_SITE, false);
	trace_self.taken.count = 0;
}

void trace_adopt_queue(struct ibv_cq_ex *cq, uint64_t fields)
{
	struct queue *was;

	if (!trace_on() || cq->start_poll == start_poll)
		return;
	trace_map_lock();
	was = trace_map_add(&trace_queues, cq, sizeof(*was));
	if (was) {
		*was = (struct queue){fields, cq->start_poll, cq->next_poll, cq->end_poll};
		trace_map_publish(&trace_queues, cq, was);
		cq->start_poll = start_poll;
		cq->next_poll = next_poll;
		cq->end_poll = end_poll;
	} else {
		trace_unseen("polls of an extended completion queue, which was created after too many others");
	}
	trace_map_unlock();
}
