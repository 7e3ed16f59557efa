package scenario_test

import (
	"slices"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
)

// TestWithin holds steps of steps to their limits on the provider's clock, and failures in fragments to the place
// of the fragment's step and of who used it.
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
				t.Errorf("not told: %s\n%s", user, text)
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
