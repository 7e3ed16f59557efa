#include "ctest/model/model_post.h"

#include "ctest/model/model_shared.h"
#include "ctest/model/model_window.h"
#include "ctest/support/check.h"
#include "soft/objects/qp.h"
#include "soft/objects/srq.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

static uint64_t below(struct model_connection *connection, uint64_t limit)
{
	return model_below(connection->random, limit);
}

static const enum ibv_wr_opcode reliable[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_WRITE,
};
static const enum ibv_wr_opcode unreliable[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
};

static enum ibv_wr_opcode random_opcode(struct model_connection *connection)
{
	if (connection->type == IBV_QPT_RC)
		return reliable[below(connection, sizeof(reliable) / sizeof(reliable[0]))];
	/* Where messages may be lost, each identifies itself. */
	return unreliable[connection->exact ?
				  below(connection, sizeof(unreliable) / sizeof(unreliable[0])) :
				  1 + 2 * below(connection, 2)];
}

static uint32_t random_length(struct model_connection *connection)
{
	uint32_t most = below(connection, 16) && connection->power > 12 ? 12 : connection->power;

	return (uint32_t)below(connection, (UINT64_C(1) << below(connection, most)) + 1);
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Whether it accesses an aligned word only. */
static bool is_of_word(enum ibv_wr_opcode opcode)
{
	return is_atomic(opcode) || opcode == IBV_WR_ATOMIC_WRITE;
}

bool model_reads(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ || is_atomic(opcode);
}

static bool is_send(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV;
}

static bool needs_receive(enum ibv_wr_opcode opcode)
{
	return is_send(opcode) || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static unsigned int right_for(enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_RDMA_READ)
		return IBV_ACCESS_REMOTE_READ;
	return is_atomic(opcode) ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_WRITE;
}

/*
 * A READ that was lost is executed again, so what follows it may be seen by it, unless that is fenced
 * (IBTA 10.8.3.3).
 */
static void order_after_reads(struct model_flow *flow, uint32_t place, struct ibv_send_wr *wr)
{
	bool overlaps = place < flow->read_end && place + flow->requests[flow->posted % MODEL_DEPTH].length >
							   flow->read_first;

	if ((int32_t)(flow->completed - flow->reads_until) > 0) {
		flow->read_first = UINT32_MAX;
		flow->read_end = 0;
	} else if (overlaps) {
		wr->send_flags |= IBV_SEND_FENCE;
	}
}

static void note_read(struct model_flow *flow, uint32_t place, uint32_t length)
{
	if ((int32_t)(flow->completed - flow->reads_until) > 0) {
		flow->read_first = UINT32_MAX;
		flow->read_end = 0;
	}
	if (place < flow->read_first)
		flow->read_first = place;
	if (place + length > flow->read_end)
		flow->read_end = place + length;
	flow->reads_until = flow->posted;
}

/* Its effect on the shadow, and the expected result. */
static void foretell(struct model_flow *flow, struct model_request *request, uint32_t place,
		     struct ibv_send_wr *wr)
{
	struct model_connection *connection = flow->connection;
	uint8_t *shadow = flow->shadow + place;
	uint64_t word;

	if (request->opcode == IBV_WR_RDMA_WRITE || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
	    request->opcode == IBV_WR_ATOMIC_WRITE) {
		order_after_reads(flow, place, wr);
		memcpy(shadow, connection->pool + request->source, request->length);
	}
	if (!model_reads(request->opcode))
		return;
	request->expected = malloc(request->length + 1);
	CHECK(request->expected);
	memcpy(request->expected, shadow, request->length);
	if (request->opcode == IBV_WR_RDMA_READ) {
		note_read(flow, place, request->length);
		return;
	}
	order_after_reads(flow, place, wr);
	memcpy(&word, shadow, sizeof(word));
	wr->wr.atomic.compare_add = below(connection, 2) ? word : soft_random_next(connection->random);
	wr->wr.atomic.swap = soft_random_next(connection->random);
	if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		word += wr->wr.atomic.compare_add;
	else if (word == wr->wr.atomic.compare_add)
		word = wr->wr.atomic.swap;
	memcpy(shadow, &word, sizeof(word));
}

static void expect_message(struct model_flow *flow, const struct model_request *request,
			   const struct ibv_send_wr *wr, struct model_window *ends)
{
	flow->messages[flow->message_count++] = (struct model_message){
		.source = request->source,
		.length = request->length,
		.immediate = wr->imm_data,
		.with_immediate = request->opcode == IBV_WR_SEND_WITH_IMM ||
				  request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM,
		.written = request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM,
		.window = ends,
	};
	if (flow->to->shared)
		flow->to->shared->promised++;
}

/* An unreliable message without a receive is lost; where losses are frequent, this may happen. */
static bool finds_receive(const struct model_flow *flow)
{
	const struct model_shared *shared = flow->to->shared;

	if (flow->connection->type == IBV_QPT_RC)
		return true;
	if (!flow->connection->exact)
		return model_receives_in(shared ? &soft_srq(shared->srq)->receive : &soft_qp(flow->to->qp)->receive) ||
		       below(flow->connection, 8) == 0;
	return shared ? shared->posted > shared->promised : flow->receives_posted > flow->message_count;
}

/* Choose address and key of a one-sided request; returns its offset in the memory. */
static uint32_t aim(struct model_flow *flow, struct model_request *request, struct ibv_send_wr *wr)
{
	struct model_window *window = model_choose_window(flow, request->length, right_for(request->opcode));
	uint32_t first = window ? window->first : 0, length = window ? window->length : MODEL_AREA;
	uint32_t place = first + (uint32_t)below(flow->connection, length - request->length + 1);
	uint32_t key = window ? window->key : flow->window.mr->rkey;
	uint64_t address;

	if (is_of_word(request->opcode)) /* windows begin at one */
		place &= ~7u;
	address = window && window->access & IBV_ACCESS_ZERO_BASED ? place - first :
								     (uintptr_t)flow->window.bytes + place;
	if (is_atomic(request->opcode)) {
		wr->wr.atomic.remote_addr = address;
		wr->wr.atomic.rkey = key;
	} else {
		wr->wr.rdma.remote_addr = address;
		wr->wr.rdma.rkey = key;
	}
	if (window) {
		window->used = true;
		window->last_use = flow->posted;
		flow->connection->tally->through_windows++;
	}
	return place;
}

/* SEND_WITH_INV ends a key when all requests through it that may be repeated are complete. */
static void end_window(struct model_flow *flow, struct model_window *window, struct ibv_send_wr *wr)
{
	wr->invalidate_rkey = window->key;
	wr->send_flags |= IBV_SEND_FENCE;
	window->state = MODEL_ENDING;
	flow->connection->tally->invalidated++;
}

/* A request for data, in wr; false if there is no room for it now. */
static bool make_transfer(struct model_flow *flow, struct model_request *request, struct ibv_send_wr *wr)
{
	struct model_connection *connection = flow->connection;
	enum ibv_wr_opcode opcode = request->opcode = wr->opcode = random_opcode(connection);
	struct model_window *ends = NULL;
	bool inlined;

	request->length = is_of_word(opcode) ? sizeof(uint64_t) : random_length(connection);
	if (opcode == IBV_WR_SEND_WITH_INV && !(ends = model_choose_ending(flow)))
		return false;
	if (needs_receive(opcode) && !finds_receive(flow))
		return false;
	if (model_reads(opcode) && !model_take(&flow->sink, request->length, &request->sink))
		return false;
	request->source = (uint32_t)below(connection, MODEL_AREA - request->length + 1);
	inlined = !model_reads(opcode) && request->length <= 128 && below(connection, 2);
	wr->send_flags |= (inlined ? IBV_SEND_INLINE : 0) | (below(connection, 8) ? 0 : IBV_SEND_FENCE) |
			  (below(connection, 8) ? 0 : IBV_SEND_SOLICITED);
	/* Where messages may be lost: its number. */
	wr->imm_data = connection->exact ? (uint32_t)below(connection, UINT32_MAX) : flow->message_count;
	if (model_reads(opcode))
		wr->num_sge = model_cut(connection->random, model_at(&flow->sink, request->sink),
					request->length, flow->sink.mr->lkey, wr->sg_list);
	else
		wr->num_sge = model_cut(connection->random, connection->pool + request->source,
					request->length, flow->from->pool->lkey, wr->sg_list);
	if (!is_send(opcode))
		foretell(flow, request, aim(flow, request, wr), wr);
	if (ends)
		end_window(flow, ends, wr);
	if (needs_receive(opcode))
		expect_message(flow, request, wr, ends);
	return true;
}

/* Post one more request; false if there is no room for it now. */
static bool make_request(struct model_flow *flow, struct ibv_send_wr *wr, struct ibv_sge *list)
{
	struct model_connection *connection = flow->connection;
	struct model_request *request = &flow->requests[flow->posted % MODEL_DEPTH];

	*request = (struct model_request){0};
	/* The queue must not fill with unsignaled requests. */
	request->signaled = below(connection, 4) || flow->left == 1 ||
			    flow->posted % (MODEL_DEPTH / 2) == 0;
	*wr = (struct ibv_send_wr){
		.wr_id = flow->posted,
		.sg_list = list,
		.send_flags = request->signaled ? IBV_SEND_SIGNALED : 0,
	};
	if (!(below(connection, 8) == 0 && model_change_window(flow, request, wr)) &&
	    !make_transfer(flow, request, wr))
		return false;
	flow->posted++;
	flow->left--;
	return true;
}

static bool has_room(const struct model_flow *flow)
{
	return flow->left && flow->posted - flow->completed < MODEL_DEPTH;
}

/* A FLUSH, which only builders can post: all earlier writes are visible. */
static bool post_flush(struct model_flow *flow)
{
	struct ibv_qp_ex *builder = soft_qp_to_qp_ex(flow->from->qp);
	uint32_t first = (uint32_t)below(flow->connection, MODEL_AREA);
	bool whole = below(flow->connection, 2);

	if (flow->connection->type != IBV_QPT_RC || !has_room(flow))
		return false;
	flow->requests[flow->posted % MODEL_DEPTH] = (struct model_request){
		.opcode = (enum ibv_wr_opcode)CORE_WR_FLUSH, .signaled = true};
	ibv_wr_start(builder);
	builder->wr_id = flow->posted++;
	builder->wr_flags = IBV_SEND_SIGNALED;
	core_wr_flush(builder, flow->window.mr->rkey, (uintptr_t)flow->window.bytes + first,
		      below(flow->connection, MODEL_AREA - first + 1), CORE_FLUSH_GLOBAL,
		      whole ? CORE_FLUSH_MR : CORE_FLUSH_RANGE);
	CHECK(!ibv_wr_complete(builder));
	flow->left--;
	flow->connection->tally->flushes++;
	return true;
}

bool model_post_sends(struct model_flow *flow)
{
	struct ibv_send_wr wrs[4], *bad;
	struct ibv_sge lists[4][MODEL_PIECES];
	uint32_t count = 0, wanted = 1 + (uint32_t)below(flow->connection, 4);

	if (below(flow->connection, 32) == 0)
		return post_flush(flow);
	while (count < wanted && has_room(flow) && make_request(flow, &wrs[count], lists[count])) {
		if (count)
			wrs[count - 1].next = &wrs[count];
		count++;
	}
	if (count)
		CHECK(!soft_post_send(flow->from->qp, wrs, &bad));
	return count;
}

bool model_post_receives(struct model_flow *flow)
{
	struct model_connection *connection = flow->connection;
	uint32_t count = 0, wanted = 1 + (uint32_t)below(connection, MODEL_DEPTH);

	for (; count < wanted && flow->receives_posted - flow->receives_done < MODEL_DEPTH; count++) {
		struct model_receive *receive = &flow->queue[flow->receives_posted % MODEL_DEPTH];
		struct ibv_sge list[MODEL_PIECES];
		struct ibv_recv_wr wr = {.wr_id = MODEL_RECEIVE | flow->receives_posted, .sg_list = list}, *bad;
		/* The longest possible message while nothing was sent. */
		uint32_t length = connection->power > MODEL_SMALL_POWER ? MODEL_LARGEST : MODEL_SMALL;

		if (connection->type == IBV_QPT_RC) {
			if (flow->receives_posted < flow->message_count)
				length = flow->messages[flow->receives_posted].length +
					 (uint32_t)below(connection, 64);
			else if (flow->receives_posted > flow->receives_done)
				break; /* one of that size is enough */
		}
		if (!model_take(&flow->receives, length, &receive->place))
			break;
		receive->length = length;
		wr.num_sge = model_cut(connection->random, model_at(&flow->receives, receive->place), length,
				       flow->receives.mr->lkey, list);
		CHECK(!soft_post_recv(flow->to->qp, &wr, &bad));
		flow->receives_posted++;
	}
	return count;
}
