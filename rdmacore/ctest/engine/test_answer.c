/*
 * On a wire an acknowledgement arrives before any answer that is sent after it. Here an answer is not reported
 * either while its sender is delayed before its completion. Otherwise another thread of its program would see the
 * answer to a request that has not completed yet.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "soft/objects/ah.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/objects/srq.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define LENGTH 16
#define LOOKS 20 /* a millisecond apart: an answer that is wrong takes a few microseconds */

/* The completion queues of the asking end, and its receives. */
enum queues { QUEUES_APART, QUEUES_ONE_CQ, QUEUES_SHARED_RECEIVES, QUEUES };

struct peer {
	struct wire *wire;
	struct side *side; /* the side with the memory that it uses */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq; /* or NULL */
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* of datagrams */
	const struct peer *to;
	enum ibv_wr_opcode opcode;
};

static void open_peer(struct peer *peer, struct wire *wire, struct side *side, enum ibv_qp_type type, enum queues queues)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type, .sq_sig_all = 1,
	};
	struct ibv_ah_attr path = {.is_global = 1, .port_num = 1, .grh.dgid = side->host->device->gid_table.gids[0]};

	*peer = (struct peer){.wire = wire, .side = side, .send_cq = sim_cq(side->host, 4)};
	peer->recv_cq = queues == QUEUES_ONE_CQ ? peer->send_cq : sim_cq(side->host, 4);
	if (queues == QUEUES_SHARED_RECEIVES)
		CHECK((peer->srq = soft_create_srq(side->host->pd, &shared)));
	attr.srq = peer->srq;
	attr.send_cq = peer->send_cq;
	attr.recv_cq = peer->recv_cq;
	peer->qp = soft_create_qp(side->host->pd, &attr);
	peer->ah = soft_create_ah(side->host->pd, &path);
	CHECK(peer->qp && peer->ah);
}

static void close_peer(struct peer *peer)
{
	CHECK(!soft_destroy_qp(peer->qp) && !soft_destroy_ah(peer->ah));
	CHECK(!peer->srq || !soft_destroy_srq(peer->srq));
	CHECK(peer->recv_cq == peer->send_cq || !soft_destroy_cq(peer->recv_cq));
	CHECK(!soft_destroy_cq(peer->send_cq));
}

static void receive(struct peer *peer)
{
	struct ibv_sge sge = {(uintptr_t)peer->side->memory + 1024, 1024, peer->side->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	if (peer->srq)
		CHECK(!soft_post_srq_recv(peer->srq, &wr, &bad));
	else
		CHECK(!soft_post_recv(peer->qp, &wr, &bad));
}

static void *post(void *argument)
{
	struct peer *peer = argument;
	const struct side *to = peer->to->side;
	struct ibv_sge sge = {(uintptr_t)peer->side->memory, LENGTH, peer->side->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = peer->opcode}, *bad;

	if (peer->qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = peer->ah;
		wr.wr.ud.remote_qpn = peer->to->qp->qp_num;
		wr.wr.ud.remote_qkey = SIM_QKEY;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)to->memory + 2048;
		wr.wr.rdma.rkey = to->mr->rkey;
	}
	CHECK(!soft_post_send(peer->qp, &wr, &bad));
	return NULL;
}

static void look_again_soon(void)
{
	const struct timespec millisecond = {.tv_nsec = 1000000};

	nanosleep(&millisecond, NULL);
}

/*
 * The question: a completion, or the last byte of a WRITE. The waiting thread reads it while it is written, as
 * programs do; ThreadSanitizer cannot know that this is intended.
 */
__attribute__((no_sanitize_thread)) static bool is_asked(const struct peer *peer, enum ibv_wr_opcode question)
{
	uint8_t *last = peer->side->memory + 2048 + LENGTH - 1;
	struct ibv_wc wc;

	if (question == IBV_WR_RDMA_WRITE)
		return __atomic_load_n(last, __ATOMIC_ACQUIRE) == 1;
	return ibv_poll_cq(peer->recv_cq, 1, &wc) == 1;
}

/* Another thread of the asking program: it takes the answer and looks for the completion at once. */
struct reader {
	struct peer *asker;
	_Atomic bool sees;
};

static void *read_answer(void *argument)
{
	struct reader *reader = argument;
	const struct peer *asker = reader->asker;
	struct ibv_wc wc;

	if (asker->send_cq != asker->recv_cq)
		while (!ibv_poll_cq(asker->recv_cq, 1, &wc))
			sched_yield();
	else
		while (soft_cq_looks_empty(soft_cq(asker->recv_cq)))
			sched_yield();
	atomic_store(&reader->sees, true);
	CHECK(ibv_poll_cq(asker->send_cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(wc.opcode == (asker->opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE));
	while (asker->send_cq == asker->recv_cq && !ibv_poll_cq(asker->recv_cq, 1, &wc))
		sched_yield();
	return NULL;
}

static void test(enum ibv_qp_type type, enum ibv_wr_opcode question, enum queues queues)
{
	struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 10, .retry = 3, .rnr_retry = 1, .rnr_timer = 12,
				.access = IBV_ACCESS_REMOTE_WRITE};
	struct peer asker, answerer;
	struct reader reader = {.asker = &asker};
	struct ibv_wc wc;
	pthread_t asking, answering, reading;
	struct wire wire;

	wire_open_local(&wire, type);
	open_peer(&asker, &wire, &wire.a, type, queues);
	open_peer(&answerer, &wire, &wire.b, type, QUEUES_APART);
	asker.to = &answerer;
	answerer.to = &asker;
	asker.opcode = question;
	answerer.opcode = IBV_WR_SEND;
	asker.side->memory[LENGTH - 1] = 1;
	answerer.side->memory[2048 + LENGTH - 1] = 0;
	if (type == IBV_QPT_UD) {
		sim_ready(asker.qp);
		sim_ready(answerer.qp);
	} else {
		sim_connect(asker.side->host, asker.qp, answerer.side->host, answerer.qp, &path);
	}
	receive(&asker);
	receive(&answerer);

	/* The sender is delayed before its completion; what it sends arrives. */
	bare_hold(&soft_cq(asker.send_cq)->lock);
	CHECK(!pthread_create(&asking, NULL, post, &asker));
	while (!is_asked(&answerer, question))
		look_again_soon();
	CHECK(!pthread_create(&answering, NULL, post, &answerer));
	CHECK(!pthread_create(&reading, NULL, read_answer, &reader));
	for (int look = 0; look < LOOKS; look++) {
		look_again_soon();
		CHECK(!atomic_load(&reader.sees));
	}
	bare_let_go(&soft_cq(asker.send_cq)->lock);
	CHECK(!pthread_join(reading, NULL) && !pthread_join(asking, NULL) && !pthread_join(answering, NULL));
	CHECK(ibv_poll_cq(answerer.send_cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	close_peer(&asker);
	close_peer(&answerer);
	wire_close(&wire);
}

int main(void)
{
	for (enum queues queues = QUEUES_APART; queues < QUEUES; queues++) {
		test(IBV_QPT_RC, IBV_WR_SEND, queues);
		test(IBV_QPT_RC, IBV_WR_RDMA_WRITE, queues);
		test(IBV_QPT_UC, IBV_WR_SEND, queues);
		test(IBV_QPT_UD, IBV_WR_SEND, queues);
	}
	return 0;
}
