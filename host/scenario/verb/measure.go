package verb

import (
	"strings"
	"time"

	"rdmarun/rdmacore"
)

// Words of `inline`, `verify` and `completion`, and the kinds of measurement.
const (
	inlineAuto = "auto"
	verifyNone = "none"
	verifyData = "data"
)

// maxQueuePairs bounds the threads of a measurement: each queue pair has one at each end.
const maxQueuePairs = 64

// longestMeasure keeps a typing mistake from running for ever.
const longestMeasure = 7 * 24 * time.Hour

// howLong is the group of what ends a measurement.
const howLong = "iterations, duration or connections"

// measureVerb is the native measurement.  Which argument means something for which kind and operation is what the
// core says (rdmacore/measure/check.c); here it stands for readers, before the colon.
func measureVerb() Verb {
	count := func(name string, most int64, doc string) Argument {
		return Argument{Name: name, Type: Integer, Min: 1, Max: most, Doc: doc}
	}
	span := func(name, doc string) Argument {
		return Argument{Name: name, Type: Duration, Min: 1, Max: int64(longestMeasure), Doc: doc}
	}
	duration, iterations := span("duration", "how long each size is measured"), count("iterations", 1<<46, "latency, bandwidth: round trips, or messages of each direction, of each size and queue pair")
	connections := count("connections", 1<<32, "connect: how many are made")
	for _, argument := range []*Argument{&duration, &iterations, &connections} {
		argument.Group = howLong
	}
	return Verb{
		Name: "measure", Roleless: true, Measures: true, Yields: Value, Run: measure, Check: checkMeasure, Needs: measureNeeds,
		Doc: "Measure latency, bandwidth or connections between two roles, natively and on connections of its own: nothing of the scenario runs meanwhile.",
		Arguments: []Argument{
			{Name: "kind", Type: Word, Words: measureKinds(), Required: true, Doc: "latency: one message at a time; bandwidth: as many as the knobs allow; connect: connections made and ended"},
			{Name: "from", Type: Role, Required: true, Doc: "who begins: sends, writes, reads, connects"},
			{Name: "to", Type: Role, Required: true, Doc: "who answers, or is the other direction of a bidirectional one"},
			{Name: "op", Type: Word, Words: measureOperations(), Doc: "latency, bandwidth: the operation; a sample of SEND and RDMA_WRITE is half of a round trip, of the others a whole one; atomics work on 8 bytes"},
			{Name: "sizes", Type: Sizes, Doc: "latency, bandwidth: bytes of a message, each measured in turn"},
			iterations, duration, connections,
			span("warmup", "time before the timed part, not counted"),
			count("warmup_iterations", 1<<46, "what is done before the timed part, not counted"),
			count("qps", maxQueuePairs, "bandwidth: queue pairs that transmit at once, each with a thread at either end; default 1"),
			count("depth", 1<<16, "bandwidth: requests in flight of each queue pair; default 128, of RDMA_WRITE and RDMA_READ with verify 16"),
			count("receive_depth", 1<<16, "SEND: receives posted; default 128, for latency 16"),
			count("post_list", 4096, "bandwidth: requests a post; default 1"),
			count("receive_post_list", 4096, "bandwidth of SEND: receives a post; default 1"),
			count("signal_every", 1<<16, "latency, bandwidth: every so many requests ask for a completion; default 1"),
			count("poll_batch", 64, "latency, bandwidth: completions a poll; default 16, for latency 1"),
			count("outstanding", 1<<16, "bandwidth of RDMA_READ and ATOMIC_FETCH_AND_ADD and ATOMIC_CMP_AND_SWP: requests in flight, if fewer than depth"),
			{Name: "inline", Type: Text, Doc: "SEND and RDMA_WRITE: messages up to so many bytes go inline; auto: whatever the queue pair takes; default none"},
			{Name: "builders", Type: Boolean, Doc: "latency, bandwidth: post by the builders of ibv_wr_post(3), which have a path of their own in devices; default by ibv_post_send(3)"},
			{Name: "completion", Type: Word, Words: []string{"poll", "event"}, Doc: "latency, bandwidth: poll without end, the default, or sleep on the completion channel"},
			{Name: "bidirectional", Type: Boolean, Doc: "bandwidth: both ends transmit"},
			span("gap", "latency: pause between round trips"),
			{Name: "rate_limit", Type: Rate, Doc: "bandwidth: bits a second of each direction and queue pair at most"},
			count("rate_messages", 1<<40, "bandwidth: the same in messages a second"),
			count("burst", 1<<16, "bandwidth: with one of these, messages that may go at once; default post_list"),
			{Name: "verify", Type: Word, Words: []string{verifyNone, verifyData}, Doc: "SEND and RDMA_WRITE and RDMA_READ: data has contents checked.  Of SEND and RDMA_READ, and of every latency, each message is; a bandwidth of RDMA_WRITE, whose receiver is told of no message, has the last ones checked when it has ended, as many as depth for each size, queue pair and direction"},
			span("sample_every", "remember how much was done in each such interval, for the least and the most of them"),
			{Name: "histogram", Type: Options, Doc: "latency, connect: how times are counted", Fields: []Argument{
				{Name: "digits", Type: Integer, Min: 1, Max: 5, Doc: "significant digits; default 3"},
				{Name: "max", Type: Duration, Min: 2, Max: int64(longestMeasure), Doc: "longer ones count as this; default 1m"},
				{Name: "keep", Type: Boolean, Doc: "the records have the whole histogram; default true"},
			}},
			count("in_flight", 4096, "connect: connections under way at once; default 1"),
			{Name: "lockstep", Type: Boolean, Doc: "connect: those under way take each step together, all of them one before any the next; the results then have each step's rate"},
			{Name: "errors_max", Type: Integer, Max: 1 << 30, Doc: "connect: connections that may fail before the measurement does; default 0"},
			{Name: "resolve", Type: Duration, Min: 1, Max: int64(time.Minute), Doc: "connect: time for the address and for the route each; default 2s"},
		},
		Results: []Result{
			{Name: "messages", Type: Integer, Doc: "of the timed parts of all sizes: messages of both directions, round trips or connections"},
			{Name: "bytes", Type: Integer, Doc: "transmitted in them"},
			{Name: "verified", Type: Integer, Doc: "messages whose contents were checked and right, warm-up included"},
			{Name: "errors", Type: Integer, Doc: "connections that failed"},
			{Name: "cut", Type: Boolean, Doc: "a threshold with abort_on_fail ended it early"},
		},
	}
}

func measureKinds() []string { return namesOf(rdmacore.ParseMeasureKind) }

// atomicPrefix is what the names of atomic operations begin with.
const atomicPrefix = "ATOMIC_"

func measureOperations() []string {
	return []string{"SEND", "RDMA_WRITE", "RDMA_READ", atomicPrefix + "FETCH_AND_ADD", atomicPrefix + "CMP_AND_SWP"}
}

// CanAtomic is the capability of devices that have atomic operations.
const CanAtomic = "device.atomic"

func measureNeeds(call *Call) string {
	if strings.HasPrefix(call.Text("op"), atomicPrefix) {
		return CanAtomic
	}
	return ""
}
