package scenario_test

import (
	"strings"
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

// TestXFailRaises: only the failure that xfail describes is excused, and every other one says so.
func TestXFailRaises(t *testing.T) {
	seen := &collector{}
	totals := onOwn(t, "testdata/run/xfail_raises.yaml", seen)
	if totals.XFailed != 2 || totals.Failed != 5 {
		t.Errorf("%+v", totals)
	}
	for i, want := range map[int]string{
		1: `xfail expects another failure (what "wrong max_qp"): known`, 2: "xfail expects another failure (got something like /^max_qp 2$/): known",
		4: "xfail expects another failure (what something like /value < 1ms/): known", 5: `xfail expects another failure (what "wrong max_qp"): known`,
		6: "take the xfail away: known",
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
	const lab = "rdmarun: v1\nmatrix: {part: [functions]}\nroles: {client: {}}\nrequires: [REQUIRED]\nsteps: [{log: $(part)}]\n"
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
