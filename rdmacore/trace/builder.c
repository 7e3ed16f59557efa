/*
 * Extended queue pairs: ibv_wr_start, a function for each request, and ibv_wr_complete are members of the queue pair.
 * The requests are collected, and recorded as one call.
 */
#include "trace.h"

#include <string.h>

/* The words of a request are those of data.c. */
enum { WR_ID, OPCODE, SEGMENTS, KEY, REMOTE, REQUEST_WORDS };

static struct ibv_qp_ex *functions_of(const struct ibv_qp_ex *qp)
{
	return trace_map_find(&trace_builders, qp);
}

static bool is_datagram(const struct ibv_qp_ex *qp)
{
	return qp->qp_base.qp_type == IBV_QPT_UD;
}

/* A request begins. */
static void add(const struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t immediate, uint32_t key, uint64_t remote,
		const uint64_t *atomics)
{
	__typeof__(trace_self.batch) *batch = &trace_self.batch;
	uint64_t *at = &batch->words[batch->count];

	batch->requests++;
	batch->segments = 0;
	if (batch->requests > TRACE_REQUESTS || batch->count + REQUEST_WORDS + 2 > TRACE_BATCH_WORDS)
		return;
	at[WR_ID] = qp->wr_id;
	at[OPCODE] = (uint64_t)qp->wr_flags << 32 | (uint32_t)opcode;
	at[SEGMENTS] = 0;
	at[KEY] = (uint64_t)immediate << 32 | key;
	at[REMOTE] = remote;
	batch->segments = batch->count + SEGMENTS;
	batch->count += trace_request_words(opcode, is_datagram(qp));
	batch->recorded = batch->requests;
	if (is_datagram(qp))
		at[REQUEST_WORDS] = 0; /* the Q_Key, until wr_set_ud_addr */
	else if (atomics)
		memcpy(&at[REQUEST_WORDS], atomics, 2 * sizeof(*atomics));
}

/* The last request has a segment. */
static void add_segment(uint64_t address, uint32_t lkey, uint32_t length)
{
	__typeof__(trace_self.batch) *batch = &trace_self.batch;

	if (!batch->segments)
		return;
	batch->words[batch->segments] += UINT64_C(1) << 32;
	if ((uint32_t)batch->words[batch->segments] >= TRACE_SEGMENTS || batch->count + 2 > TRACE_BATCH_WORDS)
		return;
	batch->words[batch->segments]++;
	batch->words[batch->count++] = address;
	batch->words[batch->count++] = (uint64_t)lkey << 32 | length;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	add(qp, IBV_WR_ATOMIC_CMP_AND_SWP, 0, rkey, remote_addr, (uint64_t[]){compare, swap});
	functions_of(qp)->wr_atomic_cmp_swp(qp, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t value)
{
	add(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, rkey, remote_addr, (uint64_t[]){value, 0});
	functions_of(qp)->wr_atomic_fetch_add(qp, rkey, remote_addr, value);
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	add(qp, IBV_WR_BIND_MW, 0, rkey, 0, NULL);
	functions_of(qp)->wr_bind_mw(qp, mw, rkey, info);
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	add(qp, IBV_WR_LOCAL_INV, rkey, 0, 0, NULL);
	functions_of(qp)->wr_local_inv(qp, rkey);
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	add(qp, IBV_WR_RDMA_READ, 0, rkey, remote_addr, NULL);
	functions_of(qp)->wr_rdma_read(qp, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	add(qp, IBV_WR_RDMA_WRITE, 0, rkey, remote_addr, NULL);
	functions_of(qp)->wr_rdma_write(qp, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, __be32 immediate)
{
	add(qp, IBV_WR_RDMA_WRITE_WITH_IMM, immediate, rkey, remote_addr, NULL);
	functions_of(qp)->wr_rdma_write_imm(qp, rkey, remote_addr, immediate);
}

static void wr_send(struct ibv_qp_ex *qp)
{
	add(qp, IBV_WR_SEND, 0, 0, 0, NULL);
	functions_of(qp)->wr_send(qp);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 immediate)
{
	add(qp, IBV_WR_SEND_WITH_IMM, immediate, 0, 0, NULL);
	functions_of(qp)->wr_send_imm(qp, immediate);
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	add(qp, IBV_WR_SEND_WITH_INV, rkey, 0, 0, NULL);
	functions_of(qp)->wr_send_inv(qp, rkey);
}

static void wr_send_tso(struct ibv_qp_ex *qp, void *header, uint16_t size, uint16_t mss)
{
	add(qp, IBV_WR_TSO, 0, 0, 0, NULL);
	functions_of(qp)->wr_send_tso(qp, header, size, mss);
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, const void *value)
{
	add(qp, IBV_WR_ATOMIC_WRITE, 0, rkey, remote_addr, NULL);
	functions_of(qp)->wr_atomic_write(qp, rkey, remote_addr, value);
}

/* The peer of a datagram is with the request that has just begun. */
static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t number, uint32_t qkey)
{
	__typeof__(trace_self.batch) *batch = &trace_self.batch;

	if (batch->segments && is_datagram(qp)) {
		batch->words[batch->segments - SEGMENTS + KEY] |= number;
		batch->words[batch->segments - SEGMENTS + REMOTE] = (uintptr_t)ah;
		batch->words[batch->segments - SEGMENTS + REQUEST_WORDS] = qkey;
	}
	functions_of(qp)->wr_set_ud_addr(qp, ah, number, qkey);
}

/* The provider copies the data now, so the program may change it before ibv_wr_complete. */
static void add_inline(const struct ibv_qp_ex *qp, void *address, size_t length)
{
	__typeof__(trace_self.batch) *batch = &trace_self.batch;

	if (batch->segments)
		batch->words[batch->segments - SEGMENTS + OPCODE] |= (uint64_t)IBV_SEND_INLINE << 32;
	if (batch->segments && length && !trace_self.depth && trace_contents_are_recorded())
		trace_content(TRACE_memory_sent, qp->qp_base.qp_num, qp->wr_id, address, (uint32_t)length);
	add_segment((uintptr_t)address, 0, (uint32_t)length);
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *address, size_t length)
{
	add_inline(qp, address, length);
	functions_of(qp)->wr_set_inline_data(qp, address, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_data_buf *list)
{
	for (size_t i = 0; i < count; i++)
		add_inline(qp, list[i].addr, list[i].length);
	functions_of(qp)->wr_set_inline_data_list(qp, count, list);
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t address, uint32_t length)
{
	add_segment(address, lkey, length);
	functions_of(qp)->wr_set_sge(qp, lkey, address, length);
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_sge *list)
{
	for (size_t i = 0; i < count; i++)
		add_segment(list[i].addr, list[i].lkey, list[i].length);
	functions_of(qp)->wr_set_sge_list(qp, count, list);
}

static void wr_start(struct ibv_qp_ex *qp)
{
	trace_self.batch.count = trace_self.batch.requests = trace_self.batch.recorded = trace_self.batch.segments = 0;
	trace_self.batch.start = trace_ticks();
	functions_of(qp)->wr_start(qp);
}

static void end(const struct ibv_qp_ex *qp, uint16_t number, int result, struct trace_site site)
{
	const __typeof__(trace_self.batch) *batch = &trace_self.batch;
	struct trace_record *record;
	int error = errno;

	if (trace_self.depth || !trace_on())
		return;
	trace_polls_flush();
	record = trace_reserve(TRACE_DATA, number, 3 + batch->count);
	if (record) {
		record->start = batch->start;
		record->result = result;
		record->error = error;
		record->site = site;
		record->words[0] = (uintptr_t)qp;
		record->words[1] = (is_datagram(qp) ? UINT64_C(1) << 63 : 0) |
				   (uint64_t)batch->requests << 32 | batch->recorded;
		record->words[2] = 0;
		memcpy(record->words + 3, batch->words, batch->count * sizeof(*batch->words));
		record->end = trace_ticks();
		trace_commit(record, 0);
		trace_sync(record->end);
	}
	errno = error;
}

/* For memory.c: the requests as ibv_post_send would have them, without inline data, which is not read any more. */
static uint64_t note_sends(const struct ibv_qp_ex *qp)
{
	const __typeof__(trace_self.batch) *batch = &trace_self.batch;
	struct ibv_send_wr list[TRACE_REQUESTS];
	struct ibv_sge segments[TRACE_BATCH_WORDS / 2];
	uint32_t word = 0, used = 0;

	for (uint32_t i = 0; i < batch->recorded; i++) {
		const uint64_t *at = &batch->words[word];
		uint32_t count = (uint32_t)at[SEGMENTS];
		enum ibv_wr_opcode opcode = (enum ibv_wr_opcode)(uint32_t)at[OPCODE];

		list[i] = (struct ibv_send_wr){
			.wr_id = at[WR_ID], .next = i + 1 < batch->recorded ? &list[i + 1] : NULL, .sg_list = &segments[used],
			.num_sge = (int)count, .opcode = opcode,
			.send_flags = (unsigned int)(at[OPCODE] >> 32),
		};
		if (list[i].send_flags & IBV_SEND_INLINE)
			list[i].num_sge = 0;
		word += trace_request_words(opcode, is_datagram(qp));
		for (; count; count--, word += 2)
			segments[used++] = (struct ibv_sge){
				.addr = batch->words[word], .lkey = (uint32_t)(batch->words[word + 1] >> 32),
				.length = (uint32_t)batch->words[word + 1],
			};
	}
	return batch->recorded ? trace_sends_post(&qp->qp_base, list) : 0;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	bool noted = !trace_self.depth && trace_memory_is_watched();
	uint64_t first = noted ? note_sends(qp) : 0;
	int result = functions_of(qp)->wr_complete(qp);

	if (result && noted)
		trace_sends_take_back(&qp->qp_base, first);
	end(qp, TRACE_ibv_wr_complete, result, TRACE_SITE);
	return result;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	functions_of(qp)->wr_abort(qp);
	end(qp, TRACE_ibv_wr_abort, 0, TRACE_SITE);
}

/* A queue pair has the functions that it was created with; the others are NULL. */
#define REPLACE(function)                                                                          \
	do {                                                                                       \
		if (qp->function)                                                                  \
			qp->function = function;                                                   \
	} while (0)

void trace_adopt_builder(struct ibv_qp_ex *qp)
{
	struct ibv_qp_ex *was;

	if (!trace_on() || qp->wr_start == wr_start)
		return;
	trace_map_lock();
	was = qp->wr_start == wr_start ? NULL : trace_map_add(&trace_builders, qp, sizeof(*was));
	if (was) {
		*was = *qp;
		trace_map_publish(&trace_builders, qp, was);
		REPLACE(wr_atomic_cmp_swp);
		REPLACE(wr_atomic_fetch_add);
		REPLACE(wr_bind_mw);
		REPLACE(wr_local_inv);
		REPLACE(wr_rdma_read);
		REPLACE(wr_rdma_write);
		REPLACE(wr_rdma_write_imm);
		REPLACE(wr_send);
		REPLACE(wr_send_imm);
		REPLACE(wr_send_inv);
		REPLACE(wr_send_tso);
		REPLACE(wr_atomic_write);
		REPLACE(wr_set_ud_addr);
		REPLACE(wr_set_inline_data);
		REPLACE(wr_set_inline_data_list);
		REPLACE(wr_set_sge);
		REPLACE(wr_set_sge_list);
		REPLACE(wr_complete);
		REPLACE(wr_abort);
		REPLACE(wr_start);
	} else if (qp->wr_start != wr_start) {
		trace_unseen("posts of an extended queue pair, which was created after too many others");
	}
	trace_map_unlock();
}
