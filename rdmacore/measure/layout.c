/* Checks the parts of the spec that concern one end against its queue pair and memory. */
#include "measure/worker.h"

#include "core/call.h"
#include "measure/wire.h"

#define DEFAULT_DEPTH 128 /* perftest's --tx-depth */
#define DEFAULT_DEPTH_VERIFIED 16 /* one-sided: both ends must use the same value, whatever their queues hold */
#define DEFAULT_RECEIVES_LATENCY 16
#define PAGE 4096

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static int layout_queue(struct core_measure_worker *worker, struct core_measure_refusal *refusal)
{
	const struct core_measure_spec *spec = &worker->measure->spec;
	bool iwarp = worker->end.qp->context->device->transport_type == IBV_TRANSPORT_IWARP;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int result;

	if (worker->end.qp->qp_type != IBV_QPT_RC)
		return core_measure_refuse(refusal, -EOPNOTSUPP, "qp", "only RC queue pairs are measured");
	result = core_query_qp(worker->end.provider, worker->end.qp, &attr, IBV_QP_STATE | IBV_QP_CAP,
			       &init);
	if (result)
		return core_measure_refuse(refusal, result, "qp", "ibv_query_qp failed");
	/*
	 * The kernel changes the state of iWARP's queue pairs, and siw of Linux 6.1 does not report it. Posting
	 * fails if it is wrong.
	 */
	if (!iwarp && attr.qp_state != IBV_QPS_RTS)
		return core_measure_refuse(refusal, -EINVAL, "qp", "it is not connected (state RTS)");
	worker->qp = worker->end.qp;
	worker->send_cq = worker->qp->send_cq;
	worker->recv_cq = worker->qp->recv_cq;
	worker->cap = init.cap;
	if ((iwarp ? worker->end.signals_all : (uint32_t)init.sq_sig_all) && spec->signal_every > 1)
		return core_measure_refuse(refusal, -EINVAL, "signal_every",
					   "this queue pair completes every request (sq_sig_all)");
	worker->events = spec->completion == CORE_MEASURE_EVENT;
	if (worker->events && (!worker->send_cq->channel || !worker->recv_cq->channel))
		return core_measure_refuse(refusal, -EINVAL, "completion",
					   "the completion queues have no channel to wait on");
	/* Channels of this core do not block; one of another caller would block take_events. */
	if (worker->events && ((result = core_set_nonblocking(worker->send_cq->channel->fd)) ||
			       (result = core_set_nonblocking(worker->recv_cq->channel->fd))))
		return core_measure_refuse(refusal, result, "completion", "its channel cannot be polled");
	if (!worker->cap.max_send_sge || !worker->cap.max_recv_sge)
		return core_measure_refuse(refusal, -EINVAL, "qp",
					   "it takes no scatter/gather entries (max_send_sge, max_recv_sge)");
	worker->in_payload = worker->controls && iwarp;
	if (worker->in_payload && worker->cap.max_inline_data < CORE_MEASURE_PAYLOAD_MAX)
		return core_measure_refuse(refusal, -EINVAL, "qp",
					   "without immediate data it needs max_inline_data %d, not %u",
					   CORE_MEASURE_PAYLOAD_MAX, worker->cap.max_inline_data);
	return 0;
}

/* A queue pair with builders has only the operations that it was created for. */
static int layout_builder(const struct core_measure_worker *worker, struct core_measure_refusal *refusal)
{
	uint64_t needed = 0;

	if (worker->transmits)
		needed |= core_build_operation(worker->operation);
	if (worker->controls)
		needed |= worker->in_payload ? IBV_QP_EX_WITH_SEND : IBV_QP_EX_WITH_SEND_WITH_IMM;
	if (worker->end.builder && needed & ~worker->end.operations)
		return core_measure_refuse(refusal, -EOPNOTSUPP, "qp",
					   "it was not created for the operation, and for the messages in which "
					   "the ends talk (send_ops_flags %#llx)", (unsigned long long)needed);
	return 0;
}

/* If the device has no atomics, ibv_post_send would fail for the first message. */
static int layout_atomic(struct core_measure_worker *worker, struct core_measure_refusal *refusal)
{
	struct ibv_device_attr attr;
	int result;

	if (!core_measure_atomic(worker->operation) || !worker->transmits)
		return 0;
	result = core_query_device(worker->end.provider, worker->qp->context, &attr);
	if (result)
		return core_measure_refuse(refusal, result, "qp", "ibv_query_device failed");
	if (attr.atomic_cap == IBV_ATOMIC_NONE)
		return core_measure_refuse(refusal, -EOPNOTSUPP, "operation", "this device has no atomics");
	return 0;
}

static int layout_inline(struct core_measure_worker *worker, struct core_measure_refusal *refusal)
{
	uint32_t limit = worker->measure->spec.inline_size;

	if (limit == CORE_MEASURE_INLINE_AUTO)
		limit = worker->cap.max_inline_data;
	if (limit > worker->cap.max_inline_data)
		return core_measure_refuse(refusal, -EINVAL, "inline_size",
					   "the queue pair takes %u bytes inline at most",
					   worker->cap.max_inline_data);
	if (limit && worker->size <= limit && worker->size)
		worker->send_flags |= IBV_SEND_INLINE;
	return 0;
}

/* Limit the requests in flight. There is always one among them that requests a completion. */
static int layout_depth(struct core_measure_worker *worker, struct core_measure_refusal *refusal)
{
	const struct core_measure_spec *spec = &worker->measure->spec;
	uint32_t reserve = worker->controls ? CORE_MEASURE_CONTROL_SENDS : 0;
	uint32_t room, needed;

	if (!worker->transmits && !worker->controls)
		return 0;
	if (worker->cap.max_send_wr <= reserve)
		return core_measure_refuse(refusal, -EINVAL, "qp",
					   "its send queue of %u is too short; max_send_wr > %u is needed",
					   worker->cap.max_send_wr, reserve);
	room = worker->cap.max_send_wr - reserve;
	if (spec->kind == CORE_MEASURE_LATENCY)
		worker->depth = spec->signal_every; /* one in flight, and those that are not reaped yet */
	else if (spec->depth)
		worker->depth = spec->depth;
	else if (worker->verify && worker->operation != IBV_WR_SEND)
		worker->depth = DEFAULT_DEPTH_VERIFIED;
	else
		worker->depth = smaller(DEFAULT_DEPTH, room);
	if (!worker->transmits)
		return 0;
	if (worker->depth > room)
		return core_measure_refuse(refusal, -EINVAL,
					   spec->kind == CORE_MEASURE_LATENCY ? "signal_every" : "depth",
					   "the send queue of %u holds %u messages; give the queue pair "
					   "max_send_wr %u", worker->cap.max_send_wr, room,
					   worker->depth + reserve);
	if (spec->outstanding > worker->depth)
		return core_measure_refuse(refusal, -EINVAL, "outstanding",
					   "more than the %u requests in flight", worker->depth);
	if (spec->outstanding)
		worker->depth = spec->outstanding;
	/* The most that can be in flight after the last request for a completion, and one list more. */
	needed = spec->kind == CORE_MEASURE_LATENCY ? 1 :
		 spec->signal_every - divisor(spec->signal_every, spec->post_list) + spec->post_list;
	if (worker->depth < needed)
		return core_measure_refuse(refusal, -EINVAL, spec->outstanding ? "outstanding" : "depth",
					   "post_list %u and signal_every %u need at least %u, not %u",
					   spec->post_list, spec->signal_every, needed, worker->depth);
	return 0;
}

static int layout_receives(struct core_measure_worker *worker, struct core_measure_refusal *refusal)
{
	const struct core_measure_spec *spec = &worker->measure->spec;
	bool latency = spec->kind == CORE_MEASURE_LATENCY;
	uint32_t wish = latency ? DEFAULT_RECEIVES_LATENCY : DEFAULT_DEPTH;
	uint32_t room;

	if (!worker->controls)
		return 0;
	if (worker->cap.max_recv_wr <= CORE_MEASURE_CONTROL_RECEIVES)
		return core_measure_refuse(refusal, -EINVAL, "qp",
					   "its receive queue of %u is too short; max_recv_wr > %d is needed",
					   worker->cap.max_recv_wr, CORE_MEASURE_CONTROL_RECEIVES);
	if (!worker->receives || worker->operation != IBV_WR_SEND)
		return 0;
	room = worker->cap.max_recv_wr - CORE_MEASURE_CONTROL_RECEIVES;
	worker->receive_depth = spec->receive_depth ? spec->receive_depth : smaller(wish, room);
	if (worker->receive_depth > room)
		return core_measure_refuse(refusal, -EINVAL, "receive_depth",
					   "the receive queue of %u holds %u messages; give the queue pair "
					   "max_recv_wr %u", worker->cap.max_recv_wr, room,
					   worker->receive_depth + CORE_MEASURE_CONTROL_RECEIVES);
	if (latency)
		return 0;
	/* A quarter: then at most four credit messages are unread, and there is always room for a list. */
	worker->grant_every = (worker->receive_depth + 3) / 4;
	if (spec->post_list > 1 && worker->receive_depth / 2 < spec->post_list)
		return core_measure_refuse(refusal, -EINVAL, "receive_depth",
					   "post_list %u needs at least %u, not %u", spec->post_list,
					   2 * spec->post_list, worker->receive_depth);
	if (spec->receive_post_list > worker->grant_every)
		return core_measure_refuse(refusal, -EINVAL, "receive_post_list",
					   "at most a quarter of receive_depth, %u", worker->grant_every);
	return 0;
}

static int check_memory(uint64_t half, uint64_t stride, uint32_t slots, const char *knob,
			struct core_measure_refusal *refusal)
{
	if (half / stride >= slots)
		return 0;
	return core_measure_refuse(refusal, -EINVAL, knob,
				   "%u messages of %llu bytes need %llu bytes in each half, which has %llu",
				   slots, (unsigned long long)stride, (unsigned long long)(slots * stride),
				   (unsigned long long)half);
}

/* Both ends must know the slots of a one-sided operation, so these depend on the spec alone. */
static uint32_t slots_in_flight(const struct core_measure_worker *worker)
{
	uint32_t depth = worker->measure->spec.depth;

	if (worker->operation == IBV_WR_SEND)
		return worker->transmits ? worker->depth : 1;
	return depth ? depth : DEFAULT_DEPTH_VERIFIED;
}

uint32_t core_measure_control_receives(const struct core_measure_worker *worker)
{
	bool awaits = worker->begins && worker->end.role == CORE_MEASURE_PASSIVE;

	return (awaits ? CORE_MEASURE_BEGIN_RECEIVES : 0) +
	       (worker->confirms && worker->receives ? CORE_MEASURE_WRITE_RECEIVES : 0);
}

/*
 * Choose the addresses of messages. Small ones rotate through a page, like those of perftest, so that the same cache
 * line is not written again and again. With verify, each message in flight has a slot of its own.
 */
static int layout_memory(struct core_measure_worker *worker, struct core_measure_refusal *refusal)
{
	const struct core_measure_spec *spec = &worker->measure->spec;
	bool latency = spec->kind == CORE_MEASURE_LATENCY;
	bool one_sided = worker->operation != IBV_WR_SEND;
	uint64_t line = CORE_MEASURE_CACHE_LINE;
	uint64_t half = worker->end.length / 2 & ~(line - 1);
	uint64_t remote_half = worker->end.remote_length / 2 & ~(line - 1);
	uint32_t slots = 1, receives, messages = 0;
	uint64_t room;
	int result;

	worker->stride = (spec->size + (worker->in_payload ? CORE_MEASURE_TRAILER : 0) + line - 1) & ~(line - 1);
	if (!worker->stride)
		worker->stride = line;
	if (!latency && worker->stride < PAGE)
		slots = (uint32_t)(PAGE / worker->stride);
	if (worker->verify)
		slots = latency ? one_sided ? 2 : 1 : slots_in_flight(worker);
	/* Written data is in the first slots, and control messages follow. */
	if (worker->in_payload && one_sided)
		messages = core_measure_control_receives(worker);
	receives = slots;
	if ((worker->verify || worker->in_payload) && !one_sided)
		receives = worker->receive_depth + CORE_MEASURE_CONTROL_RECEIVES;
	/* Without verify, fewer are enough. */
	if (!worker->verify) {
		uint64_t shorter = one_sided && worker->transmits && remote_half < half ? remote_half : half;

		room = shorter / worker->stride;
		room = room > messages ? room - messages : 1;
		if (room < slots)
			slots = (uint32_t)room;
		if (!worker->in_payload)
			receives = slots;
	}
	if (messages) {
		worker->next_slot = slots;
		receives = slots + messages;
	}
	worker->send_slots = worker->remote_slots = slots;
	worker->receive_slots = receives;
	result = check_memory(half, worker->stride, slots > receives ? slots : receives, "length", refusal);
	if (!result && one_sided && worker->transmits)
		result = check_memory(remote_half, worker->stride, slots, "remote_length", refusal);
	if (result)
		return result;
	worker->send_base = worker->end.address;
	worker->receive_base = worker->end.address + half;
	worker->remote_base = worker->end.remote_address + (core_measure_fetches(worker) ? 0 : remote_half);
	return 0;
}

int core_measure_layout(struct core_measure_worker *worker, struct core_measure_refusal *refusal)
{
	const struct core_measure_spec *spec = &worker->measure->spec;
	bool active = worker->end.role == CORE_MEASURE_ACTIVE;
	bool latency = spec->kind == CORE_MEASURE_LATENCY;
	int result;

	if (spec->kind == CORE_MEASURE_CONNECT)
		return 0;
	worker->operation = (enum ibv_wr_opcode)spec->operation;
	worker->size = (uint32_t)spec->size;
	worker->post_list = spec->post_list;
	worker->receive_post_list = spec->receive_post_list;
	worker->signal_every = spec->signal_every;
	worker->poll_batch = spec->poll_batch;
	worker->verify = spec->verify && spec->size;
	worker->verify_later = latency || core_measure_fetches(worker);
	worker->transmits = active || spec->bidirectional || (latency && !core_measure_fetches(worker));
	worker->receives = !core_measure_fetches(worker) && (!active || spec->bidirectional || latency);
	worker->confirms = worker->operation == IBV_WR_SEND ||
			  (!latency && worker->operation == IBV_WR_RDMA_WRITE && worker->verify);
	worker->begins = spec->elsewhere && spec->bidirectional && worker->operation != IBV_WR_SEND;
	worker->controls = worker->confirms || worker->begins;
	worker->burst = spec->burst;
	if (spec->rate_messages)
		worker->due_ns = 1e9 / (double)spec->rate_messages;
	else if (spec->rate_bits)
		worker->due_ns = (double)spec->size * 8e9 / (double)spec->rate_bits;

	result = layout_queue(worker, refusal);
	if (!result)
		result = layout_builder(worker, refusal);
	if (!result)
		result = layout_atomic(worker, refusal);
	if (!result)
		result = layout_inline(worker, refusal);
	if (!result)
		result = layout_depth(worker, refusal);
	if (!result)
		result = layout_receives(worker, refusal);
	if (!result)
		result = layout_memory(worker, refusal);
	return result;
}
