package verb

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/record"
	"rdmarun/rdmacore"
)

// measureCall has the least that a measurement of a kind needs.
func measureCall(kind, op string) *Call {
	v := NewTable().Lookup("measure")
	call := &Call{Verb: v, Arguments: make([]any, len(v.Arguments))}
	set(call, "kind", kind)
	set(call, "from", "client")
	set(call, "to", "server")
	if kind == "connect" {
		set(call, "connections", 10)
		return call
	}
	set(call, "op", op)
	set(call, "sizes", []int{atomicBytes})
	set(call, "iterations", 10)
	return call
}

func set(call *Call, name string, value any) { call.Arguments[call.Verb.Argument(name)] = value }

// turned is a value that turns a knob.
func turned(a *Argument) any {
	switch a.Type {
	case Integer:
		return int(max(a.Min, 1))
	case Duration:
		return time.Second
	case Boolean:
		return true
	case Rate:
		return 1e9
	case Options:
		return map[string]any{"digits": 2}
	case Word:
		return a.Words[len(a.Words)-1]
	case Text:
		return "16"
	}
	return nil
}

// TestMeasureMeanings holds what the documentation says of where a knob means something against what the core
// takes.
func TestMeasureMeanings(t *testing.T) {
	// The other arguments that an argument needs.
	needs := map[string]string{"burst": "rate_messages"}
	row := NewTable().Lookup("measure")
	for _, kind := range namesOf(rdmacore.ParseMeasureKind) {
		for _, op := range row.Arguments[row.Argument("op")].Words {
			for i := range row.Arguments {
				call := measureCall(kind, op)
				argument := &call.Verb.Arguments[i]
				if call.Arguments[i] != nil || argument.Group != "" || turned(argument) == nil {
					continue
				}
				call.Arguments[i] = turned(argument)
				if other := needs[argument.Name]; other != "" {
					set(call, other, 1000)
				}
				refusal := call.Verb.Check(call)
				if argument.Name == "completion" && kind == "latency" && op == "RDMA_WRITE" {
					if refusal == nil || refusal.Argument != "completion" {
						t.Errorf("completion of WRITE latency: %+v", refusal)
					}
					continue
				}
				if means := documented(argument, kind, op); means != (refusal == nil) {
					t.Errorf("%s of %s %s: documented %t, %+v", argument.Name, kind, op, means, refusal)
				} else if refusal != nil && refusal.Argument != argument.Name &&
					refusal.Argument != needs[argument.Name] {
					t.Errorf("%s of %s %s: %+v", argument.Name, kind, op, refusal)
				}
			}
		}
	}
}

// documented reads the text before the colon: kinds, "OP and OP", or "KIND of OP".
func documented(a *Argument, kind, op string) bool {
	where, _, found := strings.Cut(a.Doc, ": ")
	if !found {
		return true
	}
	kinds, operations, both := strings.Cut(where, " of ")
	if !both && where[0] >= 'A' && where[0] <= 'Z' {
		kinds, operations = "latency, bandwidth", where
	}
	if !slices.Contains(strings.Split(kinds, ", "), kind) {
		return false
	}
	return operations == "" || slices.Contains(strings.Split(operations, " and "), op)
}

// TestMeasureRefusals: what goes wrong names the argument that it is about.
func TestMeasureRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		kind, op string
		values   map[string]any
		argument string
	}{
		"one role":              {"latency", "SEND", map[string]any{"to": "client"}, "to"},
		"no operation":          {"latency", "SEND", map[string]any{"op": nil}, "op"},
		"no size":               {"bandwidth", "SEND", map[string]any{"sizes": nil}, "sizes"},
		"iterations":            {"connect", "", map[string]any{"iterations": 5}, "iterations"},
		"connections":           {"latency", "SEND", map[string]any{"connections": 5}, "connections"},
		"inline":                {"latency", "SEND", map[string]any{"inline": "a lot"}, "inline"},
		"WRITE latency of 0":    {"latency", "RDMA_WRITE", map[string]any{"sizes": []int{64, 0}}, "sizes"},
		"more than a message":   {"bandwidth", "SEND", map[string]any{"sizes": []int{1 << 32}}, "sizes"},
		"verify nothing":        {"bandwidth", "SEND", map[string]any{"sizes": []int{0}, "verify": "data"}, "verify"},
		"an atomic of 64 bytes": {"latency", "ATOMIC_FETCH_AND_ADD", map[string]any{"sizes": []int{8, 64}}, "sizes"},
		"verify an atomic":      {"bandwidth", "ATOMIC_CMP_AND_SWP", map[string]any{"verify": "data"}, "verify"},
		"two rates": {
			"bandwidth", "SEND", map[string]any{"rate_limit": 1e9, "rate_messages": 5}, "rate_messages",
		},
		"burst without rate":     {"bandwidth", "SEND", map[string]any{"burst": 5}, "burst"},
		"a rate of next to none": {"bandwidth", "SEND", map[string]any{"rate_limit": 0.1}, "rate_limit"},
	} {
		t.Run(name, func(t *testing.T) {
			call := measureCall(test.kind, test.op)
			if refusal := call.Verb.Check(call); refusal != nil {
				t.Fatal(refusal)
			}
			for argument, value := range test.values {
				set(call, argument, value)
			}
			refusal := call.Verb.Check(call)
			if refusal == nil || refusal.Argument != test.argument || refusal.Message == "" ||
				strings.Contains(refusal.Message, "argument)") {
				t.Errorf("%+v", refusal)
			}
		})
	}
	later := measureCall("latency", "SEND")
	later.Deferred = make([]bool, len(later.Arguments))
	later.Deferred[later.Verb.Argument("op")] = true
	set(later, "op", nil)
	if refusal := later.Verb.Check(later); refusal != nil {
		t.Errorf("an operation that only the run knows: %+v", refusal)
	}
}

// TestMeasureTypes: records call the types of measurements as the core does.
func TestMeasureTypes(t *testing.T) {
	for kind, name := range map[rdmacore.MeasureKind]string{
		rdmacore.MeasureLatency: record.LatencyType, rdmacore.MeasureBandwidth: record.BandwidthType,
		rdmacore.MeasureConnect: record.ConnectType,
	} {
		if kind.String() != name {
			t.Errorf("%s is %s in records", kind, name)
		}
	}
}

// TestCutBeforeAPairBegan: a threshold may end a measurement before some of its queue pairs have begun.  The others
// have results.
func TestCutBeforeAPairBegan(t *testing.T) {
	call := measureCall("bandwidth", "SEND")
	var found []*record.Measure
	call.Measured = func(each []*record.Measure) { found = each }
	m := &measuring{call: call, args: new(measureArguments)}
	m.args.Bidirectional, m.sums.Cut = true, true
	began := &rdmacore.MeasureResult{Ends: []rdmacore.MeasureEndResult{
		{Role: rdmacore.MeasureActive, Messages: 7, Verified: 3, Elapsed: time.Second},
		{Role: rdmacore.MeasurePassive, Messages: 5, Verified: 2, Elapsed: time.Second},
	}}
	m.report([]*rdmacore.MeasureResult{nil, began, nil}, nil)
	if len(found) != 2 || found[0].Messages != 7 || found[1].Messages != 5 || found[0].QPs != 3 || !found[0].Cut {
		t.Errorf("%+v", found)
	}
	if m.sums.Messages != 12 || m.sums.Verified != 5 {
		t.Errorf("%+v", m.sums)
	}
}
