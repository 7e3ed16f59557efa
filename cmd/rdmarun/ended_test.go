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

// records reads a file of records; whole means that its last line has an end.
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
		t.Skipf("a small file system cannot be mounted here (%v); run-out.txtar uses /dev/full instead", err)
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

// waitsForPeer is of two processes: the server waits for a message, and the client for its turn.  SURVIVOR is
// the role that logs that both are connected: its own next step is the same in each run.
const waitsForPeer = `rdmarun: v1
imports: {cm: std/cm}
timeout: 1h
stall_timeout: 1h
roles: {server: {}, client: {}}
steps:
  - {use: cm.pair}
  - {role: SURVIVOR, log: under way}
  - {role: server, poll: {ep: ep, cq: recv, within: 3s}}
  - {role: client, poll: {ep: ep, cq: recv, within: 3s}}
`

// trapsForPeer has cases with a guest that traps, so that the client gets no answer, or a step no listener.  In the
// last one, a guest computes without an end.
const trapsForPeer = `rdmarun: v1
timeout: 1h
stall_timeout: 1h
roles: {server: {guest: {module: trap.wasm}}, spinner: {guest: {module: spin.wasm}}, client: {}}
cases:
  - name: answer
    steps:
      - {role: server, guest: start}
      - {role: client, create_id: {}, as: id}
      - {role: client, wait_event: {ep: id, type: ESTABLISHED, within: 500ms}}
  - {name: listen, steps: [{role: server, guest: start}, {wait_listen: {role: server}}]}
  - name: runs
    steps:
      - {role: spinner, guest: start}
      - {role: client, create_id: {}, as: id}
      - {role: client, wait_event: {ep: id, type: ESTABLISHED, within: 200ms}}
`

// TestFailedGuestElsewhere: a guest that has trapped is the first failure in each process, also in those of other
// roles.  One that still runs is in the failure of the step, with its place.
func TestFailedGuestElsewhere(t *testing.T) {
	meet := address.Free(t)
	_, port, err := net.SplitHostPort(meet)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	files := map[string][]byte{
		"trap.yaml": []byte(trapsForPeer),
		"hosts.yaml": []byte(strings.ReplaceAll("rdmarun: lab/v1\nhosts: {a: {command: [env, RUN=1]}, "+
			"b: {command: [env, RUN=1]}}\nplace: {server: a, spinner: a, client: b}\n", "RUN", runAsRdmarun)),
	}
	for _, module := range []string{"trap.wasm", "spin.wasm"} {
		path := filepath.Join("..", "..", "host", "guest", "testdata", module)
		if files[module], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, all := filepath.Join(folder, "trap.yaml"), make(map[string]*runningProcess)
	for name, args := range map[string][]string{
		"server": {"--role", "server", "--role", "spinner", "--meet", meet},
		"client": {"--role", "client", "--meet", port, "--peer", "server=127.0.0.1", "--peer", "spinner=127.0.0.1"},
		"lab":    {"--lab", filepath.Join(folder, "hosts.yaml")},
	} {
		all[name] = start(t, "", append([]string{"run", file, "--link", "udp", "-q"}, args...)...)
	}
	for name, p := range all {
		status, text := p.end(t), p.stdout.String()
		if status.ExitStatus() != int(exitFailed) {
			t.Errorf("%s: exit code %d:\n%s%s", name, status.ExitStatus(), text, &p.stderr)
		}
		// The failures of each case follow its line, which names it.
		for id, want := range map[string][]string{
			"answer": {"had already ended: trapped", "\n", "in $0() i32", "wait_event: "},
			"listen": {"had already ended: trapped", "\n", "in $0() i32", "wait_listen: "},
			"runs":   {"wait_event: ", "spinner: its guest still runs, in a function without a name"},
		} {
			_, failures, _ := strings.Cut(text, "FAIL  "+file+"::"+id+"\n")
			failures, _, _ = strings.Cut(failures, "\nFAIL  ")
			for _, each := range want {
				var found bool
				if _, failures, found = strings.Cut(failures, each); !found {
					t.Errorf("%s, %s: %q is missing, or at another place:\n%s%s", name, id, each, text, &p.stderr)
					break
				}
			}
		}
	}
}

// TestKilledPeer: the death of a process is why the other fails, also where a step of its own has failed before it
// found that.  The command that the other prints fails in the same way when its peer is killed again.
func TestKilledPeer(t *testing.T) {
	for killed, survivor := range map[string]string{"client": "server", "server": "client"} {
		t.Run(killed, func(t *testing.T) {
			at := address.Free(t)
			_, port, err := net.SplitHostPort(at)
			if err != nil {
				t.Fatal(err)
			}
			commands := map[string]string{
				"server": "rdmarun run --link udp --role server --meet " + at + " lab.yaml",
				"client": "rdmarun run --link udp --role client --peer server=127.0.0.1 --meet " + port + " lab.yaml",
			}
			first := killPeer(t, commands, killed, survivor)
			if !strings.Contains(first.What, "the process of "+killed) || first.Rerun == "" {
				t.Fatalf("%+v", first)
			}
			commands[survivor] = first.Rerun
			again := killPeer(t, commands, killed, survivor)
			if again.What != first.What || again.Line != first.Line || again.Kind != first.Kind ||
				again.Rerun != first.Rerun {
				t.Errorf("%s\n%+v\n%+v", first.Rerun, first, again)
			}
		})
	}
}

// killPeer runs the commands of two processes that wait for each other, and kills one.  It gives the first failure of
// the other, which is an error of the environment.
func killPeer(t *testing.T, commands map[string]string, killed, survivor string) (failure record.Failure) {
	t.Helper()
	both := make(map[string]*runningProcess)
	for _, role := range []string{"server", "client"} {
		words := append(strings.Fields(commands[role])[1:], "-q", "-o", "jsonl=run.jsonl")
		both[role] = start(t, strings.Replace(waitsForPeer, "SURVIVOR", survivor, 1), words...)
	}
	both[survivor].until(t, "run.jsonl", "under way")
	if err := both[killed].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p := both[survivor]
	if status := p.end(t); status.ExitStatus() != int(exitEnvironment) {
		t.Errorf("%s: %v\n%s", survivor, status, &p.stderr)
	}
	_, err := jsonl.Read(strings.NewReader(p.read(t, "run.jsonl")), "run.jsonl", func(each *record.Record) error {
		if each.Kind == record.CaseEnd && len(each.Result.Failures) > 0 {
			failure = each.Result.Failures[0]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := p.stdout.String(); !strings.Contains(text, failure.What) || !strings.Contains(text, failure.Rerun) {
		t.Errorf("the terminal says another thing than %+v:\n%s", failure, text)
	}
	return failure
}
