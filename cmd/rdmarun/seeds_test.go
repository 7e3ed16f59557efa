package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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

// TestSeedsDrawInterleavings: what guests do that wait alike repeats with a seed, also behind a failure, and not with
// every other.
func TestSeedsDrawInterleavings(t *testing.T) {
	engine, err := filepath.Abs("../../bin/javascript.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(engine); err != nil {
		t.Skip(err, "; make javascript builds it")
	}
	path := filepath.Join(t.TempDir(), "interleaved.yaml")
	if err := os.WriteFile(path, []byte(interleavedScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`(?m)^ +(?:one|other) +\| .*$`)
	seen := make(map[string]bool)
	for seed := range 12 {
		var first string
		for range 3 {
			run := exec.Command(ownProgram(t), "run", path, "--seed", strconv.Itoa(seed))
			run.Env = append(os.Environ(), runAsRdmarun+"=1", "RDMARUN_JAVASCRIPT="+engine)
			out, err := run.CombinedOutput()
			if exitCode(run.ProcessState.ExitCode()) != exitFailed {
				t.Fatalf("%v\n%s", err, out)
			}
			lines := ""
			for _, line := range said.FindAllString(string(out), -1) {
				lines += line + "\n"
			}
			if first == "" {
				first = lines
			}
			if lines != first {
				t.Fatalf("seed %d: once\n%sand once\n%s", seed, first, lines)
			}
		}
		seen[first] = true
	}
	if len(seen) < 2 {
		t.Errorf("12 seeds, and one interleaving:\n%v", seen)
	}
}
