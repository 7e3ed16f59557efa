/*
 * Random work on random topologies over the sim link, against the model: every byte, every completion, every
 * order and the final state.  Everything is made of one seed, so a failure repeats.
 *
 *   test_model [FIRST [COUNT]]   seeds FIRST to FIRST + COUNT - 1
 */
#include <time.h>

#include "../soft_fabric.h"
#include "check.h"
#include "model.h"

#define SEEDS 60 /* when nothing is said */
#define HOSTS 4
#define CONNECTIONS 3
#define MESSAGES 40 /* of each direction */
#define MILLION 1000000

struct tally {
	uint64_t seeds, messages, connections, failures;
	struct soft_sim_counters packets;
};

static uint64_t running; /* the seed */
static const char *program;

static void print_replay(void)
{
	if (running)
		fprintf(stderr, "replay: %s %llu 1\n", program, (unsigned long long)running);
}

static uint64_t below(struct soft_random *random, uint64_t limit)
{
	return soft_random_next(random) % limit;
}

/* A network that loses up to a tenth, doubles, reorders, corrupts and is cut for a while; or a healthy one. */
static bool add_faults(struct sim_net *net, struct soft_random *random, bool icrc, bool order)
{
	bool any = false;

	if (below(random, 4) == 0)
		return false;
	if (below(random, 2) && (any = true))
		sim_net_fault(net, SOFT_FAULT_LOSE, (uint32_t)below(random, MILLION / 10));
	if (order && below(random, 2) && (any = true))
		sim_net_fault(net, SOFT_FAULT_DUPLICATE, (uint32_t)below(random, MILLION / 10));
	if (order && below(random, 2) && (any = true))
		sim_net_fault(net, SOFT_FAULT_REORDER, (uint32_t)below(random, MILLION / 10));
	if (icrc && below(random, 2) && (any = true))
		sim_net_fault(net, SOFT_FAULT_CORRUPT, (uint32_t)below(random, MILLION / 20));
	return any;
}

/* Cut all ways, and mend them before anyone gives up. */
static void maybe_cut(struct sim_net *net, struct soft_random *random, int *rule, uint64_t *until)
{
	uint64_t time = net->fabric.clock.now(&net->fabric.clock);
	uint32_t done;

	if (*rule < 0 && below(random, 2000) == 0) {
		*rule = sim_net_fault(net, SOFT_FAULT_LOSE, MILLION);
		*until = time + below(random, SOFT_MILLISECOND);
	} else if (*rule >= 0 && time >= *until) {
		CHECK(!soft_fault_remove(&net->fabric.faults, *rule, &done));
		*rule = -1;
	}
}

static bool all_done(const struct model_connection *connections, uint32_t count)
{
	for (uint32_t index = 0; index < count; index++)
		if (!model_is_done(&connections[index]))
			return false;
	return true;
}

static void work(struct sim_net *net, struct model_connection *connections, uint32_t count,
		 struct soft_random *random, bool faulty)
{
	uint64_t until = 0;
	uint32_t idle = 0;
	int rule = -1;

	while (!all_done(connections, count)) {
		if (faulty)
			maybe_cut(net, random, &rule, &until);
		if (model_step(&connections[below(random, count)])) {
			idle = 0;
		} else if (soft_timers_advance(&net->fabric.timers, UINT64_MAX)) {
			idle = 0;
		} else {
			/* By chance nobody was asked who had something to do. */
			CHECK(++idle < 10000);
		}
	}
	/* What is still on its way may no longer do anything. */
	sim_net_run(net, UINT64_MAX);
}

static void run_seed(uint64_t seed, const uint8_t *pool, struct tally *tally)
{
	static struct model_connection connections[CONNECTIONS];
	struct soft_random random = {seed};
	struct soft_sim_options options = {.seed = soft_random_next(&random), .datagrams = 2048};
	uint32_t hosts = 1 + (uint32_t)below(&random, HOSTS);
	uint32_t count = 1 + (uint32_t)below(&random, CONNECTIONS);
	enum ibv_qp_type type = below(&random, 8) ? IBV_QPT_RC : IBV_QPT_UC;
	struct soft_sim_counters packets;
	struct sim_net net;
	bool faulty;

	running = seed;
	options.delay = below(&random, 20) * SOFT_MICROSECOND;
	options.jitter = below(&random, 5) * SOFT_MICROSECOND;
	options.acknowledge_delay = below(&random, 3) * 2 * SOFT_MICROSECOND;
	options.icrc = below(&random, 4) == 0;
	sim_net_open(&net, hosts, &options);
	faulty = add_faults(&net, &random, options.icrc, type == IBV_QPT_RC);
	memset(connections, 0, sizeof(connections));
	for (uint32_t index = 0; index < count; index++) {
		connections[index].exact = !faulty;
		connections[index].failures = &tally->failures;
		model_open(&connections[index], type, &net.hosts[below(&random, hosts)],
			   &net.hosts[below(&random, hosts)], pool, &random, MESSAGES);
	}
	work(&net, connections, count, &random, faulty);
	for (uint32_t index = 0; index < count; index++) {
		tally->messages += connections[index].flows[0].posted + connections[index].flows[1].posted;
		model_close(&connections[index]);
	}
	packets = soft_sim_count(net.sim);
	CHECK(faulty || !packets.lost);
	sim_net_close(&net);
	tally->seeds++;
	tally->connections += count;
	tally->packets.sent += packets.sent;
	tally->packets.lost += packets.lost;
	tally->packets.duplicated += packets.duplicated;
	tally->packets.reordered += packets.reordered;
	tally->packets.corrupted += packets.corrupted;
	tally->packets.overflowed += packets.overflowed;
	running = 0;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : SEEDS;
	struct soft_random random = {1};
	struct tally tally = {0};
	uint8_t *pool = malloc(MODEL_AREA);

	CHECK(pool && first);
	program = argv[0];
	CHECK(!atexit(print_replay));
	for (uint32_t byte = 0; byte < MODEL_AREA; byte++)
		pool[byte] = (uint8_t)soft_random_next(&random);
	for (uint64_t seed = first; seed < first + count; seed++)
		run_seed(seed, pool, &tally);
	free(pool);
	printf("%llu seeds, %llu messages, %llu packets (%llu lost, %llu doubled, %llu reordered, %llu "
	       "corrupted, %llu overflowed); %llu of %llu connections gave up\n",
	       (unsigned long long)tally.seeds, (unsigned long long)tally.messages,
	       (unsigned long long)tally.packets.sent, (unsigned long long)tally.packets.lost,
	       (unsigned long long)tally.packets.duplicated,
	       (unsigned long long)tally.packets.reordered,
	       (unsigned long long)tally.packets.corrupted,
	       (unsigned long long)tally.packets.overflowed, (unsigned long long)tally.failures,
	       (unsigned long long)tally.connections);
	/* Giving up is right after eight losses in a row, and no more than a rare accident. */
	CHECK(tally.failures * 100 <= tally.connections);
	return 0;
}
