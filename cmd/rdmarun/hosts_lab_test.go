package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdmarun/internal/address"
)

// labOf writes a lab file with two network namespaces as hosts, and returns its path.
func labOf(t *testing.T, h hosts) string {
	t.Helper()
	quoted := func(words []string) string { return "[" + strings.Join(words, ", ") + "]" }
	return writeLab(t, fmt.Sprintf("hosts:\n  near: {command: %s, address: %s}\n  far: {command: %s}\n"+
		"place: {server: near, client: far}\n",
		quoted(on(h.near)), nearHost, quoted(on(h.far))))
}

func writeLab(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lab.yaml")
	if err := os.WriteFile(path, []byte("rdmarun: lab/v1\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// overLab is rdmarun with its output.
type overLab struct {
	*exec.Cmd
	output printed
}

func startOverLab(t *testing.T, words ...string) *overLab {
	t.Helper()
	return startRdmarun(t, append([]string{"run"}, words...)...)
}

// startRdmarun starts rdmarun, which has ended when the test does.
func startRdmarun(t *testing.T, words ...string) *overLab {
	t.Helper()
	return startRdmarunBy(t, nil, words...)
}

// startRdmarunBy starts it by a command, such as one that is on another host.
func startRdmarunBy(t *testing.T, by []string, words ...string) *overLab {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programPatience)
	line := slices.Concat(by, []string{os.Args[0]}, words)
	run := &overLab{Cmd: exec.CommandContext(ctx, line[0], line[1:]...)}
	t.Cleanup(func() {
		cancel()
		_ = run.Wait()
	})
	run.Env = append(os.Environ(), runAsRdmarun+"=1")
	run.Stdout, run.Stderr = &run.output, &run.output
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	return run
}

// ends waits for its end with that exit code, and returns what it has said.
func (o *overLab) ends(t *testing.T, code exitCode) string {
	t.Helper()
	_ = o.Wait()
	if got := o.ProcessState.ExitCode(); got != int(code) {
		t.Fatalf("exit code %d, not %d\n%s", got, code, o.output.String())
	}
	return o.output.String()
}

// agentsOf are the agents that a controller has started, here or through others.
func agentsOf(t *testing.T, controller int) (found []int) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	parents := make(map[int]int)
	agents := make(map[int]bool)
	for _, path := range processes {
		pid, _ := strconv.Atoi(filepath.Base(path))
		status, err := os.ReadFile(path + "/stat")
		line, bad := os.ReadFile(path + "/cmdline")
		if err != nil || bad != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(status[bytes.LastIndexByte(status, ')')+1:]))
		parents[pid], _ = strconv.Atoi(fields[1])
		agents[pid] = bytes.HasPrefix(line, []byte(os.Args[0]+"\x00agent\x00"))
	}
	for pid, is := range agents {
		for at := pid; is && at > 1; at = parents[at] {
			if at == controller {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

// awaitAgents waits until a controller has so many agents, of which each has a run.
func awaitAgents(t *testing.T, run *overLab, count int) []int {
	t.Helper()
	for end := time.Now().Add(programPatience); ; {
		if found := agentsOf(t, run.Process.Pid); len(found) == count &&
			strings.Contains(run.output.String(), "waits") {
			return found
		}
		if time.Now().After(end) {
			t.Fatalf("no agents come:\n%s", run.output.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// awaitEnds waits until processes have ended.
func awaitEnds(t *testing.T, processes []int) {
	t.Helper()
	for end := time.Now().Add(programPatience); slices.ContainsFunc(processes, func(pid int) bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && len(line) > 0
	}); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("some of the agents %v are left", processes)
		}
	}
}

// TestLabOfNamespaces: what ships runs over two hosts with a wire between.
func TestLabOfNamespaces(t *testing.T) {
	h := startHosts(t)
	lab, records, page := labOf(t, h), filepath.Join(t.TempDir(), "records.jsonl"),
		filepath.Join(t.TempDir(), "page.html")
	startOverLab(
		t, "--lab", lab, "../../scenarios/rping.yaml", "../../scenarios/negotiate.yaml", "-o", "jsonl="+records, "-o",
		"html="+page,
	).ends(t, exitOK)
	for file, want := range map[string]string{
		records: `{"role":"server","device":"soft0","address":"` + nearHost +
			`","host":"near","clock_within_ns":[0-9]+},` +
			`{"role":"client","device":"soft0","address":"` + farHost + `","host":"far","clock_within_ns":[0-9]+}`,
		page: `<b>client<small>far soft0 ` + farHost + `<br>times ±[0-9.]+\x{202f}[um]s</small></b>`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("nothing in %s is %s", filepath.Base(file), want)
		}
	}
	startOverLab(t, "--lab", lab, "../../scenarios/sweep.yaml", "-p", "duration=200ms", "--no-thresholds").ends(
		t, exitOK,
	)
}

// longCase says that it waits, and goes on for long.
const longCase = `rdmarun: v1
roles: {server: {}, client: {}}
steps: [{role: server, log: it waits}, {role: client, sleep: 10m}, {role: server, log: never}]
timeout: 20m
`

// TestLabBreaks: agents that are killed or stopped are named, a controller that is killed leaves nothing.
func TestLabBreaks(t *testing.T) {
	scenario := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(scenario, []byte(longCase), 0o600); err != nil {
		t.Fatal(err)
	}
	lab := writeLab(t, "hosts: {a: , b: }\nplace: {server: a, client: b}\n")
	for name, test := range map[string]struct {
		signal syscall.Signal
		want   string
	}{
		"killed":  {syscall.SIGKILL, "has ended unexpectedly (signal: killed)"},
		"stopped": {syscall.SIGSTOP, "says nothing for 4.5s"},
	} {
		for which := range 2 { // the one that runs the step, and the one that waits for it
			t.Run(fmt.Sprint(name, " ", which), func(t *testing.T) {
				t.Parallel()
				run := startOverLab(t, "--lab", lab, scenario)
				agents := awaitAgents(t, run, 2)
				slices.Sort(agents)
				if err := syscall.Kill(agents[which], test.signal); err != nil {
					t.Fatal(err)
				}
				if said := run.ends(t, exitEnvironment); !strings.Contains(said, test.want) {
					t.Errorf("nothing says %q:\n%s", test.want, said)
				}
				awaitEnds(t, agents)
			})
		}
	}
	t.Run("controller killed", func(t *testing.T) {
		t.Parallel()
		run := startOverLab(t, "--lab", lab, scenario)
		agents := awaitAgents(t, run, 2)
		if err := run.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = run.Wait()
		awaitEnds(t, agents)
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		run := startOverLab(t, "--lab", lab, scenario)
		agents := awaitAgents(t, run, 2)
		if err := run.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if said := run.ends(t, exitInterrupted); !strings.Contains(said, "client sleep: interrupted") {
			t.Errorf("%s", said)
		}
		awaitEnds(t, agents)
	})
}

// TestLabIsCut: the wire between two hosts that measure. Their launchers do not use it. So the transport gives up, at
// its own time, and the case fails with its error.
func TestLabIsCut(t *testing.T) {
	t.Parallel()
	h := startHosts(t)
	scenario := filepath.Join(t.TempDir(), "long.yaml")
	text := `rdmarun: v1
roles: {server: {}, client: {}}
steps:
  - log: it waits
  - measure: {kind: bandwidth, op: RDMA_WRITE, from: client, to: server, sizes: [64KiB], duration: 10m}
timeout: 20m
`
	if err := os.WriteFile(scenario, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := startOverLab(t, "--lab", labOf(t, h), scenario)
	agents := awaitAgents(t, run, 2)
	// Packets pass, so it is the measurement that is cut, and no connection before it.
	awaitTraffic(t, h.near, "near", 1<<20)
	do(t, h.near, "ip link set near down")
	if said := run.ends(t, exitFailed); !strings.Contains(said, "RETRY_EXC_ERR") {
		t.Errorf("%s", said)
	}
	awaitEnds(t, agents)
}

// awaitTraffic waits until an interface of a host has sent so many bytes.
func awaitTraffic(t *testing.T, host int, device string, least int) {
	t.Helper()
	words := append(on(host), "cat", "/proc/net/dev")
	for end := time.Now().Add(programPatience); ; time.Sleep(10 * time.Millisecond) {
		out, err := exec.Command(words[0], words[1:]...).Output()
		if err != nil {
			t.Fatal(err)
		}
		if _, line, is := strings.Cut(string(out), " "+device+":"); is {
			if fields := strings.Fields(line); len(fields) > 8 {
				if sent, err := strconv.Atoi(fields[8]); err == nil && sent >= least {
					return
				}
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%s has not sent %d bytes:\n%s", device, least, out)
		}
	}
}

// TestRoleStops: of two processes that each play a role, each misses the other when it waits for a step of it, or for a
// loop.
func TestRoleStops(t *testing.T) {
	for _, test := range []struct {
		which       int
		name, steps string
		says        string // once they run
	}{
		{0, "server", "{role: server, log: now}\n  - {role: server, sleep: 10m}", "now"},
		{1, "client", "{role: client, log: now}\n  - {role: client, sleep: 10m}", "now"},
		{
			1, "client in a loop",
			"{repeat: 1000000, as: i, do: [{role: client, sleep: 1ms}, {role: client, if: $(i == 1), log: it goes " +
				"round}]}",
			"it goes round",
		},
	} {
		which, name := test.which, []string{"server", "client"}[test.which]
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			scenario := filepath.Join(t.TempDir(), "long.yaml")
			steps := fmt.Sprintf("  - %s\n  - {role: server, log: never}\n  - {role: client, log: never}\n", test.steps)
			if err := os.WriteFile(scenario, []byte(twoRoles+steps), 0o600); err != nil {
				t.Fatal(err)
			}
			at := address.Free(t)
			both := []*overLab{
				startOverLab(t, "--link", "udp", "--meet", at, "--role", "server", scenario),
				startOverLab(
					t, "--link", "udp", "--meet", at, "--role", "client", "--peer", "server=127.0.0.1", scenario,
				),
			}
			both[which].await(t, test.says)
			if err := both[which].Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			if said := both[1-which].ends(t, exitEnvironment); !strings.Contains(
				said, "the process of "+name+" says nothing for 4.5s",
			) {
				t.Errorf("%s", said)
			}
			if err := both[which].Process.Kill(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// startSSH starts the system's ssh server for this user alone, with words by another program, and returns
// options of a host that uses it.  Programs that are sent there are in the folder cache of its folder.
func startSSH(t *testing.T, folder string, by ...string) string {
	t.Helper()
	server, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		t.Skip("there is no ssh server: it is in one of the packages of \"tools/setup.sh test\"")
	}
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command(
			"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(folder, key),
		).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if os.Getuid() == 0 { // where it leaves its rights
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, port, _ := strings.Cut(address.Free(t), ":")
	config := fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/user.pub\n"+
		"PidFile none\nUsePAM no\nStrictModes no\n"+
		"PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"+
		"SetEnv %s=1 XDG_CACHE_HOME=%s/cache\n", port, folder, folder, runAsRdmarun, folder)
	if err := os.WriteFile(filepath.Join(folder, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	words := append(by, server, "-D", "-e", "-f", filepath.Join(folder, "config"))
	daemon := exec.Command(words[0], words[1:]...)
	var said bytes.Buffer
	daemon.Stderr = &said
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		daemon.Process.Kill()
		daemon.Wait()
	})
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("host: 127.0.0.1, user: %s, port: %s, options: [IdentitiesOnly=yes, "+
		"StrictHostKeyChecking=no, LogLevel=ERROR, UserKnownHostsFile=/dev/null, ConnectionAttempts=20, "+
		"IdentityFile=%s",
		who.Username, port, folder)
}

// TestLabBySSH: by a real ssh, which has to bring the program first; one that wants a password is named with ssh's
// words.
func TestLabBySSH(t *testing.T) {
	t.Parallel()
	host := startSSH(t, t.TempDir())
	lab := writeLab(
		t,
		fmt.Sprintf("hosts: {a: {ssh: {%s/user]}}, b: {ssh: {%s/user]}}}\nplace: {server: a, client: b}\n", host, host),
	)
	for range 2 { // the second finds the program there
		startOverLab(t, "--lab", lab, "../../scenarios/rping.yaml").ends(t, exitOK)
	}
	lab = writeLab(t, fmt.Sprintf("hosts: {a: {ssh: {%s/host]}}}\n", host))
	said := startOverLab(t, "--lab", lab, "../../scenarios/rping.yaml").ends(t, exitEnvironment)
	if !strings.Contains(said, "host a: ") || !strings.Contains(said, "Permission denied") ||
		!strings.Contains(said, "once, by hand: ssh-copy-id -p ") {
		t.Errorf("%s", said)
	}
}

// TestLabStoppedBySSH: an agent that is stopped where ssh has started it does not see that its pipe ends, and is ended
// all the same.
func TestLabStoppedBySSH(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	host := startSSH(t, folder)
	lab := writeLab(t, fmt.Sprintf("hosts: {a: , b: {ssh: {%s/user]}}}\nplace: {server: a, client: b}\n", host))
	scenario := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(scenario, []byte(longCase), 0o600); err != nil {
		t.Fatal(err)
	}
	run := startOverLab(t, "--lab", lab, scenario)
	run.await(t, "it waits")
	var there []int
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && bytes.HasPrefix(line, []byte(folder)) &&
			bytes.Contains(line, []byte("\x00agent\x00--stdio")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			there = append(there, pid)
		}
	}
	if len(there) != 1 {
		t.Fatalf("its agents are %v", there)
	}
	if err := syscall.Kill(there[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	said := run.ends(t, exitEnvironment)
	if !strings.Contains(said, "the process of b says nothing for 4.5s") ||
		strings.Contains(said, "may be there still") {
		t.Errorf("%s", said)
	}
	awaitEnds(t, there)
}

// TestLabDiskIsFull: the error of a host that has no room for the program.
func TestLabDiskIsFull(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a small disk takes root")
	}
	folder := t.TempDir()
	cache := filepath.Join(folder, "cache")
	if err := os.Mkdir(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	host := startSSH(t, folder, "unshare", "-m", "sh", "-c", `mount -t tmpfs -o size=1m none "$0" && exec "$@"`, cache)
	lab := writeLab(t, fmt.Sprintf("hosts: {a: {ssh: {%s/user]}}}\n", host))
	said := startOverLab(t, "--lab", lab, "../../scenarios/rping.yaml").ends(t, exitEnvironment)
	if !strings.Contains(said, "host a: bring this program there: ") ||
		!strings.Contains(said, "No space left on device") || !strings.Contains(said, ": make room in ") {
		t.Errorf("%s", said)
	}
}
