/* Completions, and the contents of messages. */
#include "measure/completion.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>

#include "measure/wire.h"
#include "measure/worker.h"

static enum ibv_wc_opcode asked_for(const struct core_measure_worker *worker, unsigned int tag)
{
	if (tag == CORE_MEASURE_TAG_RECEIVE)
		return IBV_WC_RECV;
	if (tag == CORE_MEASURE_TAG_DATA && worker->operation == IBV_WR_RDMA_WRITE)
		return IBV_WC_RDMA_WRITE;
	if (tag == CORE_MEASURE_TAG_DATA && worker->operation == IBV_WR_RDMA_READ)
		return IBV_WC_RDMA_READ;
	if (tag == CORE_MEASURE_TAG_DATA && worker->operation == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return IBV_WC_FETCH_ADD;
	if (tag == CORE_MEASURE_TAG_DATA && worker->operation == IBV_WR_ATOMIC_CMP_AND_SWP)
		return IBV_WC_COMP_SWAP;
	return IBV_WC_SEND;
}

static int fail_completion(struct core_measure_worker *worker, const struct ibv_wc *wc, unsigned int tag)
{
	uint64_t number = wc->wr_id & CORE_MEASURE_NUMBER_MASK;

	return core_measure_fail_with(worker, &(struct core_measure_error){
				    .result = -EIO,
				    .stage = CORE_MEASURE_COMPLETION,
				    .wc_status = wc->status,
				    .wc_opcode = asked_for(worker, tag),
				    .vendor_error = wc->vendor_err,
				    .wr_id = wc->wr_id,
				    .message = tag == CORE_MEASURE_TAG_RECEIVE ? worker->received : number,
			    });
}

static int take_data(struct core_measure_worker *worker, uint32_t length, uint64_t slot)
{
	uint64_t number = worker->received++;

	if (length != worker->size)
		return core_measure_fail_message(worker, CORE_MEASURE_LENGTH, number, length);
	worker->freed_data++;
	worker->last_slot = slot;
	if (worker->verify && !worker->verify_later)
		return core_measure_verify(worker, slot, number);
	return 0;
}

/* Whether a message has immediate data or its replacement, and how much other data it has. */
static bool has_immediate(const struct core_measure_worker *worker, const struct ibv_wc *wc, uint64_t slot,
			  uint32_t *immediate, uint32_t *length)
{
	const unsigned char *message;
	uint32_t network;

	*length = wc->byte_len;
	if (!worker->in_payload) {
		*immediate = ntohl(wc->imm_data);
		return wc->wc_flags & IBV_WC_WITH_IMM;
	}
	if (wc->byte_len == core_measure_payload(worker->size))
		*length = 0;
	else if (worker->measure->spec.kind == CORE_MEASURE_LATENCY &&
		 wc->byte_len == worker->size + CORE_MEASURE_TRAILER)
		*length = worker->size;
	else
		return false;
	message = (const unsigned char *)(uintptr_t)(worker->receive_base + slot * worker->stride);
	memcpy(&network, message + wc->byte_len - sizeof(network), sizeof(network));
	*immediate = ntohl(network);
	return true;
}

static int take_control(struct core_measure_worker *worker, uint32_t immediate, uint32_t length,
			uint64_t slot)
{
	uint32_t number = immediate & CORE_MEASURE_IMMEDIATE_MASK;

	switch (immediate >> CORE_MEASURE_IMMEDIATE_BITS) {
	case CORE_MEASURE_CREDIT:
		worker->credit += number;
		return 0;
	case CORE_MEASURE_BEGIN:
		worker->begin_received = true;
		return 0;
	case CORE_MEASURE_LAST:
		worker->last_received = true;
		worker->peer_last |= number;
		if (worker->measure->spec.kind == CORE_MEASURE_LATENCY)
			return take_data(worker, length, slot);
		return 0;
	case CORE_MEASURE_DONE:
		worker->done_received = true;
		return 0;
	case CORE_MEASURE_COUNT:
		worker->count_received = true;
		worker->fillers = number;
		return 0;
	case CORE_MEASURE_HIGH:
		worker->peer_last = (uint64_t)number << CORE_MEASURE_IMMEDIATE_BITS;
		return 0;
	case CORE_MEASURE_FILLER:
		return 0;
	default:
		return core_measure_fail_message(worker, CORE_MEASURE_PROTOCOL, worker->received, immediate);
	}
}

int core_measure_take(struct core_measure_worker *worker, const struct ibv_wc *wc)
{
	uint64_t number = wc->wr_id & CORE_MEASURE_NUMBER_MASK;
	unsigned int tag = (unsigned int)(wc->wr_id >> CORE_MEASURE_TAG_SHIFT);
	uint32_t immediate, length;

	if (tag != CORE_MEASURE_TAG_DATA && tag != CORE_MEASURE_TAG_RECEIVE &&
	    tag != CORE_MEASURE_TAG_CONTROL)
		return core_measure_fail_with(worker, &(struct core_measure_error){.result = -EBUSY,
								  .stage = CORE_MEASURE_FOREIGN,
								  .wc_status = wc->status,
								  .wr_id = wc->wr_id});
	if (wc->status != IBV_WC_SUCCESS)
		return fail_completion(worker, wc, tag);
	if (tag == CORE_MEASURE_TAG_DATA) {
		worker->completed = number + 1;
		return 0;
	}
	if (tag == CORE_MEASURE_TAG_CONTROL) {
		worker->control_pending--;
		if (number > worker->completed)
			worker->completed = number;
		return 0;
	}
	worker->outstanding_receives--;
	worker->freed++;
	if (has_immediate(worker, wc, number, &immediate, &length))
		return take_control(worker, immediate, length, number);
	return take_data(worker, length, number);
}

/* Take the pending completion events. */
static int take_events(struct core_measure_worker *worker, struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	int result;

	do
		result = core_get_cq_event(worker->end.provider, channel, &cq);
	while (result == 0);
	return result == -EAGAIN ? 0 : core_measure_fail(worker, result, CORE_MEASURE_NOTIFY);
}

static int ask_for_events(struct core_measure_worker *worker)
{
	int result = core_req_notify_cq(worker->send_cq, 0);

	if (!result && worker->recv_cq != worker->send_cq)
		result = core_req_notify_cq(worker->recv_cq, 0);
	return result ? core_measure_fail(worker, result, CORE_MEASURE_NOTIFY) : 0;
}

int core_measure_sleep(struct core_measure_worker *worker)
{
	struct pollfd fds[] = {
		{.fd = worker->send_cq->channel->fd, .events = POLLIN},
		{.fd = worker->recv_cq->channel->fd, .events = POLLIN},
		{.fd = worker->measure->wake_fd, .events = POLLIN},
	};
	int result = ask_for_events(worker);

	/* A completion before the request raises no event (ibv_req_notify_cq(3)). */
	if (!result)
		result = core_measure_reap_all(worker);
	if (result)
		return result < 0 ? result : 0;
	if (poll(fds, 3, -1) < 0 && errno != EINTR)
		return core_measure_fail(worker, -errno, CORE_MEASURE_NOTIFY);
	result = take_events(worker, worker->send_cq->channel);
	if (!result && worker->recv_cq->channel != worker->send_cq->channel)
		result = take_events(worker, worker->recv_cq->channel);
	return result;
}
