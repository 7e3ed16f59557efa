package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
	"rdmarun/internal/address"
)

// runningProcess is rdmarun running in a folder of its own.
type runningProcess struct {
	*exec.Cmd
	folder         string
	stdout, stderr bytes.Buffer
	ended          chan error
}

// start starts this test's binary under the name for which TestMain runs main.
func start(t *testing.T, scenario string, args ...string) *runningProcess {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &runningProcess{folder: t.TempDir(), ended: make(chan error, 1)}
	if err := os.WriteFile(filepath.Join(p.folder, "lab.yaml"), []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Cmd = exec.Command(binary, args...)
	p.Args[0] = "rdmarun"
	p.Dir = p.folder
	p.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(p.folder, "state"), "GITHUB_ACTIONS=")
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.Cmd.Wait() }()
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// until waits until a file of the process has a text.
func (p *runningProcess) until(t *testing.T, name, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if data, err := os.ReadFile(filepath.Join(p.folder, name)); err == nil && strings.Contains(string(data), text) {
			return
		}
	}
	t.Fatalf("%s has no %q after a minute; stderr: %s", name, text, p.stderr.String())
}

// read is the text of a file of the process.
func (p *runningProcess) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// end waits for the end and returns its status.
func (p *runningProcess) end(t *testing.T) syscall.WaitStatus {
	t.Helper()
	select {
	case err := <-p.ended:
		exit := (*exec.ExitError)(nil)
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	return p.ProcessState.Sys().(syscall.WaitStatus)
}

// records reads a file of records; whole tells that its last line has an end.
func (p *runningProcess) records(t *testing.T, name string) (kinds []record.Kind, whole bool) {
	t.Helper()
	file, err := os.Open(filepath.Join(p.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	torn, err := jsonl.Read(file, name, func(r *record.Record) error {
		kinds = append(kinds, r.Kind)
		return nil
	})
	if err != nil {
		t.Errorf("a whole line is none: %v", err)
	}
	return kinds, !torn
}

// hangsInFinally is interrupted in its steps, and again in what follows them.
const hangsInFinally = `rdmarun: v1
roles: {server: {}}
timeout: 2h
stall_timeout: 2h
provider: {soft: {clock: wall}}
steps:
  - {log: in the steps}
  - {sleep: 1h}
finally:
  - {log: in finally}
  - {sleep: 1h}
`

func TestSecondSignalLeavesAtOnce(t *testing.T) {
	for name, second := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			p := start(t, hangsInFinally, "run", "lab.yaml", "-o", "jsonl=run.jsonl", "-o", "junit=run.xml")
			p.until(t, "run.jsonl", "in the steps")
			if err := p.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			p.until(t, "run.jsonl", "in finally") // which may take 10 s, and the first signal lets it
			if err := p.Process.Signal(second); err != nil {
				t.Fatal(err)
			}
			status := p.end(t)
			if !status.Signaled() || status.Signal() != second {
				t.Errorf("it ended with %v", status)
			}
			kinds, _ := p.records(t, "run.jsonl")
			if last := kinds[len(kinds)-1]; last == record.RunEnd || last == record.CaseEnd {
				t.Errorf("the records end with %s: finally was waited for", last)
			}
			if _, err := os.Stat(filepath.Join(p.folder, "run.xml")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is a report of half a run: %v", err)
			}
		})
	}
}

// A signal ends guests that do not look at anything, however many, and the run says which they were.
func TestSignalEndsAllGuests(t *testing.T) {
	const guests = 30
	module, err := filepath.Abs("../../host/guest/testdata/spin.wasm")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, fmt.Sprintf(`rdmarun: v1
roles: {spinner: {count: %d, guest: {module: %q}}, server: {}}
timeout: 2h
stall_timeout: 2h
provider: {soft: {clock: wall}}
steps:
  - repeat: %[1]d
    as: i
    do:
      - {role: "spinner[$(i)]", guest: start}
  - {log: all of them spin}
  - {sleep: 1h}
`, guests, module), "run", "lab.yaml", "-o", "jsonl=run.jsonl")
	p.until(t, "run.jsonl", "all of them spin")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := p.end(t); !status.Exited() || status.ExitStatus() != int(exitTerminated) {
		t.Errorf("it ended with %v: %s", status, &p.stderr)
	}
	for _, said := range []string{
		"spinner[0]: its guest still runs", "spinner[9]: its guest still runs", "and 20 guests more",
	} {
		if !strings.Contains(p.stdout.String(), said) {
			t.Errorf("%q is not said: %s", said, &p.stdout)
		}
	}
}

// TestSignalEndsTheCheck reads a file that does not arrive: reading and checking do not hold up a signal.
func TestSignalEndsTheCheck(t *testing.T) {
	for name, args := range map[string][]string{
		"run": {"run"}, "validate": {"validate"}, "validate json": {"validate", "--format=json"}, "list": {"list"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			pipe := filepath.Join(folder, "silent.yaml")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			p := start(t, hangsInFinally, append(args, pipe)...)
			p.untilOpen(t, pipe)
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			status := p.end(t)
			if status.ExitStatus() != int(exitTerminated) ||
				strings.Contains(p.stderr.String(), "nothing came through") {
				t.Errorf("it ended with %v\n%s", status.ExitStatus(), p.stderr.String())
			}
		})
	}
}

// untilOpen waits until the process has opened a file.
func (p *runningProcess) untilOpen(t *testing.T, path string) {
	t.Helper()
	descriptors := fmt.Sprintf("/proc/%d/fd", p.Process.Pid)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		entries, err := os.ReadDir(descriptors)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			if target, err := os.Readlink(filepath.Join(descriptors, entry.Name())); err == nil && target == path {
				return
			}
		}
	}
	t.Fatalf("%s is not opened; stderr: %s", path, p.stderr.String())
}

// busy writes records as fast as it can.
const busy = `rdmarun: v1
roles: {server: {}}
timeout: 2h
steps:
  - repeat: 1000000
    do:
      - {role: server, log: "a line of some length, so that a write is not always one block of the file system"}
`

func TestKilledRunLeavesWholeLines(t *testing.T) {
	for round := range 5 {
		p := start(t, busy, "run", "lab.yaml", "-q", "-o", "jsonl=run.jsonl", "-o", "html=run.html")
		p.until(t, "run.jsonl", "\"output\"")
		time.Sleep(time.Duration(round) * 7 * time.Millisecond) // anywhere in a write
		if err := p.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if status := p.end(t); !status.Signaled() {
			t.Errorf("it ended with %v", status)
		}
		if kinds, _ := p.records(t, "run.jsonl"); len(kinds) < 3 || kinds[0] != record.RunStart {
			t.Errorf("records %v", kinds[:min(3, len(kinds))])
		}
		entries, err := os.ReadDir(p.folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if name := entry.Name(); name != "lab.yaml" && name != "run.jsonl" && name != "state" {
				t.Errorf("%s is left behind", name)
			}
		}
	}
}

func TestFullDiskFailsTheRun(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mount("none", folder, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("a small file system cannot be mounted here (%v); /dev/full stands in for it in run-out.txtar", err)
	}
	defer func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Errorf("the report's file is still open: %v", err)
		}
	}()
	p := start(t, strings.Replace(busy, "1000000", "3000", 1), "run", "lab.yaml", "-q",
		"-o", "jsonl="+folder+"/run.jsonl", "-o", "tap=run.tap", "-o", "html="+folder+"/run.html", "-o",
		"junit="+folder+"/run.xml")
	status := p.end(t)
	if status.ExitStatus() != int(exitEnvironment) {
		t.Errorf("it ended with %v\n%s", status.ExitStatus(), p.stdout.String())
	}
	for _, want := range []string{
		"run.jsonl, which end here: write " + folder, "no space left on device", "the reports are not complete",
	} {
		if !strings.Contains(p.stderr.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, p.stderr.String())
		}
	}
	// What could be written is whole.
	text, err := os.ReadFile(filepath.Join(p.folder, "run.tap"))
	if err != nil || !bytes.Contains(text, []byte("ok 1 - lab.yaml")) {
		t.Errorf("the report elsewhere: %q, %v", text, err)
	}
	records := &runningProcess{folder: folder}
	if kinds, whole := records.records(t, "run.jsonl"); len(kinds) < 10 || !whole {
		t.Errorf("%d records, whole %v", len(kinds), whole)
	}
}

// waitsForPeer is of two processes: the server waits for a message, and the client for its turn.
const waitsForPeer = `rdmarun: v1
imports: {cm: std/cm}
timeout: 1h
stall_timeout: 1h
roles: {server: {}, client: {}}
steps:
  - {use: cm.pair}
  - {role: server, log: under way}
  - {role: server, poll: {ep: ep, cq: recv, within: 3s}}
  - {role: client, poll: {ep: ep, cq: recv, within: 3s}}
`

// TestKilledPeer: the death of a process is why the other fails, also where a step of its own has failed before it
// found that.
func TestKilledPeer(t *testing.T) {
	for _, killed := range []string{"client", "server"} {
		t.Run(killed, func(t *testing.T) {
			at := address.Free(t)
			_, port, err := net.SplitHostPort(at)
			if err != nil {
				t.Fatal(err)
			}
			both := map[string]*runningProcess{
				"server": start(
					t, waitsForPeer, "run", "lab.yaml", "--link", "udp", "--role", "server", "--meet", at, "-q", "-o",
					"jsonl=run.jsonl",
				),
				"client": start(
					t, waitsForPeer, "run", "lab.yaml", "--link", "udp", "--role", "client", "--peer",
					"server=127.0.0.1", "--meet", port, "-q", "-o", "jsonl=run.jsonl",
				),
			}
			both["server"].until(t, "run.jsonl", "under way")
			if err := both[killed].Process.Kill(); err != nil {
				t.Fatal(err)
			}
			delete(both, killed)
			for other, p := range both {
				if status := p.end(t); status.ExitStatus() != int(exitEnvironment) {
					t.Errorf("%s: %v", other, status)
				}
				if text := p.stdout.String(); !strings.Contains(text, "the process of "+killed) {
					t.Errorf("%s: no word of it:\n%s", other, text)
				}
			}
		})
	}
}
