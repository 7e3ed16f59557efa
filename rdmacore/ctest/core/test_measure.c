/* Measurements of every kind, on one pair after another: whatever is left over would spoil the next. */
#include <poll.h>

#include "ctest/support/check.h"
#include "ctest/support/measure.h"
#include "ctest/support/pair.h"

static const struct pair_options usual = {.memory = 1 << 20, .depth = 64, .rnr_retry = 7, .retry = 7,
					  .unsignaled = true, .resources = 4};

static struct core_measure_end end_of(const struct pair *pair, bool active)
{
	const struct end *here = active ? &pair->client : &pair->server;
	const struct end *there = active ? &pair->server : &pair->client;

	return (struct core_measure_end){
		.struct_size = sizeof(struct core_measure_end),
		.role = active ? CORE_MEASURE_ACTIVE : CORE_MEASURE_PASSIVE,
		.provider = pair->provider,
		.qp = here->id->qp,
		.address = (uintptr_t)here->memory,
		.length = here->size,
		.lkey = here->mr->lkey,
		.remote_address = (uintptr_t)there->memory,
		.remote_length = there->size,
		.remote_rkey = there->mr->rkey,
	};
}

#define DURATION_AT_MOST UINT64_C(60000000000)

static void run_on(const struct pair *pair, const struct core_measure_spec *spec)
{
	struct core_measure_end ends[] = {end_of(pair, true), end_of(pair, false)};
	struct core_measure *measure = measure_run(spec, ends, 2);
	const struct core_histogram *histogram = core_measure_histogram(measure, 0, 0);
	struct core_measure_result active, passive;

	core_measure_get(measure, 0, &active);
	core_measure_get(measure, 1, &passive);
	CHECK(active.elapsed_ns > 0 && active.bytes == active.messages * spec->size);
	if (!spec->iterations && !active.messages) { /* on a busy machine a thread may have had no time slice */
		struct core_measure_spec longer = *spec;

		longer.duration_ns *= 2;
		CHECK(longer.duration_ns < DURATION_AT_MOST);
		core_measure_free(measure);
		run_on(pair, &longer);
		return;
	}
	CHECK(!spec->iterations || active.messages == spec->iterations);
	if (spec->bidirectional && spec->iterations)
		CHECK(passive.messages == spec->iterations);
	if (spec->kind == CORE_MEASURE_LATENCY)
		CHECK(histogram && histogram->recorded == active.messages &&
		      histogram->minimum <= histogram->maximum);
	else
		CHECK(!histogram);
	if (spec->verify)
		CHECK(active.verified + passive.verified > 0);
	core_measure_free(measure);
}

static const enum ibv_wr_opcode operations[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

static void test_latency(const struct pair *pair)
{
	static const uint64_t sizes[] = {0, 1, 4, 8, 64, 4097};

	for (size_t operation = 0; operation < 3; operation++)
		for (size_t size = 0; size < sizeof(sizes) / sizeof(*sizes); size++)
			for (int variant = 0; variant < 5; variant++) {
				struct core_measure_spec spec = {
					.kind = CORE_MEASURE_LATENCY,
					.operation = operations[operation],
					.size = sizes[size],
					.iterations = on_soft("how long a message takes") ? 200 : 40,
				};

				if (!spec.size && (spec.operation == IBV_WR_RDMA_WRITE || variant == 1))
					continue;
				spec.verify = variant == 1;
				spec.warmup_iterations = variant == 2 ? 10 : 0;
				spec.signal_every = variant == 2 ? 7 : 0;
				if (variant == 3) {
					spec.iterations = 0;
					spec.duration_ns = on_soft("how long a message takes") ? 5000000 : 100000000;
					spec.warmup_ns = 1000000;
					spec.gap_ns = 10000;
				}
				if (variant == 4) {
					spec.completion = spec.operation == IBV_WR_RDMA_WRITE ?
								  CORE_MEASURE_POLL : CORE_MEASURE_EVENT;
					spec.inline_size = spec.operation == IBV_WR_RDMA_READ ?
								   0 : CORE_MEASURE_INLINE_AUTO;
				}
				run_on(pair, &spec);
			}
}

static void vary(struct core_measure_spec *spec, int variant)
{
	bool two_sided = spec->operation == IBV_WR_SEND;

	switch (variant) {
	case 1:
		spec->verify = 1;
		spec->depth = 8;
		spec->receive_depth = two_sided ? 16 : 0;
		break;
	case 2:
		spec->post_list = 4;
		spec->signal_every = 6;
		spec->depth = 16;
		spec->receive_post_list = two_sided ? 3 : 0;
		spec->warmup_iterations = 33;
		break;
	case 3:
		spec->iterations = 0;
		spec->duration_ns = 20000000;
		spec->warmup_ns = 1000000;
		spec->sample_ns = 1000000;
		spec->samples_max = 4;
		spec->signal_every = 5;
		break;
	case 4:
		spec->completion = CORE_MEASURE_EVENT;
		spec->inline_size = spec->operation == IBV_WR_RDMA_READ ? 0 : CORE_MEASURE_INLINE_AUTO;
		spec->verify = 1;
		spec->depth = 8;
		spec->receive_depth = two_sided ? 16 : 0;
		break;
	case 5:
		spec->iterations = 100;
		spec->rate_messages = 100000;
		spec->burst = 10;
		spec->completion = CORE_MEASURE_EVENT;
		break;
	case 6: /* the smallest queues that are possible */
		spec->depth = 1;
		spec->receive_depth = two_sided ? 1 : 0;
		break;
	default:
		break;
	}
}

static void test_bandwidth(const struct pair *pair)
{
	static const uint64_t sizes[] = {1, 64, 5000};

	for (size_t operation = 0; operation < 3; operation++)
		for (size_t size = 0; size < 3; size++)
			for (int variant = 0; variant < 14; variant++) {
				struct core_measure_spec spec = {
					.kind = CORE_MEASURE_BANDWIDTH,
					.operation = operations[operation],
					.size = sizes[size],
					.iterations = on_soft("how long a message takes") ? 1001 : 201,
					.bidirectional = variant % 2,
				};

				vary(&spec, variant / 2);
				if (spec.duration_ns && !on_soft("how long a message takes"))
					spec.duration_ns *= 10;
				run_on(pair, &spec);
			}
}

static void test_samples(const struct pair *pair)
{
	struct core_measure_spec spec = {.kind = CORE_MEASURE_BANDWIDTH, .operation = IBV_WR_RDMA_WRITE,
					 .size = 8, .duration_ns = 50000000, .sample_ns = 1000000,
					 .samples_max = 8};
	struct core_measure_end end = end_of(pair, true);
	struct core_measure *measure;
	const struct core_measure_sample *samples;
	struct core_measure_result result;
	uint64_t messages = 0, bytes = 0, at = 0;
	uint32_t count;

	/* A thread that others keep from running takes few samples. */
	for (;; spec.duration_ns *= 4) {
		measure = measure_run(&spec, &end, 1);
		core_measure_get(measure, 0, &result);
		if (result.sample_ns > spec.sample_ns)
			break;
		CHECK(spec.duration_ns < UINT64_C(10000000000));
		core_measure_free(measure);
	}
	samples = core_measure_samples(measure, 0, &count);
	CHECK(count >= 2 && count <= 8);
	for (uint32_t index = 0; index < count; index++) {
		CHECK(samples[index].begin_ns == at && samples[index].end_ns > at);
		at = samples[index].end_ns;
		messages += samples[index].messages;
		bytes += samples[index].bytes;
	}
	CHECK(at == result.elapsed_ns && messages == result.messages && bytes == result.bytes);
	core_measure_free(measure);
}

/* Both ends as if in two processes: they share only the spec and the network. */
static void run_elsewhere(const struct pair *pair, const struct core_measure_spec *spec)
{
	struct core_measure_end active = end_of(pair, true), passive = end_of(pair, false);
	struct core_measure *here = measure_created(spec, &active, 1);
	struct core_measure *there = measure_created(spec, &passive, 1);
	struct core_measure_result result;

	CHECK(!core_measure_prepare(here) && !core_measure_prepare(there));
	/* The passive end waits for the first message of the active one, with which it only shares the connection. */
	CHECK(!core_measure_start(there) && !core_measure_start(here));
	CHECK(!measure_finished(here) && !measure_finished(there));
	core_measure_get(here, 0, &result);
	CHECK(result.messages == spec->iterations);
	core_measure_get(there, 0, &result);
	CHECK(!spec->bidirectional || result.messages == spec->iterations);
	core_measure_free(here);
	core_measure_free(there);
}

static void test_elsewhere(const struct pair *pair)
{
	for (size_t operation = 0; operation < 3; operation++)
		for (int variant = 0; variant < 10; variant++) {
			struct core_measure_spec spec = {.kind = CORE_MEASURE_BANDWIDTH, .operation = operations[operation],
							 .size = variant & 4 ? 5000 : 100,
							 .iterations = on_soft("how long a message takes") ? 500 : 100,
							 .bidirectional = variant & 1, .verify = variant >> 1 & 1,
							 .elsewhere = 1};

			if (variant >= 8) {
				spec.kind = CORE_MEASURE_LATENCY;
				spec.bidirectional = 0;
				spec.verify = variant & 1;
			} else if (variant & 4) {
				spec.completion = CORE_MEASURE_EVENT;
			}
			if (variant < 8 && spec.verify) {
				/* Each message has its own memory, and devices have longer queues than requested. */
				spec.depth = 8;
				spec.receive_depth = spec.operation == IBV_WR_SEND ? 16 : 0;
			}
			run_elsewhere(pair, &spec);
		}
}

/* As on iWARP, which soft does not have: only the device's type makes the difference. */
static void test_without_immediate_data(const struct pair *pair)
{
	struct ibv_device *device = pair->client.id->verbs->device;
	enum ibv_transport_type transport = device->transport_type;

	if (!on_soft("devices that say they are iWARP"))
		return;
	device->transport_type = IBV_TRANSPORT_IWARP;
	test_latency(pair);
	test_bandwidth(pair);
	test_elsewhere(pair);
	device->transport_type = transport;
}

static void refused(const struct pair *pair, struct core_measure_spec spec, int error, const char *knob)
{
	struct core_measure_end ends[] = {end_of(pair, true), end_of(pair, false)};
	struct core_measure_refusal refusal;
	struct core_measure *measure;
	int result;

	spec.struct_size = sizeof(spec);
	result = core_measure_create(&spec, ends, 2, &measure, &refusal);
	if (result != error || strcmp(refusal.knob, knob) != 0)
		fprintf(stderr, "%d: %s: %s\n", result, refusal.knob, refusal.why);
	CHECK(result == error && !strcmp(refusal.knob, knob) && refusal.why[0]);
}

static void test_refusals(const struct pair *pair)
{
	const struct core_measure_spec latency = {.kind = CORE_MEASURE_LATENCY,
						  .operation = IBV_WR_SEND, .size = 8, .iterations = 1};
	const struct core_measure_spec bandwidth = {.kind = CORE_MEASURE_BANDWIDTH,
						    .operation = IBV_WR_RDMA_READ, .size = 8,
						    .iterations = 1};
	struct core_measure_spec spec;

#define REFUSED(base, field, value, error)                                                         \
	(spec = (base), spec.field = (value), refused(pair, spec, error, #field))

	REFUSED(latency, kind, 9, -EINVAL);
	REFUSED(latency, operation, IBV_WR_LOCAL_INV, -EOPNOTSUPP);
	REFUSED(latency, depth, 4, -EINVAL);
	REFUSED(latency, bidirectional, 1, -EINVAL);
	REFUSED(latency, rate_bits, 1, -EINVAL);
	REFUSED(latency, in_flight, 1, -EINVAL);
	REFUSED(latency, iterations, 0, -EINVAL);
	REFUSED(latency, inline_size, 1 << 20, -EINVAL);
	REFUSED(latency, receive_depth, 1 << 20, -EINVAL);
	REFUSED(latency, signal_every, 1 << 20, -EINVAL);
	REFUSED(latency, histogram_digits, 6, -EINVAL);
	REFUSED(latency, lockstep, 1, -EINVAL);
	REFUSED(bandwidth, depth, 1 << 20, -EINVAL);
	REFUSED(bandwidth, inline_size, 8, -EINVAL);
	REFUSED(bandwidth, receive_depth, 8, -EINVAL);
	REFUSED(bandwidth, gap_ns, 1, -EINVAL);
	REFUSED(bandwidth, burst, 1, -EINVAL);
	REFUSED(bandwidth, poll_batch, 65, -EINVAL);
	REFUSED(bandwidth, size, UINT64_C(1) << 32, -EINVAL);
	spec = bandwidth;
	spec.size = 1 << 20;
	refused(pair, spec, -EINVAL, "length");
	spec = bandwidth;
	spec.depth = 3;
	spec.post_list = 2;
	spec.signal_every = 4;
	refused(pair, spec, -EINVAL, "depth");
	spec = bandwidth;
	spec.outstanding = 2;
	spec.signal_every = 4;
	refused(pair, spec, -EINVAL, "outstanding");
	spec = latency;
	spec.operation = IBV_WR_RDMA_WRITE;
	spec.completion = CORE_MEASURE_EVENT;
	refused(pair, spec, -EOPNOTSUPP, "completion");
#undef REFUSED
}

/* Read the progress of a running measurement until it has advanced twice: counts never decrease. */
static void look(struct core_measure *measure)
{
	const struct core_histogram *living = core_measure_histogram(measure, 0, 0);
	struct core_measure_result result;
	uint64_t before = 0;

	for (int times = 0; times < 2;) {
		struct core_histogram copy;

		core_measure_peek(measure, 0, &result);
		CHECK(result.messages >= before && result.bytes == result.messages * 64);
		times += result.messages > before;
		before = result.messages;
		if (!living)
			continue;
		CHECK(!core_histogram_copy(&copy, living));
		CHECK(copy.length == living->length && copy.recorded >= before);
		core_histogram_free(&copy);
	}
	CHECK(result.begin_ns && result.elapsed_ns);
}

static void test_cancel(struct core_provider *provider)
{
	for (int kind = CORE_MEASURE_LATENCY; kind <= CORE_MEASURE_BANDWIDTH; kind++)
		for (size_t operation = 0; operation < 3; operation++)
			for (uint32_t completion = 0; completion < 2; completion++) {
				struct core_measure_spec spec = {
					.kind = (uint32_t)kind, .operation = operations[operation],
					.size = 64, .duration_ns = UINT64_C(3600000000000),
					.completion = completion};
				struct core_measure_end ends[2];
				struct core_measure *measure;
				struct pair pair;

				if (kind == CORE_MEASURE_LATENCY && operation == 1 && completion)
					continue;
				pair_connect(&pair, provider, 7003, usual);
				ends[0] = end_of(&pair, true);
				ends[1] = end_of(&pair, false);
				measure = measure_created(&spec, ends, 2);
				CHECK(!core_measure_prepare(measure) && !core_measure_start(measure));
				look(measure);
				core_measure_cancel(measure);
				CHECK(measure_finished(measure) == -ECANCELED);
				core_measure_free(measure);
				/* Freed while it runs. */
				pair_close(&pair);
			}
}

/* A passive end that never comes, and memory that is not the peer's. */
static void test_errors(struct core_provider *provider)
{
	struct pair_options options = usual;

	for (int wrong = 0; wrong < 3; wrong++) {
		struct core_measure_spec spec = {.kind = CORE_MEASURE_LATENCY, .size = 64,
						 .iterations = 1000, .operation = IBV_WR_RDMA_WRITE};
		struct core_measure_end ends[2];
		struct core_measure_result result;
		struct core_measure *measure;
		struct pair pair;
		uint32_t count = 2;

		options.rnr_retry = 0;
		pair_connect(&pair, provider, 7003, options);
		ends[0] = end_of(&pair, true);
		ends[1] = end_of(&pair, false);
		if (wrong == 0) { /* without receives, as without a peer */
			spec.operation = IBV_WR_SEND;
			spec.elsewhere = 1;
			count = 1;
		} else {
			ends[wrong - 1].remote_rkey ^= 0x55;
		}
		measure = measure_created(&spec, ends, count);
		CHECK(!core_measure_prepare(measure) && !core_measure_start(measure));
		CHECK(measure_finished(measure) == -EIO);
		core_measure_get(measure, wrong == 2, &result);
		CHECK(result.error.stage == CORE_MEASURE_COMPLETION);
		CHECK(result.error.wc_status ==
		      (wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_RNR_RETRY_EXC_ERR));
		core_measure_free(measure);
		pair_destroy(&pair);
	}
}

/* Unexpected messages: wrong contents, another length, another program's completion. */
static void test_intruders(struct core_provider *provider)
{
	static const enum core_measure_stage stages[] = {CORE_MEASURE_CONTENTS, CORE_MEASURE_LENGTH,
							 CORE_MEASURE_FOREIGN};

	for (int what = 0; what < 3; what++) {
		struct core_measure_spec spec = {.kind = CORE_MEASURE_BANDWIDTH, .size = 64, .depth = 4,
						 .iterations = 1000, .operation = IBV_WR_RDMA_READ};
		struct core_measure *here, *there = NULL;
		struct core_measure_result result;
		struct core_measure_end ends[2];
		struct pair pair;

		pair_connect(&pair, provider, 7003, usual);
		ends[0] = end_of(&pair, true);
		ends[1] = end_of(&pair, false);
		if (what == 1) {
			spec.operation = IBV_WR_SEND;
			spec.elsewhere = 1;
			there = measure_created(&spec, &ends[0], 1);
			spec.size = 128;
			here = measure_created(&spec, &ends[1], 1);
			CHECK(!core_measure_prepare(there));
		} else {
			spec.verify = what == 0;
			here = measure_created(&spec, ends, 2);
		}
		CHECK(!core_measure_prepare(here));
		if (what == 0)
			pair.server.memory[3 * 64 + 17] ^= 1;
		if (what == 2) {
			struct ibv_sge sge = {(uintptr_t)pair.client.memory, 8, pair.client.mr->lkey};
			struct ibv_send_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1,
						 .opcode = IBV_WR_RDMA_WRITE,
						 .send_flags = IBV_SEND_SIGNALED}, *bad;

			wr.wr.rdma.remote_addr = (uintptr_t)pair.server.memory;
			wr.wr.rdma.rkey = pair.server.mr->rkey;
			CHECK(!ibv_post_send(pair.client.id->qp, &wr, &bad));
		}
		if (there)
			CHECK(!core_measure_start(there));
		CHECK(!core_measure_start(here));
		CHECK(measure_finished(here) == (what == 2 ? -EBUSY : -EBADMSG));
		core_measure_get(here, 0, &result);
		CHECK(result.error.stage == (uint32_t)stages[what]);
		if (what == 0)
			CHECK(result.error.message == 3 && result.error.detail == 17);
		if (what == 1)
			CHECK(result.error.detail == 64);
		core_measure_free(here);
		core_measure_free(there);
		pair_destroy(&pair);
	}
}

static void test_histogram(void)
{
	struct core_histogram histogram;
	int64_t total = 0;

	CHECK(core_histogram_init(&histogram, 1, 3) == -EINVAL);
	CHECK(core_histogram_init(&histogram, 100, 6) == -EINVAL);
	CHECK(!core_histogram_init(&histogram, UINT64_C(60000000000), 3));
	CHECK(histogram.length == 27 * 1024); /* HdrHistogram's for 1..60e9 with 3 digits */
	for (uint64_t value = 0; value < UINT64_C(1) << 40; value = value * 3 / 2 + 1)
		core_histogram_record(&histogram, value);
	core_histogram_record(&histogram, UINT64_MAX);
	for (uint64_t index = 0; index < histogram.length; index++)
		total += histogram.counts[index];
	CHECK(total == (int64_t)histogram.recorded && histogram.clamped > 1 && histogram.minimum == 0 &&
	      histogram.maximum == UINT64_MAX);
	core_histogram_free(&histogram);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct pair pair;

	test_histogram();
	pair_connect(&pair, provider, 7003, usual);
	test_refusals(&pair);
	test_latency(&pair);
	test_bandwidth(&pair);
	test_without_immediate_data(&pair);
	test_samples(&pair);
	test_elsewhere(&pair);
	pair_close(&pair);
	test_cancel(provider);
	test_errors(provider);
	test_intruders(provider);
	for (int kind = 0; kind < CORE_OBJECT_KINDS; kind++)
		CHECK(core_live(provider, (enum core_object)kind) == 0);
	close_provider(provider);
	return 0;
}
