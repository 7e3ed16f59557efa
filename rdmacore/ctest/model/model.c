#include "ctest/model/model.h"

#include "ctest/model/model_post.h"
#include "ctest/model/model_shared.h"
#include "ctest/model/model_window.h"
#include "ctest/support/check.h"
#include "soft/objects/cq.h"
#include "soft/objects/mr.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

static uint64_t below(struct model_connection *connection, uint64_t limit)
{
	return model_below(connection->random, limit);
}

/* --- completions ------------------------------------------------------------------------------ */

static void finish_request(struct model_flow *flow, bool success)
{
	struct model_request *request = &flow->requests[flow->completed++ % MODEL_DEPTH];

	if (request->window)
		model_window_changed(request->window, success);
	if (!model_reads(request->opcode))
		return;
	if (success)
		CHECK(!memcmp(model_at(&flow->sink, request->sink), request->expected, request->length));
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
	flow->connection->tally->failures++;
}

static void check_message(struct model_flow *flow, const struct model_message *message,
			  const uint8_t *bytes, const struct ibv_wc *wc)
{
	CHECK(wc->byte_len == message->length);
	CHECK(wc->opcode == (message->written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
	CHECK(!(wc->wc_flags & IBV_WC_WITH_IMM) == !message->with_immediate);
	CHECK(!message->with_immediate || wc->imm_data == message->immediate);
	CHECK(!(wc->wc_flags & IBV_WC_WITH_INV) == !message->window);
	CHECK(!message->window || wc->invalidated_rkey == message->window->key);
	if (message->window)
		message->window->state = MODEL_FREE;
	if (!message->written)
		CHECK(!memcmp(bytes, flow->connection->pool + message->source, message->length));
}

/* The receive that is complete is the next one; where its bytes are. */
static const uint8_t *take_receive(struct model_flow *flow, const struct ibv_wc *wc)
{
	struct model_receive *receive = &flow->queue[flow->receives_done % MODEL_DEPTH];
	struct model_end *end = flow->to;

	if (end->shared) {
		const uint8_t *bytes = model_shared_done(end->shared, wc->wr_id);

		/* A later message uses the receive of a lost one, so the order is only defined without losses. */
		CHECK(flow->connection->type != IBV_QPT_RC || wc->wr_id > flow->last_shared);
		flow->last_shared = wc->wr_id;
		return bytes;
	}
	CHECK(wc->wr_id == (MODEL_RECEIVE | flow->receives_done));
	flow->receives_done++;
	flow->receives.tail = receive->place + receive->length;
	return model_at(&flow->receives, receive->place);
}

static void receive_completes(struct model_flow *flow, const struct ibv_wc *wc)
{
	const uint8_t *bytes = take_receive(flow, wc);

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
	check_message(flow, &flow->messages[flow->received++], bytes, wc);
}

static bool poll(struct model_end *end)
{
	struct ibv_wc wc;

	if (soft_poll_cq(end->cq, 1, &wc) == 0)
		return false;
	CHECK(wc.qp_num == end->qp->qp_num);
	if (wc.wr_id & MODEL_RECEIVE)
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
	model_open_memory(&flow->window, flow->to->host->pd, MODEL_AREA);
	model_open_memory(&flow->sink, flow->from->host->pd, MODEL_AREA);
	model_open_memory(&flow->receives, flow->to->host->pd, MODEL_AREA);
	memcpy(flow->window.bytes, connection->pool, MODEL_AREA);
	memcpy(flow->shadow, connection->pool, MODEL_AREA);
	model_open_windows(flow);
}

static void close_flow(struct model_flow *flow)
{
	if (flow->connection->exact ||
	    (flow->connection->type == IBV_QPT_RC && !flow->from->failed && !flow->to->failed))
		CHECK(!memcmp(flow->window.bytes, flow->shadow, MODEL_AREA));
	model_close_windows(flow);
	model_close_memory(&flow->window);
	model_close_memory(&flow->sink);
	model_close_memory(&flow->receives);
	free(flow->shadow);
	free(flow->messages);
}

/* With builders, for requests that only they can post. */
static struct ibv_qp *make_queue_pair(struct model_connection *connection, struct model_end *end)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = MODEL_DEPTH, .max_recv_wr = MODEL_DEPTH, .max_send_sge = MODEL_PIECES,
			.max_recv_sge = MODEL_PIECES, .max_inline_data = 128},
		.qp_type = connection->type, .send_cq = end->cq, .recv_cq = end->cq,
		.srq = end->shared ? end->shared->srq : NULL,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = end->host->pd,
		.send_ops_flags = connection->type == IBV_QPT_RC ? CORE_QP_EX_WITH_FLUSH : 0,
	};
	struct ibv_qp *qp = soft_create_qp_ex(end->host->context, &attr);

	CHECK(qp);
	return qp;
}

static void open_end(struct model_connection *connection, struct model_end *end, struct sim_host *host,
		     struct model_shared *shared)
{
	end->host = host;
	end->shared = shared;
	end->cq = sim_cq(host, 2 * MODEL_DEPTH + MODEL_SLOTS);
	end->qp = make_queue_pair(connection, end);
	end->pool = soft_reg_mr(host->pd, (void *)(uintptr_t)connection->pool, MODEL_AREA, 0);
	CHECK(end->pool);
}

void model_open(struct model_connection *connection, struct sim_host *hosts[2],
		struct model_shared *shared[2], uint32_t messages)
{
	struct sim_path path = {.retry = 7, .rnr_retry = 7, .timeout = 8};

	connection->power = connection->type != IBV_QPT_RC || shared[0] || shared[1] ? MODEL_SMALL_POWER :
										      MODEL_POWER;
	path.mtu = (enum ibv_mtu)(IBV_MTU_256 + below(connection, 5));
	path.rnr_timer = (uint8_t)(1 + below(connection, 12));
	path.depth = (uint8_t)(1 + below(connection, 16));
	path.psn[0] = (uint32_t)below(connection, 1 << 24);
	path.psn[1] = below(connection, 2) ? 0xfffff0 : 0; /* about to wrap, or not */
	path.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
		      CORE_ACCESS_FLUSH_GLOBAL;
	for (int end = 0; end < 2; end++)
		open_end(connection, &connection->ends[end], hosts[end], shared[end]);
	open_flow(connection, 0, messages);
	open_flow(connection, 1, messages);
	sim_connect(hosts[0], connection->ends[0].qp, hosts[1], connection->ends[1].qp, &path);
}

void model_poll_all(struct model_connection *connection)
{
	for (int end = 0; end < 2; end++)
		while (poll(&connection->ends[end]))
			;
}

void model_close(struct model_connection *connection)
{
	for (int end = 0; end < 2; end++) {
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
		return model_post_sends(flow);
	case 1:
		return !flow->to->failed && !flow->to->shared &&
		       flow->left + flow->message_count - flow->received && model_post_receives(flow);
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
