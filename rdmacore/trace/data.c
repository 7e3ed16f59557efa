/*
 * Posts and polls. The record of a post is reserved and filled before the call. Once another thread may see
 * completions, the requests belong to the program again. If the program dies within the call, its record is in the
 * ring, not committed.
 */
#include "trace.h"

/*
 * The words of a send request, here and in builder.c. host/trace/work.go reads them.
 * 0: wr_id.
 * 1: flags << 32 | opcode.
 * 2: number of segments << 32 | number of recorded ones.
 * 3: imm_data << 32 | rkey; of datagrams the number of the peer's queue pair.
 * 4: remote address; of datagrams the address handle.
 * Atomics have two more: compare or add, and swap. Datagrams have one more: the Q_Key.
 * Segments follow. Each has two: address; lkey << 32 | length.
 */
#define REQUEST_WORDS 5

bool trace_is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

uint32_t trace_request_words(enum ibv_wr_opcode opcode, bool datagram)
{
	return REQUEST_WORDS + (datagram ? 1 : trace_is_atomic(opcode) ? 2 : 0);
}

static uint32_t recorded_segments(int segments)
{
	return segments < 0 ? 0 : segments > TRACE_SEGMENTS ? TRACE_SEGMENTS : (uint32_t)segments;
}

static uint64_t *put_segments(uint64_t *at, const struct ibv_sge *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		*at++ = list[i].addr;
		*at++ = (uint64_t)list[i].lkey << 32 | list[i].length;
	}
	return at;
}

static uint64_t segment_counts(int segments)
{
	return (uint64_t)(uint32_t)segments << 32 | recorded_segments(segments);
}

static uint64_t *put_send(uint64_t *at, const struct ibv_send_wr *wr, bool datagram)
{
	*at++ = wr->wr_id;
	*at++ = (uint64_t)wr->send_flags << 32 | (uint32_t)wr->opcode;
	*at++ = segment_counts(wr->num_sge);
	if (datagram) {
		*at++ = (uint64_t)wr->imm_data << 32 | wr->wr.ud.remote_qpn;
		*at++ = (uintptr_t)wr->wr.ud.ah;
	} else {
		*at++ = (uint64_t)wr->imm_data << 32 | (trace_is_atomic(wr->opcode) ? wr->wr.atomic.rkey : wr->wr.rdma.rkey);
		*at++ = wr->wr.rdma.remote_addr;
	}
	if (datagram) {
		*at++ = wr->wr.ud.remote_qkey;
	} else if (trace_is_atomic(wr->opcode)) {
		*at++ = wr->wr.atomic.compare_add;
		*at++ = wr->wr.atomic.swap;
	}
	return put_segments(at, wr->sg_list, recorded_segments(wr->num_sge));
}

/*
 * The words of a list:
 * 0: the queue.
 * 1: DATAGRAM, if the queue pair is of that kind | number of requests << 32 | number of recorded ones.
 * 2: index of the request that failed.
 * The requests follow.
 */
#define LIST_WORDS 3
#define DATAGRAM (UINT64_C(1) << 63)

static uint32_t send_words(const struct ibv_send_wr *wr, bool datagram)
{
	return trace_request_words(wr->opcode, datagram) + 2 * recorded_segments(wr->num_sge);
}

static struct trace_record *begin_send(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	bool datagram = qp->qp_type == IBV_QPT_UD;
	uint32_t words = LIST_WORDS, all = 0, requests;
	const struct ibv_send_wr *each;
	struct trace_record *record;
	uint64_t *at;

	for (each = wr; each; each = each->next)
		if (all++ < TRACE_REQUESTS)
			words += send_words(each, datagram);
	record = trace_reserve(TRACE_DATA, TRACE_ibv_post_send, words);
	if (!record)
		return NULL;
	requests = all < TRACE_REQUESTS ? all : TRACE_REQUESTS;
	record->words[0] = (uintptr_t)qp;
	record->words[1] = (datagram ? DATAGRAM : 0) | (uint64_t)all << 32 | requests;
	at = record->words + LIST_WORDS;
	for (each = wr; requests; each = each->next, requests--)
		at = put_send(at, each, datagram);
	return record;
}

/* Of a receive request: wr_id; segments (all) << 32 | recorded ones; the segments. */
static struct trace_record *begin_receive(uint16_t number, const void *queue, const struct ibv_recv_wr *wr)
{
	uint32_t words = LIST_WORDS, all = 0, requests;
	const struct ibv_recv_wr *each;
	struct trace_record *record;
	uint64_t *at;

	for (each = wr; each; each = each->next)
		if (all++ < TRACE_REQUESTS)
			words += 2 + 2 * recorded_segments(each->num_sge);
	record = trace_reserve(TRACE_DATA, number, words);
	if (!record)
		return NULL;
	requests = all < TRACE_REQUESTS ? all : TRACE_REQUESTS;
	record->words[0] = (uintptr_t)queue;
	record->words[1] = (uint64_t)all << 32 | requests;
	at = record->words + LIST_WORDS;
	for (each = wr; requests; each = each->next, requests--) {
		*at++ = each->wr_id;
		*at++ = segment_counts(each->num_sge);
		at = put_segments(at, each->sg_list, recorded_segments(each->num_sge));
	}
	return record;
}

/* The call has returned. bad is the index of the request that failed. */
static void end_data(struct trace_record *record, uint64_t start, int result, uint64_t bad, struct trace_site site)
{
	int error = errno;
	uint64_t end = trace_ticks();

	if (record) {
		record->start = start;
		record->end = end;
		record->result = result;
		record->error = error;
		record->words[2] = bad;
		record->site = site;
		trace_commit(record, 0);
	}
	trace_sync(end);
	errno = error;
}

/* Whether calls of this thread are recorded: neither without a ring, nor within another call. */
static bool recording(void)
{
	return !trace_self.depth && trace_on();
}

int trace_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct trace_context *was = trace_context_of(qp->context);
	struct trace_record *record;
	uint64_t start, first, at = 0;
	int result;

	if (!recording())
		return was->ops.post_send(qp, wr, bad);
	trace_polls_flush();
	first = trace_sends_post(qp, wr);
	record = begin_send(qp, wr);
	start = trace_ticks();
	result = was->ops.post_send(qp, wr, bad);
	for (const struct ibv_send_wr *each = wr; result && each && each != *bad; each = each->next)
		at++;
	if (result)
		trace_sends_take_back(qp, first + at);
	end_data(record, start, result, at, TRACE_SITE);
	return result;
}

int trace_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	const struct trace_context *was = trace_context_of(qp->context);
	struct trace_record *record;
	uint64_t start, at = 0;
	int result;

	if (!recording())
		return was->ops.post_recv(qp, wr, bad);
	trace_polls_flush();
	record = begin_receive(TRACE_ibv_post_recv, qp, wr);
	start = trace_ticks();
	result = was->ops.post_recv(qp, wr, bad);
	for (const struct ibv_recv_wr *each = wr; result && each && each != *bad; each = each->next)
		at++;
	end_data(record, start, result, at, TRACE_SITE);
	return result;
}

int trace_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	const struct trace_context *was = trace_context_of(srq->context);
	struct trace_record *record;
	uint64_t start, at = 0;
	int result;

	if (!recording())
		return was->ops.post_srq_recv(srq, wr, bad);
	trace_polls_flush();
	record = begin_receive(TRACE_ibv_post_srq_recv, srq, wr);
	start = trace_ticks();
	result = was->ops.post_srq_recv(srq, wr, bad);
	for (const struct ibv_recv_wr *each = wr; result && each && each != *bad; each = each->next)
		at++;
	end_data(record, start, result, at, TRACE_SITE);
	return result;
}

#define POLLS_MAX (1u << 16) /* folded polls in one record, so that a program that only polls is seen */

void trace_fold_poll(uint16_t number, const void *cq, uint64_t start)
{
	struct trace_thread *self = &trace_self;

	if (self->polls && (self->polled != cq || self->polls_call != number || self->polls >= POLLS_MAX))
		trace_polls_flush();
	if (!self->polls++) {
		self->polled = cq;
		self->polls_call = number;
		self->polls_start = start;
	}
}

uint64_t trace_take_polls(uint16_t number, const void *cq)
{
	uint64_t polls = trace_self.polls;

	if (!polls)
		return 0;
	if (trace_self.polled != cq || trace_self.polls_call != number) {
		trace_polls_flush();
		return 0;
	}
	trace_self.polls = 0;
	return polls;
}

/*
 * The words of completions:
 * 0: the queue.
 * 1: num_entries << 32 | number of completions in this record.
 * 2: number of those in earlier records of the same poll.
 * Completions follow. Each has five:
 * 0: wr_id.
 * 1: status << 32 | opcode.
 * 2: byte_len << 32 | qp_num.
 * 3: imm_data << 32 | flags.
 * 4: vendor_err << 32 | src_qp.
 */
struct trace_record *trace_begin_completions(const struct trace_poll *poll, uint32_t before, uint32_t count)
{
	struct trace_record *record =
		trace_reserve(TRACE_DATA, poll->number, TRACE_POLL_WORDS + count * TRACE_COMPLETION_WORDS);

	if (!record)
		return NULL;
	record->start = poll->start;
	record->end = poll->end;
	record->result = poll->result;
	record->error = poll->error;
	record->folded = poll->empty;
	record->site = poll->site;
	record->words[0] = (uintptr_t)poll->cq;
	record->words[1] = (uint64_t)poll->entries << 32 | count;
	record->words[2] = before;
	return record;
}

static void put_completion(uint64_t *at, const struct ibv_wc *wc)
{
	at[0] = wc->wr_id;
	at[1] = (uint64_t)wc->status << 32 | (uint32_t)wc->opcode;
	at[2] = (uint64_t)wc->byte_len << 32 | wc->qp_num;
	at[3] = (uint64_t)wc->imm_data << 32 | wc->wc_flags;
	at[4] = (uint64_t)wc->vendor_err << 32 | wc->src_qp;
}

int trace_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	const struct trace_context *was = trace_context_of(cq->context);
	struct trace_poll poll = {.number = TRACE_ibv_poll_cq, .cq = cq, .entries = (uint32_t)entries};
	uint32_t at = 0, rest;
	int result;

	if (!recording())
		return was->ops.poll_cq(cq, entries, wc);
	poll.start = trace_ticks();
	result = was->ops.poll_cq(cq, entries, wc);
	if (!result) {
		trace_fold_poll(TRACE_ibv_poll_cq, cq, poll.start);
		return 0;
	}
	poll.error = errno;
	trace_sends_complete(cq->context, wc, result, TRACE_SITE);
	poll.end = trace_ticks();
	poll.result = result;
	poll.empty = trace_take_polls(TRACE_ibv_poll_cq, cq);
	poll.site = TRACE_SITE;
	rest = result < 0 ? 0 : (uint32_t)result;
	do {
		uint32_t count = rest < TRACE_COMPLETIONS ? rest : TRACE_COMPLETIONS;
		struct trace_record *record = trace_begin_completions(&poll, at, count);

		rest -= count;
		if (record) {
			for (uint32_t i = 0; i < count; i++)
				put_completion(record->words + TRACE_POLL_WORDS + i * TRACE_COMPLETION_WORDS, wc + at + i);
			trace_commit(record, rest ? TRACE_CONTINUES : 0);
		}
		at += count;
	} while (rest);
	trace_sync(poll.end);
	errno = poll.error;
	return result;
}

int trace_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	const struct trace_context *was = trace_context_of(cq->context);
	struct trace_record *record;
	uint64_t start;
	int result;

	if (!recording())
		return was->ops.req_notify_cq(cq, solicited_only);
	trace_polls_flush();
	record = trace_reserve(TRACE_DATA, TRACE_ibv_req_notify_cq, LIST_WORDS);
	if (record) {
		record->words[0] = (uintptr_t)cq;
		record->words[1] = (uint64_t)solicited_only;
	}
	start = trace_ticks();
	result = was->ops.req_notify_cq(cq, solicited_only);
	end_data(record, start, result, 0, TRACE_SITE);
	return result;
}
