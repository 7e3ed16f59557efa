#include "model.h"

#include "../soft_cq.h"
#include "../soft_mr.h"
#include "../soft_qp.h"
#include "check.h"

#define RECEIVE (UINT64_C(1) << 63) /* of wr_id; the rest is the index */
#define GUARD 0xa5
#define UNRELIABLE_POWER 12 /* the longest message that must find a receive */

static uint64_t below(struct model_connection *connection, uint64_t limit)
{
	return soft_random_next(connection->random) % limit;
}

/* --- memory ----------------------------------------------------------------------------------- */

static void open_memory(struct model_memory *memory, struct sim_host *host, uint32_t size)
{
	uint8_t *all = malloc(size + 2 * MODEL_GUARD);

	CHECK(all);
	memset(all, GUARD, MODEL_GUARD);
	memset(all + MODEL_GUARD + size, GUARD, MODEL_GUARD);
	*memory = (struct model_memory){.bytes = all + MODEL_GUARD};
	memory->mr = soft_reg_mr(host->pd, memory->bytes, size,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(memory->mr);
}

static void close_memory(struct model_memory *memory, uint32_t size)
{
	for (int byte = 0; byte < MODEL_GUARD; byte++)
		CHECK(memory->bytes[byte - MODEL_GUARD] == GUARD && memory->bytes[size + byte] == GUARD);
	CHECK(!soft_dereg_mr(memory->mr));
	free(memory->bytes - MODEL_GUARD);
}

/* Take a piece of a ring, in one stretch; false when there is no room. */
static bool take(struct model_memory *ring, uint32_t length, uint64_t *place)
{
	uint64_t head = ring->head;

	if (head % MODEL_AREA + length > MODEL_AREA)
		head += MODEL_AREA - head % MODEL_AREA;
	head = (head + 7) & ~UINT64_C(7); /* atomics return to aligned words */
	if (head % MODEL_AREA + length > MODEL_AREA || head + length - ring->tail > MODEL_AREA)
		return false;
	*place = head;
	ring->head = head + length;
	return true;
}

static uint8_t *at(const struct model_memory *ring, uint64_t place)
{
	return ring->bytes + place % MODEL_AREA;
}

/* A stretch of memory as a list of random pieces, some of them empty. */
static int cut(struct model_connection *connection, const uint8_t *bytes, uint32_t length, uint32_t key,
	       struct ibv_sge *list)
{
	int pieces = 1 + (int)below(connection, MODEL_PIECES);
	uint32_t done = 0;

	if (!length && below(connection, 2))
		return 0;
	for (int piece = 0; piece < pieces; piece++) {
		uint32_t step = piece + 1 == pieces ? length - done :
						      (uint32_t)below(connection, length - done + 1);

		list[piece] = (struct ibv_sge){(uintptr_t)bytes + done, step, key};
		done += step;
	}
	return pieces;
}

/* --- posting ---------------------------------------------------------------------------------- */

static const enum ibv_wr_opcode reliable[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_WRITE,
};
static const enum ibv_wr_opcode unreliable[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
};

static enum ibv_wr_opcode random_opcode(struct model_connection *connection)
{
	if (connection->type == IBV_QPT_RC)
		return reliable[below(connection, sizeof(reliable) / sizeof(reliable[0]))];
	/* Where messages may be lost, each says which one it is. */
	return unreliable[connection->exact ?
				  below(connection, sizeof(unreliable) / sizeof(unreliable[0])) :
				  1 + 2 * below(connection, 2)];
}

static uint32_t random_length(struct model_connection *connection)
{
	uint32_t power = (uint32_t)below(connection, below(connection, 16) ? 12 : 17);

	if (connection->type != IBV_QPT_RC && power > UNRELIABLE_POWER)
		power = UNRELIABLE_POWER;
	return (uint32_t)below(connection, (UINT64_C(1) << power) + 1);
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Of an aligned word, and no other. */
static bool is_of_word(enum ibv_wr_opcode opcode)
{
	return is_atomic(opcode) || opcode == IBV_WR_ATOMIC_WRITE;
}

static bool reads(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ || is_atomic(opcode);
}

static bool needs_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
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

/* What it does to the shadow, and what it must bring back. */
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
	if (!reads(request->opcode))
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

static void expect_message(struct model_flow *flow, const struct model_request *request, uint32_t immediate)
{
	flow->messages[flow->message_count++] = (struct model_message){
		.source = request->source,
		.length = request->length,
		.immediate = immediate,
		.with_immediate = request->opcode != IBV_WR_SEND,
		.written = request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM,
	};
}

/* One request more, in wr; false when there is no room for it now. */
static bool make_request(struct model_flow *flow, struct ibv_send_wr *wr, struct ibv_sge *list)
{
	struct model_connection *connection = flow->connection;
	struct model_request *request = &flow->requests[flow->posted % MODEL_DEPTH];
	uint32_t place;
	bool inlined;

	*request = (struct model_request){.opcode = random_opcode(connection)};
	request->length = is_of_word(request->opcode) ? sizeof(uint64_t) : random_length(connection);
	/* What arrives unreliably and finds no receive is lost. */
	if (connection->type != IBV_QPT_RC && connection->exact && needs_receive(request->opcode) &&
	    flow->receives_posted == flow->message_count)
		return false;
	if (reads(request->opcode) && !take(&flow->sink, request->length, &request->sink))
		return false;
	request->source = (uint32_t)below(connection, MODEL_AREA - request->length + 1);
	place = (uint32_t)below(connection, MODEL_AREA - request->length + 1);
	if (is_of_word(request->opcode))
		place &= ~7u;
	/* The queue must not fill with requests that nobody hears of. */
	request->signaled = below(connection, 4) || flow->left == 1 ||
			    flow->posted % (MODEL_DEPTH / 2) == 0;
	inlined = !reads(request->opcode) && request->length <= 128 && below(connection, 2);
	*wr = (struct ibv_send_wr){
		.wr_id = flow->posted,
		.sg_list = list,
		.opcode = request->opcode,
		.send_flags = (request->signaled ? IBV_SEND_SIGNALED : 0) | (inlined ? IBV_SEND_INLINE : 0) |
			      (below(connection, 8) ? 0 : IBV_SEND_FENCE) |
			      (below(connection, 8) ? 0 : IBV_SEND_SOLICITED),
		/* Where messages may be lost: its number. */
		.imm_data = connection->exact ? (uint32_t)below(connection, UINT32_MAX) : flow->message_count,
	};
	if (reads(request->opcode))
		wr->num_sge = cut(connection, at(&flow->sink, request->sink), request->length,
				  flow->sink.mr->lkey, list);
	else
		wr->num_sge = cut(connection, connection->pool + request->source, request->length,
				  flow->from->pool->lkey, list);
	wr->wr.rdma.remote_addr = (uintptr_t)flow->window.bytes + place;
	wr->wr.rdma.rkey = flow->window.mr->rkey;
	if (is_atomic(request->opcode)) {
		wr->wr.atomic.remote_addr = (uintptr_t)flow->window.bytes + place;
		wr->wr.atomic.rkey = flow->window.mr->rkey;
	}
	foretell(flow, request, place, wr);
	if (needs_receive(request->opcode))
		expect_message(flow, request, wr->imm_data);
	flow->posted++;
	flow->left--;
	return true;
}

static bool post_sends(struct model_flow *flow)
{
	struct ibv_send_wr wrs[4], *bad;
	struct ibv_sge lists[4][MODEL_PIECES];
	uint32_t count = 0, wanted = 1 + (uint32_t)below(flow->connection, 4);

	while (count < wanted && flow->left && flow->posted - flow->completed < MODEL_DEPTH &&
	       make_request(flow, &wrs[count], lists[count])) {
		if (count)
			wrs[count - 1].next = &wrs[count];
		count++;
	}
	if (count)
		CHECK(!soft_post_send(flow->from->qp, wrs, &bad));
	return count;
}

static bool post_receives(struct model_flow *flow)
{
	uint32_t count = 0, wanted = 1 + (uint32_t)below(flow->connection, MODEL_DEPTH);

	for (; count < wanted && flow->receives_posted - flow->receives_done < MODEL_DEPTH; count++) {
		struct model_receive *receive = &flow->queue[flow->receives_posted % MODEL_DEPTH];
		struct ibv_sge list[MODEL_PIECES];
		struct ibv_recv_wr wr = {.wr_id = RECEIVE | flow->receives_posted, .sg_list = list}, *bad;
		/* The longest that may come, where nothing was sent yet. */
		uint32_t length = MODEL_LARGEST;

		if (flow->connection->type != IBV_QPT_RC)
			length = 1u << UNRELIABLE_POWER;
		else if (flow->receives_posted < flow->message_count)
			length = flow->messages[flow->receives_posted].length +
				 (uint32_t)below(flow->connection, 64);
		else if (flow->receives_posted > flow->receives_done)
			break; /* one of that size is enough */
		if (!take(&flow->receives, length, &receive->place))
			break;
		receive->length = length;
		wr.num_sge = cut(flow->connection, at(&flow->receives, receive->place), length,
				 flow->receives.mr->lkey, list);
		CHECK(!soft_post_recv(flow->to->qp, &wr, &bad));
		flow->receives_posted++;
	}
	return count;
}

/* --- completions ------------------------------------------------------------------------------ */

static void finish_request(struct model_flow *flow, bool success)
{
	struct model_request *request = &flow->requests[flow->completed++ % MODEL_DEPTH];

	if (!reads(request->opcode))
		return;
	if (success)
		CHECK(!memcmp(at(&flow->sink, request->sink), request->expected, request->length));
	flow->sink.tail = request->sink + request->length;
	free(request->expected);
}

static void request_completes(struct model_flow *flow, const struct ibv_wc *wc)
{
	struct model_end *end = flow->from;

	CHECK((uint32_t)wc->wr_id - flow->completed < flow->posted - flow->completed);
	if (end->failed) {
		/* All that are left, also those that are not signaled. */
		CHECK(wc->status == IBV_WC_WR_FLUSH_ERR && wc->wr_id == flow->completed);
		finish_request(flow, false);
		return;
	}
	while (flow->completed != wc->wr_id) {
		CHECK(!flow->requests[flow->completed % MODEL_DEPTH].signaled);
		finish_request(flow, true);
	}
	if (wc->status == IBV_WC_SUCCESS) {
		CHECK(flow->requests[flow->completed % MODEL_DEPTH].signaled);
		finish_request(flow, true);
		return;
	}
	if (wc->status != IBV_WC_RETRY_EXC_ERR || flow->connection->exact)
		fprintf(stderr, "request %u, opcode %d of %u bytes, ends with status %d\n", flow->completed,
			flow->requests[flow->completed % MODEL_DEPTH].opcode,
			flow->requests[flow->completed % MODEL_DEPTH].length, wc->status);
	CHECK(wc->status == IBV_WC_RETRY_EXC_ERR && !flow->connection->exact);
	finish_request(flow, false);
	end->failed = true;
	flow->left = 0;
	++*flow->connection->failures;
}

static void check_message(struct model_flow *flow, const struct model_message *message,
			  const struct model_receive *receive, const struct ibv_wc *wc)
{
	CHECK(wc->byte_len == message->length);
	CHECK(wc->opcode == (message->written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
	CHECK(!(wc->wc_flags & IBV_WC_WITH_IMM) == !message->with_immediate);
	CHECK(!message->with_immediate || wc->imm_data == message->immediate);
	if (!message->written)
		CHECK(!memcmp(at(&flow->receives, receive->place),
			      flow->connection->pool + message->source, message->length));
}

static void receive_completes(struct model_flow *flow, const struct ibv_wc *wc)
{
	struct model_receive *receive = &flow->queue[flow->receives_done % MODEL_DEPTH];

	CHECK(wc->wr_id == (RECEIVE | flow->receives_done));
	flow->receives_done++;
	flow->receives.tail = receive->place + receive->length;
	if (wc->status != IBV_WC_SUCCESS) {
		CHECK(wc->status == IBV_WC_WR_FLUSH_ERR && !flow->connection->exact);
		return;
	}
	if (flow->connection->type != IBV_QPT_RC && !flow->connection->exact) {
		/* Some are missing, and none comes late. */
		CHECK(wc->imm_data >= flow->received && wc->imm_data < flow->message_count);
		flow->received = wc->imm_data;
	}
	CHECK(flow->received < flow->message_count);
	check_message(flow, &flow->messages[flow->received++], receive, wc);
}

static bool poll(struct model_end *end)
{
	struct ibv_wc wc;

	if (soft_poll_cq(end->cq, 1, &wc) == 0)
		return false;
	CHECK(wc.qp_num == end->qp->qp_num);
	if (wc.wr_id & RECEIVE)
		receive_completes(end->in, &wc);
	else
		request_completes(end->out, &wc);
	return true;
}

/* --- a connection ----------------------------------------------------------------------------- */

static void open_flow(struct model_connection *connection, int direction, uint32_t messages)
{
	struct model_flow *flow = &connection->flows[direction];

	flow->connection = connection;
	flow->from = &connection->ends[direction];
	flow->to = &connection->ends[!direction];
	flow->from->out = flow;
	flow->to->in = flow;
	flow->left = messages;
	flow->reads_until = UINT32_MAX;
	flow->messages = calloc(messages, sizeof(*flow->messages));
	flow->shadow = malloc(MODEL_AREA);
	CHECK(flow->messages && flow->shadow);
	open_memory(&flow->window, flow->to->host, MODEL_AREA);
	open_memory(&flow->sink, flow->from->host, MODEL_AREA);
	open_memory(&flow->receives, flow->to->host, MODEL_AREA);
	memcpy(flow->window.bytes, connection->pool, MODEL_AREA);
	memcpy(flow->shadow, connection->pool, MODEL_AREA);
}

static void close_flow(struct model_flow *flow)
{
	if (flow->connection->exact ||
	    (flow->connection->type == IBV_QPT_RC && !flow->from->failed && !flow->to->failed))
		CHECK(!memcmp(flow->window.bytes, flow->shadow, MODEL_AREA));
	close_memory(&flow->window, MODEL_AREA);
	close_memory(&flow->sink, MODEL_AREA);
	close_memory(&flow->receives, MODEL_AREA);
	free(flow->shadow);
	free(flow->messages);
}

static void open_end(struct model_connection *connection, struct model_end *end, struct sim_host *host)
{
	end->host = host;
	end->cq = sim_cq(host, 4 * MODEL_DEPTH);
	end->qp = sim_qp(host, connection->type, end->cq, MODEL_DEPTH);
	end->pool = soft_reg_mr(host->pd, (void *)(uintptr_t)connection->pool, MODEL_AREA, 0);
	CHECK(end->pool);
}

void model_open(struct model_connection *connection, enum ibv_qp_type type, struct sim_host *a,
		struct sim_host *b, const uint8_t *pool, struct soft_random *random, uint32_t messages)
{
	struct sim_path path = {.retry = 7, .rnr_retry = 7, .timeout = 8};

	connection->type = type;
	connection->pool = pool;
	connection->random = random;
	path.mtu = (enum ibv_mtu)(IBV_MTU_256 + below(connection, 5));
	path.rnr_timer = (uint8_t)(1 + below(connection, 12));
	path.depth = (uint8_t)(1 + below(connection, 16));
	path.psn[0] = (uint32_t)below(connection, 1 << 24);
	path.psn[1] = below(connection, 2) ? 0xfffff0 : 0; /* about to wrap, or not */
	path.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	open_end(connection, &connection->ends[0], a);
	open_end(connection, &connection->ends[1], b);
	open_flow(connection, 0, messages);
	open_flow(connection, 1, messages);
	sim_connect(a, connection->ends[0].qp, b, connection->ends[1].qp, &path);
}

void model_close(struct model_connection *connection)
{
	for (int end = 0; end < 2; end++) {
		while (poll(&connection->ends[end]))
			;
		CHECK(!soft_destroy_qp(connection->ends[end].qp));
		CHECK(!soft_destroy_cq(connection->ends[end].cq));
		CHECK(!soft_dereg_mr(connection->ends[end].pool));
	}
	close_flow(&connection->flows[0]);
	close_flow(&connection->flows[1]);
}

bool model_step(struct model_connection *connection)
{
	struct model_flow *flow = &connection->flows[below(connection, 2)];

	switch (below(connection, 4)) {
	case 0:
		return post_sends(flow);
	case 1:
		return !flow->to->failed && flow->left + flow->message_count - flow->received &&
		       post_receives(flow);
	default:
		return poll(flow->from);
	}
}

static bool flow_is_done(const struct model_flow *flow)
{
	bool arrived = flow->received == flow->message_count || flow->connection->type != IBV_QPT_RC;

	return !flow->left && flow->completed == flow->posted &&
	       (arrived || flow->from->failed || flow->to->failed);
}

bool model_is_done(const struct model_connection *connection)
{
	return flow_is_done(&connection->flows[0]) && flow_is_done(&connection->flows[1]);
}
