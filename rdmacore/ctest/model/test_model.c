/*
 * Random work on random topologies over the packets link, against the model: every byte, every completion, every
 * order and the final state. Everything is made of one seed, so a failure repeats.
 *
 *   test_model [FIRST [COUNT]]   seeds FIRST to FIRST + COUNT - 1
 */
#include <inttypes.h>

#include "ctest/model/model.h"
#include "ctest/model/model_datagram.h"
#include "ctest/model/model_shared.h"
#include "ctest/support/check.h"
#include "soft/base/fabric.h"

#define SEEDS 60 /* default */
#define HOSTS 4
#define CONNECTIONS 3
#define MESSAGES 40 /* of each direction */
#define DATAGRAMS 120
#define MILLION 1000000

struct tally {
	uint64_t seeds, messages, connections;
	struct model_tally model;
	struct soft_packets_counters packets;
};

/* Everything that works in one network, and what may go wrong there. */
struct world {
	struct sim_net net;
	struct model_connection connections[CONNECTIONS];
	uint32_t count;
	struct model_shared shared[HOSTS], datagram_shared[HOSTS]; /* of each host */
	bool has_shared, has_datagrams;
	struct model_datagrams datagrams;
	bool faulty, doubles;
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
static void add_faults(struct world *world, struct soft_random *random, bool icrc, bool order)
{
	struct sim_net *net = &world->net;

	if (below(random, 4) == 0)
		return;
	if (below(random, 2) && (world->faulty = true))
		sim_net_fault(net, SOFT_FAULT_LOSE, (uint32_t)below(random, MILLION / 10));
	if (order && below(random, 2) && (world->faulty = world->doubles = true))
		sim_net_fault(net, SOFT_FAULT_DUPLICATE, (uint32_t)below(random, MILLION / 10));
	if (order && below(random, 2) && (world->faulty = true))
		sim_net_fault(net, SOFT_FAULT_REORDER, (uint32_t)below(random, MILLION / 10));
	if (icrc && below(random, 2) && (world->faulty = true))
		sim_net_fault(net, SOFT_FAULT_CORRUPT, (uint32_t)below(random, MILLION / 20));
}

/* Cut all ways, and end the cut before anyone gives up. */
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

static bool all_done(const struct world *world)
{
	for (uint32_t index = 0; index < world->count; index++)
		if (!model_is_done(&world->connections[index]))
			return false;
	return !world->has_datagrams || model_datagrams_are_done(&world->datagrams);
}

/* Execute an operation of a random component. */
static bool step(struct world *world, struct soft_random *random)
{
	uint64_t who = below(random, world->count + 2);

	if (who < world->count)
		return model_step(&world->connections[who]);
	if (who == world->count && world->has_datagrams && below(random, 2))
		return model_datagrams_step(&world->datagrams);
	if (!world->has_shared)
		return false;
	who = below(random, 2 * world->net.count);
	return model_shared_step(who % 2 ? &world->shared[who / 2] : &world->datagram_shared[who / 2]);
}

static void watch(struct world *world)
{
	for (uint32_t host = 0; world->has_shared && host < world->net.count; host++) {
		model_shared_watch(&world->shared[host]);
		model_shared_watch(&world->datagram_shared[host]);
	}
}

static void work(struct world *world, struct soft_random *random)
{
	uint64_t until = 0;
	uint32_t idle = 0;
	int rule = -1;

	while (!all_done(world)) {
		if (world->faulty)
			maybe_cut(&world->net, random, &rule, &until);
		if (step(world, random) ||
		    soft_timers_advance(&world->net.fabric.timers, UINT64_MAX)) {
			idle = 0;
		} else {
			/* By chance no component with work was chosen. */
			CHECK(++idle < 10000);
		}
		watch(world);
	}
	/* Packets that are in flight may have only their intended effects. */
	while (soft_timers_advance(&world->net.fabric.timers, UINT64_MAX))
		watch(world);
}

static void open_connections(struct world *world, struct soft_random *random, enum ibv_qp_type type,
			     const uint8_t *pool, struct tally *tally)
{
	for (uint32_t index = 0; index < world->count; index++) {
		struct model_connection *connection = &world->connections[index];
		struct model_shared *shared[2] = {NULL, NULL};
		struct sim_host *hosts[2];

		for (int end = 0; end < 2; end++) {
			uint64_t host = below(random, world->net.count);

			hosts[end] = &world->net.hosts[host];
			if (world->has_shared && below(random, 4))
				shared[end] = &world->shared[host];
		}
		*connection = (struct model_connection){.type = type, .exact = !world->faulty, .pool = pool,
							.random = random, .tally = &tally->model};
		model_open(connection, hosts, shared, MESSAGES);
	}
}

static void open_datagrams(struct world *world, struct soft_random *random, const uint8_t *pool,
			   struct tally *tally)
{
	struct sim_host *hosts[MODEL_PORTS];
	struct model_shared *shared[MODEL_PORTS] = {NULL};
	uint32_t count = 1 + (uint32_t)below(random, MODEL_PORTS);

	for (uint32_t port = 0; port < count; port++) {
		uint64_t host = below(random, world->net.count);

		hosts[port] = &world->net.hosts[host];
		if (world->has_shared && below(random, 2))
			shared[port] = &world->datagram_shared[host];
	}
	world->datagrams = (struct model_datagrams){.exact = !world->faulty, .doubles = world->doubles,
						    .pool = pool, .random = random, .tally = &tally->model};
	model_datagrams_open(&world->datagrams, count, hosts, shared, DATAGRAMS);
}

static void open_world(struct world *world, struct soft_random *random, const uint8_t *pool,
		       struct tally *tally)
{
	struct soft_packets_options options = {.seed = soft_random_next(random), .datagrams = 2048};
	uint32_t hosts = 1 + (uint32_t)below(random, HOSTS);
	enum ibv_qp_type type = below(random, 8) ? IBV_QPT_RC : IBV_QPT_UC;

	*world = (struct world){.count = 1 + (uint32_t)below(random, CONNECTIONS),
				.has_shared = below(random, 4) == 0, .has_datagrams = below(random, 4) == 0};
	options.delay = below(random, 20) * SOFT_MICROSECOND;
	options.jitter = below(random, 5) * SOFT_MICROSECOND;
	options.acknowledge_delay = below(random, 3) * 2 * SOFT_MICROSECOND;
	options.icrc = below(random, 4) == 0;
	sim_net_open(&world->net, hosts, &options);
	add_faults(world, random, options.icrc, type == IBV_QPT_RC);
	for (uint32_t host = 0; world->has_shared && host < hosts; host++) {
		model_shared_open(&world->shared[host], &world->net.hosts[host], random, &tally->model);
		model_shared_open(&world->datagram_shared[host], &world->net.hosts[host], random,
				  &tally->model);
	}
	open_connections(world, random, type, pool, tally);
	if (world->has_datagrams)
		open_datagrams(world, random, pool, tally);
}

static void close_world(struct world *world, struct tally *tally)
{
	struct soft_packets_counters packets;

	for (uint32_t index = 0; index < world->count; index++)
		model_poll_all(&world->connections[index]);
	if (world->has_datagrams)
		model_datagrams_poll_all(&world->datagrams);
	for (uint32_t host = 0; world->has_shared && host < world->net.count; host++) {
		model_shared_count(&world->shared[host]);
		model_shared_count(&world->datagram_shared[host]);
	}
	for (uint32_t index = 0; index < world->count; index++) {
		const struct model_flow *flows = world->connections[index].flows;

		tally->messages += flows[0].posted + flows[1].posted;
		model_close(&world->connections[index]);
	}
	if (world->has_datagrams)
		model_datagrams_close(&world->datagrams);
	for (uint32_t host = 0; world->has_shared && host < world->net.count; host++) {
		model_shared_close(&world->shared[host]);
		model_shared_close(&world->datagram_shared[host]);
	}
	packets = soft_packets_count(world->net.sim);
	CHECK(world->faulty || !packets.lost);
	sim_net_close(&world->net);
	tally->seeds++;
	tally->connections += world->count;
	tally->packets.sent += packets.sent;
	tally->packets.lost += packets.lost;
	tally->packets.duplicated += packets.duplicated;
	tally->packets.reordered += packets.reordered;
	tally->packets.corrupted += packets.corrupted;
	tally->packets.overflowed += packets.overflowed;
}

static void run_seed(uint64_t seed, const uint8_t *pool, struct tally *tally)
{
	static struct world world;
	struct soft_random random = {seed};

	running = seed;
	open_world(&world, &random, pool, tally);
	work(&world, &random);
	close_world(&world, tally);
	running = 0;
}

static void print_tally(const struct tally *tally)
{
	const struct model_tally *model = &tally->model;
	const struct soft_packets_counters *packets = &tally->packets;

	printf("%" PRIu64 " seeds, %" PRIu64 " messages, %" PRIu64 " packets (%" PRIu64 " lost, %" PRIu64
	       " doubled, %" PRIu64 " reordered, %" PRIu64 " corrupted, %" PRIu64 " overflowed); %" PRIu64
	       " of %" PRIu64 " connections gave up\n",
	       tally->seeds, tally->messages + model->datagrams, packets->sent, packets->lost,
	       packets->duplicated, packets->reordered, packets->corrupted, packets->overflowed,
	       model->failures, tally->connections);
	printf("%" PRIu64 " requests through windows, %" PRIu64 " bound, %" PRIu64 " invalidated; %" PRIu64
	       " flushes; %" PRIu64 " receives of shared queues, %" PRIu64 " limit events; %" PRIu64
	       " of %" PRIu64 " datagrams arrived\n",
	       model->through_windows, model->binds, model->invalidated, model->flushes,
	       model->shared_receives, model->limit_events, model->datagrams_received, model->datagrams);
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
	print_tally(&tally);
	/* Giving up is right after eight losses in a row, and no more than a rare accident. */
	CHECK(tally.model.failures * 100 <= tally.connections);
	return 0;
}
