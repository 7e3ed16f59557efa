package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
)

// rerunFiles are scenarios of which each fails in its own way, or by what the command line says.
var rerunFiles = map[string]string{
	"assert.yaml": "params: {n: {type: int, default: 1}}\nroles: {a: {}}\nsteps: [{assert: n < 2}]",
	"other.yaml": "params: {unknown_elsewhere: {type: string, default: x}}\nroles: {a: {}}\n" +
		"steps: [{assert: unknown_elsewhere == \"x\"}]",
	"cases.yaml": "roles: {a: {}}\ncases:\n  - {name: it's fine, steps: [{role: a, log: x}]}\n" +
		"  - {name: it's \"not\" $HOME, steps: [{assert: 1 == 2}]}",
	"matrix.yaml": "roles: {a: {}}\ncases: [{name: 'n $(n)', matrix: {n: [1, 2, 3]}, steps: [{assert: n != 2}]}]",
	"leftover.yaml": "roles: {server: {}, client: {}}\nimports: {cm: std/cm}\nsteps:\n  - {use: cm.pair}\n" +
		"  - {role: client, disconnect: {ep: ep}}",
	"xpass.yaml": "roles: {a: {}}\ncases: [{name: x, xfail: {reason: known}, steps: [{role: a, log: x}]}]",
	"step.yaml":  "roles: {a: {}}\nsteps: [{role: a, query_device: {}, expect: {max_qp: 1}}]",
	"errno.yaml": "roles: {a: {}}\nsteps: [{role: a, create_id: {}, as: id}, {role: a, bind_addr: {ep: id, " +
		"address: 203.0.113.9, port: 1}}]",
	"event.yaml": "provider: {soft: {clock: virtual}}\nroles: {a: {}}\n" +
		"steps: [{role: a, create_id: {}, as: id}, {role: a, wait_event: {ep: id, type: ESTABLISHED, within: 1s}}]",
	"late.yaml": "provider: {soft: {clock: wall}}\nroles: {a: {}}\ntimeout: 300ms\nsteps: [{sleep: 10m}]",
	"stall.yaml": "provider: {soft: {clock: wall}}\nroles: {a: {}}\n" +
		"steps: [{role: a, create_id: {}, as: id}, {role: a, wait_event: {ep: id, type: ESTABLISHED, within: 1m}}]",
	"endless.yaml": "provider: {soft: {clock: wall}}\nroles: {a: {}}\ntimeout: 1h\nstall_timeout: 1h\n" +
		"steps: [{sleep: 30m}]",
	"threshold.yaml": "roles: {server: {}, client: {}}\nsteps: [{measure: {kind: latency, op: SEND, from: client, " +
		"to: server, sizes: [8], iterations: 9}}]\nthresholds: [{metric: latency, pass: [count > 100]}]",
	"baseline.yaml": "roles: {server: {}, client: {}}\nsteps: [{measure: {kind: latency, op: SEND, from: client, " +
		"to: server, sizes: [8], iterations: 9}}]\n" +
		"thresholds: [{metric: latency, if: baseline != nil, pass: [count > baseline.count]}]",
	"scant.yaml": "roles: {server: {}, client: {}}\nsteps: [{measure: {kind: bandwidth, op: SEND, from: client, " +
		"to: server, sizes: [8], iterations: 9, min_messages: 10}}]",
	"link.yaml": "roles: {server: {}, client: {buffers: {tx: {size: 64}}}}\nimports: {cm: std/cm}\nsteps:\n" +
		"  - {use: cm.pair}\n  - {role: client, post_send: {ep: ep, buffer: tx, signaled: true}}\n" +
		"  - {role: client, poll: {cq: send}}",
	"drawn.yaml": "roles: {server: {}, client: {}}\nimports: {cm: std/cm}\nsteps:\n  - {use: cm.pair}\n" +
		"  - {role: client, query_qp: {ep: ep}, expect: {dest_qp_num: 0}}",
	"finally.yaml": "roles: {a: {}}\nsteps: [{role: a, log: x}]\nfinally: [{assert: 1 == 2}]",
	"loop.yaml":    "roles: {a: {}}\nsteps: [{repeat: 5, as: i, name: round, do: [{assert: i < 3}]}]",
	"both.yaml":    "roles: {a: {}, b: {}}\nsteps: [{parallel: [{role: a, log: x}, {assert: 1 == 2}]}]",
	"skipped.yaml": "roles: {a: {}}\nrequires: [transport.iwarp]\nsteps: [{role: a, log: x}]",
	"shared.yaml":  sharedCases,
	"trap.yaml":    "roles: {a: {guest: {module: trap.wasm}}}\nsteps: [{role: a, guest: run}]",
	"fixture.yaml": "roles: {a: {}}\nfixtures: {f: {setup: [{assert: 1 == 2}]}}\nneeds: [f]\n" +
		"cases: [{name: x, steps: [{role: a, log: x}]}]",
	"took.yaml": "provider: {soft: {clock: virtual}}\nroles: {a: {}}\nsteps: [{sleep: 2ms, took: {max: 1ms}}]",
	"lab.yaml": "roles: {a: {}, b: {}}\n" +
		"steps: [{role: a, log: x}, {role: b, query_device: {}, expect: {max_qp: 1}}]",
	"device.yaml": "roles: {a: {}}\nsteps: [{role: a, log: x}]",
}

// sharedCases are cases that share a fixture, of which the last fails.
const sharedCases = `roles:
  server: {buffers: {rx: {size: 64}}}
  client: {buffers: {tx: {size: 64}}}
imports: {cm: std/cm}
fixtures: {pair: {scope: file, setup: [{use: cm.pair}], teardown: [{use: cm.disconnect}]}}
needs: [pair]
cases:
  - {name: first, steps: [{role: client, log: x}]}
  - {name: second, steps: [{role: client, log: x}]}
  - {name: third, steps: [{assert: 1 == 2}]}`

// TestRerun: the command that a failure prints fails in the same way, whatever of the command line it was due to.
func TestRerun(t *testing.T) {
	trap, err := filepath.Abs(filepath.Join("..", "..", "host", "guest", "testdata", "trap.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for name, text := range rerunFiles {
		if err := os.WriteFile(name, []byte("rdmarun: v1\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("params.yaml", []byte("n: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(trap)
	if err == nil {
		err = os.WriteFile("trap.wasm", module, 0o600)
	}
	if err == nil {
		hosts := "rdmarun: lab/v1\nhosts: {x: {command: [env, RUN=1]}, y: {command: [env, RUN=1]}}\n" +
			"place: {a: x, b: y}\n"
		err = os.WriteFile("hosts.yaml", []byte(strings.ReplaceAll(hosts, "RUN", runAsRdmarun)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if failure, code := runForFailure(t, nil, "rdmarun run baseline.yaml --save-baseline main"); code != 0 {
		t.Fatalf("exit code %d, %+v", code, failure)
	}
	for name, test := range map[string]struct {
		command string
		env     []string
		has     string // in the rerun command
	}{
		"a parameter":               {command: "rdmarun run assert.yaml -p n=3"},
		"a parameter of one file":   {command: "rdmarun run other.yaml assert.yaml -p n=3 -p unknown_elsewhere=x"},
		"a parameter with a space":  {command: "rdmarun run other.yaml -p 'unknown_elsewhere=a b$c'"},
		"a file of parameters":      {command: "rdmarun run assert.yaml --params params.yaml"},
		"parameter of environment":  {command: "rdmarun run assert.yaml", env: []string{"RDMARUN_PARAM_n=7"}},
		"a case with quotes":        {command: "rdmarun run cases.yaml"},
		"a case of a matrix":        {command: "rdmarun run matrix.yaml"},
		"what is left":              {command: "rdmarun run leftover.yaml"},
		"an xfail that passes":      {command: "rdmarun run xpass.yaml"},
		"an expectation":            {command: "rdmarun run step.yaml"},
		"an errno":                  {command: "rdmarun run errno.yaml"},
		"an event that is not here": {command: "rdmarun run event.yaml"},
		"a case's timeout":          {command: "rdmarun run late.yaml"},
		"a stall":                   {command: "rdmarun run stall.yaml --stall-timeout 300ms"},
		"the run's timeout":         {command: "rdmarun run endless.yaml --timeout 500ms"},
		"a threshold":               {command: "rdmarun run threshold.yaml"},
		"a baseline":                {command: "rdmarun run baseline.yaml --baseline main"},
		"too few messages":          {command: "rdmarun run scant.yaml"},
		"a link":                    {command: "rdmarun run link.yaml --link packets"},
		"a drawn seed":              {command: "rdmarun run drawn.yaml"},
		"a given seed":              {command: "rdmarun run drawn.yaml --seed 4711"},
		"a step of finally":         {command: "rdmarun run finally.yaml"},
		"a round of a loop":         {command: "rdmarun run loop.yaml"},
		"parallel steps":            {command: "rdmarun run both.yaml"},
		"a repetition":              {command: "rdmarun run drawn.yaml --repeat 3 --fail-fast"},
		"cases that share":          {command: "rdmarun run shared.yaml"},
		"in an order":               {command: "rdmarun run matrix.yaml shared.yaml --shuffle=4"},
		"several jobs":              {command: "rdmarun run drawn.yaml cases.yaml -j 2 --id 'cases*not*'"},
		"a skip that is none":       {command: "rdmarun run skipped.yaml --strict"},
		"a device that is not here": {command: "rdmarun run device.yaml -d a=mlx5_7"},
		"a guest's trap":            {command: "rdmarun run trap.yaml"},
		"a fixture":                 {command: "rdmarun run fixture.yaml"},
		"a step that took too long": {command: "rdmarun run took.yaml --time-scale 1.5"},
		"a host of a lab":           {command: "rdmarun run lab.yaml --lab hosts.yaml", has: " --lab hosts.yaml "},
		"a strict sandbox": {
			command: "rdmarun run assert.yaml -p n=3 --sandbox strict", has: " --sandbox strict ",
		},
		"a library": {command: "rdmarun run assert.yaml -p n=3 --library x.so", has: " --library x.so "},
		"a device of perf": {
			command: "rdmarun perf write_bw send_lat --loopback -s 64,4KiB -D 1 -d client=mlx5_7 -o csv=perf.csv",
			has:     "perf write_bw send_lat --device client=mlx5_7 --duration 1s --loopback --sizes 64,4KiB --seed ",
		},
		"the timeout of perf": {
			command: "rdmarun perf write_bw -b -D 1h --loopback --timeout 400ms --seed 7",
			has:     "perf write_bw --bidirectional --duration 1h --loopback --timeout 400ms --seed 7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, code := runForFailure(t, test.env, test.command)
			if first.Rerun == "" || code == 0 {
				t.Fatalf("exit code %d, %+v", code, first)
			}
			if !strings.Contains(first.Rerun, test.has) {
				t.Errorf("%s lacks %s", first.Rerun, test.has)
			}
			again, codeAgain := runForFailure(t, nil, first.Rerun)
			if codeAgain != code || again.What != first.What || again.Line != first.Line || again.File != first.File ||
				again.Got != first.Got {
				t.Errorf("%s\nexit code %d, then %d;\n%+v\n%+v", first.Rerun, code, codeAgain, first, again)
			}
			if again.Rerun != first.Rerun {
				t.Errorf("%s\nis rerun by %s", first.Rerun, again.Rerun)
			}
		})
	}
}

// runForFailure gives the first failure of a command of a shell, without what another run has otherwise.
func runForFailure(t *testing.T, env []string, command string) (failure record.Failure, code int) {
	t.Helper()
	folder := t.TempDir()
	if err := os.Symlink(ownProgram(t), filepath.Join(folder, "rdmarun")); err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(folder, "run.jsonl")
	run := exec.Command("sh", "-c", command+" --quiet -o jsonl="+records)
	run.Env = append(
		append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "HOME="+folder, "XDG_STATE_HOME="+folder), env...,
	)
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	err := run.Run()
	if run.ProcessState == nil {
		t.Fatal(err)
	}
	file, err := os.Open(records)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, &out)
	}
	defer file.Close()
	_, err = jsonl.Read(file, records, func(each *record.Record) error {
		if each.Kind == record.CaseEnd && failure.What == "" && len(each.Result.Failures) > 0 {
			failure = each.Result.Failures[0]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	failure.Got = strings.TrimSpace(failure.Got)
	return failure, run.ProcessState.ExitCode()
}
