package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rdmarun/host/output"
	"rdmarun/host/record"
	"rdmarun/rdmacore/process"
)

// Of cases that run at once the records come when they end; a crash counts those that run all the same.
func TestCrashCountsCasesWhoseRecordsAreHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tap")
	var stdout, stderr bytes.Buffer
	a := &app{env: map[string]string{"XDG_STATE_HOME": t.TempDir()}, stdout: &stdout, stderr: &stderr}
	outputs := &runOutputs{Outputs: &output.Outputs{}, plan: crashPlan{}}
	file, err := namelessFile()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	kept := keepForCrash(file, outputs.madeAnew())
	stream := record.NewStream(kept)
	start := func(id string) *record.Record {
		return &record.Record{Version: record.Version, Kind: record.CaseStart, File: "lab.yaml", Case: id, Start: &record.Start{Name: id}}
	}
	stream.Write(&record.Record{Kind: record.RunStart, Run: &record.Run{Provider: "soft", Cases: 4}})
	stream.Announce(start("lab.yaml::first"))
	stream.Announce(start("lab.yaml::second"))
	stream.Announce(start("lab.yaml::third"))
	stream.Forward(start("lab.yaml::second"), &record.Record{Version: record.Version, Kind: record.CaseEnd, File: "lab.yaml", Case: "lab.yaml::second",
		Result: &record.Result{Name: "second", Status: record.Passed}})

	// It is closed with the reports.
	descriptor, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	plan := &crashPlan{Descriptor: descriptor, Targets: []output.Target{{Format: "tap", Path: path}}}
	if err := a.closeReports(plan, &crashEnd{status: record.Broken, reason: "it crashed"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"ok 1 - lab.yaml::second", "not ok 2 - lab.yaml::first", "not ok 3 - lab.yaml::third", "ok 4 # SKIP not run"} {
		if !strings.Contains("\n"+string(text), "\n"+line+"\n") {
			t.Errorf("no line %q: %s", line, text)
		}
	}
	if shown := stdout.String(); !strings.HasPrefix(strings.TrimSpace(shown[strings.LastIndex(shown, "\n\n"):]), "1 passed, 2 failed, 1 not run") {
		t.Errorf("stdout: %s", shown)
	}
}

// A process that could have no more threads has no bug, and no report of one.
func TestNoThreadsIsNoBug(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var stdout, stderr bytes.Buffer
	a := &app{args: []string{crashedCommand, process.Environment, "rdmarun: no more threads can be made: why\n", "", "run lab.yaml"},
		stdout: &stdout, stderr: &stderr, commands: commandConstructors}
	if code := a.run(); code != exitEnvironment || stderr.Len() != 0 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	a.args[1] = process.Bug
	if code := a.run(); code != exitBug || !strings.Contains(stderr.String(), "please report it with the file") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
