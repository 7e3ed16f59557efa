/*
 * One way between two threads: what the soft provider's local link takes in addition to a cache line, in the same
 * run. Each row is the median of several rounds, and each round the median of its exchanges.
 *
 * Prints one line for each row: name, value, unit. internal/bench has the rows of guests next to these.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "bench.h"
#include "ctest/support/check.h"
#include "ctest/support/pair.h"

#define ROUNDS 15
#define EXCHANGES 10000
#define HITS 100 /* a short sample of cache lines, so that a thread that loses its processor spoils few samples */

/* --- a cache line back and forth, the minimum of all exchanges ------------------------------------ */

static struct {
	_Atomic uint64_t value __attribute__((aligned(64)));
} shared_line;

static void *answer_stores(void *argument)
{
	(void)argument;
	for (uint64_t hit = 1; hit < 2 * EXCHANGES; hit += 2) {
		while (atomic_load_explicit(&shared_line.value, memory_order_acquire) != hit)
			;
		atomic_store_explicit(&shared_line.value, hit + 1, memory_order_release);
	}
	return NULL;
}

static double round_of_cache_lines(void)
{
	static double samples[2 * EXCHANGES / HITS];
	pthread_t other;

	atomic_store(&shared_line.value, 0);
	CHECK(!pthread_create(&other, NULL, answer_stores, NULL));
	for (uint64_t hit = 0; hit < 2 * EXCHANGES;) {
		double *sample = &samples[hit / HITS], begin = now();

		for (uint64_t end = hit + HITS; hit < end; hit += 2) {
			atomic_store_explicit(&shared_line.value, hit + 1, memory_order_release);
			while (atomic_load_explicit(&shared_line.value, memory_order_acquire) != hit + 2)
				;
		}
		*sample = (now() - begin) / HITS;
	}
	pthread_join(other, NULL);
	return median(samples, 2 * EXCHANGES / HITS) / 1e3;
}

/* --- 64-byte SEND ping-pong, a thread at each end ---------------------------------------------- */

/* The same steps in the same order as the guest guests/pingpong, so that the two can be compared. */

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
	return median(samples, EXCHANGES) / 2 / 1e3;
}

static double round_of_sends(struct core_provider *provider)
{
	struct pair_options options = {.memory = 4096, .depth = RECEIVES, .rnr_retry = 7, .retry = 7};
	struct pair pair;
	pthread_t other;
	double one_way;

	pair_connect(&pair, provider, 7002, options);
	for (int receive = 0; receive < RECEIVES; receive++) {
		CHECK(!post_recv(&pair.server, 0, 0, 64));
		CHECK(!post_recv(&pair.client, 0, 0, 64));
	}
	CHECK(!pthread_create(&other, NULL, echo, &pair.server));
	one_way = exchange_sends(&pair.client);
	pthread_join(other, NULL);
	pair_close(&pair);
	return one_way;
}

/* --- 64-byte RDMA WRITE ping-pong: each end polls its memory, not completions --------------------- */

/* The peer writes the 64 bytes at offset 0; those at OWN are sent; the last word counts. */
#define OWN 64
#define WORD (64 / sizeof(uint64_t) - 1)

static void write_word(struct end *end, const struct end *peer, uint64_t word)
{
	((uint64_t *)(void *)(end->memory + OWN))[WORD] = word;
	CHECK(!post_send(end, IBV_WR_RDMA_WRITE, 0, OWN, 64, peer, 0));
}

/*
 * A processor that waits in a tight loop has many loads of the line in flight. It restarts when it loses the line,
 * which delays the writer. Manuals recommend the pause instruction for such loops.
 */
static inline void bench_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static void wait_word(const struct end *end, uint64_t word)
{
	const volatile uint64_t *place = &((uint64_t *)(void *)end->memory)[WORD];

	while (*place != word)
		bench_pause();
}

static void *write_back(void *argument)
{
	struct pair *pair = argument;

	for (uint64_t exchange = 1; exchange <= EXCHANGES; exchange++) {
		wait_word(&pair->server, exchange);
		write_word(&pair->server, &pair->client, exchange);
		wait_completion(pair->server.id->send_cq);
	}
	return NULL;
}

static double exchange_writes(struct pair *pair)
{
	static double samples[EXCHANGES];

	for (uint64_t exchange = 1; exchange <= EXCHANGES; exchange++) {
		double begin = now();

		write_word(&pair->client, &pair->server, exchange);
		wait_word(&pair->client, exchange);
		samples[exchange - 1] = now() - begin;
		wait_completion(pair->client.id->send_cq);
	}
	return median(samples, EXCHANGES) / 2 / 1e3;
}

static double round_of_writes(struct core_provider *provider)
{
	struct pair_options options = {.memory = 4096, .depth = RECEIVES, .rnr_retry = 7, .retry = 7};
	struct pair pair;
	pthread_t other;
	double one_way;

	pair_connect(&pair, provider, 7002, options);
	CHECK(!pthread_create(&other, NULL, write_back, &pair));
	one_way = exchange_writes(&pair);
	pthread_join(other, NULL);
	pair_close(&pair);
	return one_way;
}

int main(void)
{
	struct core_provider *provider = open_provider();
	double lines[ROUNDS], sends[ROUNDS], writes[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		lines[round] = round_of_cache_lines();
		sends[round] = round_of_sends(provider);
		writes[round] = round_of_writes(provider);
	}
	report("cache-line-one-way", median(lines, ROUNDS), "us");
	report("send-64B-one-way", median(sends, ROUNDS), "us");
	report("write-64B-one-way", median(writes, ROUNDS), "us");
	close_provider(provider);
	return 0;
}
