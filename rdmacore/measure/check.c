/*
 * Checks specs and ends before anything is created: each parameter has a meaning in what is measured, or is rejected.
 */
#include "measure/worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>


#define DEFAULT_TIMEOUT_MS 2000 /* like rping and rdma_create_ep */
#define DEFAULT_SAMPLES 1024
#define SAMPLES_MAX (1 << 20)
#define DEFAULT_HIGHEST UINT64_C(60000000000) /* 60 s */
#define DEFAULT_DIGITS 3 /* 0.1 %, HdrHistogram's usual precision */
#define IN_FLIGHT_MAX 4096 /* bounds memory, as LIST_MAX and SAMPLES_MAX do */
#define LIST_MAX 4096
#define ITERATIONS_MAX (UINT64_C(1) << 46) /* half of what a LAST can contain */
#define ATOMIC_SIZE 8 /* IBTA 9.4.5 */
#define SIZE_MAX_RC (UINT64_C(1) << 31) /* IBTA 9.7.8: a message has 2^31 bytes at most */

int core_measure_refuse(struct core_measure_refusal *refusal, int result, const char *knob,
			const char *format, ...)
{
	va_list arguments;

	snprintf(refusal->knob, sizeof(refusal->knob), "%s", knob);
	va_start(arguments, format);
	vsnprintf(refusal->why, sizeof(refusal->why), format, arguments);
	va_end(arguments);
	return result;
}

/* Where a parameter has a meaning: bits of kind and operation. */
enum {
	LATENCY_SEND = 1,
	LATENCY_WRITE = 2,
	LATENCY_READ = 4,
	BANDWIDTH_SEND = 8,
	BANDWIDTH_WRITE = 16,
	BANDWIDTH_READ = 32,
	CONNECT = 64,

	LATENCY = LATENCY_SEND | LATENCY_WRITE | LATENCY_READ,
	BANDWIDTH = BANDWIDTH_SEND | BANDWIDTH_WRITE | BANDWIDTH_READ,
	SEND = LATENCY_SEND | BANDWIDTH_SEND,
	DATA = LATENCY | BANDWIDTH,
};

struct knob {
	const char *name;
	size_t offset;
	bool wide;
	unsigned int where;
};

#define KNOB(field, where)                                                                         \
	{#field, offsetof(struct core_measure_spec, field),                                        \
	 sizeof(((struct core_measure_spec *)0)->field) == sizeof(uint64_t), where}

static const struct knob knobs[] = {
	KNOB(bidirectional, BANDWIDTH),
	KNOB(size, DATA),
	KNOB(depth, BANDWIDTH),
	KNOB(receive_depth, SEND),
	KNOB(post_list, BANDWIDTH),
	KNOB(receive_post_list, BANDWIDTH_SEND),
	KNOB(signal_every, DATA),
	KNOB(poll_batch, DATA),
	KNOB(inline_size, DATA & ~(LATENCY_READ | BANDWIDTH_READ)),
	KNOB(completion, DATA & ~LATENCY_WRITE),
	KNOB(outstanding, BANDWIDTH_READ),
	KNOB(verify, DATA),
	KNOB(gap_ns, LATENCY),
	KNOB(rate_bits, BANDWIDTH),
	KNOB(rate_messages, BANDWIDTH),
	KNOB(burst, BANDWIDTH),
	KNOB(histogram_digits, LATENCY | CONNECT),
	KNOB(histogram_highest_ns, LATENCY | CONNECT),
	KNOB(in_flight, CONNECT),
	KNOB(errors_max, CONNECT),
	KNOB(timeout_ms, CONNECT),
	KNOB(lockstep, CONNECT),
};

static uint64_t value_of(const struct core_measure_spec *spec, const struct knob *knob)
{
	const char *value_at = (const char *)spec + knob->offset;
	uint64_t wide;
	uint32_t narrow;

	if (knob->wide) {
		memcpy(&wide, value_at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, value_at, sizeof(narrow));
	return narrow;
}

/* The bit of the spec; 0 and a refusal if there is none. */
static unsigned int where_of(const struct core_measure_spec *spec, struct core_measure_refusal *refusal,
			     int *result)
{
	unsigned int send = spec->kind == CORE_MEASURE_LATENCY ? LATENCY_SEND : BANDWIDTH_SEND;

	*result = 0;
	switch (spec->kind) {
	case CORE_MEASURE_CONNECT:
		if (spec->operation)
			*result = core_measure_refuse(refusal, -EINVAL, "operation",
						      "connections have no operation");
		return CONNECT;
	case CORE_MEASURE_LATENCY:
	case CORE_MEASURE_BANDWIDTH:
		break;
	default:
		*result = core_measure_refuse(refusal, -EINVAL, "kind",
					      "%u is not latency, bandwidth or connect", spec->kind);
		return 0;
	}
	switch (spec->operation) {
	case IBV_WR_SEND:
		return send;
	case IBV_WR_RDMA_WRITE:
		return send << 1;
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return send << 2;
	default:
		*result = core_measure_refuse(refusal, -EOPNOTSUPP, "operation",
					      "only SEND, RDMA_WRITE, RDMA_READ and atomics are measured");
		return 0;
	}
}

static int check_meaning(const struct core_measure_spec *spec, struct core_measure_refusal *refusal)
{
	static const char *const kinds[] = {"", "latency", "bandwidth", "connect"};
	int result;
	unsigned int where = where_of(spec, refusal, &result);

	if (result)
		return result;
	for (size_t index = 0; index < sizeof(knobs) / sizeof(*knobs); index++) {
		const struct knob *knob = &knobs[index];

		if (!value_of(spec, knob) || knob->where & where)
			continue;
		refusal->meaningless = true;
		if (where == LATENCY_WRITE && !strcmp(knob->name, "completion"))
			return core_measure_refuse(refusal, -EOPNOTSUPP, knob->name,
						   "WRITE latency watches memory, not completions");
		return core_measure_refuse(refusal, -EINVAL, knob->name, "has no meaning for %s%s",
					   kinds[spec->kind],
					   knob->where & (where == CONNECT ? CONNECT :
							  spec->kind == CORE_MEASURE_LATENCY ?
							  LATENCY : BANDWIDTH) ?
						   " with this operation" : "");
	}
	return 0;
}

static int check_values(const struct core_measure_spec *spec, struct core_measure_refusal *refusal)
{
	if (!spec->iterations == !spec->duration_ns)
		return core_measure_refuse(refusal, -EINVAL, "iterations",
					   "give either iterations or duration, one of them");
	if (spec->iterations > ITERATIONS_MAX ||
	    spec->warmup_iterations > ITERATIONS_MAX)
		return core_measure_refuse(refusal, -EINVAL, "iterations", "at most 2^46");
	if (spec->duration_ns > INT64_MAX || spec->warmup_ns > INT64_MAX || spec->gap_ns > INT64_MAX)
		return core_measure_refuse(refusal, -EINVAL, "duration_ns", "at most 292 years");
	if (spec->size > SIZE_MAX_RC)
		return core_measure_refuse(refusal, -EINVAL, "size",
					   "a message has 2 GiB at most, not %llu bytes",
					   (unsigned long long)spec->size);
	if (spec->kind == CORE_MEASURE_LATENCY && spec->operation == IBV_WR_RDMA_WRITE && !spec->size)
		return core_measure_refuse(refusal, -EINVAL, "size",
					   "WRITE latency watches the last byte, so there must be one");
	if (core_measure_atomic((enum ibv_wr_opcode)spec->operation) && spec->kind != CORE_MEASURE_CONNECT) {
		if (spec->size != ATOMIC_SIZE)
			return core_measure_refuse(refusal, -EINVAL, "size",
						   "an atomic operation works on %d bytes, not %llu",
						   ATOMIC_SIZE, (unsigned long long)spec->size);
		refusal->meaningless = spec->verify;
		if (spec->verify)
			return core_measure_refuse(refusal, -EINVAL, "verify",
						   "has no meaning for atomics, which change what they work on");
	}
	if (spec->verify && !spec->size)
		return core_measure_refuse(refusal, -EINVAL, "verify", "empty messages have no contents");
	if (spec->poll_batch > CORE_MEASURE_POLL_MAX)
		return core_measure_refuse(refusal, -EINVAL, "poll_batch", "at most %d",
					   CORE_MEASURE_POLL_MAX);
	if (spec->post_list > LIST_MAX)
		return core_measure_refuse(refusal, -EINVAL, "post_list", "at most %d", LIST_MAX);
	if (spec->completion > CORE_MEASURE_EVENT)
		return core_measure_refuse(refusal, -EINVAL, "completion", "%u is not poll or event",
					   spec->completion);
	if (spec->rate_bits && spec->rate_messages)
		return core_measure_refuse(refusal, -EINVAL, "rate_messages",
					   "the rate is given in bits already");
	if (spec->rate_bits && !spec->size)
		return core_measure_refuse(refusal, -EINVAL, "rate_bits", "empty messages have no bits");
	if (spec->burst && !spec->rate_bits && !spec->rate_messages)
		return core_measure_refuse(refusal, -EINVAL, "burst", "needs a rate");
	if (spec->histogram_digits > 5)
		return core_measure_refuse(refusal, -EINVAL, "histogram_digits", "1 to 5");
	if (spec->histogram_highest_ns == 1 || spec->histogram_highest_ns > UINT64_C(1) << 62)
		return core_measure_refuse(refusal, -EINVAL, "histogram_highest_ns", "2 to 2^62");
	if (spec->samples_max && !spec->sample_ns)
		return core_measure_refuse(refusal, -EINVAL, "samples_max", "needs an interval");
	if (spec->samples_max == 1 || spec->samples_max > SAMPLES_MAX)
		return core_measure_refuse(refusal, -EINVAL, "samples_max", "2 to %d", SAMPLES_MAX);
	if (spec->sample_ns > INT64_MAX / SAMPLES_MAX)
		return core_measure_refuse(refusal, -EINVAL, "sample_ns", "at most two hours");
	if (spec->in_flight > IN_FLIGHT_MAX)
		return core_measure_refuse(refusal, -EINVAL, "in_flight", "at most %d", IN_FLIGHT_MAX);
	if (spec->timeout_ms > INT32_MAX)
		return core_measure_refuse(refusal, -EINVAL, "timeout_ms", "at most %d", INT32_MAX);
	return 0;
}

static void or_default(uint32_t *knob, uint32_t value)
{
	if (!*knob)
		*knob = value;
}

/* Defaults that depend on a queue pair are set by the layout. */
static void fill_defaults(struct core_measure_spec *spec)
{
	bool latency = spec->kind == CORE_MEASURE_LATENCY;

	if (spec->kind == CORE_MEASURE_CONNECT) {
		or_default(&spec->in_flight, 1);
		or_default(&spec->timeout_ms, DEFAULT_TIMEOUT_MS);
	} else {
		or_default(&spec->signal_every, 1);
		or_default(&spec->poll_batch, latency ? 1 : 16);
		or_default(&spec->post_list, 1);
		or_default(&spec->receive_post_list, 1);
		or_default(&spec->burst, spec->post_list);
	}
	if (spec->kind != CORE_MEASURE_BANDWIDTH) {
		or_default(&spec->histogram_digits, DEFAULT_DIGITS);
		if (!spec->histogram_highest_ns)
			spec->histogram_highest_ns = DEFAULT_HIGHEST;
	}
	if (spec->sample_ns)
		or_default(&spec->samples_max, DEFAULT_SAMPLES);
}

int core_measure_check_spec(const struct core_measure_spec *given, struct core_measure_spec *spec,
			    struct core_measure_refusal *refusal)
{
	uint32_t known = sizeof(*spec);
	const unsigned char *bytes = (const unsigned char *)given;
	int result;

	memset(spec, 0, sizeof(*spec));
	memset(refusal, 0, sizeof(*refusal));
	if (given->struct_size < offsetof(struct core_measure_spec, size))
		return core_measure_refuse(refusal, -EINVAL, "struct_size", "%u bytes are no spec",
					   given->struct_size);
	/* A newer caller may know more parameters; they must be 0. */
	for (uint32_t at = known; at < given->struct_size; at++)
		if (bytes[at])
			return core_measure_refuse(refusal, -E2BIG, "struct_size",
						   "a knob at byte %u is not known here", at);
	memcpy(spec, given, given->struct_size < known ? given->struct_size : known);
	spec->struct_size = known;
	result = check_meaning(spec, refusal);
	if (!result)
		result = check_values(spec, refusal);
	if (!result)
		fill_defaults(spec);
	return result;
}

static int check_address(const struct core_measure_spec *spec, const struct core_measure_end *end,
			 uint32_t count, struct core_measure_refusal *refusal)
{
	if (!end->listen_or_destination.family)
		return core_measure_refuse(refusal, -EINVAL, "listen_or_destination",
					   "a connect end needs an address");
	if (end->role == CORE_MEASURE_ACTIVE && !end->listen_or_destination.port &&
	    (count < 2 || spec->elsewhere))
		return core_measure_refuse(refusal, -EINVAL, "listen_or_destination",
					   "which port does the other process listen on?");
	return 0;
}

/* Whether the passive end has something to do, and is more than memory. */
static bool needs_passive(const struct core_measure_spec *spec)
{
	if (spec->kind == CORE_MEASURE_CONNECT || spec->bidirectional || spec->operation == IBV_WR_SEND)
		return true;
	return spec->verify ||
	       (spec->kind == CORE_MEASURE_LATENCY && spec->operation == IBV_WR_RDMA_WRITE);
}

int core_measure_check_ends(const struct core_measure_spec *spec,
			    const struct core_measure_end *ends, uint32_t count,
			    struct core_measure_refusal *refusal)
{
	if (count < 1 || count > CORE_MEASURE_ENDS)
		return core_measure_refuse(refusal, -EINVAL, "ends", "one or two, not %u", count);
	for (uint32_t index = 0; index < count; index++) {
		const struct core_measure_end *end = &ends[index];
		int result = 0;

		if (end->struct_size != sizeof(*end))
			return core_measure_refuse(refusal, -EINVAL, "struct_size",
						   "%u bytes are no end", end->struct_size);
		if (end->role != CORE_MEASURE_ACTIVE && end->role != CORE_MEASURE_PASSIVE)
			return core_measure_refuse(refusal, -EINVAL, "role",
						   "an end is active or passive");
		if (!end->provider)
			return core_measure_refuse(refusal, -EINVAL, "provider", "there is none");
		if (spec->kind == CORE_MEASURE_CONNECT)
			result = check_address(spec, end, count, refusal);
		else if (!end->qp)
			result = core_measure_refuse(refusal, -EINVAL, "qp", "there is none");
		if (result)
			return result;
	}
	if (spec->elsewhere)
		return count == 1 ? 0 : core_measure_refuse(refusal, -EINVAL, "elsewhere",
							    "both ends are here");
	if (count == 1 && ends[0].role == CORE_MEASURE_PASSIVE)
		return core_measure_refuse(refusal, -EINVAL, "ends", "there is no active end");
	if (count == 1 && needs_passive(spec))
		return core_measure_refuse(refusal, -EINVAL, "ends",
					   "this needs a passive end too, here or elsewhere");
	if (count == 2 && ends[0].role == ends[1].role)
		return core_measure_refuse(refusal, -EINVAL, "role", "both ends are %s",
					   ends[0].role == CORE_MEASURE_ACTIVE ? "active" : "passive");
	if (count == 2 && spec->kind != CORE_MEASURE_CONNECT &&
	    (ends[0].qp->send_cq == ends[1].qp->send_cq || ends[0].qp->send_cq == ends[1].qp->recv_cq ||
	     ends[0].qp->recv_cq == ends[1].qp->send_cq || ends[0].qp->recv_cq == ends[1].qp->recv_cq))
		return core_measure_refuse(refusal, -EINVAL, "qp",
					   "both ends use the same completion queue");
	return 0;
}
