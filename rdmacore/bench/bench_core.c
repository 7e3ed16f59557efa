/*
 * The native rows of `make bench`: what the soft provider's local link takes beside what the machine
 * itself takes for the same, in the same run.  Each row is the median of several rounds.
 *
 * Prints one line a row: name, value, unit.  The rows of guests stand beside these in internal/bench.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "../ctest/check.h"
#include "../ctest/pair.h"

#define ROUNDS 9
#define EXCHANGES 50000
#define LARGE (1 << 20)
#define COPIES 200

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double difference = *(const double *)a - *(const double *)b;

	return (difference > 0) - (difference < 0);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), ascending);
	return values[ROUNDS / 2];
}

static void report(const char *name, double *values, const char *unit)
{
	printf("%s %.4f %s\n", name, median(values), unit);
	fflush(stdout);
}

/* --- a cache line back and forth, the floor of everything else -------------------------------- */

static struct {
	_Atomic uint64_t ball __attribute__((aligned(64)));
} court;

static void *return_ball(void *argument)
{
	(void)argument;
	for (uint64_t hit = 1; hit < 2 * EXCHANGES; hit += 2) {
		while (atomic_load_explicit(&court.ball, memory_order_acquire) != hit)
			;
		atomic_store_explicit(&court.ball, hit + 1, memory_order_release);
	}
	return NULL;
}

static void bench_cache_line(void)
{
	double values[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		pthread_t other;
		double begin;

		atomic_store(&court.ball, 0);
		CHECK(!pthread_create(&other, NULL, return_ball, NULL));
		begin = now();
		for (uint64_t hit = 0; hit < 2 * EXCHANGES; hit += 2) {
			atomic_store_explicit(&court.ball, hit + 1, memory_order_release);
			while (atomic_load_explicit(&court.ball, memory_order_acquire) != hit + 2)
				;
		}
		values[round] = (now() - begin) / (2 * EXCHANGES) / 1e3;
		pthread_join(other, NULL);
	}
	report("cache-line-one-way", values, "us");
}

/* --- 64-byte SEND ping-pong, a thread at each end ---------------------------------------------- */

/* The same steps, in the same order, as the guest guests/pingpong, so that the two can be compared. */

#define RECEIVES 16

static void wait_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	CHECK(wc.status == IBV_WC_SUCCESS);
}

static void *echo(void *argument)
{
	struct end *end = argument;

	for (int exchange = 0; exchange < EXCHANGES; exchange++) {
		wait_completion(end->id->recv_cq);
		CHECK(!post_send(end, IBV_WR_SEND, 0, 64, 64, NULL, 0));
		wait_completion(end->id->send_cq);
		CHECK(!post_recv(end, 0, 0, 64));
	}
	return NULL;
}

/* The median time of one way, in microseconds. */
static double exchange_sends(struct end *end)
{
	static double samples[EXCHANGES];

	for (int exchange = 0; exchange < EXCHANGES; exchange++) {
		double begin = now();

		CHECK(!post_send(end, IBV_WR_SEND, 0, 64, 64, NULL, 0));
		wait_completion(end->id->recv_cq);
		samples[exchange] = now() - begin;
		wait_completion(end->id->send_cq);
		CHECK(!post_recv(end, 0, 0, 64));
	}
	qsort(samples, EXCHANGES, sizeof(*samples), ascending);
	return samples[EXCHANGES / 2] / 2 / 1e3;
}

static void bench_send(struct core_provider *provider)
{
	struct pair_options options = {.memory = 4096, .depth = RECEIVES, .rnr_retry = 7, .retry = 7};
	double values[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		struct pair pair;
		pthread_t other;

		pair_connect(&pair, provider, 7002, options);
		for (int receive = 0; receive < RECEIVES; receive++) {
			CHECK(!post_recv(&pair.server, 0, 0, 64));
			CHECK(!post_recv(&pair.client, 0, 0, 64));
		}
		CHECK(!pthread_create(&other, NULL, echo, &pair.server));
		values[round] = exchange_sends(&pair.client);
		pthread_join(other, NULL);
		pair_close(&pair);
	}
	report("send-64B-one-way", values, "us");
}

/* --- 1 MiB RDMA WRITE beside memcpy of the same buffers ---------------------------------------- */

static void bench_write(struct core_provider *provider)
{
	struct pair_options options = {.memory = LARGE, .depth = 16, .rnr_retry = 7, .retry = 7};
	double writes[ROUNDS], copies[ROUNDS];
	struct pair pair;

	pair_connect(&pair, provider, 7002, options);
	memset(pair.client.memory, 1, LARGE);
	memset(pair.server.memory, 2, LARGE);
	for (int round = 0; round < ROUNDS; round++) {
		double begin = now();

		for (int copy = 0; copy < COPIES; copy++) {
			memcpy(pair.server.memory, pair.client.memory, LARGE);
			__asm__ volatile("" : : "r"(pair.server.memory) : "memory");
		}
		copies[round] = (double)LARGE * COPIES / (now() - begin);
		begin = now();
		for (int copy = 0; copy < COPIES; copy++) {
			CHECK(!post_send(&pair.client, IBV_WR_RDMA_WRITE, 0, 0, LARGE, &pair.server, 0));
			wait_completion(pair.client.id->send_cq);
		}
		writes[round] = (double)LARGE * COPIES / (now() - begin);
	}
	report("memcpy-1MiB", copies, "GB/s");
	report("write-1MiB", writes, "GB/s");
	pair_close(&pair);
}

int main(void)
{
	struct core_provider *provider = open_provider();

	bench_cache_line();
	bench_send(provider);
	bench_write(provider);
	close_provider(provider);
	return 0;
}
