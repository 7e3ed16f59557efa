/* Receives and control messages. */
#include "measure/worker.h"

#include <arpa/inet.h>
#include <string.h>

#include "core/call.h"
#include "measure/completion.h"
#include "measure/wire.h"

/* --- receives ----------------------------------------------------------------------------------------- */

static uint32_t receive_length(const struct core_measure_worker *worker)
{
	uint32_t last = worker->size + CORE_MEASURE_TRAILER;

	if (!worker->in_payload)
		return worker->size;
	return last > CORE_MEASURE_PAYLOAD_MAX ? last : CORE_MEASURE_PAYLOAD_MAX;
}

/* Post at most receive_post_list receives. */
static int post_receives(struct core_measure_worker *worker, uint32_t count)
{
	uint32_t length = receive_length(worker);
	struct ibv_recv_wr *bad;
	int result;

	for (uint32_t index = 0; index < count; index++) {
		uint64_t slot = worker->next_slot++ % worker->receive_slots;

		worker->recv_sges[index] = (struct ibv_sge){
			.addr = worker->receive_base + slot * worker->stride,
			.length = length,
			.lkey = worker->end.lkey,
		};
		worker->recvs[index] = (struct ibv_recv_wr){
			.wr_id = core_measure_wr_id(CORE_MEASURE_TAG_RECEIVE, slot),
			.sg_list = &worker->recv_sges[index],
			.num_sge = length ? 1 : 0,
			.next = index + 1 < count ? &worker->recvs[index + 1] : NULL,
		};
	}
	result = core_verbs_result(ibv_post_recv(worker->qp, worker->recvs, &bad));
	if (result)
		return core_measure_fail(worker, result, CORE_MEASURE_POST_RECV);
	worker->outstanding_receives += count;
	return 0;
}

static int post_all_receives(struct core_measure_worker *worker, uint32_t count)
{
	while (count) {
		uint32_t list = count < worker->receive_post_list ? count : worker->receive_post_list;
		int result = post_receives(worker, list);

		if (result)
			return result;
		count -= list;
	}
	return 0;
}

int core_measure_first_receives(struct core_measure_worker *worker)
{
	if (!worker->controls)
		return 0;
	if (worker->operation != IBV_WR_SEND)
		return post_all_receives(worker, core_measure_control_receives(worker));
	return post_all_receives(worker, worker->receive_depth + CORE_MEASURE_CONTROL_RECEIVES);
}

/* --- control messages --------------------------------------------------------------------------------- */

static int send_control(struct core_measure_worker *worker, enum core_measure_control control,
			uint64_t number)
{
	uint32_t network = htonl(core_measure_immediate(control, number));
	unsigned char payload[CORE_MEASURE_PAYLOAD_MAX] = {0};
	struct ibv_sge sge = {
		.addr = (uintptr_t)payload,
		.length = core_measure_payload(worker->size),
	};
	struct ibv_send_wr wr = {
		.wr_id = core_measure_wr_id(CORE_MEASURE_TAG_CONTROL, worker->posted),
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = network,
	};
	unsigned int spins = 0;
	int result;

	if (worker->in_payload) {
		memcpy(payload + sge.length - sizeof(network), &network, sizeof(network));
		wr.opcode = IBV_WR_SEND;
		wr.send_flags |= IBV_SEND_INLINE;
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	/* The peer always has receives for these, so the wait ends. */
	while (worker->control_pending == CORE_MEASURE_CONTROL_SENDS) {
		result = core_measure_reap_all(worker);
		if (result == 0)
			result = core_measure_idle(worker, &spins);
		if (result < 0)
			return result;
	}
	result = core_measure_submit(worker, &wr);
	if (result)
		return core_measure_fail(worker, result, CORE_MEASURE_POST_SEND);
	worker->control_pending++;
	worker->unsignaled = 0; /* its completion covers all earlier requests */
	return 0;
}

int core_measure_grant(struct core_measure_worker *worker, uint32_t count)
{
	return send_control(worker, CORE_MEASURE_CREDIT, count);
}

int core_measure_replenish(struct core_measure_worker *worker)
{
	uint32_t count;
	int result;

	/* Control messages use a small reserve, which is refilled at once. */
	if (!worker->freed ||
	    (worker->freed < worker->receive_post_list && worker->freed == worker->freed_data))
		return 0;
	if (worker->operation != IBV_WR_SEND || (worker->last_received && worker->done_received))
		return 0;
	worker->ungranted += worker->freed_data;
	result = post_all_receives(worker, worker->freed);
	worker->freed = worker->freed_data = 0;
	if (result || !worker->grant_every || worker->ungranted < worker->grant_every ||
	    worker->last_received)
		return result;
	count = worker->ungranted;
	worker->ungranted = 0;
	return core_measure_grant(worker, count);
}

int core_measure_send_last(struct core_measure_worker *worker)
{
	int result = 0;

	worker->last_sent = true;
	if (worker->operation != IBV_WR_SEND)
		result = send_control(worker, CORE_MEASURE_HIGH,
				      worker->posted >> CORE_MEASURE_IMMEDIATE_BITS);
	return result ? result : send_control(worker, CORE_MEASURE_LAST, worker->posted);
}

/* Take completions until *flag is set. */
static int await(struct core_measure_worker *worker, const bool *flag)
{
	unsigned int spins = 0;

	while (!*flag) {
		int result = core_measure_reap_all(worker);

		if (result > 0)
			spins = 0;
		else if (result == 0)
			result = core_measure_idle(worker, &spins);
		if (result >= 0)
			result = core_measure_replenish(worker);
		if (result < 0)
			return result;
	}
	return 0;
}

/* Until nothing of this end is in flight and, for SEND, no receive is left. */
static int drain(struct core_measure_worker *worker, bool receives)
{
	unsigned int spins = 0;

	while (worker->control_pending || worker->completed != worker->posted ||
	       (receives && worker->outstanding_receives)) {
		int result = core_measure_reap_all(worker);

		if (result > 0)
			spins = 0;
		else if (result == 0)
			result = core_measure_idle(worker, &spins);
		if (result < 0)
			return result;
	}
	return 0;
}

int core_measure_begin(struct core_measure_worker *worker)
{
	int result;

	if (worker->end.role == CORE_MEASURE_PASSIVE)
		return await(worker, &worker->begin_received);
	result = send_control(worker, CORE_MEASURE_BEGIN, 0);
	return result ? result : drain(worker, false);
}

int core_measure_confirm(struct core_measure_worker *worker)
{
	bool two_sided = worker->operation == IBV_WR_SEND;
	int result = 0;

	if (!worker->last_sent && (two_sided || worker->transmits))
		result = core_measure_send_last(worker);
	if (!result && worker->receives)
		result = await(worker, &worker->last_received);
	if (result || !two_sided)
		return result ? result : drain(worker, true);
	/* An end that only sends gets a LAST, too, so that both ends do the same. */
	result = await(worker, &worker->last_received);
	if (!result)
		result = send_control(worker, CORE_MEASURE_DONE, 0);
	if (!result)
		result = await(worker, &worker->done_received);
	if (!result)
		result = send_control(worker, CORE_MEASURE_COUNT,
				      worker->outstanding_receives - !worker->count_received);
	if (!result)
		result = await(worker, &worker->count_received);
	while (!result && worker->fillers) {
		worker->fillers--;
		result = send_control(worker, CORE_MEASURE_FILLER, 0);
	}
	return result ? result : drain(worker, true);
}
