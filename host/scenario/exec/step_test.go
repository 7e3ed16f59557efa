package exec_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// results keeps the records of a run's only case.
type results struct {
	cases   []record.Result
	lines   []record.Line
	steps   []record.Step
	checked []record.Threshold
}

func (r *results) Wants(record.Kind) bool { return true }

func (r *results) Record(each *record.Record) error {
	switch each.Kind {
	case record.CaseEnd:
		r.cases = append(r.cases, *each.Result)
	case record.Output:
		r.lines = append(r.lines, *each.Line)
	case record.StepEnd:
		r.steps = append(r.steps, *each.Step)
	case record.Checked:
		r.checked = append(r.checked, *each.Threshold)
	}
	return nil
}

// texts are the lines that were printed.
func (r *results) texts() []string {
	var texts []string
	for _, line := range r.lines {
		texts = append(texts, line.Text)
	}
	return texts
}

// fails wants one failure with the fields of want that are not empty; none for the zero Failure.
func (r *results) fails(t *testing.T, want record.Failure) {
	t.Helper()
	if want.What == "" {
		if result := r.cases[0]; result.Status != record.Passed {
			t.Errorf("%s: %+v", result.Status, result.Failures)
		}
		return
	}
	failures := slices.DeleteFunc(slices.Clone(r.cases[0].Failures), func(f record.Failure) bool {
		return f.Kind == "leftover"
	})
	if r.cases[0].Status != record.Failed || len(failures) != 1 {
		t.Fatalf("%s: %+v", r.cases[0].Status, failures)
	}
	got := failures[0]
	for _, field := range []struct{ name, got, want string }{
		{"role", got.Role, want.Role}, {"action", got.Action, want.Action}, {"what", got.What, want.What},
		{"expected", got.Expected, want.Expected},
		{"got", got.Got, want.Got}, {"hint", got.Hint, want.Hint},
	} {
		if field.want != "" && field.got != field.want {
			t.Errorf("%s: %q, want %q", field.name, field.got, field.want)
		}
	}
	if got.Line != want.Line || want.Column != 0 && got.Column != want.Column || len(got.Excerpt) != 2 {
		t.Errorf("%d:%d: %q, want line %d", got.Line, got.Column, got.Excerpt, want.Line)
	}
	if want.Path != nil && !slices.Equal(got.Path, want.Path) {
		t.Errorf("path %q, want %q", got.Path, want.Path)
	}
	for _, moment := range want.Timeline {
		if !slices.ContainsFunc(got.Timeline, func(m record.Moment) bool { return m.Text == moment.Text }) {
			t.Errorf("the timeline lacks %q: %+v", moment.Text, got.Timeline)
		}
	}
}

// write returns the path of a new file with a text.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "case.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runText runs a file with one case on soft, and sees to it that nothing of it is left.
func runText(t *testing.T, text string, config scenario.RunConfig) *results {
	t.Helper()
	checked := scenario.Check([]string{write(t, text)}, scenario.Params{})
	if checked.Errors.Len() > 0 {
		t.Fatal(checked.Errors.Sorted())
	}
	var provider *rdmacore.Provider
	defer func() {
		if live := provider.Live(); live.Total() > 0 {
			t.Error(live)
		}
	}()
	found := &results{}
	config.ProviderName, config.Consumers = "soft", []record.Consumer{found}
	config.Open = func(how scenario.Opening) (opened *rdmacore.Provider, err error) {
		provider, err = scenario.OpenSoft(how)
		return provider, err
	}
	if _, err := scenario.Run(context.Background(), checked.Scenarios, config); err != nil {
		t.Fatal(err)
	}
	if len(found.cases) != 1 {
		t.Fatalf("%d results, want that of one case", len(found.cases))
	}
	return found
}

// run runs steps of a case with a role "client".
func run(t *testing.T, steps string) record.Result {
	t.Helper()
	return runText(
		t, "rdmarun: v1\nroles: {client: {buffers: {tx: {size: 16}}}}\nsteps:\n"+steps, scenario.RunConfig{},
	).cases[0]
}

// absolute is the path of a file of the repository for scenarios elsewhere.
func absolute(t *testing.T, path string) string {
	t.Helper()
	whole, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// maxFrames is how many functions a plain step may pass through, from its own to the core's that posts, both counted.
const maxFrames = 9

// TestFrames counts the functions from a step to PostSend.  A call that fails allocates its error there, and a profile
// of every allocation has the stack of it.
func TestFrames(t *testing.T) {
	before := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	result := run(t, `
  - {role: client, create_id: {}, as: id}
  - {role: client, resolve_addr: {ep: id, to: client, port: 7471}}
  - {role: client, wait_event: {ep: id, type: ADDR_RESOLVED}}
  - {role: client, create_qp: {ep: id}}
  - {role: client, post_send: {ep: id, buffer: tx}, expect: {errno: EINVAL}}
`)
	runtime.MemProfileRate = before
	if result.Status != record.Passed {
		t.Fatalf("%s: %+v", result.Status, result.Failures)
	}
	runtime.GC() // what was allocated is in the profile after
	runtime.GC() // the second
	records := make([]runtime.MemProfileRecord, 1<<16)
	n, all := runtime.MemProfile(records, true)
	if !all {
		t.Fatalf("the profile has %d records", n)
	}
	for _, each := range records[:n] {
		names := functions(each.Stack())
		post := slices.IndexFunc(names, func(name string) bool {
			return strings.HasSuffix(name, "rdmacore.(*QP).PostSend")
		})
		step := slices.IndexFunc(names, func(name string) bool {
			return strings.HasSuffix(name, "exec.(*caseRun).step")
		})
		if post < 0 || step < post {
			continue
		}
		if frames := step - post + 1; frames > maxFrames {
			t.Errorf(
				"%d functions from a step to PostSend, want %d at most:\n%s", frames, maxFrames,
				strings.Join(names[post:step+1], "\n"),
			)
		}
		return
	}
	t.Fatal("no allocation of PostSend is in the profile")
}

// functions are the names of those that a stack has, the innermost first.
func functions(stack []uintptr) []string {
	var names []string
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		names = append(names, frame.Function)
		if !more {
			return names
		}
	}
}

// TestPath is about the names of the steps around a failure: those that have ended are none of them, however they
// ended.
func TestPath(t *testing.T) {
	for _, test := range []struct{ name, before string }{
		{"after a step with a name", `{name: first, log: x}`},
		{"after a block", `{name: first, do: [{name: inner, log: x}]}`},
		{"after a loop", `{name: first $(i), repeat: 2, as: i, do: [{name: inner, log: x}]}`},
		{"after a failure that is known", `{name: first, xfail: {reason: known}, do: [{name: inner, assert: 1 == 2}]}`},
		{"after branches", `{name: first, parallel: [{name: inner, log: x}, {log: y}]}`},
		{"after limits of time", `{name: first, timeout: 1m, took: {max: 1m}, do: [{name: inner, log: x}]}`},
		{"after a step that is left out", `{name: first, if: $(1 == 2), log: x}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			result := run(t, "  - "+test.before+"\n  - {name: second, do: [{assert: 1 == 2}]}\n")
			if len(result.Failures) != 1 {
				t.Fatalf("%d failures, want one: %+v", len(result.Failures), result.Failures)
			}
			if path := result.Failures[0].Path; !slices.Equal(path, []string{"second"}) {
				t.Errorf("path %q, want that of the second step alone", path)
			}
		})
	}
}

// cancelling ends the run when the first text is printed.
type cancelling struct {
	results
	cancel context.CancelCauseFunc
}

func (c *cancelling) Record(each *record.Record) error {
	if each.Kind == record.Output {
		c.cancel(errors.New("interrupted (test)"))
	}
	return c.results.Record(each)
}

// TestInterruptedNames: the failure of a step names it, whether the end of the run cuts it off or comes before it.
// Which of the two happens depends on the machine.
func TestInterruptedNames(t *testing.T) {
	const text = "rdmarun: v1\nroles: {client: {}}\nsteps:\n  - log: it waits\n  - {role: client, sleep: 10m}\n"
	checked := scenario.Check([]string{write(t, text)}, scenario.Params{})
	ctx, cancel := context.WithCancelCause(t.Context())
	found := &cancelling{cancel: cancel}
	config := scenario.RunConfig{
		ProviderName: "soft", Open: scenario.OpenSoft, Consumers: []record.Consumer{found},
	}
	if _, err := scenario.Run(ctx, checked.Scenarios, config); err != nil {
		t.Fatal(err)
	}
	if len(found.cases) != 1 || len(found.cases[0].Failures) != 1 {
		t.Fatalf("%+v", found.cases)
	}
	if f := found.cases[0].Failures[0]; f.Role != "client" || f.Action != "sleep" || f.What != "interrupted (test)" {
		t.Errorf("%s %s: %s", f.Role, f.Action, f.What)
	}
}
