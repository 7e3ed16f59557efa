package verb

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rdmarun/host/scenario/quantity"
	"rdmarun/rdmacore"
)

// measureVerbs measure natively.
var measureVerbs = []Verb{
	ask("measure", "",
		"Measure latency, bandwidth or connections between two roles, natively and on connections of its own: "+
			"nothing of the scenario runs meanwhile.",
		measure).roleless().measuring(),
	ask("mesh", "",
		"Measure many pairs of a counted role's instances, and find those that are worse than the others: the "+
			"bad cable.  In a round no two pairs share an instance.  Bad pairs are measured again, alone, before they "+
			"count; the report says whether one node, host, device or label explains them.",
		meshPairs).roleless().measuring(),
}

// Words of `inline` and `verify`.
const (
	inlineAuto = "auto"
	// maxInline is far above what adapters have; a device refuses less.
	maxInline  = 1<<16 - 1
	verifyData = "data"
)

// measureArguments are what is measured, and how.  A field that sets a knob of the core has its name
// (rdmacore.MeasureSpec). The core decides which argument applies to which kind and operation
// (rdmacore/measure/check.c); the text before the colon repeats it for readers.  A measurement takes a week at most, so
// that a typing mistake does not run forever. Each queue pair has a thread at each end.
type measureArguments struct {
	From roleName `arg:"from,required" doc:"the role that initiates: sends, writes, reads, connects"`
	To   roleName `arg:"to,required" doc:"the role that responds. With bidirectional, it also initiates"`
	measureKnobs
}

// measureKnobs are what is measured and how, for all verbs that measure.
type measureKnobs struct {
	Kind             optional[rdmacore.MeasureKind]       `arg:"kind,required" doc:"latency: one message at a time; bandwidth: as many as the knobs allow; connect: connections made and ended"`
	Operation        optional[rdmacore.Opcode]            `arg:"op" words:"SEND|RDMA_WRITE|RDMA_READ|ATOMIC_FETCH_AND_ADD|ATOMIC_CMP_AND_SWP" doc:"latency, bandwidth: the operation. A sample of SEND and RDMA_WRITE is half of a round trip, of the others a whole one. Atomics work on 8 bytes"`
	Size             optional[sizeList]                   `arg:"sizes" doc:"latency, bandwidth: bytes of a message, each measured in turn"`
	Iterations       optional[int]                        `arg:"iterations" group:"iterations, duration, stages or connections" min:"1" max:"0x400000000000" doc:"latency, bandwidth: round trips, or messages of each direction, of each size and queue pair"`
	Duration         time.Duration                        `arg:"duration" group:"iterations, duration, stages or connections" min:"1ns" max:"168h" doc:"how long each size is measured"`
	Stages           []stageArguments                     `arg:"stages" group:"iterations, duration, stages or connections" doc:"parts of the measurement that follow each other, each with a load of its own: [{for: 10s, depth: 1}, {for: 30s, depth: 64}].  Each size goes through all of them, after one warm-up.  Each stage has its own results, with the tag 'stage'.  Intervals are a quarter of the shortest stage, at most 1 s, unless sample_every sets them.  Not of a mesh"`
	Connections      optional[int]                        `arg:"connections" group:"iterations, duration, stages or connections" min:"1" max:"0x100000000" doc:"connect: how many are made"`
	WarmupDuration   time.Duration                        `arg:"warmup" min:"1ns" max:"168h" doc:"time before the timed part, not counted; default none"`
	WarmupIterations int                                  `arg:"warmup_iterations" min:"1" max:"0x400000000000" doc:"round trips or messages before the timed part, not counted; default none"`
	QPs              optional[int]                        `arg:"qps" min:"1" max:"64" doc:"bandwidth: queue pairs that transmit at once, each with a thread at either end; default 1"`
	Depth            int                                  `arg:"depth" min:"1" max:"0x10000" doc:"bandwidth: requests in flight of each queue pair; default 128, of RDMA_WRITE and RDMA_READ with verify 16"`
	ReceiveDepth     int                                  `arg:"receive_depth" min:"1" max:"0x10000" doc:"SEND: receives posted; default 128, for latency 16"`
	PostList         int                                  `arg:"post_list" min:"1" max:"4096" doc:"bandwidth: requests a post; default 1"`
	ReceivePostList  int                                  `arg:"receive_post_list" min:"1" max:"4096" doc:"bandwidth of SEND: receives a post; default 1"`
	SignalEvery      int                                  `arg:"signal_every" min:"1" max:"0x10000" doc:"latency, bandwidth: every n-th request is signaled; default 1"`
	PollBatch        int                                  `arg:"poll_batch" min:"1" max:"64" doc:"latency, bandwidth: completions a poll; default 16, for latency 1"`
	Outstanding      int                                  `arg:"outstanding" min:"1" max:"0x10000" doc:"bandwidth of RDMA_READ and ATOMIC_FETCH_AND_ADD and ATOMIC_CMP_AND_SWP: requests in flight, if fewer than depth"`
	Inline           string                               `arg:"inline" doc:"SEND and RDMA_WRITE: messages up to this size go inline (default none). auto: as large as the queue pair accepts"`
	Builders         optional[bool]                       `arg:"builders" doc:"latency, bandwidth: post by the builders of ibv_wr_post(3), which devices implement separately (default: by ibv_post_send(3))"`
	Completion       optional[rdmacore.MeasureCompletion] `arg:"completion" doc:"latency, bandwidth: poll without a pause (default), or sleep on the completion channel"`
	Bidirectional    bool                                 `arg:"bidirectional" doc:"bandwidth: both ends transmit"`
	Gap              time.Duration                        `arg:"gap" min:"1ns" max:"168h" doc:"latency: pause between round trips; default none"`
	RateBits         optional[rate]                       `arg:"rate_limit" doc:"bandwidth: limit of bits a second for each direction and queue pair; default none"`
	RateMessages     int                                  `arg:"rate_messages" min:"1" max:"0x10000000000" doc:"bandwidth: limit of messages a second for each direction and queue pair; default none"`
	Burst            int                                  `arg:"burst" min:"1" max:"0x10000" doc:"bandwidth: with one of these limits, messages that may be sent at once; default post_list"`
	Verify           string                               `arg:"verify" words:"none|data" doc:"SEND and RDMA_WRITE and RDMA_READ: data checks the contents of messages. It checks each message of a latency, of SEND and of RDMA_READ. For a bandwidth of RDMA_WRITE the receiver gets no completions. So it checks only the last ones at the end, as many as depth for each size, queue pair and direction"`
	SampleEvery      time.Duration                        `arg:"sample_every" min:"1ns" max:"168h" doc:"record the work of each such interval, for the minimum and the maximum of them"`
	Histogram        histogramArguments                   `arg:"histogram" doc:"latency, connect: how times are counted"`
	InFlight         int                                  `arg:"in_flight" min:"1" max:"4096" doc:"connect: connections under way at once; default 1"`
	Lockstep         bool                                 `arg:"lockstep" doc:"connect: all connections under way complete a step before any begins the next. The results then have each step's rate"`
	ErrorsMax        int                                  `arg:"errors_max" max:"0x40000000" doc:"connect: connections that may fail before the measurement does; default 0"`
	MinMessages      optional[int]                        `arg:"min_messages" max:"0x400000000000" doc:"messages, round trips or connections of each size that each end must complete in the timed part (default 1; 0 allows none)"`
	Timeout          time.Duration                        `arg:"resolve" min:"1ns" max:"1m" doc:"connect: time for the address and for the route each; default 2s"`
}

// histogramArguments are how times are counted.
type histogramArguments struct {
	HistogramDigits int            `arg:"digits" min:"1" max:"5" doc:"significant digits; default 3"`
	HistogramMax    time.Duration  `arg:"max" min:"2ns" max:"168h" doc:"longer times count as this; default 1m"`
	Keep            optional[bool] `arg:"keep" doc:"the records have the whole histogram; default true"`
}

// measured is the result of a measurement.
type measured struct {
	Messages int  `result:"messages" doc:"messages of both directions, round trips or connections, in the timed parts of all sizes"`
	Bytes    int  `result:"bytes" doc:"transmitted in them"`
	Verified int  `result:"verified" doc:"messages with contents that were checked and right, warm-up included"`
	Errors   int  `result:"errors" doc:"connections that failed"`
	Cut      bool `result:"cut" doc:"a threshold with abort_on_fail ended it early"`
}

func (m measured) summary() string {
	if m.Cut {
		return fmt.Sprintf("ended early by a threshold after %d messages", m.Messages)
	}
	return fmt.Sprintf("%d messages, %s", m.Messages, quantity.Bytes(int64(m.Bytes)))
}

func (a *measureKnobs) needs() string {
	if op := a.Operation.Value; op == rdmacore.OpAtomicFetchAndAdd || op == rdmacore.OpAtomicCmpAndSwp {
		return CanAtomic
	}
	return ""
}

// argumentOf is the argument that sets a knob of the core; "" if none does.
func argumentOf(knob string) string {
	if strings.HasPrefix(knob, "Histogram") {
		knob = "Histogram"
	}
	field, _ := reflect.TypeFor[measureArguments]().FieldByName(knob)
	name, _, _ := strings.Cut(field.Tag.Get("arg"), ",")
	return name
}

// check asks the core whether the knobs go together.
func (a *measureArguments) check() *Refusal {
	if !a.Kind.known() || a.Operation.Deferred {
		return nil
	}
	_, refusal := a.parts()
	return refusal
}

// specs are the measurements of each size for the core, without stages.
func (a *measureArguments) specs() ([]rdmacore.MeasureSpec, *Refusal) {
	if refusal := a.checkKind(); refusal != nil {
		return nil, refusal
	}
	sizes := a.Size.Value
	if sizes == nil {
		sizes = sizeList{atomicBytes} // of connections, which have none, or known later
	}
	var specs []rdmacore.MeasureSpec
	for _, size := range sizes {
		spec, refusal := a.spec(size)
		if refusal == nil {
			refusal = refusalOf(spec.Check())
		}
		if refusal != nil {
			return nil, refusal
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// checkKind checks arguments that the core does not have, or has by another name.
func (a *measureArguments) checkKind() *Refusal {
	kind := a.Kind.Value
	connect := kind == rdmacore.MeasureConnect
	if a.From != "" && a.From == a.To {
		return &Refusal{
			Argument: "to", Message: fmt.Sprintf("a measurement has two ends, and this is %q twice", a.From),
		}
	}
	for _, each := range []struct {
		name, instead  string
		refused, given bool
	}{
		{"iterations", "connections: .. says how many", connect, a.Iterations.Given},
		{"op", "connections have no operation", connect, a.Operation.Given},
		{"sizes", "connections have no size", connect, a.Size.Given},
		{"builders", "connections post nothing", connect, a.Builders.Given},
		{"depth", "in_flight: .. says how many connections are under way", connect, a.Depth != 0},
		{"connections", "iterations: .., duration: .. or stages: .. says how long", !connect, a.Connections.Given},
		{"qps", "it means something for bandwidth", kind != rdmacore.MeasureBandwidth, a.QPs.Given},
	} {
		if each.refused && each.given {
			return &Refusal{
				Argument: each.name, Meaningless: true, Message: "has no meaning for " + kind.String(),
				Hint: each.instead,
			}
		}
	}
	switch {
	case connect:
	case !a.Operation.Given:
		return &Refusal{Argument: "op", Message: kind.String() + " needs it", Hint: "op: SEND"}
	case !a.Size.Given:
		return &Refusal{
			Argument: "sizes", Message: kind.String() + " needs it",
			Hint: "sizes: [64, 4KiB], or sizes: {pow2: [2, 8MiB]}",
		}
	}
	return nil
}

// refusalOf is the core's refusal in terms of arguments.
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
	argument := argumentOf(knob.Knob)
	if argument == "" {
		argument, message = "kind", knob.Knob+": "+message
	}
	return &Refusal{Argument: argument, Meaningless: knob.Meaningless, Message: message}
}

// spec is the measurement of one size.
func (a *measureArguments) spec(size int) (rdmacore.MeasureSpec, *Refusal) {
	var spec rdmacore.MeasureSpec
	assign(&spec, a)
	assign(&spec, &a.Histogram)
	spec.Iterations = uint64(max(a.Iterations.Value, a.Connections.Value))
	spec.Verify = a.Verify == verifyData
	if spec.Kind != rdmacore.MeasureConnect {
		spec.Size = size
	}
	if spec.Iterations == 0 && spec.Duration == 0 {
		spec.Iterations = 1 // known later
	}
	if spec.Iterations != 0 {
		spec.Duration = 0 // to give both is an error of their group, reported elsewhere
	}
	if limit := float64(a.RateBits.Value); a.RateBits.known() && (limit < 1 || limit >= math.MaxInt64) {
		return spec, &Refusal{Argument: "rate_limit", Message: fmt.Sprintf("%g bit/s is out of range", limit)}
	}
	switch n, ok := bytesOf(a.Inline); {
	case a.Inline == "":
	case a.Inline == inlineAuto:
		spec.Inline = rdmacore.InlineAuto
	case !ok:
		return spec, &Refusal{
			Argument: "inline", Message: fmt.Sprintf("must be auto or a number of bytes, not %q", a.Inline),
			Hint: "inline: auto, or inline: 64",
		}
	case n > maxInline:
		return spec, &Refusal{
			Argument: "inline", Message: fmt.Sprintf("%s is more than %d bytes", a.Inline, maxInline),
			Hint: "inline: auto takes as many as the queue pair accepts",
		}
	default:
		spec.Inline = n
	}
	if spec.Inline == rdmacore.InlineAuto && spec.Operation != rdmacore.OpSend &&
		spec.Operation != rdmacore.OpRDMAWrite {
		spec.Inline = 0 // only these carry data out, ibv_post_send(3)
	}
	return spec, nil
}

// bytesOf reads a size, 64 or 1KiB.
func bytesOf(text string) (bytes int, ok bool) {
	n, err := strconv.Atoi(text)
	if err == nil {
		return n, n >= 0
	}
	n, problem := quantity.ParseSize(text)
	return n, problem == nil
}
