package verb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/rdmacore"
)

// sampleArguments have a field of each sort that needs no role.
type sampleArguments struct {
	Count    int                        `arg:"count,required" min:"1" max:"0x10" doc:"of 'things', not the thing's"`
	Port     uint16                     `arg:"port" default:"7" doc:"port"`
	Wait     optional[time.Duration]    `arg:"wait" default:"5s" max:"1m" doc:"time"`
	State    optional[rdmacore.QPState] `arg:"state" doc:"state"`
	Side     string                     `arg:"side" words:"send|recv" group:"one" doc:"side"`
	Places   optional[rdmacore.SendOps] `arg:"ops" group:"one" doc:"operations"`
	Text     []byte                     `arg:"data,inline" doc:"data"`
	Requests []struct {
		Size optional[byteCount] `arg:"size" doc:"bytes"`
		ID   uint64              `arg:"id" default:"9" doc:"number"`
	} `arg:"requests" doc:"list"`
}

func (a *sampleArguments) check() *Refusal {
	if a.State.Deferred || a.Wait.Given && a.Wait.Value == 0 {
		return &Refusal{Argument: "state"}
	}
	return nil
}

func (a *sampleArguments) needs() string {
	if a.Places.known() {
		return "device.builders"
	}
	return ""
}

type sampleResult struct {
	Errors int                         `result:"errors,varies,failed" default:"0" doc:"how many"`
	Key    uint32                      `result:"key,hex" doc:"key"`
	Wide   uint64                      `result:"wide" doc:"64 bits"`
	Bytes  byteCount                   `result:"bytes" doc:"bytes"`
	Opcode optional[rdmacore.WCOpcode] `result:"opcode" doc:"what"`
	Status rdmacore.WCStatus           `result:"status" default:"SUCCESS" doc:"how"`
	Access rdmacore.Access             `result:"access" doc:"rights"`
}

func (r sampleResult) summary() string { return fmt.Sprintf("%d errors", r.Errors) }

func sampleVerb(run func(*sampleArguments) (sampleResult, error)) Verb {
	v := ask("sample", "", "", func(_ context.Context, _ *Call, args *sampleArguments) (sampleResult, error) {
		return run(args)
	})
	v.describe(&v)
	return v
}

func TestDefineReadsTags(t *testing.T) {
	v := sampleVerb(nil)
	for name, want := range map[string]Argument{
		"count": {
			Name: "count", Type: Integer, Required: true, Min: 1, Max: 16, Doc: "of `things`, not the thing's",
		},
		"port": {Name: "port", Type: Integer, Default: 7, Max: math.MaxUint16, Doc: "port"},
		"wait": {Name: "wait", Type: Duration, Default: 5 * time.Second, Max: int64(time.Minute), Doc: "time"},
		"side": {Name: "side", Type: Word, Words: []string{"send", "recv"}, Group: "one", Doc: "side"},
		"data": {Name: "data", Type: Data, Inline: true, Doc: "data"},
		"requests": {
			Name: "requests", Type: OptionList, Doc: "list",
			Fields: []Argument{
				{Name: "size", Type: Size, Doc: "bytes"},
				{Name: "id", Type: Unsigned, Default: uint64(9), Doc: "number"},
			},
		},
	} {
		if got := v.Arguments[v.Argument(name)]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if got := v.Arguments[v.Argument("ops")]; got.Type != Words || len(got.Words) < 5 {
		t.Errorf("ops: %+v", got)
	}
	if got := v.Results[v.Result("errors")]; !reflect.DeepEqual(got, Result{
		Name: "errors", Type: Integer, Default: 0, Varies: true, OfFailure: true, Doc: "how many",
	}) {
		t.Errorf("errors: %+v", got)
	}
	if got := v.Results[v.Result("status")]; got.Type != Word || got.Default != "SUCCESS" || len(got.Words) < 10 {
		t.Errorf("status: %+v", got)
	}
}

func TestDefineFillsArgumentsAndResults(t *testing.T) {
	refused := errors.New("refused")
	var failure error
	var seen sampleArguments
	v := sampleVerb(func(args *sampleArguments) (sampleResult, error) {
		seen = *args
		return sampleResult{
			Errors: 3, Key: math.MaxUint32, Wide: math.MaxUint64, Bytes: -1, Opcode: some(rdmacore.WCRDMARead),
			Status: rdmacore.WCWRFlushErr,
			Access: rdmacore.AccessRemoteRead | rdmacore.AccessRemoteWrite,
		}, failure
	})
	call := &Call{Verb: &v, Arguments: make([]any, len(v.Arguments))}
	for name, value := range map[string]any{
		"count": 4, "port": 70, "wait": 2 * time.Second, "state": "RTS", "side": "recv",
		"ops":  []string{"SEND", "RDMA_READ"},
		"data": DataValue{Bytes: []byte("abc")}, "requests": []map[string]any{{"size": 5}, {"id": uint64(1)}},
	} {
		call.Arguments[v.Argument(name)] = value
	}
	if err := v.Run(t.Context(), call); err != nil {
		t.Error(err)
	}
	if seen.Count != 4 || seen.Port != 70 || seen.Wait.Value != 2*time.Second ||
		seen.State != some(rdmacore.QPStateRTS) || seen.Side != "recv" || string(seen.Text) != "abc" {
		t.Errorf("arguments %+v", seen)
	}
	if seen.Places != some(rdmacore.SendOpSend|rdmacore.SendOpRDMARead) {
		t.Errorf("flags %+v", seen.Places)
	}
	if len(seen.Requests) != 2 || seen.Requests[0].Size != some(byteCount(5)) || seen.Requests[0].ID != 9 ||
		seen.Requests[1].Size.Given || seen.Requests[1].ID != 1 {
		t.Errorf("list %+v", seen.Requests)
	}
	want := []any{
		3, math.MaxUint32, uint64(math.MaxUint64), uint64(math.MaxUint64), "RDMA_READ", "WR_FLUSH_ERR",
		"REMOTE_WRITE|REMOTE_READ",
	}
	if !reflect.DeepEqual(call.Outcome.Fields, want) {
		t.Errorf("result %v, want %v", call.Outcome.Fields, want)
	}
	failure = refused
	call = &Call{Verb: &v, Arguments: make([]any, len(v.Arguments))}
	if err := v.Run(t.Context(), call); !errors.Is(err, refused) ||
		!reflect.DeepEqual(call.Outcome.Fields, []any{3, nil, nil, nil, nil, nil, nil}) {
		t.Errorf("of a failure: %v, %v", call.Outcome.Fields, err)
	}
	if seen.State.Given {
		t.Errorf("without arguments: %+v", seen)
	}
}

func TestDefineChecksWhatIsKnown(t *testing.T) {
	v := sampleVerb(nil)
	later := func(name string) *Call {
		call := &Call{Verb: &v, Arguments: make([]any, len(v.Arguments)), Deferred: make([]bool, len(v.Arguments))}
		call.Deferred[v.Argument(name)] = true
		return call
	}
	if v.Check(later("count")) != nil || v.Check(later("state")) == nil {
		t.Error("a value that only the run will know")
	}
	if need := v.Needs(later("ops")); need != "" {
		t.Errorf("needs %q before the operations are known", need)
	}
	known := later("count")
	known.Arguments[v.Argument("ops")] = []string{"SEND"}
	if need := v.Needs(known); need != "device.builders" {
		t.Errorf("needs %q", need)
	}
}

func TestDefineRefusesWrongTags(t *testing.T) {
	for name, read := range map[string]func(){
		"an unknown option": func() {
			argumentsOf(reflect.TypeFor[struct {
				A int `arg:"a,requird" doc:"x"`
			}]())
		},
		"an unknown option of a result": func() {
			resultsOf(reflect.TypeFor[struct {
				A int `result:"a,hexx" doc:"x"`
			}]())
		},
		"a bound that is none": func() {
			argumentsOf(reflect.TypeFor[struct {
				A int `arg:"a" max:"many" doc:"x"`
			}]())
		},
		"a default of another type": func() {
			argumentsOf(reflect.TypeFor[struct {
				A int `arg:"a" default:"many" doc:"x"`
			}]())
		},
		"a type that cannot be written": func() {
			argumentsOf(reflect.TypeFor[struct {
				A chan int `arg:"a" doc:"x"`
			}]())
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("taken")
				}
			}()
			read()
		})
	}
}

// TestSummaryOutlivesTheCall: the next step reuses the call, and what a verb itself left there does not count.
func TestSummaryOutlivesTheCall(t *testing.T) {
	v := ask("sample", "", "", func(_ context.Context, call *Call, args *sampleArguments) (sampleResult, error) {
		call.Outcome.Summary = func() string { return call.Verb.Name }
		return sampleResult{Errors: args.Count}, nil
	})
	v.describe(&v)
	call := &Call{Verb: &v, Arguments: make([]any, len(v.Arguments))}
	call.Arguments[v.Argument("count")] = 3
	if err := v.Run(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	summary := call.Outcome.Summary
	*call = Call{}
	if got := summary(); got != "3 errors" {
		t.Errorf("summary %q", got)
	}
}

// TestDefineRefusesTwoFinders: of two parts with a method find Go would call neither.
func TestDefineRefusesTwoFinders(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("taken")
		}
	}()
	v := act("both", "", "", func(context.Context, *Call, *struct {
		queueOfEndpoint
		receivedDatagram
	}) error {
		return nil
	})
	v.describe(&v)
}

// TestAssign: fields of the same names are copied, with their conversions, and nothing else.
func TestAssign(t *testing.T) {
	to := struct {
		Size  uint64
		Depth int
		Kept  int
		Text  int
	}{Kept: 7, Depth: 8, Text: 9}
	assign(&to, &struct {
		Size, Other int
		Depth       optional[int]
		Text        string
	}{Size: 5, Text: "x"})
	if to.Size != 5 || to.Depth != 8 || to.Kept != 7 || to.Text != 9 {
		t.Errorf("%+v", to)
	}
	assign(&to, &struct{ Depth optional[int] }{some(3)})
	if to.Depth != 3 {
		t.Errorf("%+v", to)
	}
}

// TestAssignedNames: what assign copies between structs of this package and the core's has the same names there.
func TestAssignedNames(t *testing.T) {
	for _, test := range []struct {
		ours, core  reflect.Type
		tag, except string
	}{
		{reflect.TypeFor[deviceLimits](), reflect.TypeFor[rdmacore.DeviceAttr](), "result", "Name Index"},
		{reflect.TypeFor[queuePairState](), reflect.TypeFor[rdmacore.QPAttr](), "result", ""},
		{reflect.TypeFor[queuePairChanges](), reflect.TypeFor[rdmacore.QPAttr](), "mask", ""},
		{reflect.TypeFor[QueuePairAttributes](), reflect.TypeFor[rdmacore.QPInitAttr](), "arg", "SharedQueue"},
		{reflect.TypeFor[createAHArguments](), reflect.TypeFor[rdmacore.AHAttr](), "arg", "PD To Of GID"},
		{reflect.TypeFor[senderAttributes](), reflect.TypeFor[rdmacore.AHAttr](), "result", "GID"},
	} {
		for _, field := range tagged(test.ours, test.tag) {
			excepted := slices.Contains(strings.Fields(test.except), field.Name)
			if _, has := test.core.FieldByName(field.Name); has == excepted {
				t.Errorf("%s.%s: %s has it: %t", test.ours, field.Name, test.core, has)
			}
			if mask := field.Tag.Get("mask"); mask != "" {
				if _, err := rdmacore.ParseQPAttrMask(mask); err != nil || !isOptional(field.Type) {
					t.Errorf("%s.%s: mask %s, %v", test.ours, field.Name, mask, err)
				}
			}
		}
	}
}
