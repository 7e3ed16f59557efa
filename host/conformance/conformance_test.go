package conformance

import (
	"strings"
	"testing"

	"rdmarun/host/scenario/diag"
)

// records are two calls of one case: %STATUS%, %NUMBER% and %END% differ between tests.
const records = `{"v":1,"kind":"run_start","run":{"provider":"%PROVIDER%","cases":1,"files":["a.yaml"],"environment":{"kernel":"6.1.0-18"}}}
{"v":1,"kind":"case_start","case":"a.yaml::x","start":{"name":"x"}}
{"v":1,"kind":"step","case":"a.yaml::x","step":{"role":"client","action":"connect","text":"ep","line":3,"column":1,"ok":true}}
{"v":1,"kind":"step","case":"a.yaml::x","step":{"role":"client","action":"poll","text":"ep","line":4,"column":1,"ok":true,"fields":[{"name":"status","value":"%STATUS%"},{"name":"qp_num","value":"%NUMBER%","varies":true}]}}
{"v":1,"kind":"case_end","case":"a.yaml::x","result":{"name":"x","status":"%END%","took_ns":1,"steps":2}}
`

func run(t *testing.T, provider, status, number, end string) *Run {
	t.Helper()
	text := strings.NewReplacer("%PROVIDER%", provider, "%STATUS%", status, "%NUMBER%", number, "%END%", end).Replace(
		records,
	)
	run, err := Read(strings.NewReader(text), provider)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func known(t *testing.T, text string) []Known {
	t.Helper()
	errors := &diag.List{}
	list := ReadKnown("known.yaml", []byte(text), errors)
	if errors.Len() > 0 {
		t.Fatalf("%s: %v", text, errors.Sorted())
	}
	return list
}

const entry = `
- case: a.yaml::x
  kernel: "6.1"
  reason: rxe does so
  differences:
    - "client poll 1, status: soft SUCCESS, verbs REM_OP_ERR"
`

func TestCompare(t *testing.T) {
	tests := []struct {
		name         string
		base, device *Run
		known        string
		outcome      Outcome
		difference   string
		stale        string
		ok           bool
	}{
		{
			"what varies is no difference", run(t, "soft", "SUCCESS", "1", "passed"),
			run(t, "verbs", "SUCCESS", "2", "passed"), "[]", Equal, "", "", true,
		},
		{
			"a status", run(t, "soft", "SUCCESS", "1", "passed"), run(t, "verbs", "REM_OP_ERR", "1", "passed"), "[]",
			Different, "client poll 1, status: soft SUCCESS, verbs REM_OP_ERR", "", false,
		},
		{
			"the end", run(t, "soft", "SUCCESS", "1", "passed"), run(t, "verbs", "SUCCESS", "1", "failed"), "[]",
			Different, "the case: soft passed, verbs failed", "", false,
		},
		{
			"known", run(t, "soft", "SUCCESS", "1", "passed"), run(t, "verbs", "REM_OP_ERR", "1", "passed"), entry,
			Expected, "client poll 1, status: soft SUCCESS, verbs REM_OP_ERR", "", false,
		},
		{
			"known otherwise", run(t, "soft", "SUCCESS", "1", "passed"), run(t, "verbs", "WR_FLUSH_ERR", "1", "passed"),
			entry, Different, "client poll 1, status: soft SUCCESS, verbs WR_FLUSH_ERR", "", false,
		},
		{
			"stale", run(t, "soft", "SUCCESS", "1", "passed"), run(t, "verbs", "SUCCESS", "1", "passed"), entry, Equal,
			"", "known.yaml:2:3: a.yaml::x does not differ any more: remove the entry", false,
		},
		{
			"of another kernel", run(t, "soft", "SUCCESS", "1", "passed"), run(t, "verbs", "SUCCESS", "1", "passed"),
			strings.ReplaceAll(entry, "6.1", "6.12"), Equal, "", "", true,
		},
		{
			"of no case", run(t, "soft", "SUCCESS", "1", "passed"), run(t, "verbs", "SUCCESS", "1", "passed"),
			strings.ReplaceAll(entry, "::x", "::y"), Equal, "", "known.yaml:2:3: no case a.yaml::y was run", false,
		},
		{
			"skipped by one", run(t, "soft", "SUCCESS", "1", "passed"), run(t, "verbs", "SUCCESS", "1", "skipped"),
			"[]", OneSided, "", "", false,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			result := Compare(test.base, test.device, known(t, test.known))
			if len(result.Cases) != 1 {
				t.Fatalf("%d cases, want 1", len(result.Cases))
			}
			got := result.Cases[0]
			if got.Outcome != test.outcome || strings.Join(got.Differences, "\n") != test.difference {
				t.Errorf("%s %q, want %s %q", got.Outcome, got.Differences, test.outcome, test.difference)
			}
			if stale := strings.Join(result.Stale, "\n"); stale != test.stale {
				t.Errorf("stale %q, want %q", stale, test.stale)
			}
			if ok := result.OK(); ok != test.ok {
				t.Errorf("OK is %t, want %t", ok, test.ok)
			}
		})
	}
}

func TestKnownErrors(t *testing.T) {
	for text, want := range map[string]string{
		"case: x":                     "E0102",
		"- {case: x, reason: y}":      "E0103",
		"- {case: x, raeson: y}":      "E0101",
		"- just text":                 "E0102",
		"- {case: [x], reason: y}":    "E0102",
		"- {case: x, differences: [{": "E0001",
	} {
		errors := &diag.List{}
		ReadKnown("known.yaml", []byte(text), errors)
		found := false
		for _, d := range errors.Sorted() {
			found = found || d.Code.Number() == want
		}
		if !found {
			t.Errorf("%s: %v, want %s", text, errors.Sorted(), want)
		}
	}
}

// TestJoin joins the parts of a run: a case that ran counts before one that was skipped, and all parts are of one
// machine.
func TestJoin(t *testing.T) {
	whole, part := run(t, "verbs", "SUCCESS", "1", "skipped"), run(t, "verbs", "SUCCESS", "1", "failed")
	if err := whole.Join(part); err != nil || len(whole.Traces) != 1 || whole.trace("a.yaml::x").Status != "failed" {
		t.Errorf("%v, %d traces, the case %v", err, len(whole.Traces), whole.trace("a.yaml::x").Status)
	}
	if err := whole.Join(run(t, "verbs", "SUCCESS", "1", "skipped")); err != nil ||
		whole.trace("a.yaml::x").Status != "failed" {
		t.Errorf("%v, a skipped case took the place of one that ran: %v", err, whole.trace("a.yaml::x").Status)
	}
	other := run(t, "verbs", "SUCCESS", "1", "passed")
	other.Kernel = "6.12"
	if err := whole.Join(other); err == nil {
		t.Error("parts of two kernels were joined")
	}
}
