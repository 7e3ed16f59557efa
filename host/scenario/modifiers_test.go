package scenario_test

import (
	"testing"
)

// TestModifiers runs single steps with loops, tags and known failures beside their actions.
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
	if _, outer := tags[`text="inside"`]["outer"]; !outer || tags[`text="inside"`]["inner"] != "yes" || len(tags[`text="outside"`]) != 1 {
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
