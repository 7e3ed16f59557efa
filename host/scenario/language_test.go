package scenario_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// onOwn runs a file on soft, each case with the clock of its file.
func onOwn(t *testing.T, path string, consumers ...record.Consumer) record.Totals {
	t.Helper()
	totals, err := scenario.Run(t.Context(), load(t, nil, path), scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", Consumers: consumers, Rerun: "rdmarun run",
	})
	if err != nil {
		t.Fatal(err)
	}
	return totals
}

func TestLanguage(t *testing.T) {
	var text strings.Builder
	seen := &collector{}
	totals := onOwn(t, "testdata/run/language.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}), seen)
	if totals.Passed != 10 || totals.XFailed != 1 || totals.Skipped != 1 || totals.Failed+totals.Errors > 0 {
		t.Errorf("%+v\n%s", totals, &text)
	}
	for i, want := range []string{"server 1", "server 2", "client 1", "client 2"} {
		if i >= len(seen.lines) || seen.lines[i].Text != want {
			t.Errorf("for_each: %+v", seen.lines)
			break
		}
	}
}

// TestLanguageFails holds what must fail against its golden text.
func TestLanguageFails(t *testing.T) {
	var text strings.Builder
	totals := onOwn(t, "testdata/run/language_fails.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	if totals.Failed != 7 || totals.Passed+totals.Errors+totals.Skipped > 0 {
		t.Errorf("%+v", totals)
	}
	golden(t, "testdata/run/language_fails.golden", normal(text.String()))
}

// TestNamesHaveTheirValues: a file's name says which case of its matrix it is, as the name of a case does.
func TestNamesHaveTheirValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.yaml")
	const lab = "rdmarun: v1\nname: depth $(depth) of two\nmatrix: {depth: [1, 2]}\nsteps: [{log: x}]\n"
	if err := os.WriteFile(path, []byte(lab), 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range load(t, nil, path)[0].Compiled.Cases {
		names = append(names, strings.TrimPrefix(c.ID, path)+" "+c.Name)
	}
	if want := "[depth=1] depth 1 of two, [depth=2] depth 2 of two"; strings.Join(names, ", ") != want {
		t.Errorf("%q, want %q", names, want)
	}
}

// TestIDs holds the ids of cases, which must be the same in every run.
func TestIDs(t *testing.T) {
	const path = "../../scenarios/negotiate.yaml"
	var ids []string
	for _, c := range load(t, nil, path)[0].Compiled.Cases {
		ids = append(ids, strings.TrimPrefix(c.ID, path))
	}
	want := "::depth offered granted[depth=0,grant=0] ::depth offered granted[depth=1,grant=0] " +
		"::depth offered granted[depth=1,grant=1] ::depth offered granted[depth=16,grant=0] " +
		"::depth offered granted[depth=16,grant=1] ::reject carries a reason ::no process listens " +
		"::private data one byte too long ::more resources than the device has"
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestParallelFails wants that the first failure of a branch ends the others, and the hours they would wait.
func TestParallelFails(t *testing.T) {
	seen := &collector{}
	totals := onOwn(t, "testdata/run/parallel_fails.yaml", seen)
	failures := seen.results[0].Failures
	if totals.Failed != 1 || len(failures) != 1 || failures[0].Action != "assert" || failures[0].Line == 0 {
		t.Errorf("%+v %+v", totals, failures)
	}
}

// TestThresholds wants that a limit is compared with what was measured, and that one without samples fails.
func TestThresholds(t *testing.T) {
	seen := &thresholdCollector{}
	totals := onOwn(t, "testdata/run/thresholds.yaml", seen)
	want := []bool{true, true, false, true, true, true, false} // a named repeat has a count, also of 0 rounds
	if totals.Failed != 1 || totals.ByThreshold != 1 || totals.Thresholds != 2 || len(seen.checked) != len(want) {
		t.Fatalf("%+v %+v", totals, seen.checked)
	}
	for i, threshold := range seen.checked {
		if threshold.OK != want[i] || threshold.Line == 0 ||
			threshold.OK == (threshold.Reason != "") && threshold.Value == "" {
			t.Errorf("%+v", threshold)
		}
	}
}

// thresholdCollector keeps the records of thresholds, with their cases.
type thresholdCollector struct {
	checked []record.Threshold
	cases   []string
}

func (c *thresholdCollector) Wants(kind record.Kind) bool { return kind == record.Checked }

func (c *thresholdCollector) Record(r *record.Record) error {
	if r.Threshold != nil {
		c.checked, c.cases = append(c.checked, *r.Threshold), append(c.cases, r.Case)
	}
	return nil
}

func TestAtomicsAndImmediateData(t *testing.T) {
	var text strings.Builder
	totals := onOwn(t, "testdata/run/atomic.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	if totals.Passed == 0 || totals.Failed+totals.Errors > 0 {
		t.Errorf("%+v\n%s", totals, &text)
	}
	t.Log(&text)
}

// TestStall wants that a case in which no step ends is cut off long before its time is over.
func TestStall(t *testing.T) {
	seen := &collector{}
	onOwn(t, "testdata/run/stall.yaml", seen)
	failures := seen.results[0].Failures
	if len(failures) != 1 || !strings.Contains(failures[0].What, "stall_timeout") || failures[0].Action != "sleep" {
		t.Errorf("%+v", seen.results[0])
	}
}

// TestCutOff: what was cut off says how far it was.
func TestCutOff(t *testing.T) {
	seen := &collector{}
	onOwn(t, "testdata/run/cut_off.yaml", seen)
	for i, want := range []string{
		"in this step, in round 2/3, round 2/2", "in this step, in naps round 5/5", "it was cut off in this step",
	} {
		if i >= len(seen.results) || len(seen.results[i].Failures) == 0 {
			t.Fatalf("case %d did not fail", i)
		}
		if hint := seen.results[i].Failures[0].Hint; !strings.HasSuffix(hint, want) {
			t.Errorf("%s: %q, want %q", seen.results[i].Name, hint, want)
		}
	}
}

const connected = `rdmarun: v1
defaults: {qp: {max_send_wr: 4, max_recv_wr: 4, sig_all: true}}
roles:
  server: {buffers: {rx: {size: 64, access: []}}}
  client: {buffers: {tx: {size: 64}}}
steps:
  - {role: server, create_ep: {passive: true, port: 7471}, as: listener}
  - {role: server, listen: {ep: listener}}
  - {role: client, create_ep: {to: server, port: 7471}, as: ep}
  - {role: client, connect: {ep: ep}}
  - {role: server, wait_event: {ep: listener, type: CONNECT_REQUEST}, as: ep}
  - {role: server, accept: {ep: ep}}
  - {role: client, wait_event: {ep: ep, type: ESTABLISHED}}
  - {role: server, wait_event: {ep: ep, type: ESTABLISHED}}
`

// TestExpectAny: any status and any errno is taken, but no silence, and no event of another type than the step asks
// for. The buffer without rights shows the statuses: a peer may not write to it.
func TestExpectAny(t *testing.T) {
	for name, test := range map[string]struct {
		steps  string
		passes bool
		says   string
	}{
		"a success": {`  - {role: server, post_recv: {buffer: rx, length: 0}}
  - {role: client, post_send: {buffer: tx, length: 0}}
  - {role: client, poll: {cq: send}, expect: any, as: wc}
  - {role: server, poll: {cq: recv}, expect: any}
  - {assert: wc.status == "SUCCESS"}
`, true, ""},
		"a failure": {`  - {role: client, post_write: {buffer: tx, to: server.rx}}
  - {role: client, poll: {cq: send}, expect: any, as: wc}
  - {role: server, wait_async: {}, expect: any}
  - {assert: wc.status == "REM_ACCESS_ERR"}
`, true, ""},
		"a failure, without any": {`  - {role: client, post_write: {buffer: tx, to: server.rx}}
  - {role: client, poll: {cq: send}, leftovers: ignore}
`, false, "wrong status"},
		"an errno": {
			"  - {role: client, connect: {ep: ep}, expect: any}\n", true, "failed with EINVAL, where anything may come",
		},
		"an errno, without any": {"  - {role: client, connect: {ep: ep}}\n", false, "it failed"},
		"silence": {
			"  - {role: client, poll: {cq: send, within: 1s}, expect: any}\n", false, "no completion",
		},
		"a wrong event": {
			"  - {role: client, disconnect: {ep: ep}}\n" +
				"  - {role: server, wait_event: {ep: ep, type: ESTABLISHED}, expect: any}\n",
			false, "wrong event",
		},
	} {
		t.Run(name, func(t *testing.T) {
			shown := everywhere(t, connected+test.steps)["terminal"]
			if passed := strings.Contains(shown, "1 passed"); passed != test.passes ||
				!strings.Contains(shown, test.says) {
				t.Errorf("passed %v, want %v and %q:\n%s", passed, test.passes, test.says, shown)
			}
		})
	}
}

// TestLeftoversOfDestroy: a step that destroys an endpoint may ignore the completions that it removes.
func TestLeftoversOfDestroy(t *testing.T) {
	const sent = `  - {role: server, post_recv: {buffer: rx, length: 0}}
  - {role: client, post_send: {buffer: tx, length: 0}}
  - {role: server, poll: {cq: recv}}
  - {sleep: 1ms}
  - {role: client, destroy_ep: {ep: ep}`
	for end, says := range map[string]string{"}\n": "unmatched completions", ", leftovers: ignore}\n": "1 passed"} {
		if shown := everywhere(t, connected+sent+end)["terminal"]; !strings.Contains(shown, says) {
			t.Errorf("%q lacks %q:\n%s", end, says, shown)
		}
	}
}

// TestWithin checks the limits of nested steps on the provider's clock. A failure in a fragment must name the place of
// the fragment's step and of the step that used it.
func TestWithin(t *testing.T) {
	const file, library = "testdata/run/within.yaml", "testdata/run/within_lib.yaml"
	seen := &collector{}
	onOwn(t, file, seen)
	for i, want := range []struct {
		what, file string
		line       int
		used       []string
	}{
		{},
		{"the time of the steps is over", file, 15, nil},
		{"the time of the steps is over", library, 5, []string{library + ":10 (pause)", file + ":19 (mine.twice)"}},
		{"the time of the steps is over", library, 5, []string{file + ":22 (mine.pause)"}},
		{"the condition does not hold", library, 13, []string{file + ":26 (mine.wrong)"}},
		{},
	} {
		result := seen.results[i]
		if want.what == "" {
			if len(result.Failures) > 0 {
				t.Errorf("%s: %+v", result.Name, result.Failures)
			}
			continue
		}
		if len(result.Failures) != 1 {
			t.Errorf("%s: %+v", result.Name, result.Failures)
			continue
		}
		f := result.Failures[0]
		if f.What != want.what || f.File != want.file || f.Line != want.line || !slices.Equal(f.Used, want.used) {
			t.Errorf("%s: %s %s:%d %q", result.Name, f.What, f.File, f.Line, f.Used)
		}
		text := terminal.FailureText(&f, terminal.Style{})
		for _, user := range f.Used {
			if !strings.Contains(text, "used by "+user) {
				t.Errorf("not reported: %s\n%s", user, text)
			}
		}
	}
	inside := false
	for _, step := range seen.steps {
		if step.File == library {
			inside = true
			if len(step.Used) == 0 || step.Line == 0 {
				t.Errorf("%+v", step)
			}
		}
	}
	if !inside {
		t.Error("no record of a step of the library")
	}
}

// TestModifiers runs single steps with loops, tags and known failures next to their actions.
func TestModifiers(t *testing.T) {
	seen := &collector{}
	totals := onOwn(t, "testdata/run/modifiers.yaml", seen)
	if totals.Passed != 3 || totals.Failed != 2 {
		t.Errorf("%+v", totals)
	}
	want := []string{
		"each a", "each b", "round 0", "round 1", "chosen b", "said x",
		"SEND", "WRITE", "inside", "outside", "before 0", "before 1", "reached",
	}
	for i := range max(len(want), len(seen.lines)) {
		if i >= len(want) || i >= len(seen.lines) || seen.lines[i].Text != want[i] {
			t.Errorf("line %d of %+v, want %v", i, seen.lines, want)
			break
		}
	}
	tags := make(map[string]map[string]string)
	known := make(map[string]bool)
	for _, step := range seen.steps {
		tags[step.Text] = step.Tags
		known[step.XFail] = known[step.XFail] || !step.OK
	}
	if got := tags[`text="WRITE"`]; got["test"] != "lat_WRITE" || got["kind"] != "latency" {
		t.Errorf("tags of a round: %v", got)
	}
	if _, outer := tags[`text="inside"`]["outer"]; !outer || tags[`text="inside"`]["inner"] != "yes" ||
		len(tags[`text="outside"`]) != 1 {
		t.Errorf("tags of steps around: %v %v", tags[`text="inside"`], tags[`text="outside"`])
	}
	if !known["arithmetic"] || !known["it ends half way"] || !known["two"] || known["only there"] {
		t.Errorf("failures that are known: %v", known)
	}
	if f := seen.results[3].Failures; len(f) != 1 || f[0].Action != "xfail" || f[0].Line == 0 {
		t.Errorf("an unexpected success: %+v", f)
	}
	if f := seen.results[4].Failures; len(f) != 1 || f[0].What != "a value cannot be computed" {
		t.Errorf("what no xfail excuses: %+v", f)
	}
}

// TestThresholdsByTag wants that thresholds choose loops by the tags of their steps.
func TestThresholdsByTag(t *testing.T) {
	seen := &thresholdCollector{}
	onOwn(t, "testdata/run/loop_tags.yaml", seen)
	want := []bool{true, true, true, true, false, false, false}
	for i, threshold := range seen.checked {
		if threshold.OK != want[i] {
			t.Errorf("%+v", threshold)
		}
	}
	if len(seen.checked) != len(want) {
		t.Errorf("%d limits checked", len(seen.checked))
	}
}

// TestFairness: fields that compare all samples which a threshold chooses, of each size, and which one sample does not
// have.
func TestFairness(t *testing.T) {
	seen := &thresholdCollector{}
	onOwn(t, "testdata/run/fairness.yaml", seen)
	want := []bool{true, true, true, false, false, false, false, true, true, true, false, false, false}
	for i, threshold := range seen.checked {
		if i >= len(want) || threshold.OK != want[i] {
			t.Errorf("%d: %+v", i, threshold)
		}
	}
	if len(seen.checked) != len(want) {
		t.Fatalf("%d limits checked", len(seen.checked))
	}
	if first, second := seen.checked[0].Value, seen.checked[1].Value; first != "0.9" || second != "2" {
		t.Errorf("fairness %s and spread %s of 4 and 2", first, second)
	}
	for i, alone := range map[int]string{5: "beat", 12: "bandwidth SEND, 64B"} {
		if reason := seen.checked[i].Reason; !strings.HasPrefix(reason, "there is one sample of ") {
			t.Errorf("of %s alone: %q", alone, reason)
		}
	}
}

// TestXFailRaises: only the failure that xfail describes is excused, and every other one is reported.
func TestXFailRaises(t *testing.T) {
	seen := &collector{}
	totals := onOwn(t, "testdata/run/xfail_raises.yaml", seen)
	if totals.XFailed != 2 || totals.Failed != 5 {
		t.Errorf("%+v", totals)
	}
	for i, want := range map[int]string{
		1: `xfail expects another failure (what "wrong max_qp"): known`,
		2: "xfail expects another failure (got something like /^max_qp 2$/): known",
		4: "xfail expects another failure (what something like /value < 1ms/): known",
		5: `xfail expects another failure (what "wrong max_qp"): known`,
		6: "remove the xfail: known",
	} {
		failures := seen.results[i].Failures
		if last := len(failures) - 1; last < 0 || !strings.HasSuffix(failures[last].Hint, want) {
			t.Errorf("%s: %+v, want the hint %q", seen.results[i].Name, failures, want)
		}
	}
	if f := seen.results[5].Failures; len(f) == 1 && f[0].What != "wrong max_sge" {
		t.Errorf("steps: %+v", f)
	}
}

// TestSkipsSayWhatThereIs: a skip shows what was compared, and names the provider where another could have it.
func TestSkipsSayWhatThereIs(t *testing.T) {
	const lab = "rdmarun: v1\nmatrix: {part: [functions]}\nroles: {client: {}}\nrequires: [REQUIRED]\n" +
		"steps: [{log: $(part)}]\n"
	for required, want := range map[string]string{
		"part == 'kept'":             "it requires part == 'kept', and part is \"functions\"",
		"$(part == 'kept')":          "it requires $(part == 'kept'), and part is \"functions\"",
		"provider.verbs":             "it requires provider.verbs, and provider.verbs is false (provider soft)",
		"device.max_sge > 1000":      "it requires device.max_sge > 1000, and device.max_sge is 32 (provider soft)",
		"not roles.distinct_devices": "it requires not roles.distinct_devices, and roles.distinct_devices is true",
	} {
		path := write(t, t.TempDir()+"/skip.yaml", strings.Replace(lab, "REQUIRED", `"`+required+`"`, 1))
		seen := &collector{}
		onOwn(t, path, seen)
		if got := seen.results[0].Reason; got != want {
			t.Errorf("%s:\n got %s\nwant %s", required, got, want)
		}
	}
}
