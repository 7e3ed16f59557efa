package exec_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// virtual is the beginning of a file on a clock on which no wait takes long.
const virtual = `rdmarun: v1
provider: {soft: {clock: virtual, seed: 7}}
roles: {server: {}, client: {}}
`

// TestParallel is about what branches do to each other, and what is left of them afterwards.
func TestParallel(t *testing.T) {
	for _, test := range []struct {
		name, steps string
		lines       []string // in any order
		failure     record.Failure
	}{
		{
			name:  "all run to their ends",
			steps: `[{parallel: [{log: a}, {do: [{sleep: 1h}, {log: b}]}, {log: c}]}, {log: after}]`,
			lines: []string{"a", "b", "c", "after"},
		},
		{
			name:    "the first failure ends the others, and is the one reported",
			steps:   `[{parallel: [{do: [{sleep: 2h}, {log: never}]}, {do: [{sleep: 1m}, {assert: 1 == 2}]}]}, {log: never}]`,
			failure: record.Failure{Action: "assert", What: "the condition does not hold", Line: 5},
		},
		{
			name: "each has its own counter",
			steps: `[{parallel: [
      {repeat: 2, as: i, do: [{sleep: 1s}, {log: "first $(i)"}]},
      {repeat: 3, as: i, do: [{sleep: 1s}, {log: "second $(i)"}]}]}]`,
			lines: []string{"first 0", "first 1", "second 0", "second 1", "second 2"},
		},
		{
			name: "names given in a branch are known after all, and so are several under one word",
			steps: `[
    {parallel: [
      {do: [{role: server, query_device: {}, as: one}, {sleep: 1s}, {role: server, query_device: {}, as: "all[0]"}]},
      {do: [{role: server, query_device: {}, as: "all[1]"}, {sleep: 1m}]}]},
    {log: "$(one.max_qp == all[0].max_qp && all[1].max_qp > 0)"}]`,
			lines: []string{"true"},
		},
		{
			name:  "what is around a branch that failed is reported",
			steps: `[{name: outer, parallel: [{name: inner, do: [{assert: 1 == 2}]}, {sleep: 1h}]}]`,
			failure: record.Failure{
				Action: "assert", What: "the condition does not hold", Line: 5, Path: []string{"outer", "inner"},
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen := runText(t, virtual+"steps:\n  "+test.steps+"\n", scenario.RunConfig{})
			got, want := seen.texts(), slices.Clone(test.lines)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("lines %q, want %q", got, want)
			}
			seen.fails(t, test.failure)
		})
	}
}

// TestParallelCounts: the steps of branches are steps of the case, and each is recorded once.
func TestParallelCounts(t *testing.T) {
	seen := runText(
		t, virtual+"steps: [{parallel: [{repeat: 4, do: [{sleep: 1s}]}, {sleep: 2s}]}, {sleep: 1s}]\n",
		scenario.RunConfig{},
	)
	if steps := seen.cases[0].Steps; steps != 6 || len(seen.steps) != 6 {
		t.Errorf("%d steps, and records of %d, want 6", steps, len(seen.steps))
	}
}

// TestBarriers: no step continues before all are at the barrier, and the error names the missing ones.
func TestBarriers(t *testing.T) {
	for _, test := range []struct {
		name, steps string
		before      []string // lines of which each comes before each of after
		after       []string
		failure     record.Failure
	}{
		{
			name: "the last opens it",
			steps: `[{parallel: [
      {name: one, do: [{log: one comes}, {barrier: up, of: [two, three]}, {log: one goes}]},
      {name: two, do: [{sleep: 1h}, {log: two comes}, {barrier: up, of: [one, three]}, {log: two goes}]},
      {name: three, do: [{sleep: 1m}, {log: three comes}, {barrier: up, of: [one, two], within: 2h}, {log: three goes}]}]}]`,
			before: []string{"one comes", "two comes", "three comes"},
			after:  []string{"one goes", "two goes", "three goes"},
		},
		{
			name: "a name serves again",
			steps: `[{parallel: [
      {name: one, do: [{log: 1 comes}, {barrier: up, of: [two]}, {barrier: up, of: [two]}, {log: 1 goes}]},
      {name: two, do: [{barrier: up, of: [one]}, {log: 2 comes}, {barrier: up, of: [one]}, {log: 2 goes}]}]}]`,
			before: []string{"1 comes", "2 comes"},
			after:  []string{"1 goes", "2 goes"},
		},
		{
			name: "a branch that never comes",
			steps: `[{parallel: [
      {name: one, do: [{barrier: never, of: [two]}]},
      {name: two, do: [{if: client.name == "server", barrier: never, of: [one]}]}]}]`,
			failure: record.Failure{
				Action: "barrier", What: `barrier "never" stays closed`, Expected: "branch two",
				Got: "no such step of them", Line: 6, Path: []string{"one"},
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps := strings.ReplaceAll(test.steps, "of: [two, three]}", "of: [two, three], within: 2h}")
			seen := runText(t, virtual+"steps:\n  "+steps+"\n", scenario.RunConfig{})
			lines := seen.texts()
			for _, before := range test.before {
				for _, after := range test.after {
					if i, j := slices.Index(lines, before), slices.Index(lines, after); i < 0 || j < i {
						t.Errorf("%q does not come before %q: %q", before, after, lines)
					}
				}
			}
			seen.fails(t, test.failure)
		})
	}
}

// TestStall: a case ends when none of its steps does for the time of stall_timeout, which the command line may replace.
func TestStall(t *testing.T) {
	for _, test := range []struct {
		name, text string
		config     scenario.RunConfig
		failure    record.Failure
	}{
		{
			name: "a step without an end", text: "stall_timeout: 20ms\nsteps: [{sleep: 1h}]\n",
			failure: record.Failure{
				Action: "sleep", What: "no step has ended for 20ms (stall_timeout)",
				Hint: "it was cut off in this step", Line: 4,
			},
		},
		{
			name: "in a loop", text: "stall_timeout: 20ms\nsteps: [{name: nap, repeat: 3, do: [{sleep: 1h}]}]\n",
			failure: record.Failure{
				Action: "sleep", What: "no step has ended for 20ms (stall_timeout)",
				Hint: "it was cut off in this step, in nap round 1/3", Line: 4,
				Path: []string{"nap"},
			},
		},
		{
			name: "in branches", text: "stall_timeout: 20ms\nsteps: [{parallel: [{sleep: 1h}]}]\n",
			failure: record.Failure{
				Action: "sleep", What: "no step has ended for 20ms (stall_timeout)",
				Hint: "it was cut off in this step", Line: 4,
			},
		},
		{
			name: "of the command line", text: "steps: [{sleep: 1h}]\n",
			config: scenario.RunConfig{Stall: 30 * time.Millisecond},
			failure: record.Failure{
				Action: "sleep", What: "no step has ended for 30ms (stall_timeout)",
				Hint: "it was cut off in this step", Line: 3,
			},
		},
		{name: "steps that end", text: "stall_timeout: 1m\nsteps: [{repeat: 50, do: [{sleep: 1us}]}]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			runText(t, "rdmarun: v1\nprovider: {soft: {clock: wall}}\n"+test.text, test.config).fails(t, test.failure)
		})
	}
}

// TestGuests runs guests by steps: the expectations of them, and the errors of those that do not meet them.
func TestGuests(t *testing.T) {
	const testdata = "../../guest/testdata/"
	for _, test := range []struct {
		name, module, steps string
		lines               []string
		failure             record.Failure
	}{
		{
			name: "an exit code that is expected", module: "calls.wasm",
			steps: `[{role: guest, guest: start}, {role: guest, guest: call, function: nothing}, {barrier: serve, of: [guest]},
    {role: guest, guest: wait, expect: {exit: 1}, as: end}, {log: "$(end.outcome) $(end.exit)"}]`,
			lines: []string{"exited 1"},
		},
		{
			name: "an exit code that is not", module: "calls.wasm",
			steps: `[{role: guest, guest: start}, {role: guest, guest: call, function: nothing}, {barrier: serve, of: [guest]}, {role: guest, guest: wait}]`,
			failure: record.Failure{
				Role: "guest", Action: "guest wait", What: "wrong exit", Expected: "exit 0",
				Got: "exit 1  (exited, exit code 1)", Hint: "the guest exited with code 1", Line: 4,
			},
		},
		{
			name: "a guest that is stopped need not be well", module: "spin.wasm",
			steps: `[{role: guest, guest: start}, {role: guest, guest: stop, as: end}, {log: $(end.outcome)}]`,
			lines: []string{"stopped"},
		},
		{
			name: "unless that is expected", module: "spin.wasm",
			steps: `[{role: guest, guest: start}, {role: guest, guest: stop, expect: {outcome: exited}}]`,
			failure: record.Failure{
				Role: "guest", Action: "guest stop", What: "wrong outcome", Expected: "outcome exited",
				Got: "outcome stopped  (stopped, exit code 143)", Line: 4,
				Hint: "the guest was stopped: the guest was asked to stop and did not end in time",
			},
		},
		{
			name: "a function and its result", module: "calls.wasm",
			steps: `[{role: guest, guest: start}, {role: guest, guest: call, function: add, args: [40, 2], expect: {result: 42}, as: sum},
    {log: $(sum.result)}, {barrier: serve, of: [guest]}, {role: guest, guest: wait, expect: {exit: 1}}]`,
			lines: []string{"42"},
		},
		{
			name: "another result", module: "calls.wasm",
			steps: `[{role: guest, guest: start}, {role: guest, guest: call, function: add, args: [1, 1], expect: {result: 3}}]`,
			failure: record.Failure{
				Role: "guest", Action: "guest call", What: "wrong result", Expected: "result 3", Got: "result 2",
				Line: 4,
				Timeline: []record.Moment{
					{Text: "guest start"}, {Text: "guest call add(1, 1)  -> FAILED: wrong result"},
				},
			},
		},
		{
			name: "a guest that was not started", module: "calls.wasm",
			steps: `[{role: guest, guest: wait}]`,
			failure: record.Failure{
				Role: "guest", Action: "guest wait", What: "the guest of role guest was not started",
				Hint: "a step `guest: start` comes first", Line: 4,
			},
		},
		{
			name: "a guest that runs on", module: "spin.wasm",
			steps: `[{role: guest, guest: start}, {role: guest, guest: wait, within: 10ms}]`,
			failure: record.Failure{
				Role: "guest", Action: "guest wait", What: "the guest did not end", Expected: "its end within 10ms",
				Got: "it still runs", Line: 4,
			},
		},
		{
			name: "a guest that ends before it comes to a barrier", module: "spin.wasm",
			steps: `[{role: guest, guest: start}, {parallel: [{barrier: up, of: [guest]}, {role: guest, guest: stop}]}]`,
			failure: record.Failure{
				Action: "barrier", What: `the guest of role guest ended before it came to barrier "up"`,
				Expected: "rdma.barrier(up)",
				Got:      "stopped, exit code 143", Line: 4,
				Hint: "the guest was stopped: the guest was asked to stop and did not end in time",
			},
		},
		{
			name: "a guest that comes to no barrier", module: "spin.wasm",
			steps: `[{role: guest, guest: start}, {barrier: up, of: [guest], within: 10ms}]`,
			failure: record.Failure{
				Action: "barrier", What: `barrier "up" stays closed`, Expected: "the guests of guest",
				Got: "they run, but have not called rdma.barrier(up)", Line: 4,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := fmt.Sprintf(
				"rdmarun: v1\nroles: {guest: {guest: {module: %s}}}\nsteps:\n  %s\n", absolute(t, testdata+test.module),
				test.steps,
			)
			seen := runText(t, text, scenario.RunConfig{GuestCache: t.TempDir()})
			if lines := seen.texts(); !slices.Equal(lines, test.lines) {
				t.Errorf("lines %q, want %q", lines, test.lines)
			}
			seen.fails(t, test.failure)
		})
	}
}

// TestGuestsBehindFailures: if a step fails because a guest has failed, that is the first failure, with its place.  If
// the guest still runs, the failure of the step has its place.
func TestGuestsBehindFailures(t *testing.T) {
	const (
		traps, spins = "trap.wasm}", "spin.wasm}"
		limited      = "spin.wasm, limits: {time: 2s}}"
		waitListen   = "{wait_listen: {role: guest, within: 1m}}"
		barrier      = "{barrier: up, of: [guest], within: 1m}"
	)
	folder := absolute(t, filepath.Join("..", "..", "guest", "testdata")) + "/"
	for name, test := range map[string]struct {
		module, step string
		// cause is what the first of two failures says; with "" there is one, which names the running guest.
		cause  string
		action string // of the step's failure
	}{
		"trapped, wait_listen":  {traps, waitListen, "trapped, exit code 125", "wait_listen"},
		"too long, barrier":     {limited, barrier, "timed_out, exit code 124", "barrier"},
		"too long, wait_listen": {limited, waitListen, "timed_out, exit code 124", "wait_listen"},
		"runs, wait_listen":     {spins, "{wait_listen: {role: guest, within: 50ms}}", "", "wait_listen"},
		"runs, barrier":         {spins, "{barrier: up, of: [guest], within: 50ms}", "", "barrier"},
		"runs, guest wait":      {spins, "{role: guest, guest: wait, within: 50ms}", "", "guest wait"},
		"runs, another role": {
			spins, "{role: client, wait_event: {ep: id, type: ESTABLISHED, within: 50ms}}", "", "wait_event",
		},
		"runs, the step's timeout": {spins, "{sleep: 1m, timeout: 50ms}", "", "sleep"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := runText(t, fmt.Sprintf("rdmarun: v1\nroles: {guest: {guest: {module: %s}, client: {}}\nsteps:\n"+
				"  - {role: client, create_id: {}, as: id}\n  - {role: guest, guest: start}\n  - %s\n",
				folder+test.module, test.step), scenario.RunConfig{GuestCache: t.TempDir()})
			failures := seen.cases[0].Failures
			if test.cause != "" {
				if len(failures) != 2 || failures[0].What != "the guest had already ended: "+test.cause {
					t.Fatalf("%+v", failures)
				}
				if test.module == traps && !strings.Contains(failures[0].Got, "\n  in $0() i32") {
					t.Errorf("no place: %q", failures[0].Got)
				}
			}
			last := failures[len(failures)-1]
			if last.Action != test.action || len(failures) == 1 && !slices.Equal(last.Details, []string{
				"guest: its guest still runs, in a function without a name (compile it with -g, and without wasm-opt)",
			}) {
				t.Errorf("%+v", failures)
			}
		})
	}
	// What an xfail excuses is no failure later.
	seen := runText(t, fmt.Sprintf("rdmarun: v1\nroles: {guest: {guest: {module: %s}}\nsteps:\n"+
		"  - {role: guest, guest: start}\n  - {barrier: up, of: [guest], xfail: {reason: known}}\n",
		folder+limited), scenario.RunConfig{GuestCache: t.TempDir()})
	if result := seen.cases[0]; result.Status != record.Passed {
		t.Errorf("%s: %+v", result.Status, result.Failures)
	}
}

// TestConditionOfThreshold: a condition that cannot be computed fails the case in its line; the other thresholds are
// checked all the same.
func TestConditionOfThreshold(t *testing.T) {
	seen := runText(t, `rdmarun: v1
steps: [{log: x}]
thresholds:
  - {metric: duration, if: 1 % (device.max_sge - device.max_sge) == 1, pass: ["value < 1h"]}
  - {metric: duration, pass: ["value < 1h"]}
`, scenario.RunConfig{})
	seen.fails(t, record.Failure{
		Action: "thresholds", What: "a value cannot be computed", Got: "a division by zero", Line: 4, Column: 28,
	})
	if len(seen.checked) != 1 || !seen.checked[0].OK {
		t.Errorf("the other threshold: %+v", seen.checked)
	}
	seen = runText(t, `rdmarun: v1
steps: [{log: x}]
thresholds:
  - {metric: duration, if: device.max_sge == 0, pass: ["value < 1h"]}
`, scenario.RunConfig{})
	seen.fails(t, record.Failure{})
	if len(seen.checked) != 0 {
		t.Errorf("a threshold that is not wanted was checked: %+v", seen.checked)
	}
}

// TestResultsStay: a step's result and words are its own, though the next step of the same verb uses the same call.
func TestResultsStay(t *testing.T) {
	seen := runText(t, `rdmarun: v1
roles: {client: {buffers: {tx: {size: 16}}}}
steps:
  - repeat: 3
    as: i
    do:
      - {role: client, fill: {buffer: tx, fields: [{u32: $(i)}]}}
      - {role: client, decode: {buffer: tx, fields: [{u32: n}]}, as: "all[$(i)]"}
  - {log: "$(all[0].n) $(all[1].n) $(all[2].n)"}
  - {assert: 1 == 2}
`, scenario.RunConfig{})
	if lines := seen.texts(); !slices.Equal(lines, []string{"0 1 2"}) {
		t.Errorf("%q, want the result of each step", lines)
	}
	seen.fails(t, record.Failure{Action: "assert", What: "the condition does not hold", Line: 10,
		Timeline: []record.Moment{
			{Text: "decode tx  -> n=0x1"}, {Text: "decode tx  -> n=0x2"},
		}})
}
