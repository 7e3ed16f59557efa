package rdmacore

// #include "measure/measure.h"
import "C"

import (
	"fmt"
	"slices"
	"syscall"
	"time"
	"unsafe"
)

// MeasureStep is what has a histogram of its own: the sample of a latency, or a step of a connection.
type MeasureStep int

// Steps of connections, as cmtime has them.
const (
	StepTotal        MeasureStep = C.CORE_MEASURE_STEP_TOTAL // latency: the sample; connect: all steps
	StepCreateID     MeasureStep = C.CORE_MEASURE_STEP_CREATE_ID
	StepResolveAddr  MeasureStep = C.CORE_MEASURE_STEP_RESOLVE_ADDR
	StepResolveRoute MeasureStep = C.CORE_MEASURE_STEP_RESOLVE_ROUTE
	StepCreateQP     MeasureStep = C.CORE_MEASURE_STEP_CREATE_QP
	StepConnect      MeasureStep = C.CORE_MEASURE_STEP_CONNECT    // until ESTABLISHED
	StepDisconnect   MeasureStep = C.CORE_MEASURE_STEP_DISCONNECT // until DISCONNECTED
	StepDestroy      MeasureStep = C.CORE_MEASURE_STEP_DESTROY
)

var measureStepNames = names[MeasureStep]{"measure step", []named[MeasureStep]{
	{StepTotal, "total"}, {StepCreateID, "create_id"}, {StepResolveAddr, "resolve_addr"},
	{StepResolveRoute, "resolve_route"}, {StepCreateQP, "create_qp"}, {StepConnect, "connect"},
	{StepDisconnect, "disconnect"}, {StepDestroy, "destroy"},
}}

func (s MeasureStep) String() string { return measureStepNames.name(s) }

// Interval is what one end did in one interval of the timed part; a receiver of a one-way measurement
// counts what it received.
type Interval struct {
	Begin, End time.Duration // since the begin of the timed part
	Messages   uint64
	Bytes      uint64
}

// MeasureEndResult is what one end did.
type MeasureEndResult struct {
	Role MeasureRole

	// Of the timed part: what was transmitted, round trips, or connections.
	Messages uint64
	Bytes    uint64
	Elapsed  time.Duration
	// Begin is when the timed part began, on CLOCK_MONOTONIC: it shows how several measurements overlapped.
	Begin time.Duration
	// In all, warm-up included: a receiver cannot see when that ended.
	ReceivedMessages uint64
	ReceivedBytes    uint64
	Verified         uint64 // messages with contents that were checked and right
	Failed           uint64 // connections

	// Processor time of this end's thread in Elapsed.
	UserTime   time.Duration
	SystemTime time.Duration

	Intervals []Interval // with MeasureSpec.SampleEvery
}

// MeasureResult is what came of a measurement.
type MeasureResult struct {
	Spec MeasureSpec        // with the defaults that were taken
	Ends []MeasureEndResult // in the order in which they were given

	// Histograms has StepTotal for latency, every step for connect, nothing for bandwidth.
	Histograms map[MeasureStep]*Histogram
	// StepTook is, in lockstep, how long each step of all connections of the timed part took.
	StepTook map[MeasureStep]time.Duration
}

// outcome copies the results; the threads are joined.
func (m *Measurement) outcome() *MeasureResult {
	r := &MeasureResult{
		Spec: m.usedSpec(), Histograms: make(map[MeasureStep]*Histogram), StepTook: make(map[MeasureStep]time.Duration),
	}
	for i, end := range m.ends {
		var c C.struct_core_measure_result
		C.core_measure_get(m.c, C.uint32_t(i), &c)
		r.Ends = append(r.Ends, MeasureEndResult{
			Role:             end.Role,
			Messages:         uint64(c.messages),
			Bytes:            uint64(c.bytes),
			Elapsed:          time.Duration(c.elapsed_ns),
			Begin:            time.Duration(c.begin_ns),
			ReceivedMessages: uint64(c.received_messages),
			ReceivedBytes:    uint64(c.received_bytes),
			Verified:         uint64(c.verified),
			Failed:           uint64(c.failed),
			UserTime:         time.Duration(c.cpu_user_ns),
			SystemTime:       time.Duration(c.cpu_system_ns),
			Intervals:        m.intervals(i),
		})
		for _, row := range measureStepNames.rows {
			step := C.uint32_t(row.value)
			if h := fromCHistogram(C.core_measure_histogram(m.c, C.uint32_t(i), step)); h != nil {
				r.Histograms[row.value] = h
			}
			if took := time.Duration(c.step_ns[row.value]); took > 0 {
				r.StepTook[row.value] = took
			}
		}
	}
	return r
}

func (m *Measurement) intervals(end int) []Interval {
	var count C.uint32_t
	first := C.core_measure_samples(m.c, C.uint32_t(end), &count)
	var intervals []Interval
	for _, sample := range unsafe.Slice(first, uint32(count)) {
		intervals = append(intervals, Interval{
			Begin:    time.Duration(sample.begin_ns),
			End:      time.Duration(sample.end_ns),
			Messages: uint64(sample.messages),
			Bytes:    uint64(sample.bytes),
		})
	}
	return slices.Clip(intervals)
}

// usedSpec is the spec with the defaults that C filled in.
func (m *Measurement) usedSpec() MeasureSpec {
	var c C.struct_core_measure_spec
	C.core_measure_used(m.c, &c)
	s := m.spec
	s.Depth, s.ReceiveDepth = int(c.depth), int(c.receive_depth)
	s.PostList, s.ReceivePostList = int(c.post_list), int(c.receive_post_list)
	s.SignalEvery, s.PollBatch = int(c.signal_every), int(c.poll_batch)
	s.Burst, s.SamplesMax = int(c.burst), int(c.samples_max)
	s.HistogramDigits = int(c.histogram_digits)
	s.HistogramMax = time.Duration(c.histogram_highest_ns)
	s.InFlight, s.Timeout = int(c.in_flight), time.Duration(c.timeout_ms)*time.Millisecond
	return s
}

// MeasureError is why a measurement failed in its course.
type MeasureError struct {
	Role    MeasureRole // of the end that failed
	Message uint64      // the number of the message or connection, from 0, warm-up included
	Errno   syscall.Errno
	What    string // for example "SEND completed with RNR_RETRY_EXC_ERR"
	Why     string // what it means and what helps, or ""

	// Status is that of the completion that failed; WCSuccess when it was something else.
	Status WCStatus
	Opcode WCOpcode
	WRID   uint64
	// Event and EventStatus are of connections that failed with an event; else 0 and 0.
	Event       EventType
	EventStatus int
	Step        MeasureStep
}

func (e *MeasureError) Error() string {
	text := fmt.Sprintf("%s: %s end: message %d: %s", measureOp, e.Role, e.Message, e.What)
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Unwrap returns the errno.
func (e *MeasureError) Unwrap() error { return e.Errno }

var measureRoleNames = names[MeasureRole]{"measure role", []named[MeasureRole]{
	{MeasureActive, "active"}, {MeasurePassive, "passive"},
}}

func (r MeasureRole) String() string { return measureRoleNames.name(r) }

var measureKindNames = names[MeasureKind]{"measure kind", []named[MeasureKind]{
	{MeasureLatency, "latency"}, {MeasureBandwidth, "bandwidth"}, {MeasureConnect, "connect"},
}}

func (k MeasureKind) String() string { return measureKindNames.name(k) }

// ParseMeasureKind is the reverse of String.
func ParseMeasureKind(name string) (MeasureKind, error) { return measureKindNames.parse(name) }

var measureCompletionNames = names[MeasureCompletion]{"measure completion", []named[MeasureCompletion]{
	{MeasurePoll, "poll"}, {MeasureEvent, "event"},
}}

func (c MeasureCompletion) String() string { return measureCompletionNames.name(c) }

// ParseMeasureCompletion is the reverse of String.
func ParseMeasureCompletion(name string) (MeasureCompletion, error) {
	return measureCompletionNames.parse(name)
}

// endError is the error of one end, nil when it has none.
func (m *Measurement) endError(end int) *MeasureError {
	var result C.struct_core_measure_result
	C.core_measure_get(m.c, C.uint32_t(end), &result)
	c := &result.error
	if c.result == 0 {
		return nil
	}
	e := &MeasureError{Role: m.ends[end].Role, Message: uint64(c.message), Errno: syscall.Errno(-c.result),
		Step: MeasureStep(c.step)}
	switch c.stage {
	case C.CORE_MEASURE_POST_SEND:
		e.What = "ibv_post_send: " + e.Errno.Error()
	case C.CORE_MEASURE_POST_RECV:
		e.What = "ibv_post_recv: " + e.Errno.Error()
	case C.CORE_MEASURE_POLL_CQ:
		e.What = "ibv_poll_cq failed"
	case C.CORE_MEASURE_COMPLETION:
		e.Status, e.Opcode, e.WRID = WCStatus(c.wc_status), WCOpcode(c.wc_opcode), uint64(c.wr_id)
		e.What = fmt.Sprintf("%s completed with %s", e.Opcode, e.Status)
		e.Why = measureStatusReason(e.Status)
	case C.CORE_MEASURE_FOREIGN:
		e.WRID = uint64(c.wr_id)
		e.What = fmt.Sprintf("a completion with wr_id %#x that is not the measurement's", e.WRID)
		e.Why = "completions of earlier requests must be polled first, and the queues be its own"
	case C.CORE_MEASURE_LENGTH:
		e.What = fmt.Sprintf("a message of %d bytes", uint64(c.detail))
		e.Why = fmt.Sprintf("%d were to come; do both ends have the same spec?", m.spec.Size)
	case C.CORE_MEASURE_CONTENTS:
		e.What = fmt.Sprintf("wrong contents from byte %d on", uint64(c.detail))
	case C.CORE_MEASURE_PROTOCOL:
		e.What = fmt.Sprintf("immediate data %#x, which no measurement sends", uint64(c.detail))
	case C.CORE_MEASURE_NOTIFY:
		e.What = "waiting for a completion event: " + e.Errno.Error()
	case C.CORE_MEASURE_CALL:
		e.What = e.Step.function() + ": " + e.Errno.Error()
	case C.CORE_MEASURE_EVENT_ERROR:
		e.Event, e.EventStatus = EventType(c.event), int(c.event_status)
		e.What = fmt.Sprintf("%s with status %s while waiting for the end of %s", e.Event,
			StatusString(e.Event, e.EventStatus, PortSpaceTCP), e.Step)
	default:
		e.What = e.Errno.Error()
	}
	return e
}

// function is what the man pages call the step.
func (s MeasureStep) function() string {
	switch s {
	case StepTotal:
		return "rdma_get_cm_event"
	case StepCreateID, StepDestroy:
		return "rdma_create_id, rdma_bind_addr or rdma_listen"
	}
	return "rdma_" + s.String()
}

// measureStatusReason explains a status of a completion in a measurement.
func measureStatusReason(status WCStatus) string {
	switch status {
	case WCRNRRetryExcErr:
		return "the peer had no receive posted; is its end running, with the same spec, and is " +
			"rnr_retry_count 7?"
	case WCRetryExcErr:
		return "the peer does not answer: it is gone, or the path is down"
	case WCRemAccessErr:
		return "the peer's memory does not allow it: check RemoteAddress, RemoteLength, RemoteKey and the " +
			"access of its MR"
	case WCRemInvReqErr:
		return "the peer cannot do what was asked: a receive that is too short, or no responder resources"
	case WCLocQPOpErr:
		return "this queue pair cannot do it: READs need an initiator depth above 0"
	case WCLocProtErr, WCLocAccessErr:
		return "the MR does not allow it: receiving and READ need LOCAL_WRITE"
	case WCLocLenErr:
		return "a message was longer than its receive; do both ends have the same spec?"
	case WCWRFlushErr:
		return "the queue pair failed or was disconnected meanwhile"
	}
	return ""
}
