package verb

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rdmarun/rdmacore"
)

// knobArguments are the arguments by the knobs of the core that they turn, where the names differ in more
// than their writing.
var knobArguments = map[string]string{
	"Kind": "kind", "Operation": "op", "Bidirectional": "bidirectional", "Size": "sizes", "Iterations": "iterations",
	"Duration": "duration", "WarmupIterations": "warmup_iterations", "WarmupDuration": "warmup", "Depth": "depth",
	"ReceiveDepth": "receive_depth", "PostList": "post_list", "ReceivePostList": "receive_post_list",
	"SignalEvery": "signal_every", "PollBatch": "poll_batch", "Inline": "inline", "Completion": "completion",
	"Outstanding": "outstanding", "Verify": "verify", "Gap": "gap", "RateBits": "rate_limit",
	"RateMessages": "rate_messages", "Burst": "burst", "SampleEvery": "sample_every", "HistogramDigits": "histogram",
	"HistogramMax": "histogram", "InFlight": "in_flight", "ErrorsMax": "errors_max", "Timeout": "resolve", "Lockstep": "lockstep",
}

// checkMeasure asks the core whether the knobs go together.
func checkMeasure(call *Call) *Refusal {
	if call.later("kind") || call.later("op") || call.Text("kind") == "" {
		return nil
	}
	if refusal := checkKind(call); refusal != nil {
		return refusal
	}
	sizes, _ := call.argument("sizes").([]int)
	if sizes == nil {
		sizes = []int{atomicBytes} // of connections, or known later
	}
	for _, size := range sizes {
		spec, refusal := measureSpec(call, size)
		if refusal == nil {
			refusal = refusalOf(spec.Check())
		}
		if refusal != nil {
			return refusal
		}
	}
	return nil
}

// checkKind looks at what is not a knob of the core, or has another name there.
func checkKind(call *Call) *Refusal {
	kind := call.Text("kind")
	connect := kind == rdmacore.MeasureConnect.String()
	if from := call.Text("from"); from != "" && from == call.Text("to") {
		return &Refusal{Argument: "to", Message: fmt.Sprintf("a measurement has two ends, and this is %q twice", from)}
	}
	for _, each := range []struct {
		name, instead string
		refused       bool
	}{
		{"iterations", "connections: .. says how many", connect},
		{"op", "connections have no operation", connect},
		{"sizes", "connections have no size", connect},
		{"builders", "connections post nothing", connect},
		{"connections", "iterations: .. or duration: .. says how long", !connect},
		{"qps", "it means something for bandwidth", kind != rdmacore.MeasureBandwidth.String()},
	} {
		if each.refused && call.Has(each.name) {
			return &Refusal{Argument: each.name, Meaningless: true, Message: "has no meaning for " + kind, Hint: each.instead}
		}
	}
	if connect {
		return nil
	}
	for _, each := range []struct{ name, hint string }{{"op", "op: SEND"}, {"sizes", "sizes: [64, 4KiB], or sizes: {pow2: [2, 8MiB]}"}} {
		if !call.Has(each.name) {
			return &Refusal{Argument: each.name, Message: kind + " needs it", Hint: each.hint}
		}
	}
	return nil
}

// refusalOf is the core's refusal in words of the language.
func refusalOf(err error) *Refusal {
	var knob *rdmacore.MeasureKnobError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &knob):
		return &Refusal{Argument: "kind", Message: err.Error()}
	}
	message := knob.Err.Error()
	var errno syscall.Errno
	if errors.As(knob.Err, &errno) {
		message = strings.TrimSuffix(message, fmt.Sprintf(" (%s)", errno.Error()))
	}
	argument := knobArguments[knob.Knob]
	if argument == "" {
		argument, message = "kind", knob.Knob+": "+message
	}
	return &Refusal{Argument: argument, Meaningless: knob.Meaningless, Message: message}
}

// measureSpec is what the core is told.
func measureSpec(call *Call, size int) (rdmacore.MeasureSpec, *Refusal) {
	spec := rdmacore.MeasureSpec{
		Bidirectional:    call.Boolean("bidirectional"),
		Iterations:       uint64(max(call.Integer("iterations"), call.Integer("connections"))),
		Duration:         call.Duration("duration"),
		WarmupIterations: uint64(call.Integer("warmup_iterations")),
		WarmupDuration:   call.Duration("warmup"),
		Depth:            call.Integer("depth"),
		ReceiveDepth:     call.Integer("receive_depth"),
		PostList:         call.Integer("post_list"),
		ReceivePostList:  call.Integer("receive_post_list"),
		SignalEvery:      call.Integer("signal_every"),
		PollBatch:        call.Integer("poll_batch"),
		Outstanding:      call.Integer("outstanding"),
		Verify:           call.Text("verify") == verifyData,
		Gap:              call.Duration("gap"),
		RateMessages:     uint64(call.Integer("rate_messages")),
		Burst:            call.Integer("burst"),
		SampleEvery:      call.Duration("sample_every"),
		InFlight:         call.Integer("in_flight"),
		ErrorsMax:        call.Integer("errors_max"),
		Timeout:          call.Duration("resolve"),
		Lockstep:         call.Boolean("lockstep"),
	}
	var err error
	if spec.Kind, err = rdmacore.ParseMeasureKind(call.Text("kind")); err != nil {
		return spec, &Refusal{Argument: "kind", Message: err.Error()}
	}
	if spec.Kind != rdmacore.MeasureConnect {
		spec.Size = size
		if spec.Operation, err = rdmacore.ParseOpcode(call.Text("op")); err != nil {
			return spec, &Refusal{Argument: "op", Message: err.Error()}
		}
	}
	if spec.Iterations == 0 && spec.Duration == 0 {
		spec.Iterations = 1 // known later
	}
	if spec.Iterations != 0 {
		spec.Duration = 0 // who gives both is told that they are of one group
	}
	if word := call.Text("completion"); word != "" {
		if spec.Completion, err = rdmacore.ParseMeasureCompletion(word); err != nil {
			return spec, &Refusal{Argument: "completion", Message: err.Error()}
		}
	}
	if rate, given := call.argument("rate_limit").(float64); given {
		if rate < 1 || rate > math.MaxInt64 {
			return spec, &Refusal{Argument: "rate_limit", Message: fmt.Sprintf("%g bit/s is out of range", rate)}
		}
		spec.RateBits = uint64(rate)
	}
	histogram := call.options("histogram")
	spec.HistogramDigits, _ = histogram["digits"].(int)
	spec.HistogramMax, _ = histogram["max"].(time.Duration)
	spec.Inline, err = inlineOf(call.Text("inline"))
	if err != nil {
		return spec, &Refusal{Argument: "inline", Message: err.Error(), Hint: "inline: auto, or inline: 64"}
	}
	if spec.Inline == rdmacore.InlineAuto && spec.Operation != rdmacore.OpSend && spec.Operation != rdmacore.OpRDMAWrite {
		spec.Inline = 0 // only these carry data out, ibv_post_send(3)
	}
	return spec, nil
}

func inlineOf(word string) (int, error) {
	switch word {
	case "":
		return 0, nil
	case inlineAuto:
		return rdmacore.InlineAuto, nil
	}
	n, err := strconv.ParseUint(word, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("wanted is auto or a number of bytes, and this is %q", word)
	}
	return int(n), nil
}

// options are the values of an argument of type Options; a nil map has none.
func (c *Call) options(name string) map[string]any {
	values, _ := c.argument(name).(map[string]any)
	return values
}

// measureSizes are the sizes in turn; a measurement of connections has one turn, without a size.
func measureSizes(call *Call) []int {
	if sizes, _ := call.argument("sizes").([]int); sizes != nil {
		return slices.Clone(sizes)
	}
	return []int{0}
}
