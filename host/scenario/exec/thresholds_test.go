package exec

import (
	"encoding/json"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"rdmarun/host/record"
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/progress"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// checked keeps the records of what was measured and checked.
type checked struct {
	limits   []record.Threshold
	measures []record.Measure
}

func (*checked) Wants(record.Kind) bool { return true }

func (c *checked) Record(each *record.Record) error {
	switch each.Kind {
	case record.Checked:
		c.limits = append(c.limits, *each.Threshold)
	case record.Measured:
		c.measures = append(c.measures, *each.Measure)
	}
	_, err := json.Marshal(each)
	return err
}

// measuredFile has a step that other processes measure, in line 5, with three limits.
const measuredFile = `rdmarun: v1
roles: {client: {}, server: {}, watcher: {}}
thresholds: [{metric: bandwidth, pass: [avg > 1 Gbit/s, min > 1 Mbit/s]}, {metric: duration, pass: [value < 5s]}]
steps:
- measure: {kind: bandwidth, op: SEND, from: client, to: server, sizes: [64], iterations: 7, sample_every: 1ms}
`

// measuredRun is the step of that file in a run where the process a owns it.
func measuredRun(t testing.TB) (*remoteCall, *checked) {
	t.Helper()
	return measuredRunOf(t, measuredFile)
}

func measuredRunOf(t testing.TB, text string) (*remoteCall, *checked) {
	t.Helper()
	wrong, seen := &diag.List{}, &checked{}
	file := ast.Read(syntax.Parse(diag.NewSource("case.yaml", []byte(text)), wrong), verb.NewTable(), wrong)
	scenario := compile.Compile(file, compile.Options{}, wrong)
	if wrong.Len() > 0 {
		t.Fatal(wrong.Sorted()[0])
	}
	r, _ := runWithPeer()
	r.scenario, r.testCase, r.progress, r.history = scenario, scenario.Cases[0], &progress.Steps{}, nil
	r.config.Stream = record.NewStream(seen)
	r.ended = new(atomic.Int64)
	r.result.Status = record.Passed
	step := r.testCase.Steps[0]
	other := &remote{Group: peer.NewGroup(nil, nil)}
	return &remoteCall{task{remote: other, run: r, step: step, owner: "a"}, step.Action.(*compile.Call)}, seen
}

// TestMeasuredReceived: of what another process has measured that is taken which can be true, of the roles of the step.
func TestMeasuredReceived(t *testing.T) {
	for name, test := range map[string]struct{ reported, want string }{
		"figures":         {`[{"type":"bandwidth","role":"client","peer":"server","messages":7}]`, ""},
		"a name of lines": {`[{"name":"x\nPASS  a.yaml","role":"client"}]`, ""},
		"of both ends":    {`[{"role":"client","peer":"server"},{"role":"server","peer":"client"}]`, ""},
		"a place":         {`[{"role":"client","file":"/etc/passwd","line":-1,"column":99}]`, ""},
		"of another role": {
			`[{"role":"watcher","peer":"server"}]`, `from "watcher" to "server", which are not the roles of the step`,
		},
		"to another role": {`[{"role":"client","peer":"\u001b"}]`, "which are not the roles"},
		"of no role":      {`[{}]`, "which are not the roles"},
		"of three ends":   {`[{"role":"client"},{"role":"client"},{"role":"client"}]`, "cannot be read"},
		"none":            {`[]`, "cannot be read"},
		"nothing":         {`[null]`, "cannot be read"},
		"more than there is": {
			`[{"role":"client","bits_per_second":1e300}]`, "no measurement has 1e+300 bits a second",
		},
		"less than there is": {
			`[{"role":"client","messages_per_second":1e-300}]`, "no measurement has 1e-300 messages a second",
		},
		"more than counts":   {`[{"role":"client","bytes":18446744073709551615}]`, "18446744073709551615 bytes"},
		"a time of the past": {`[{"role":"client","took_ns":-1}]`, "a time of -1 ns"},
		"a size of none":     {`[{"role":"client","size":-1}]`, "messages of -1 bytes"},
		"an interval":        {`[{"role":"client","intervals":[{"begin_ns":5,"end_ns":4}]}]`, "from 5 to 4 ns"},
		"a distribution":     {`[{"role":"client","latency":[{"p50_ns":-1}]}]`, "no measurement has 0 times"},
		"a histogram": {
			`[{"role":"client","latency":[{"hdr":"nonsense"}]}]`, "the histogram of 0 times cannot be read",
		},
		"many distributions": {
			`[{"role":"client","latency":[` + strings.Repeat("{},", 99) + `{}]}]`, "100 distributions",
		},
		"a mean of no number": {`[{"role":"client","latency":[{"mean_ns":1e308}]}]`, "no measurement has 0 times"},
		"a long text": {
			`[{"role":"client","tags":{"a":"` + strings.Repeat("x", 5000) + `"}}]`, "a text of 5000 bytes",
		},
		"what is no list":      {`7`, "cannot unmarshal"},
		"what is not a number": {`[{"role":"client","bits_per_second":1e999}]`, "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			call, seen := measuredRun(t)
			err := call.Receive([]byte(test.reported))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, not %q", err, test.want)
			}
			if len(seen.measures) > 0 && strings.Contains(seen.measures[0].Name, "\n") {
				t.Errorf("%q", seen.measures[0].Name)
			}
			if (err == nil) != (len(seen.measures) > 0) || (err == nil) != (len(call.run.found) == 1) {
				t.Errorf("%+v", seen.measures)
			}
		})
	}
}

// TestNoRoomForMeasured: what is measured takes room of the run, and where there is none the process is named.
func TestNoRoomForMeasured(t *testing.T) {
	call, seen := measuredRun(t)
	left := 40
	call.run.config.Reserve = func(process string, bytes int) bool {
		left -= bytes
		return process == "a" && left >= 0
	}
	const one = `[{"role":"client"}]`
	for range 2 {
		if err := call.Receive([]byte(one)); err != nil {
			t.Error(err)
		}
	}
	err := call.Receive([]byte(one))
	if err == nil || !strings.Contains(err.Error(), "no room for more measurements of the process of a") ||
		len(seen.measures) != 2 {
		t.Errorf("%v, %d", err, len(seen.measures))
	}
}

// FuzzMeasuredReceived makes the process with a step send any measurement. The measurement is of the roles and the
// line of the step, and thresholds can be compared with it.
func FuzzMeasuredReceived(f *testing.F) {
	for _, seed := range []string{
		`[{"name":"bandwidth SEND","type":"bandwidth","operation":"SEND","role":"client","peer":"server","size":64,"messages":7,"bytes":448,"took_ns":7000,"bits_per_second":512000,"messages_per_second":1e6,"intervals":[{"begin_ns":0,"end_ns":7000,"messages":7,"bytes":448}]}]`,
		`[{"type":"bandwidth","role":"client","bits_per_second":1e18,"messages":1},{"type":"bandwidth","role":"server","bits_per_second":1e18,"messages":1,"intervals":[{}]}]`,
		`[{"type":"latency","role":"client","messages":1,"latency":[{"of":"total","count":1,"min_ns":5,"mean_ns":5,"p50_ns":5,"hdr":"x"}],"tags":{"\u001b":""}}]`,
		`[{"type":"bandwidth","role":"client","messages":9,"intervals":[{"begin_ns":0,"end_ns":1,"bytes":72057594037927936},{"begin_ns":1,"end_ns":9223372036854775807}]}]`,
		`[{"role":"\u001b","peer":"\u202e"}]`, `[null]`, `null`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	for _, h := range []*hdr.Histogram{hdr.New(1, 60e9, 3), hdr.New(1, math.MaxInt64, 5)} {
		text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			f.Fatal(err)
		}
		one := `{"of":"total","count":7,"hdr":"` + string(text) + `"}`
		f.Add([]byte(`[{"type":"latency","role":"client","latency":[` + one + strings.Repeat(","+one, 15) + `]}]`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		call, seen := measuredRun(t)
		if err := call.Receive(data); err != nil {
			_ = err.Error()
			return
		}
		for _, each := range seen.measures {
			if each.Role != "client" && each.Role != "server" || each.Line != 5 || each.File != "" {
				t.Errorf("%+v", each)
			}
		}
		call.run.recordThresholds(call.run.checkThresholds(1))
		if err := call.run.config.Stream.Err(); err != nil {
			t.Error(err)
		}
	})
}
