package record

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReported: of what another process reports only the part of its kind is taken, within bounds.
func TestReported(t *testing.T) {
	packets := strings.Repeat(`{"name":"ACK"},`, MaxPackets+5) + `{"name":"REQ"}`
	for name, test := range map[string]struct {
		said string
		want *Record // nil: it is refused
	}{
		"a step": {`{"kind":"step","step":{"role":"a","action":"poll","line":5,"took_ns":7}}`,
			&Record{Kind: StepEnd, Step: &Step{Role: "a", Action: "poll", Line: 5, Took: 7}}},
		"a step without one": {`{"kind":"step"}`, nil},
		"numbers below 0": {
			`{"kind":"step","step":{"role":"a","line":-1,"column":-2,"took_ns":-3,"more_packets":-4}}`,
			&Record{Kind: StepEnd, Step: &Step{Role: "a"}},
		},
		"with another part": {
			`{"kind":"step","step":{"role":"a"},"result":{"status":"passed"},"totals":{},"case":"x","host":"b"}`,
			&Record{Kind: StepEnd, Step: &Step{Role: "a"}},
		},
		"a line": {
			`{"kind":"output","line":{"role":"a","text":"x"}}`, &Record{Kind: Output, Line: &Line{Role: "a", Text: "x"}},
		},
		"a line of a time": {
			`{"kind":"output","line":{"role":"a","text":"x","at_ns":7}}`,
			&Record{Kind: Output, Line: &Line{Role: "a", Text: "x", At: 7}},
		},
		"a line before the case": {
			`{"kind":"output","line":{"role":"a","text":"x","at_ns":-7}}`,
			&Record{Kind: Output, Line: &Line{Role: "a", Text: "x"}},
		},
		"a line of nobody": {`{"kind":"output","line":{"text":"x"}}`, nil},
		"a device": {
			`{"kind":"device","device":{"name":"mlx5_0","rate_gbps":400}}`,
			&Record{Kind: DeviceUsed, Device: &Device{Name: "mlx5_0", RateGbps: 400}},
		},
		"a rate of no port": {
			`{"kind":"device","device":{"name":"d","rate_gbps":1e300}}`,
			&Record{Kind: DeviceUsed, Device: &Device{Name: "d"}},
		},
		"a rate below 0": {
			`{"kind":"device","device":{"name":"d","rate_gbps":-1}}`,
			&Record{Kind: DeviceUsed, Device: &Device{Name: "d"}},
		},
		"no device": {`{"kind":"device"}`, nil},
		"an interval": {
			`{"kind":"measuring","measure":{"role":"a","messages":5}}`,
			&Record{Kind: Measuring, Measure: &Measure{Role: "a", Messages: 5}},
		},
		"one of nobody":        {`{"kind":"measuring","measure":{"messages":5}}`, nil},
		"one that cannot be":   {`{"kind":"measuring","measure":{"role":"a","took_ns":-5}}`, nil},
		"what is measured":     {`{"kind":"measure","measure":{"role":"a"}}`, nil},
		"the end of a case":    {`{"kind":"case_end","result":{"status":"passed"}}`, nil},
		"the end of the run":   {`{"kind":"run_end","totals":{"passed":5}}`, nil},
		"what is not a record": {`[]`, nil},
		"what cannot be read":  {`{`, nil},
	} {
		got, ok := ParseReported([]byte(test.said))
		if ok != (test.want != nil) || ok && !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if (&Record{Kind: StepEnd, Step: &Step{}, Common: true}).Reportable() {
		t.Error("a step that every process has is reported by each")
	}
	got, ok := ParseReported([]byte(`{"kind":"step","step":{"role":"a","packets":[` + packets + `]}}`))
	if !ok || len(got.Step.Packets) != MaxPackets {
		t.Errorf("%+v", got)
	}
}

// FuzzReported takes any report of another process: it names no case, no host, and no end of anything.
func FuzzReported(f *testing.F) {
	f.Add([]byte(`{"kind":"step","step":{"role":"a"},"case":"x","host":"b","result":{}}`))
	f.Add([]byte(`{"kind":"measuring","measure":{"role":"a","latency":[{"hdr":"x"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := ParseReported(data)
		if !ok {
			return
		}
		if got.Case+got.Host+got.File != "" || got.Result != nil || got.Totals != nil || got.Start != nil ||
			got.Run != nil || !got.Reportable() {
			t.Errorf("%+v", got)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Error(err)
		}
	})
}

func TestRole(t *testing.T) {
	for want, each := range map[string]*Record{
		"a": {Step: &Step{Role: "a"}}, "b": {Line: &Line{Role: "b"}}, "c": {Measure: &Measure{Role: "c"}},
		"": {Totals: &Totals{}},
	} {
		if got := each.Role(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestCheck: impossible results of another process are an error.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		measure Measure
		want    string
	}{
		"nothing": {Measure{}, ""},
		"a real one": {
			Measure{Messages: 5, Bytes: 320, Took: time.Second, BitsPerSecond: 2560, MessagesPerSecond: 5}, "",
		},
		"bits":         {Measure{BitsPerSecond: 1e19}, "bits a second"},
		"bits below 0": {Measure{BitsPerSecond: -1}, "bits a second"},
		"messages":     {Measure{MessagesPerSecond: 1e-9}, "messages a second"},
		"counts":       {Measure{Messages: maxCounted + 1}, "bytes together"},
		"errors":       {Measure{Errors: maxCounted + 1}, "errors"},
		"a size":       {Measure{How: How{Size: -1}}, "messages of -1 bytes"},
		"a time":       {Measure{Took: -1}, "a time of -1 ns"},
		"a text":       {Measure{Role: strings.Repeat("x", maxText+1)}, "a text of 4097 bytes"},
		"a tag": {
			Measure{How: How{Tags: map[string]string{"a": strings.Repeat("x", maxText+1)}}}, "a text of 4097 bytes",
		},
		"a distribution": {
			Measure{Latency: []Distribution{{Of: strings.Repeat("x", maxText+1)}}}, "a text of 4097 bytes",
		},
		"distributions":    {Measure{Latency: make([]Distribution, maxDistributions+1)}, "65 distributions"},
		"a mean":           {Measure{Latency: []Distribution{{Mean: 1e300}}}, "no measurement has 0 times"},
		"a median below 0": {Measure{Latency: []Distribution{{P50: -1}}}, "no measurement has 0 times"},
		"a histogram":      {Measure{Latency: []Distribution{{HDR: "x"}}}, "cannot be read"},
		"an interval":      {Measure{Intervals: []Interval{{Begin: 2, End: 1}}}, "from 2 to 1 ns"},
		"bytes of one":     {Measure{Intervals: []Interval{{End: 1, Bytes: maxCounted + 1}}}, "from 0 to 1 ns"},
	} {
		if err := test.measure.Check(); (err == nil) != (test.want == "") ||
			err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTotals(t *testing.T) {
	var totals Totals
	for _, each := range []Result{
		{Status: Passed}, {Status: Passed, Reason: FlakyReason}, {Status: Skipped}, {Status: XFailed},
		{Status: Errored}, {Status: Broken},
		{Status: Failed, Failures: []Failure{{Kind: KindThreshold}}},
		{Status: Failed, Failures: []Failure{{Kind: KindThreshold}, {Kind: "leak"}}},
		{Status: Failed, Tallies: Tallies{Known: make([]KnownStep, 2)}}, {Status: TimedOut},
	} {
		totals.Count(&each)
	}
	want := Totals{
		Passed: 2, Flaky: 1, Skipped: 1, XFailed: 1, Errors: 1, Failed: 5, ByThreshold: 1, Bug: true, KnownSteps: 2,
	}
	if totals != want {
		t.Errorf("%+v", totals)
	}
	for status, ok := range map[Status]bool{
		Passed: true, XFailed: true, Skipped: true, Failed: false, Errored: false, TimedOut: false,
	} {
		if status.OK() != ok {
			t.Errorf("%s is %v", status, !ok)
		}
	}
}

// TestTallies: what several parts of a case have counted under one name is one count, up to so many names.
func TestTallies(t *testing.T) {
	var all Tallies
	for i := range 3 {
		all.Add(&Tallies{
			Counters: []Counter{{Device: "d", Name: "sent", Grew: 5}, {Host: "h", Device: "d", Name: "sent", Grew: 7}},
			Faults:   []Fault{{"drop", 2}},
			Known: []KnownStep{{
				Line: 4, Column: 2, Action: "poll", What: fmt.Sprint("round ", i), Reason: "known", Count: 1,
			}},
		})
	}
	want := Tallies{
		Counters: []Counter{{Device: "d", Name: "sent", Grew: 15}, {Host: "h", Device: "d", Name: "sent", Grew: 21}},
		Faults:   []Fault{{"drop", 6}},
		Known:    []KnownStep{{Line: 4, Column: 2, Action: "poll", What: "round 0", Reason: "known", Count: 3}},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%+v", all)
	}
	if got := all.Counters[0].Where() + ", " + all.Counters[1].Where(); got != "d, h d" {
		t.Error(got)
	}
	for k, text := range map[*KnownStep]string{
		&all.Known[0]: "4:2: poll: round 0, 3 times (known)",
		{
			File: "f.yaml", Line: 1, Column: 2, Role: "a", Action: "b", What: "c", Reason: "d", Count: 1,
		}: "f.yaml:1:2: a b: c (d)",
	} {
		if k.String() != text {
			t.Error(k)
		}
	}
	for i := range maxTallies + 5 {
		all.Add(&Tallies{Faults: []Fault{{fmt.Sprint(i), 1}}})
	}
	if all.Add(&Tallies{Faults: []Fault{{"drop", 1}}}); len(all.Faults) != maxTallies || all.Faults[0].Count != 7 {
		t.Errorf("%d faults, %+v", len(all.Faults), all.Faults[0])
	}
}

// TestIntervals: a part of a measurement is what it has done since, and a short interval has no rate of its own.
func TestIntervals(t *testing.T) {
	m := &Measure{
		What: What{Type: "bandwidth"}, Messages: 30, Bytes: 3000, Errors: 3, Took: 3 * time.Second,
		Latency: []Distribution{{Of: "total", HDR: "x"}},
	}
	part := m.Since(&Measure{Messages: 10, Bytes: 1000, Errors: 1, Took: time.Second})
	if part.Messages != 20 || part.Bytes != 2000 || part.Errors != 2 || part.Took != 2*time.Second ||
		part.MessagesPerSecond != 10 || part.BitsPerSecond != 8000 {
		t.Errorf("%+v", part)
	}
	if want := []Interval{{time.Second, 3 * time.Second, 20, 2000}}; !slices.Equal(part.Intervals, want) ||
		part.Latency[0].HDR != "" || m.Latency[0].HDR != "x" {
		t.Errorf("%+v", part)
	}
	if whole := m.Since(nil); whole.Messages != 30 || whole.MessagesPerSecond != 10 {
		t.Errorf("%+v", whole)
	}
	if none := (&Measure{}).Since(nil); none.MessagesPerSecond != 0 {
		t.Errorf("%+v", none)
	}
	second := func(i, bytes int) Interval {
		return Interval{
			Begin: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second, Bytes: uint64(bytes),
		}
	}
	rest := Interval{Begin: 2 * time.Second, End: 2*time.Second + time.Millisecond, Bytes: 5}
	one, other := &Measure{Intervals: []Interval{second(0, 10), second(1, 20), rest}},
		&Measure{Intervals: []Interval{second(0, 1)}}
	if got := IntervalRates(one); !slices.Equal(got, []float64{80, 200 / (1001 * time.Millisecond).Seconds()}) {
		t.Error(got)
	}
	for name, test := range map[string]struct {
		ends []time.Duration // of the intervals, of which each has 10 bytes
		want []float64
	}{
		"the first was long": {[]time.Duration{4, 5, 6, 7}, []float64{20, 80, 80, 80}},
		"one is short": {
			[]time.Duration{1000, 2990, 3000, 4000}, []float64{.08, 160. / 2000, .08},
		},
		"the first is short": {[]time.Duration{1, 1001, 2001}, []float64{160. / 1001, .08}},
		"only one":           {[]time.Duration{2}, []float64{40}},
		"none":               {nil, nil},
	} {
		m, begin := &Measure{}, time.Duration(0)
		for _, end := range test.ends {
			m.Intervals = append(m.Intervals, Interval{Begin: begin, End: end * time.Second, Bytes: 10})
			begin = end * time.Second
		}
		if got := IntervalRates(m); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := IntervalRates(one, other); !slices.Equal(got, []float64{88}) {
		t.Error(got)
	}
}

// TestKeys: repetitions of one measurement have one key, and what distinguishes others is in theirs.
func TestKeys(t *testing.T) {
	of := func(change func(*Measure)) Measure {
		m := Measure{
			What: What{Name: "n", Type: "bandwidth", Operation: "SEND"}, Role: "a", Peer: "b",
			How: How{Size: 64, Depth: 8, Tags: map[string]string{"depth": "8", "x": ""}},
		}
		change(&m)
		return m
	}
	plain := of(func(*Measure) {})
	if again := of(func(m *Measure) { m.Messages, m.Line = 5, 7 }); again.Key() != plain.Key() {
		t.Errorf("%+v", again.Key())
	}
	for name, change := range map[string]func(*Measure){
		"size": func(m *Measure) { m.Size = 65 }, "both": func(m *Measure) { m.Both = true },
		"depth": func(m *Measure) { m.Depth = 9 },
		"qps":   func(m *Measure) { m.QPs = 2 }, "tag": func(m *Measure) { m.Tags = map[string]string{"x": "y"} },
		"role": func(m *Measure) { m.Role = "c" },
		"ends": func(m *Measure) { m.Ends = [2]string{"h", "i"} },
	} {
		if other := of(change); other.Key() == plain.Key() {
			t.Errorf("%s: %+v", name, other.Key())
		}
	}
	var texts []string
	for _, knob := range plain.Knobs() {
		texts = append(texts, knob.Value)
	}
	if want := []string{"SEND", "depth 8", "x"}; !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	vary := Varying([]Measure{plain, of(func(m *Measure) { m.Depth = 9 }), of(func(m *Measure) { m.Both = true })})
	if !vary["depth"] || !vary["both"] || vary["operation"] {
		t.Errorf("%v", vary)
	}
	var earlier Earlier
	earlier.Add(plain)
	earlier.Add(of(func(m *Measure) { m.Messages = 5 }))
	earlier.Add(of(func(m *Measure) { m.Size = 65 }))
	if len(earlier.Measures) != 2 || earlier.Measures[0].Messages != 5 {
		t.Errorf("%+v", earlier.Measures)
	}
}

// mesh is one of three nodes on hosts of their own.
func mesh() *Mesh {
	total := Distribution{Of: "total", P50: 9, HDR: "x"}
	good := (&Measure{BitsPerSecond: 80, MessagesPerSecond: 3, Latency: []Distribution{{Of: "other"}, total}}).Figures()
	return &Mesh{
		What: What{Type: "bandwidth"}, Pattern: "all",
		Nodes: []MeshNode{
			{Role: "node[0]", Host: "z", Device: "d"}, {Role: "node[1]", Host: "b", Device: "d"},
			{Role: "node[2]", Host: "c", Device: "d"},
		},
		Pairs: []MeshPair{
			{From: "node[0]", To: "node[1]", First: good, OfBest: 1},
			{
				From: "node[1]", To: "node[2]", First: good, Again: &MeshFigures{BitsPerSecond: 8}, OfBest: 0.1,
				Suspect: true, Outlier: true,
			},
			{From: "node[2]", To: "node[0]", First: good, OfBest: 0.5, Suspect: true},
			{From: "node[0]", To: "node[2]", Lost: "it has died"},
		},
	}
}

func TestMesh(t *testing.T) {
	m := mesh()
	var statuses []string
	for i := range m.Pairs {
		statuses = append(statuses, m.Pairs[i].Status())
	}
	if want := []string{"good", "outlier", "suspect", "lost"}; !slices.Equal(statuses, want) {
		t.Errorf("%q", statuses)
	}
	if bad := m.Bad(); len(bad) != 2 || bad[0].Lost == "" || !bad[1].Outlier {
		t.Errorf("%+v", bad)
	}
	if median, worst := m.Spread(); median != 0.5 || worst != 0.1 {
		t.Errorf("%g, %g", median, worst)
	}
	if median, worst := (&Mesh{}).Spread(); median != 0 || worst != 0 {
		t.Errorf("%g, %g", median, worst)
	}
	figures := m.Pairs[0].First
	for kind, want := range map[string]float64{"bandwidth": 80, "connect": 3, "latency": 9} {
		if got := figures.Figure(kind); got != want || figures.Latency.HDR != "" {
			t.Errorf("%s: %g", kind, got)
		}
	}
	if got := (&MeshFigures{}).Figure("latency"); got != 0 {
		t.Error(got)
	}
	var earlier Earlier
	earlier.AddMesh(m)
	if len(earlier.Pairs) != 3 {
		t.Errorf("%+v", earlier.Pairs)
	}
	for pair, found := range m.Measures() {
		if pair.Outlier && found.BitsPerSecond != 8 || pair.Lost != "" && found.Took != 0 {
			t.Errorf("%+v", found)
		}
		if pair.From == "node[0]" && pair.To == "node[1]" && found.Ends != [2]string{"b", "z"} {
			t.Errorf("%q", found.Ends) // by their names: the pattern has chosen the order
		}
	}
}

// TestNamed: nodes are named by their hosts where these distinguish them.
func TestNamed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Mesh)
		want   string
	}{
		"hosts":             {func(*Mesh) {}, "z b"},
		"devices":           {func(m *Mesh) { m.Nodes[1].Host, m.Nodes[1].Device = "z", "e" }, "z d z e"},
		"neither":           {func(m *Mesh) { m.Nodes[1].Host = "z" }, "node[0] node[1]"},
		"one that was lost": {func(m *Mesh) { m.Nodes[1].Host = "" }, "z node[1]"},
		"none is known":     {func(m *Mesh) { m.Nodes = nil }, "node[0] node[1]"},
	} {
		m := mesh()
		test.change(m)
		if named := m.Named(); named("node[0]")+" "+named("node[1]") != test.want {
			t.Errorf("%s: %s %s", name, named("node[0]"), named("node[1]"))
		}
	}
	directed := mesh()
	directed.Pattern = "list"
	if ends := directed.Ends()("node[0]", "node[1]"); ends != [2]string{"z", "b"} {
		t.Errorf("%q", ends)
	}
}

func TestDeviceFacts(t *testing.T) {
	device := Device{Name: "d", Provider: "verbs", Driver: "mlx5", RateGbps: 2.5, MTU: 4096, NetdevMTU: -1, NUMA: "1"}
	want := []Fact{
		{"provider", "verbs"}, {"driver", "mlx5"}, {"rate", "2.5 Gbit/s"}, {"MTU", "4096"}, {"NUMA node", "1"},
	}
	if got := device.Facts(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestOnClock: times are those of the provider's clock, where it is not the wall clock.
func TestOnClock(t *testing.T) {
	at := 5 * time.Second
	if got := (&Moment{At: 1, Clock: &at}).OnClock(); got != at {
		t.Error(got)
	}
	if got := (&Moment{At: 1}).OnClock(); got != 1 {
		t.Error(got)
	}
	if got := (&Step{At: 1, Took: 2}).OnClock(); got != (StepTimes{1, 2}) {
		t.Error(got)
	}
	if got := (&Step{At: 1, Took: 2, Clock: &StepTimes{3, 4}}).OnClock(); got != (StepTimes{3, 4}) {
		t.Error(got)
	}
	if got := (&Loop{Min: 1, Median: 2, P99: 3, Max: 4}).OnClock(); got != (Times{1, 2, 3, 4}) {
		t.Error(got)
	}
	if got := (&Loop{Min: 1, Clock: &Times{5, 6, 7, 8}}).OnClock(); got != (Times{5, 6, 7, 8}) {
		t.Error(got)
	}
	seed := uint64(7)
	if got := (&Run{Provider: "soft", Seed: &seed}).On() + ", " +
		(&Run{Provider: "verbs"}).On(); got != "soft, seed 7, verbs" {
		t.Error(got)
	}
	for text, each := range map[string]Threshold{
		"a: b": {Text: "a", Value: "b"}, "a: c": {Text: "a", Value: "b", Reason: "c"}, "a": {Text: "a"},
	} {
		if each.String() != text {
			t.Error(each.String())
		}
	}
}
