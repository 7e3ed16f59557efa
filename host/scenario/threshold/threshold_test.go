package threshold

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// limitsFile has three limits, in line 3.
const limitsFile = `rdmarun: v1
roles: {client: {}, server: {}, watcher: {}}
thresholds: [{metric: bandwidth, pass: [avg > 1 Gbit/s, min > 1 Mbit/s]}, {metric: duration, pass: [value < 5s]}]
steps:
- measure: {kind: bandwidth, op: SEND, from: client, to: server, sizes: [64], iterations: 7, sample_every: 1ms}
`

// checkerOf checks the limits of a file.  Conditions see the names that are theirs alone.
func checkerOf(t testing.TB, text string) *Checker {
	t.Helper()
	wrong := &diag.List{}
	file := ast.Read(syntax.Parse(diag.NewSource("case.yaml", []byte(text)), wrong), verb.NewTable(), wrong)
	scenario := compile.Compile(file, compile.Options{}, wrong)
	if wrong.Len() > 0 {
		t.Fatal(wrong.Sorted()[0])
	}
	holds := func(condition *compile.Requirement, names expression.Env) (bool, error) {
		if condition == nil {
			return true, nil
		}
		return condition.Holds(names)
	}
	return &Checker{Case: scenario.Cases[0], Holds: holds}
}

// TestReadResults: results of another process are of the file's limits, each once, and nothing else counts.
func TestReadResults(t *testing.T) {
	for name, test := range map[string]struct{ said, want string }{
		"none": {`[]`, ""},
		"all": {
			`[{"threshold":0,"limit":0,"checked":{"ok":true}},{"threshold":0,"limit":1},{"threshold":1,"limit":0}]`, "",
		},
		"a text": {
			`[{"threshold":0,"limit":1,"checked":{"text":"\u001b[2J","line":-7,"column":99,"value":"` +
				strings.Repeat("x", 4000) + `"}}]`,
			"",
		},
		"one twice": {
			`[{"threshold":0,"limit":1},{"threshold":0,"limit":1}]`,
			"two results of threshold bandwidth min > 1 Mbit/s",
		},
		"no threshold":     {`[{"threshold":2,"limit":0}]`, "no limit 0 of a threshold 2"},
		"no limit":         {`[{"threshold":1,"limit":1}]`, "no limit 1 of a threshold 1"},
		"less than none":   {`[{"threshold":-1,"limit":0}]`, "no limit 0 of a threshold -1"},
		"no list":          {`{"threshold":0}`, "cannot unmarshal"},
		"what is not JSON": {`[`, "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			results, err := checkerOf(t, limitsFile).Read([]byte(test.said))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v, not %q", err, test.want)
			}
			for _, verdict := range results {
				each := verdict.Checked
				if each.Line != 3 || each.Column < 1 || len(each.Value) > 1000 ||
					!strings.Contains(
						limitsFile, strings.TrimPrefix(strings.TrimPrefix(each.Text, "bandwidth "), "duration "),
					) {
					t.Errorf("%+v", each)
				}
			}
		})
	}
}

// TestMissing: a limit of the file needs a result, unless its condition does not hold.
func TestMissing(t *testing.T) {
	c := checkerOf(t, limitsFile)
	some := []Result{{Threshold: 0, Limit: 0}, {Threshold: 1, Limit: 0}}
	if err := c.Missing(some); err == nil ||
		!strings.Contains(err.Error(), "no result of threshold bandwidth min > 1 Mbit/s") {
		t.Error(err)
	}
	if err := c.Missing(append(some, Result{Threshold: 0, Limit: 1})); err != nil {
		t.Error(err)
	}
	c.Holds = func(*compile.Requirement, expression.Env) (bool, error) { return false, nil }
	if err := c.Missing(nil); err != nil {
		t.Errorf("no threshold is wanted: %v", err)
	}
}

// TestSentResults: a result is the same in another process as where the limit was checked.
func TestSentResults(t *testing.T) {
	c := checkerOf(t, limitsFile)
	want := c.Check(Values{Took: time.Hour, Measures: [][]*record.Measure{bandwidth("client", 7.5e8)}}, nil)
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := checkerOf(t, limitsFile).Read(raw)
	if err != nil || !reflect.DeepEqual(got, want) || got[0].Checked.Found == 0 {
		t.Errorf("%+v, not %+v: %v", got, want, err)
	}
}

// FuzzReadResults reads any message as results: there is at most one for each limit, with the text of the file.
func FuzzReadResults(f *testing.F) {
	for _, seed := range []string{
		`[{"threshold":0,"limit":0,"checked":{"text":"bandwidth avg > 1 Gbit/s","value":"2 Gbit/s","ok":true,"line":3,"column":26}},{"threshold":1,"limit":0,"checked":{"ok":false,"reason":"no samples"}}]`,
		`[{"threshold":0,"limit":1,"checked":{"text":"\u001b","value":"\u202e","reason":"\u0000","line":-1,"column":-9223372036854775808}}]`,
		`[{"threshold":9223372036854775807,"limit":-1},null]`, `[{},{}]`, `[null]`, `null`, `{}`, `[]`, `7`,
	} {
		f.Add([]byte(seed))
	}
	c := checkerOf(f, limitsFile)
	texts := make(map[string]bool)
	for _, threshold := range c.Case.Thresholds {
		for i := range threshold.Limits {
			texts[unchecked(threshold, &threshold.Limits[i]).Text] = true
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		results, err := c.Read(data)
		if err != nil {
			_ = err.Error()
			return
		}
		said := make(map[string]bool)
		for i := range results {
			each := &results[i].Checked
			if !texts[each.Text] || said[each.Text] || each.Line != 3 || len(each.Value)+len(each.Reason) > 2000 {
				t.Errorf("%+v", each)
			}
			said[each.Text] = true
		}
	})
}

// TestSizeWithoutMessages: a threshold fails when one of the sizes that it chooses has no message, even if the others
// have some.
func TestSizeWithoutMessages(t *testing.T) {
	for name, test := range map[string]struct{ metric, limit, reported, want string }{
		"bandwidth": {"bandwidth", "avg > 1 kbit/s", `"bits_per_second":1e9`, "0 bit/s (bandwidth of one, 64MiB)"},
		"latency": {
			"latency", "p99 < 1s", `"latency":[{"of":"total","count":3,"p99_ns":5}]`,
			"no samples of latency of one, 64MiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := checkerOf(t, `rdmarun: v1
roles: {client: {}, server: {}}
thresholds: [{metric: `+test.metric+`, pass: [`+test.limit+`]}]
steps: [{measure: {kind: `+test.metric+`, op: SEND, from: client, to: server, sizes: [64, 64MiB], duration: 1ms}}]
`)
			var values Values
			what := `"type":"` + test.metric + `","name":"` + test.metric + ` of one","role":"client"`
			for _, each := range []string{
				what + `,"size":64,"messages":3,"took_ns":7,` + test.reported, what + `,"size":67108864,"took_ns":7`,
			} {
				var found []*record.Measure
				if err := json.Unmarshal([]byte(`[{`+each+`}]`), &found); err != nil {
					t.Fatal(err)
				}
				values.Measures = append(values.Measures, found)
			}
			results := c.Check(values, nil)
			if len(results) != 1 || results[0].Checked.OK ||
				cmp.Or(results[0].Checked.Reason, results[0].Checked.Value) != test.want {
				t.Errorf("%+v", results)
			}
		})
	}
}

// bandwidth is a measurement of one size.
func bandwidth(role string, bits float64) []*record.Measure {
	return []*record.Measure{{
		What: record.What{Type: "bandwidth", Name: "bandwidth of " + role}, How: record.How{Size: 64},
		Role: role, Peer: "server", BitsPerSecond: bits, Messages: 7, Took: time.Second,
	}}
}

// TestCheck: each limit is compared with the samples of its threshold, and its result names the worst one.
func TestCheck(t *testing.T) {
	const client, watcher = "client", "watcher"
	for name, test := range map[string]struct {
		threshold, want string
		ok              bool
		values          Values
	}{
		"within": {"{metric: bandwidth, pass: [avg > 1 Gbit/s]}", "2.00 Gbit/s", true, Values{
			Measures: [][]*record.Measure{bandwidth(client, 2e9)},
		}},
		"the worst of two": {
			"{metric: bandwidth, pass: [avg > 1 Gbit/s]}", "250 Mbit/s (bandwidth of watcher, 64B)", false, Values{
				Measures: [][]*record.Measure{
					bandwidth(client, 5e8), bandwidth(watcher, 25e7), bandwidth(client, 2e9),
				},
			},
		},
		"of those it chooses": {
			"{metric: 'bandwidth{role=client}', pass: [avg > 1 Gbit/s]}", "2.00 Gbit/s", true,
			Values{Measures: [][]*record.Measure{bandwidth(client, 2e9), bandwidth(watcher, 1)}},
		},
		"no sample": {
			"{metric: 'bandwidth{role=server}', pass: [avg > 1 Gbit/s]}",
			"no samples: the case has measured nothing of that kind", false,
			Values{Measures: [][]*record.Measure{bandwidth(client, 2e9)}},
		},
		"no intervals": {"{metric: bandwidth, pass: [min > 1 Gbit/s]}",
			"no samples: there are no intervals without sample_every", false,
			Values{Measures: [][]*record.Measure{bandwidth(client, 2e9)}},
		},
		"at the limit": {"{metric: duration, pass: [value <= 5s]}", "5.00 s", true, Values{Took: 5 * time.Second}},
		"beyond the limit": {
			"{metric: duration, pass: [value < 5s]}", "5.00 s", false, Values{Took: 5 * time.Second},
		},
		"a loop": {"{metric: 'loop{name=l}', pass: [max < 1ms]}", "2.00 ms", false, Values{
			Loops: []record.Loop{
				{Name: "l", Rounds: 1, Max: 2 * time.Millisecond}, {Name: "other", Rounds: 1, Max: time.Hour},
			},
		}},
		"a stage in which no round began": {
			"{metric: 'loop{name=l}', pass: [max < 1s]}",
			"no samples: no round of l, stage=b began, and 7 were dropped",
			false, Values{Loops: []record.Loop{
				{Name: "l", Tags: map[string]string{record.StageTag: "a"}, Rounds: 1, Max: time.Millisecond},
				{Name: "l", Tags: map[string]string{record.StageTag: "b"}, Dropped: 7},
			}},
		},
		"a counter": {"{metric: 'counter{role=client}', pass: [value == 0]}", "3 (client b)", false, Values{
			Counters: func() []Counters {
				return []Counters{
					{"client", "rxe0", map[string]uint64{"a": 0, "b": 3}},
					{"server", "rxe0", map[string]uint64{"a": 9}},
				}
			},
		}},
		"no counter": {
			"{metric: counter, pass: [value == 0]}",
			"no samples: no device of a role here has such a counter (rdmarun explain counters)", false,
			Values{Counters: func() []Counters { return nil }},
		},
		"fair": {"{metric: bandwidth, pass: [fairness > 0.95]}", "0.9", false, Values{
			Measures: [][]*record.Measure{bandwidth(client, 4e9), bandwidth(watcher, 2e9)},
		}},
		"without a baseline": {
			"{metric: bandwidth, pass: [avg > baseline.avg]}",
			"no baseline of it: --baseline names one, and \"if: baseline != nil\" leaves the threshold out without",
			false, Values{Measures: [][]*record.Measure{bandwidth(client, 2e9)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := checkerOf(t, `rdmarun: v1
roles: {client: {}, server: {}, watcher: {}}
thresholds: [`+test.threshold+`]
steps:
- {repeat: 2, name: l, do: [{role: client, query_device: {}}]}
- measure: {kind: bandwidth, op: SEND, from: client, to: server, sizes: [64], iterations: 7}
- measure: {kind: bandwidth, op: SEND, from: watcher, to: server, sizes: [64], iterations: 7}
`)
			results := c.Check(test.values, nil)
			if len(results) != 1 {
				t.Fatalf("%d verdicts", len(results))
			}
			got := results[0].Checked
			if got.OK != test.ok || cmp.Or(got.Reason, got.Value) != test.want {
				t.Errorf("ok %t, %q %q, want %t, %q", got.OK, got.Reason, got.Value, test.ok, test.want)
			}
		})
	}
}

// TestCondition: a threshold with a false condition has no result, and one with a condition that cannot be computed is
// reported.
func TestCondition(t *testing.T) {
	c := checkerOf(t, `rdmarun: v1
thresholds:
- {metric: duration, if: baseline != nil, pass: [value < 5s]}
- {metric: duration, pass: [value < 7s]}
steps: [{sleep: 1ms}]
`)
	wrong := errors.New("no such name")
	var failed []error
	note := func(_ *compile.Requirement, err error) { failed = append(failed, err) }
	if results := c.Check(Values{}, note); len(results) != 1 || results[0].Threshold != 1 || failed != nil {
		t.Errorf("without a baseline: %+v, %v", results, failed)
	}
	c.Baseline = &record.Earlier{}
	if results := c.Check(Values{}, note); len(results) != 2 || failed != nil {
		t.Errorf("with a baseline: %+v, %v", results, failed)
	}
	c.Holds = func(condition *compile.Requirement, _ expression.Env) (bool, error) { return condition == nil, wrong }
	c.Check(Values{}, note)
	if len(failed) != 2 || !errors.Is(failed[0], wrong) {
		t.Errorf("a condition that cannot be computed: %v", failed)
	}
}

// TestWatch: a measurement ends early for a limit that cannot be met any more. Before that it runs for the time that
// the threshold allows.
func TestWatch(t *testing.T) {
	const file = `rdmarun: v1
roles: {client: {}, server: {}}
thresholds: [{metric: bandwidth, pass: [avg > 1 Gbit/s], ABORT}]
steps: [{measure: {kind: bandwidth, op: SEND, from: client, to: server, sizes: [64], iterations: 7}}]
`
	if c := checkerOf(t, strings.Replace(file, ", ABORT", "", 1)); c.Watch() != nil {
		t.Error("no threshold ends a measurement")
	}
	broken := checkerOf(t, strings.Replace(file, "ABORT", "abort_on_fail: {after: 500ms}", 1)).Watch()
	if broken == nil {
		t.Fatal("no threshold watches")
	}
	slow, fast, early := bandwidth("client", 1e6), bandwidth("client", 2e9), bandwidth("client", 1e6)
	early[0].Took = 400 * time.Millisecond
	if !broken(slow) || broken(fast) || broken(early) {
		t.Errorf("slow %t, fast %t, early %t", broken(slow), broken(fast), broken(early))
	}
}
