package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// interleavedScenario has two guests that always wait for what comes at the same times, and still run when a step
// fails.
const interleavedScenario = `rdmarun: v1
provider: {soft: {clock: virtual}}
roles:
  one: &guest
    guest:
      deterministic: true
      script: |
        const never = rdma.create_eventfd(0, []);
        for (let i = 1;; i++) { print(i); rdma.poll_set([{handle: never, events: ["IN"]}], i < 4 ? 1e6 : 3600e9) }
  other: *guest
steps:
  - {role: one, guest: start}
  - {role: other, guest: start}
  - {role: one, guest: wait, within: 1s}
`

// togetherScenario has three guests that wake at the same times.
const togetherScenario = `rdmarun: v1
provider: {soft: {clock: virtual}}
roles:
  one: &guest
    guest:
      deterministic: true
      script: |
        const never = rdma.create_eventfd(0, []);
        for (let i = 1; i <= 3; i++) { rdma.poll_set([{handle: never, events: ["IN"]}], 1e6); print(i) }
  two: *guest
  three: *guest
steps:
  - {role: one, guest: start}
  - {role: two, guest: start}
  - {role: three, guest: start}
  - {role: one, guest: wait, within: 1s}
  - {role: two, guest: wait, within: 1s}
  - {role: three, guest: wait, within: 1s}
`

// TestSeedsDrawInterleavings: a seed draws the order of guests that can continue at the same time, and repeats it. It
// does so also for guests that continue after a failed step.
func TestSeedsDrawInterleavings(t *testing.T) {
	engine, err := filepath.Abs("../../bin/javascript.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(engine); err != nil {
		t.Skip(err, "; make javascript builds it")
	}
	for name, test := range map[string]struct {
		scenario string
		exit     exitCode
		orders   int // different orders of 20 seeds, at least
	}{
		"together":      {togetherScenario, exitOK, 5},
		"after failure": {interleavedScenario, exitFailed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "interleaved.yaml")
			if err := os.WriteFile(path, []byte(test.scenario), 0o600); err != nil {
				t.Fatal(err)
			}
			once, again := guestLines(t, engine, path, test.exit), guestLines(t, engine, path, test.exit)
			seen := make(map[string]bool)
			for i := range once {
				if once[i] != again[i] {
					t.Errorf("seed %d: once\n%s\nand once\n%s", i+1, once[i], again[i])
				}
				seen[once[i]] = true
			}
			if len(seen) < test.orders {
				t.Errorf("20 seeds, and %d orders:\n%v", len(seen), seen)
			}
		})
	}
}

// guestLines runs a scenario with 20 seeds and returns the lines of its guests for each.
func guestLines(t *testing.T, engine, path string, want exitCode) []string {
	t.Helper()
	run := exec.Command(ownProgram(t), "run", path, "--seeds", "1..20")
	run.Env = append(os.Environ(), runAsRdmarun+"=1", "RDMARUN_JAVASCRIPT="+engine)
	out, err := run.CombinedOutput()
	if exitCode(run.ProcessState.ExitCode()) != want {
		t.Fatalf("%v\n%s", err, out)
	}
	said := regexp.MustCompile(`(?m)^ +(?:one|two|three|other) +\| .*$`)
	var lines []string
	for _, part := range strings.Split(string(out), "RUN ")[1:] {
		found := said.FindAllString(part, -1)
		if len(found) < 6 {
			t.Fatalf("the guests print little:\n%s", out)
		}
		lines = append(lines, strings.Join(found, "\n"))
	}
	if len(lines) != 20 {
		t.Fatalf("20 seeds are %d runs:\n%s", len(lines), out)
	}
	return lines
}
