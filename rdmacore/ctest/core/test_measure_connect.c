/* Measurements of connections: each at its own pace and in lockstep, cancelled, and without a listener. */
#include <poll.h>

#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/measure.h"
#include "ctest/support/pair.h"

static struct core_measure_end connect_end(struct core_provider *provider, bool active)
{
	struct sockaddr_storage address = local_address(0);
	struct core_measure_end end = {
		.struct_size = sizeof(end),
		.role = active ? CORE_MEASURE_ACTIVE : CORE_MEASURE_PASSIVE,
		.provider = provider,
	};

	core_address_from_sockaddr(&end.listen_or_destination, (struct sockaddr *)&address);
	return end;
}

static void test_connect(struct core_provider *provider)
{
	struct core_measure_end ends[] = {connect_end(provider, true), connect_end(provider, false)};

	/* Alone, 5 and 9 at once, each way. */
	for (uint32_t round = 0; round < 6; round++) {
		struct core_measure_spec spec = {.kind = CORE_MEASURE_CONNECT, .iterations = 40,
						 .warmup_iterations = 5, .in_flight = 1 + round / 2 * 4,
						 .lockstep = round % 2};
		struct core_measure *measure = measure_run(&spec, ends, 2);
		struct core_measure_result active, passive;
		uint64_t sum_ns = 0;

		core_measure_get(measure, 0, &active);
		core_measure_get(measure, 1, &passive);
		CHECK(active.messages == 40 && !active.failed && passive.received_messages == 45);
		for (uint32_t step = 0; step < CORE_MEASURE_STEPS; step++)
			CHECK(core_measure_histogram(measure, 0, step)->recorded == 40);
		CHECK(!core_measure_histogram(measure, 1, 0));
		/* The steps of all follow one another without a gap; one connection is part of each. */
		for (uint32_t step = 1; step < CORE_MEASURE_STEPS; step++) {
			CHECK(!spec.lockstep ||
			      active.step_ns[step] >= core_measure_histogram(measure, 0, step)->maximum);
			sum_ns += active.step_ns[step];
		}
		CHECK(sum_ns == active.step_ns[CORE_MEASURE_STEP_TOTAL] && !sum_ns == !spec.lockstep);
		core_measure_free(measure);
	}
	for (int round = 0; round < 6; round++) {
		struct core_measure_spec spec = {.kind = CORE_MEASURE_CONNECT, .in_flight = 3,
						 .duration_ns = UINT64_C(3600000000000),
						 .lockstep = round % 2};
		struct core_measure *measure;
		int how = round / 2;

		if (how == 0)
			spec.duration_ns = 10000000;
		measure = measure_created(&spec, ends, 2);
		CHECK(!core_measure_prepare(measure) && !core_measure_start(measure));
		if (how == 0) {
			CHECK(!measure_finished(measure));
		} else {
			poll(NULL, 0, 5);
			if (how == 1)
				core_measure_cancel(measure);
		}
		core_measure_free(measure);
	}
}

static void test_nobody_listens(struct core_provider *provider, bool lockstep)
{
	struct core_measure_end end = connect_end(provider, true);
	struct core_measure_spec spec = {.kind = CORE_MEASURE_CONNECT, .iterations = 5, .in_flight = 2,
					 .errors_max = 1, .elsewhere = 1, .lockstep = lockstep};
	struct core_measure_result result;
	struct core_measure *measure;

	end.listen_or_destination.port = 7009;
	measure = measure_created(&spec, &end, 1);
	CHECK(!core_measure_prepare(measure) && !core_measure_start(measure));
	CHECK(measure_finished(measure) == -ECONNREFUSED);
	core_measure_get(measure, 0, &result);
	CHECK(result.error.stage == CORE_MEASURE_EVENT_ERROR && result.failed == 2 &&
	      result.error.event == RDMA_CM_EVENT_REJECTED &&
	      result.error.step == CORE_MEASURE_STEP_CONNECT);
	core_measure_free(measure);
}

int main(void)
{
	struct core_provider *provider = open_provider();

	test_connect(provider);
	test_nobody_listens(provider, false);
	test_nobody_listens(provider, true);
	for (int kind = 0; kind < CORE_OBJECT_KINDS; kind++)
		CHECK(core_live(provider, (enum core_object)kind) == 0);
	close_provider(provider);
}
