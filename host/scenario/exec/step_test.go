package exec_test

import (
	"context"
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

// results keeps how cases ended.
type results struct{ cases []record.Result }

func (r *results) Wants(kind record.Kind) bool { return kind == record.CaseEnd }

func (r *results) Record(each *record.Record) error {
	r.cases = append(r.cases, *each.Result)
	return nil
}

// run runs steps of a case with a role "client" on soft.
func run(t *testing.T, steps string) record.Result {
	t.Helper()
	path := filepath.Join(t.TempDir(), "case.yaml")
	text := "rdmarun: v1\nroles: {client: {buffers: {tx: {size: 16}}}}\nsteps:\n" + steps
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	checked := scenario.Check([]string{path}, scenario.Params{})
	if checked.Errors.Len() > 0 {
		t.Fatal(checked.Errors.Sorted())
	}
	provider, err := rdmacore.Open("soft")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	}()
	found := &results{}
	if _, err := scenario.Run(context.Background(), checked.Scenarios, scenario.RunConfig{Provider: provider, Consumers: []record.Consumer{found}}); err != nil {
		t.Fatal(err)
	}
	if len(found.cases) != 1 {
		t.Fatalf("%d results, want that of one case", len(found.cases))
	}
	return found.cases[0]
}

// mostFrames is how many functions a plain step may pass through, from its own to the core's that posts, both counted.
const mostFrames = 9

// TestFrames counts the functions from a step to PostSend.  A call that fails allocates its error there, and a profile of
// every allocation has the stack of it.
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
		post := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, "rdmacore.(*QP).PostSend") })
		step := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, "exec.(*caseRun).step") })
		if post < 0 || step < post {
			continue
		}
		if frames := step - post + 1; frames > mostFrames {
			t.Errorf("%d functions from a step to PostSend, want %d at most:\n%s", frames, mostFrames, strings.Join(names[post:step+1], "\n"))
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

// TestPath is about the names of the steps around a failure: those that have ended are none of them, however they ended.
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
