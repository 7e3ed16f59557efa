package rdmacore

// #include "measure/measure.h"
import "C"

import (
	"context"
	"net/netip"
	"time"
)

// MeasureKind is what a measurement finds out.
type MeasureKind uint32

// MeasureRole is whether an end begins or answers.
type MeasureRole uint32

// MeasureCompletion is how an end waits for completions.
type MeasureCompletion uint32

// Kinds, roles and ways to wait; measure/measure.h defines them.
const (
	// MeasureLatency is one message at a time.  A sample of SEND and RDMA_WRITE is half of a round trip,
	// of RDMA_READ and atomics a whole one.
	MeasureLatency MeasureKind = C.CORE_MEASURE_LATENCY
	// MeasureBandwidth is as many messages as the knobs allow.
	MeasureBandwidth MeasureKind = C.CORE_MEASURE_BANDWIDTH
	// MeasureConnect is connections made and ended, each step timed.
	MeasureConnect MeasureKind = C.CORE_MEASURE_CONNECT

	// MeasureActive begins: it sends, writes, reads, connects.
	MeasureActive MeasureRole = C.CORE_MEASURE_ACTIVE
	// MeasurePassive answers, or is the other direction of a bidirectional measurement.
	MeasurePassive MeasureRole = C.CORE_MEASURE_PASSIVE

	// MeasurePoll polls without end, as fast as it can.
	MeasurePoll MeasureCompletion = C.CORE_MEASURE_POLL
	// MeasureEvent sleeps on the completion channel.
	MeasureEvent MeasureCompletion = C.CORE_MEASURE_EVENT
)

// InlineAuto sends inline whatever the queue pair takes inline.
const InlineAuto = -1

// MeasureSpec says what to measure.  The zero value of a knob is its default.  A knob that has no meaning
// for the kind and operation chosen must be zero: nothing is accepted and then ignored (EINVAL, with the
// knob's name).
type MeasureSpec struct {
	Kind          MeasureKind
	Operation     Opcode // OpSend, OpRDMAWrite, OpRDMARead, OpAtomic*; latency and bandwidth
	Bidirectional bool   // bandwidth: both ends transmit
	Size          int    // bytes of a message

	// Exactly one of the two.  Messages of each direction, round trips or connections.
	Iterations uint64
	Duration   time.Duration
	// Before the timed part, either or both.
	WarmupIterations uint64
	WarmupDuration   time.Duration

	Depth           int // bandwidth: requests in flight; default 128 or what the queue holds
	ReceiveDepth    int // SEND: receives posted; default 128 (latency 16) or what the queue holds
	PostList        int // bandwidth: requests a post; default 1
	ReceivePostList int // SEND bandwidth: receives a post; default 1
	SignalEvery     int // every so many requests ask for a completion; default 1
	PollBatch       int // completions a poll, 64 at most; default 16, latency 1
	Inline          int // messages up to this size go inline; or InlineAuto
	Completion      MeasureCompletion
	Outstanding     int // READ and atomic bandwidth: requests in flight, if fewer than Depth

	// Verify has receivers check the contents.  In latency this is done between samples; in bandwidth
	// it is part of the time, but for RDMA_WRITE, whose target looks at its memory at the end.
	Verify bool

	Gap          time.Duration // latency: pause between round trips
	RateBits     uint64        // bandwidth: bits a second of each direction at most
	RateMessages uint64        // or messages a second
	Burst        int           // with a rate: messages that may go at once; default PostList

	// SampleEvery remembers how much was done in each such interval; 0 does not.  When SamplesMax
	// (default 1024) are used up, pairs of them become one.
	SampleEvery time.Duration
	SamplesMax  int

	HistogramDigits int           // latency, connect: significant digits, 1 to 5; default 3
	HistogramMax    time.Duration // latency, connect: default one minute; longer ones count as that

	InFlight  int           // connect: connections under way at once; default 1
	ErrorsMax int           // connect: connections that may fail before the measurement does
	Timeout   time.Duration // connect: for resolving an address and a route each; default 2 s
	// Lockstep: connections under way take each step together, all of them one before any the next, as cmtime
	// has it.  MeasureResult.StepTook tells how long.
	Lockstep bool

	// Elsewhere: the other end runs in another process, with the same spec.  Both are prepared
	// (NewMeasurement) before either runs.
	Elsewhere bool
}

// MeasureEnd is one end of a measurement in this process.  For latency and bandwidth it is a connected queue
// pair, with its completion queues to itself, and registered memory, of which the first half is sent from
// and read by the peer, the second half received into and written by the peer.
type MeasureEnd struct {
	Role MeasureRole

	ID     *ID // latency, bandwidth
	Memory *MR
	Offset int // of what is used of Memory
	Length int // 0: all of it from Offset
	// RDMA_WRITE and RDMA_READ: the memory that the peer uses (its Address plus Offset, and its Length)
	// and its key, which must allow what is done.
	RemoteAddress uint64
	RemoteLength  uint64
	RemoteKey     uint32

	Provider *Provider // connect
	// Connect.  Passive: where to listen, port 0 for any.  Active: where to connect to, port 0 for the
	// passive end's of the same measurement.
	Address netip.AddrPort
	Source  netip.AddrPort // active; may be zero
	// CPUs are where the end's thread may run; none: anywhere.
	CPUs []int
}

// Measure runs a measurement of one or two ends on native threads and returns what came of it.  READ
// and atomics and unverified, unidirectional WRITE bandwidth need the active end only.
//
// After success nothing is left in the queues.  After an error, which the result then goes with when
// there is one, requests may be: the queue pairs are of no further use.  The error wraps ctx.Err() when
// ctx ended it.  The objects of the ends must not be destroyed meanwhile.
//
// Time is always the wall's.  On a virtual clock, the clock runs with the wall for as long as the
// measurement does.
func Measure(ctx context.Context, spec MeasureSpec, ends ...MeasureEnd) (*MeasureResult, error) {
	if ctx.Err() != nil {
		return nil, cancelled(ctx, measureOp, "the end of the measurement")
	}
	m, err := NewMeasurement(spec, ends...)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Run(ctx)
}
