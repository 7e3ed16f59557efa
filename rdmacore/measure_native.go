package rdmacore

// #include "measure/measure.h"
import "C"

import (
	"fmt"
	"math"
	"syscall"
	"time"
	"unsafe"
)

// knob is the Go name of a field of the C spec or end, for errors.
var knobNames = map[string]string{
	"kind": "Kind", "operation": "Operation", "bidirectional": "Bidirectional", "size": "Size",
	"iterations": "Iterations", "duration_ns": "Duration", "depth": "Depth",
	"receive_depth": "ReceiveDepth", "post_list": "PostList", "receive_post_list": "ReceivePostList",
	"signal_every": "SignalEvery", "poll_batch": "PollBatch", "inline_size": "Inline",
	"completion": "Completion", "outstanding": "Outstanding", "verify": "Verify", "gap_ns": "Gap",
	"rate_bits": "RateBits", "rate_messages": "RateMessages", "burst": "Burst",
	"samples_max": "SamplesMax", "sample_ns": "SampleEvery", "histogram_digits": "HistogramDigits",
	"histogram_highest_ns": "HistogramMax", "elsewhere": "Elsewhere", "in_flight": "InFlight",
	"errors_max": "ErrorsMax", "timeout_ms": "Timeout", "lockstep": "Lockstep", "ends": "ends", "role": "Role",
	"qp":     "ID",
	"length": "Length", "remote_length": "RemoteLength", "listen_or_destination": "Address",
}

const measureOp = "measure"

// MeasureKnobError is a spec or an end that was refused; errors.Is finds EINVAL or EOPNOTSUPP in it.
type MeasureKnobError struct {
	Knob string // the field of MeasureSpec or MeasureEnd, or "ends"
	// Meaningless means that no value of the knob applies to the kind and operation.
	Meaningless bool
	Err         error
}

func (e *MeasureKnobError) Error() string { return fmt.Sprintf("%s: %s: %v", measureOp, e.Knob, e.Err) }

// Unwrap returns the reason.
func (e *MeasureKnobError) Unwrap() error { return e.Err }

func knobError(knob string, errno syscall.Errno, format string, args ...any) error {
	return &MeasureKnobError{Knob: knob,
		Err: fmt.Errorf("%s (%w)", fmt.Sprintf(format, args...), errno)}
}

func refusedBy(result int, refusal *C.struct_core_measure_refusal) error {
	knob, why := C.GoString(&refusal.knob[0]), C.GoString(&refusal.why[0])
	errno := syscall.Errno(-result)
	if knob == "" {
		return &Error{Op: measureOp, Errno: errno, Why: why}
	}
	if name, ok := knobNames[knob]; ok {
		knob = name
	}
	return &MeasureKnobError{Knob: knob, Meaningless: bool(refusal.meaningless),
		Err: fmt.Errorf("%s (%w)", why, errno)}
}

// Check reports whether a measurement could be made of the spec, as far as that depends on no queue pair and no
// memory.  The error is that of NewMeasurement for the spec alone, a *MeasureKnobError.
func (s *MeasureSpec) Check() error {
	given, err := s.native()
	if err != nil {
		return err
	}
	var used C.struct_core_measure_spec
	var refusal C.struct_core_measure_refusal
	if result := C.core_measure_check_spec(&given, &used, &refusal); result < 0 {
		return refusedBy(int(result), &refusal)
	}
	return nil
}

// native checks that numbers fit and converts.
func (s *MeasureSpec) native() (C.struct_core_measure_spec, error) {
	var c C.struct_core_measure_spec
	var err error
	count := func(knob string, value int) C.uint32_t {
		if value < 0 || int64(value) >= math.MaxUint32 {
			err = knobError(knob, syscall.EINVAL, "%d is out of range", value)
		}
		return C.uint32_t(value)
	}
	span := func(knob string, value time.Duration) C.uint64_t {
		if value < 0 {
			err = knobError(knob, syscall.EINVAL, "%s is negative", value)
		}
		return C.uint64_t(value)
	}
	if s.Size < 0 {
		return c, knobError("Size", syscall.EINVAL, "%d is negative", s.Size)
	}
	c.struct_size = C.sizeof_struct_core_measure_spec
	c.kind, c.operation = C.uint32_t(s.Kind), C.uint32_t(s.Operation)
	c.bidirectional, c.verify, c.elsewhere = oneIf(s.Bidirectional), oneIf(s.Verify), oneIf(s.Elsewhere)
	c.size = C.uint64_t(s.Size)
	c.iterations, c.warmup_iterations = C.uint64_t(s.Iterations), C.uint64_t(s.WarmupIterations)
	c.duration_ns, c.warmup_ns = span("Duration", s.Duration), span("WarmupDuration", s.WarmupDuration)
	c.depth, c.receive_depth = count("Depth", s.Depth), count("ReceiveDepth", s.ReceiveDepth)
	c.post_list = count("PostList", s.PostList)
	c.receive_post_list = count("ReceivePostList", s.ReceivePostList)
	c.signal_every, c.poll_batch = count("SignalEvery", s.SignalEvery), count("PollBatch", s.PollBatch)
	if s.Inline == InlineAuto {
		c.inline_size = C.CORE_MEASURE_INLINE_AUTO
	} else {
		c.inline_size = count("Inline", s.Inline)
	}
	c.completion = C.uint32_t(s.Completion)
	c.outstanding = count("Outstanding", s.Outstanding)
	c.gap_ns = span("Gap", s.Gap)
	c.rate_bits, c.rate_messages = C.uint64_t(s.RateBits), C.uint64_t(s.RateMessages)
	c.burst = count("Burst", s.Burst)
	c.sample_ns, c.samples_max = span("SampleEvery", s.SampleEvery), count("SamplesMax", s.SamplesMax)
	c.histogram_digits = count("HistogramDigits", s.HistogramDigits)
	c.histogram_highest_ns = span("HistogramMax", s.HistogramMax)
	c.in_flight, c.errors_max = count("InFlight", s.InFlight), count("ErrorsMax", s.ErrorsMax)
	if s.Timeout < 0 {
		return c, knobError("Timeout", syscall.EINVAL, "%s is negative", s.Timeout)
	}
	c.timeout_ms = C.uint32_t(milliseconds(s.Timeout))
	c.lockstep = oneIf(s.Lockstep)
	return c, err
}

func oneIf(value bool) C.uint32_t {
	if value {
		return 1
	}
	return 0
}

// provider is the provider of the end's objects, nil when none of them is open.
func (e *MeasureEnd) provider(kind MeasureKind) *Provider {
	if kind == MeasureConnect {
		if e.Provider == nil || e.Provider.c == nil {
			return nil
		}
		return e.Provider
	}
	if e.ID.QP() == nil {
		return nil
	}
	return e.ID.channel.provider
}

// native checks the Go objects and converts.  The C struct holds addresses of C objects and of Memory
// only, none of which the garbage collector moves or frees.
func (e *MeasureEnd) native(spec *MeasureSpec) (C.struct_core_measure_end, error) {
	var c C.struct_core_measure_end
	c.struct_size = C.sizeof_struct_core_measure_end
	c.role = C.uint32_t(e.Role)
	for _, cpu := range e.CPUs {
		if cpu < 0 || cpu >= C.CORE_MEASURE_CPUS {
			return c, knobError("CPUs", syscall.EINVAL, "there is no CPU %d", cpu)
		}
		c.cpus[cpu/64] |= 1 << (cpu % 64)
	}
	provider := e.provider(spec.Kind)
	if spec.Kind == MeasureConnect {
		if provider == nil {
			return c, closed(measureOp, "provider")
		}
		if e.ID != nil || e.Memory != nil {
			return c, knobError("ID", syscall.EINVAL, "connections are made by the measurement itself")
		}
		c.provider = provider.c
		c.listen_or_destination, c.source = toCAddress(e.Address), toCAddress(e.Source)
		return c, nil
	}
	if provider == nil {
		return c, closed(measureOp, "QP")
	}
	if e.Memory == nil || e.Memory.c == nil {
		return c, closed(measureOp, "MR")
	}
	length := e.Length
	if length == 0 {
		length = e.Memory.length - e.Offset
	}
	if e.Offset < 0 || length < 0 || e.Offset > e.Memory.length || length > e.Memory.length-e.Offset {
		return c, knobError("Length", syscall.EFAULT, "%d bytes from offset %d do not lie in an MR of %d",
			e.Length, e.Offset, e.Memory.length)
	}
	c.provider, c.qp = provider.c, e.ID.qp.c
	c.address = C.uint64_t(uintptr(unsafe.Pointer(e.Memory.c.addr))) + C.uint64_t(e.Offset)
	c.length, c.lkey = C.uint64_t(length), C.uint32_t(e.Memory.LKey())
	c.remote_address, c.remote_length = C.uint64_t(e.RemoteAddress), C.uint64_t(e.RemoteLength)
	c.remote_rkey, c.signals_all = C.uint32_t(e.RemoteKey), oneIf(e.ID.qp.attr.SignalAll)
	c.builder, c.operations = e.ID.qp.builder, C.uint64_t(e.ID.qp.built)
	return c, nil
}
