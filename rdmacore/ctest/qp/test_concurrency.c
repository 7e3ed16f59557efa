/* Traffic from several threads while keys, queue pairs and connections go away under it. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "ctest/support/check.h"
#include "ctest/support/pair.h"

#define PORT 7021
#define MESSAGES 20000
#define PAGE 4096
#define WINDOW 32
/* Slots of both directions: a message may wait for its receiver, so each has memory of its own. */
#define RECEIVE_SLOT(number) (1024 + (size_t)(number) % WINDOW * 64)
#define SEND_SLOT(number) (PAGE + (size_t)(number) % WINDOW * 64)

static const struct pair_options usual = {.memory = 2 * PAGE, .depth = 64, .rnr_retry = 7, .retry = 7,
					  .resources = 1};

struct traffic {
	struct end *end;
	const struct end *peer;
	_Atomic uint32_t rkey; /* of the region to write to */
	char *target;
	_Atomic int stop;
	uint64_t succeeded;
};

/* --- both ends send to each other at full speed ------------------------------------------------- */

struct exchange {
	struct end *end;
	struct exchange *peer;
	_Atomic int ready; /* receives posted so far: what the peer may send without an RNR wait */
};

static void receive_ready(struct exchange *exchange)
{
	int number = atomic_load(&exchange->ready);

	CHECK(!post_recv(exchange->end, (uint64_t)number, RECEIVE_SLOT(number), 64));
	atomic_store(&exchange->ready, number + 1);
}

static void *send_and_receive(void *argument)
{
	struct exchange *exchange = argument;
	struct end *end = exchange->end;
	struct ibv_wc wc;
	int sent = 0, send_done = 0, received = 0;

	while (send_done < MESSAGES || received < MESSAGES) {
		if (sent < MESSAGES && sent - send_done < WINDOW &&
		    sent < atomic_load(&exchange->peer->ready)) {
			memcpy(end->memory + SEND_SLOT(sent), &sent, sizeof(sent));
			CHECK(!post_send(end, IBV_WR_SEND, (uint64_t)sent, SEND_SLOT(sent), 64, NULL, 0));
			sent++;
		}
		while (ibv_poll_cq(end->id->send_cq, 1, &wc) == 1) {
			CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)send_done);
			send_done++;
		}
		while (ibv_poll_cq(end->id->recv_cq, 1, &wc) == 1) {
			int number;

			CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == 64);
			memcpy(&number, end->memory + RECEIVE_SLOT(wc.wr_id), sizeof(number));
			CHECK(wc.wr_id == (uint64_t)received && number == received);
			received++;
			receive_ready(exchange);
		}
	}
	return NULL;
}

static void test_both_directions(struct core_provider *provider)
{
	struct exchange server = {0}, client = {0};
	struct pair pair;
	pthread_t other;

	pair_connect(&pair, provider, PORT, usual);
	server = (struct exchange){.end = &pair.server, .peer = &client};
	client = (struct exchange){.end = &pair.client, .peer = &server};
	for (int receive = 0; receive < WINDOW; receive++) {
		receive_ready(&server);
		receive_ready(&client);
	}
	CHECK(!pthread_create(&other, NULL, send_and_receive, &server));
	send_and_receive(&client);
	CHECK(!pthread_join(other, NULL));
	pair_close(&pair);
}

/* --- a region is deregistered and its memory unmapped while the peer writes to it ---------------- */

static void *write_until_refused(void *argument)
{
	struct traffic *traffic = argument;

	for (;;) {
		struct ibv_sge sge = {(uintptr_t)traffic->end->memory, 64, traffic->end->mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
		struct ibv_send_wr *bad;
		struct ibv_wc wc;

		wr.wr.rdma.remote_addr = (uintptr_t)traffic->target;
		wr.wr.rdma.rkey = atomic_load(&traffic->rkey);
		CHECK(!ibv_post_send(traffic->end->id->qp, &wr, &bad));
		wc = poll_one(traffic->end->id->send_cq);
		if (wc.status != IBV_WC_SUCCESS) {
			CHECK(wc.status == IBV_WC_REM_ACCESS_ERR);
			return NULL;
		}
		traffic->succeeded++;
	}
}

static void test_deregister_under_traffic(struct core_provider *provider)
{
	for (int round = 0; round < 25; round++) {
		struct traffic traffic = {0};
		struct ibv_mr *mr;
		struct pair pair;
		pthread_t writer;

		pair_connect(&pair, provider, PORT, usual);
		traffic.target = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(traffic.target != MAP_FAILED);
		mr = provider->ibv_reg_mr(pair.server.id->pd, traffic.target, PAGE,
					  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		CHECK(mr);
		traffic.end = &pair.client;
		atomic_store(&traffic.rkey, mr->rkey);
		CHECK(!pthread_create(&writer, NULL, write_until_refused, &traffic));
		for (volatile int spin = 0; spin < round * 2000; spin++)
			;
		CHECK(!provider->ibv_dereg_mr(mr));
		CHECK(!munmap(traffic.target, PAGE)); /* a write that is still under way would now crash */
		CHECK(!pthread_join(writer, NULL));
		pair_destroy(&pair);
	}
}

/* --- the peer's queue pair is destroyed, or disconnects, while it is written to ------------------ */

static void *write_until_stopped(void *argument)
{
	struct traffic *traffic = argument;
	struct ibv_wc wc;
	int outstanding = 0;

	while (!atomic_load(&traffic->stop)) {
		if (outstanding < 32) {
			CHECK(!post_send(traffic->end, IBV_WR_RDMA_WRITE, 0, 0, 64, traffic->peer, 0));
			outstanding++;
		}
		outstanding -= ibv_poll_cq(traffic->end->id->send_cq, 1, &wc);
	}
	return NULL;
}

static void test_peer_goes_under_traffic(struct core_provider *provider)
{
	for (int round = 0; round < 25; round++) {
		struct traffic traffic = {0};
		struct end copy;
		struct pair pair;
		pthread_t writer;

		pair_connect(&pair, provider, PORT, usual);
		copy = pair.server;
		traffic.end = &pair.client;
		traffic.peer = &copy;
		CHECK(!pthread_create(&writer, NULL, write_until_stopped, &traffic));
		for (volatile int spin = 0; spin < round * 2000; spin++)
			;
		if (round % 2)
			CHECK(!provider->rdma_disconnect(pair.server.id));
		provider->rdma_destroy_qp(pair.server.id);
		atomic_store(&traffic.stop, 1);
		CHECK(!pthread_join(writer, NULL));
		pair_destroy(&pair);
	}
}

/* --- many connections come and go from several threads ------------------------------------------- */

static void *connect_often(void *argument)
{
	struct traffic *traffic = argument;
	uint16_t port = (uint16_t)traffic->rkey;

	for (int connection = 0; connection < 100; connection++) {
		struct pair pair;

		pair_connect(&pair, traffic->end->provider, port, usual);
		CHECK(!post_recv(&pair.server, 1, 0, 64));
		CHECK(!post_send(&pair.client, IBV_WR_SEND, 2, 0, 64, NULL, 0));
		CHECK(poll_one(pair.server.id->recv_cq).status == IBV_WC_SUCCESS);
		pair_close(&pair);
	}
	return NULL;
}

static void test_connections_from_threads(struct core_provider *provider)
{
	struct end any = {.provider = provider};
	struct traffic traffic[3];
	pthread_t threads[3];

	for (int thread = 0; thread < 3; thread++) {
		traffic[thread] = (struct traffic){.end = &any, .rkey = PORT + 1 + (unsigned int)thread};
		CHECK(!pthread_create(&threads[thread], NULL, connect_often, &traffic[thread]));
	}
	for (int thread = 0; thread < 3; thread++)
		CHECK(!pthread_join(threads[thread], NULL));
}

int main(void)
{
	struct core_provider *provider = open_provider();

	test_both_directions(provider);
	test_deregister_under_traffic(provider);
	test_peer_goes_under_traffic(provider);
	test_connections_from_threads(provider);
	close_provider(provider);
	return 0;
}
