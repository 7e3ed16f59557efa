package scenario_test

import (
	"os"
	"path/filepath"
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
	if totals.Failed != 6 || totals.Passed+totals.Errors+totals.Skipped > 0 {
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
	for _, c := range load(t, nil, path)[0].Program.Cases {
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
	for _, c := range load(t, nil, path)[0].Program.Cases {
		ids = append(ids, strings.TrimPrefix(c.ID, path))
	}
	want := "::depth offered granted[depth=0,grant=0] ::depth offered granted[depth=1,grant=0] " +
		"::depth offered granted[depth=1,grant=1] ::depth offered granted[depth=16,grant=0] " +
		"::depth offered granted[depth=16,grant=1] ::reject carries a reason ::nobody listens " +
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

// TestThresholds wants that a limit is held against what was measured, and that one without samples fails.
func TestThresholds(t *testing.T) {
	seen := &thresholdCollector{}
	totals := onOwn(t, "testdata/run/thresholds.yaml", seen)
	want := []bool{true, true, false, true, true, false, false}
	if totals.Failed != 1 || totals.ByThreshold != 1 || totals.Thresholds != 3 || len(seen.checked) != len(want) {
		t.Fatalf("%+v %+v", totals, seen.checked)
	}
	for i, threshold := range seen.checked {
		if threshold.OK != want[i] || threshold.Line == 0 || threshold.OK == (threshold.Reason != "") && threshold.Value == "" {
			t.Errorf("%+v", threshold)
		}
	}
}

// thresholdCollector keeps what was said of thresholds, and of which case.
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
	for i, want := range []string{"in this step, in round 2/3, round 2/2", "in this step, in naps round 5/5", "it was cut off in this step"} {
		if i >= len(seen.results) || len(seen.results[i].Failures) == 0 {
			t.Fatalf("case %d did not fail", i)
		}
		if hint := seen.results[i].Failures[0].Hint; !strings.HasSuffix(hint, want) {
			t.Errorf("%s: %q, want %q", seen.results[i].Name, hint, want)
		}
	}
}
