/* Data requests: created once, and posted again and again with changes. */
#include "measure/worker.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "core/call.h"
#include "measure/wire.h"

static void send_init(struct core_measure_worker *worker, uint32_t index)
{
	struct ibv_send_wr *wr = &worker->sends[index];
	struct ibv_sge *sge = &worker->send_sges[index];
	/* Fetched data is written to the receiving half. */
	bool fetch = core_measure_fetches(worker);

	*sge = (struct ibv_sge){
		.addr = fetch ? worker->receive_base : worker->send_base,
		.length = worker->size,
		.lkey = worker->end.lkey,
	};
	*wr = (struct ibv_send_wr){
		.next = wr + 1,
		.sg_list = sge,
		.num_sge = worker->size ? 1 : 0,
		.opcode = worker->operation,
		.send_flags = worker->send_flags,
	};
	if (core_measure_atomic(worker->operation)) {
		wr->wr.atomic.remote_addr = worker->remote_base;
		wr->wr.atomic.compare_add = 1; /* compared with memory, which rarely contains it, or added */
		wr->wr.atomic.swap = 1;
		wr->wr.atomic.rkey = worker->end.remote_rkey;
	} else if (worker->operation != IBV_WR_SEND) {
		wr->wr.rdma.remote_addr = worker->remote_base;
		wr->wr.rdma.rkey = worker->end.remote_rkey;
	}
}

int core_measure_requests_init(struct core_measure_worker *worker)
{
	worker->sends = calloc(worker->post_list, sizeof(*worker->sends));
	worker->send_sges = calloc(worker->post_list, sizeof(*worker->send_sges));
	worker->recvs = calloc(worker->receive_post_list, sizeof(*worker->recvs));
	worker->recv_sges = calloc(worker->receive_post_list, sizeof(*worker->recv_sges));
	if (!worker->sends || !worker->send_sges || !worker->recvs || !worker->recv_sges)
		return -ENOMEM;
	for (uint32_t index = 0; index < worker->post_list; index++)
		send_init(worker, index);
	return 0;
}

/* The addresses of message number in this end's memory and the peer's. */
static inline void aim(struct core_measure_worker *worker, struct ibv_send_wr *wr, uint64_t number)
{
	uint64_t offset = number % worker->send_slots * worker->stride;

	if (core_measure_fetches(worker)) {
		wr->sg_list->addr = worker->receive_base + offset;
		if (core_measure_atomic(worker->operation))
			wr->wr.atomic.remote_addr = worker->remote_base + offset;
		else
			wr->wr.rdma.remote_addr = worker->remote_base + offset;
		return;
	}
	wr->sg_list->addr = worker->send_base + offset;
	if (worker->operation == IBV_WR_RDMA_WRITE)
		wr->wr.rdma.remote_addr = worker->remote_base + offset;
	if (worker->verify && !worker->verify_later)
		core_measure_fill((void *)(uintptr_t)wr->sg_list->addr, worker->size, number);
}

int core_measure_submit(struct core_measure_worker *worker, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (worker->end.builder)
		return core_build_linked(worker->end.builder, wr);
	return core_verbs_result(ibv_post_send(worker->qp, wr, &bad));
}

static int submit(struct core_measure_worker *worker, struct ibv_send_wr *last)
{
	struct ibv_send_wr *next = last->next;
	int result;

	last->next = NULL;
	result = core_measure_submit(worker, worker->sends);
	last->next = next;
	return result ? core_measure_fail(worker, result, CORE_MEASURE_POST_SEND) : 0;
}

int core_measure_post(struct core_measure_worker *worker, uint32_t count, bool signal)
{
	uint64_t number = worker->posted;
	struct ibv_send_wr *wr = worker->sends;

	for (uint32_t left = count;; wr++, number++) {
		bool asks = ++worker->unsignaled == worker->signal_every;

		left--;
		if (asks || (signal && !left)) {
			worker->unsignaled = 0;
			wr->send_flags = worker->send_flags | IBV_SEND_SIGNALED;
		} else {
			wr->send_flags = worker->send_flags;
		}
		wr->wr_id = core_measure_wr_id(CORE_MEASURE_TAG_DATA, number);
		if (worker->send_slots > 1 || worker->verify)
			aim(worker, wr, number);
		if (!left)
			break;
	}
	worker->posted += count;
	worker->credit -= count;
	return submit(worker, wr);
}

/* The next SEND, with four bytes more. These do not reach the following message, which has its own slot. */
static int post_longer(struct core_measure_worker *worker, uint32_t network)
{
	uint64_t offset = worker->posted % worker->send_slots * worker->stride;
	char *message = (char *)(uintptr_t)(worker->send_base + offset);
	unsigned int send_flags = worker->send_flags;
	struct ibv_send_wr *wr = worker->sends;
	int num_sge = wr->num_sge, result;

	memcpy(message + worker->size, &network, sizeof(network));
	wr->sg_list->length = worker->size + CORE_MEASURE_TRAILER;
	wr->num_sge = 1;
	/* With four bytes more it may not fit inline. */
	worker->send_flags &= ~(unsigned int)IBV_SEND_INLINE;
	result = core_measure_post(worker, 1, true);
	worker->send_flags = send_flags;
	wr->sg_list->length = worker->size;
	wr->num_sge = num_sge;
	return result;
}

int core_measure_post_last(struct core_measure_worker *worker)
{
	uint32_t network = htonl(core_measure_immediate(CORE_MEASURE_LAST, 0));
	struct ibv_send_wr *wr = worker->sends;
	int result;

	worker->last_sent = true;
	if (worker->in_payload)
		return post_longer(worker, network);
	wr->opcode = IBV_WR_SEND_WITH_IMM;
	wr->imm_data = network;
	result = core_measure_post(worker, 1, true);
	wr->opcode = worker->operation;
	return result;
}
